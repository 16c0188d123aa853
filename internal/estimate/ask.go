package estimate

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"scrimp/internal/estimate/shape"
)

// Request is a run as a user states it. Zero is unknown, except where a field says
// what zero means.
type Request struct {
	Model     shape.Model
	Chip      string // accelerator; "" asks for every one with a price
	Count     float64
	Precision string
	Seq       float64
	Micro     float64 // samples an accelerator takes in at a time; 0: the largest power of two that fits
	Global    float64 // samples a step; 0: micro × accumulate × replicas
	Gather    float64 // accumulation: micro-batches a step; 0: one
	Keep      Recompute
	Zero      int // ZeRO stage, 0 to 3
	Tuning    shape.Tuning
	TP, PP    float64
	Tokens    float64
	Epochs    float64
	Rows      float64
	Trees     float64
	Depth     float64
	Pixels    []Stage // progressive resizing, for models stated at 224; none: as stated
	Unit      string  // of throughput; "": what is usual for the model
	Program   string  // where the runs of the same program come from
	Price     float64 // dollars an hour for all accelerators together; 0: list price
}

// Stage is a part of a training in which images have a size.
type Stage struct{ Pixels, Share float64 }

// scaled is the model at the sizes of progressive resizing: work grows with the
// square of the size, so half the epochs at 128 and half at 224 cost 0.66.
func (q Request) scaled() shape.Model {
	m := q.Model
	if len(q.Pixels) == 0 {
		return m
	}
	k, all := 0.0, 0.0
	for _, s := range q.Pixels {
		k += s.Share * (s.Pixels / 224) * (s.Pixels / 224)
		all += s.Share
	}
	m.GMACs *= k / all
	m.Acts *= k / all
	return m
}

// Check refuses what no run can be: the field, why, and what it must be.
func (q Request) Check() error {
	if err := q.numbers(); err != nil {
		return err
	}
	if d := q.cut(); q.Count > 0 && math.Mod(q.Count, d) != 0 {
		return fmt.Errorf("%g accelerators are no multiple of tensor parallel degree × pipeline stages, %g", q.Count, d)
	}
	for _, s := range q.Pixels {
		if !(s.Pixels >= 8 && s.Pixels <= 1e4) || !(s.Share > 0 && s.Share <= 1e6) {
			return fmt.Errorf("resizing to %g for a share of %g: pixels from 8 to 10000, shares above 0", s.Pixels, s.Share)
		}
	}
	if len(q.Pixels) > 0 && q.Model.GMACs <= 0 {
		return fmt.Errorf("resizing is for models with multiply-accumulates an image, which %s has not", q.Model.Name)
	}
	if q.Zero < 0 || q.Zero > 3 {
		return fmt.Errorf("ZeRO stage %d: must be 0 to 3", q.Zero)
	}
	return nil
}

// cut is over how many accelerators the model is cut.
func (q Request) cut() float64 { return math.Max(1, q.TP) * math.Max(1, q.PP) }

// numbers refuses numbers that are outside their range, or not whole where they must be.
func (q Request) numbers() error {
	for _, f := range []struct {
		name     string
		v        float64
		min, max float64
		whole    bool
	}{
		{"accelerators (--gpu)", q.Count, 0, 1e6, true},
		{"sequence (--seq)", q.Seq, 0, 1e8, true},
		{"micro-batch (--micro)", q.Micro, 0, 1e7, false},
		{"global batch (--global)", q.Global, 0, 1e10, false},
		{"accumulation (--accumulate)", q.Gather, 0, 1e6, true},
		{"tensor parallel degree (--tp)", q.TP, 0, 1e4, true},
		{"pipeline stages (--pp)", q.PP, 0, 1e4, true},
		{"tokens (--tokens)", q.Tokens, 0, 1e17, false},
		{"epochs (--epochs)", q.Epochs, 0, 1e7, false},
		{"rows (--rows)", q.Rows, 0, 1e13, false},
		{"trees (--trees)", q.Trees, 0, 1e9, true},
		{"depth (--depth)", q.Depth, 0, 1e4, false},
		{"price (--price)", q.Price, 0, 1e7, false},
	} {
		if math.IsNaN(f.v) || f.v < f.min || f.v > f.max {
			return fmt.Errorf("%s of %g: must be from %g to %g", f.name, f.v, f.min, f.max)
		}
		if f.whole && f.v != math.Trunc(f.v) {
			return fmt.Errorf("%s of %g: must be a whole number", f.name, f.v)
		}
	}
	return nil
}

var taskOf = map[shape.Tuning]string{shape.LoRA: "finetune-lora", shape.QLoRA: "finetune-qlora",
	shape.Adapter: "finetune-adapter", shape.AdapterV2: "finetune-adapter-v2"}

// Row is the request on so many of an accelerator.
func (q Request) Row(chip Chip, count, micro float64) Row {
	m := q.scaled()
	r := Unstated()
	r.Given, r.Model, r.Family = &m, m.Name, string(m.Kind)
	r.Task = "train"
	if m.Kind == shape.Transformer || m.Kind == shape.Experts {
		r.Task = "pretrain"
	}
	if t, ok := taskOf[q.Tuning]; ok {
		r.Task = t
	}
	r.GPU, r.Spec, r.N, r.Precision, r.Source, r.Unit = chip.Name, chip.Name, count, q.Precision, q.Program, q.Unit
	if q.Tuning == shape.QLoRA && !strings.Contains(r.Precision, "nf4") {
		r.Precision = "bf16+nf4"
	}
	if chip.Mem > 0 {
		r.GPUMem = chip.Mem
	}
	set := func(p *float64, v float64) {
		if v > 0 {
			*p = v
		}
	}
	set(&r.Seq, q.Seq)
	set(&r.Micro, micro)
	set(&r.Epochs, q.Epochs)
	set(&r.Rows, q.Rows)
	set(&r.TreeN, q.Trees)
	set(&r.Depth, q.Depth)
	set(&r.Tokens, q.Tokens/1e9)
	replicas := count / q.cut()
	if q.Global > 0 {
		r.Global = q.Global
	} else if micro > 0 {
		r.Global = micro * math.Max(1, q.Gather) * replicas
	}
	switch q.Keep {
	case KeepEnds:
		r.Ckpt = "full"
	case KeepSome:
		r.Ckpt = "selective"
	case KeepAll:
		r.Ckpt = "none"
	}
	r.Sharding = []string{"", "zero1", "SHARD_GRAD_OP", "FULL_SHARD"}[q.Zero]
	var cut []string
	if q.TP > 1 {
		cut = append(cut, fmt.Sprintf("TP=%g", q.TP))
	}
	if q.PP > 1 {
		cut = append(cut, fmt.Sprintf("PP=%g", q.PP))
	}
	r.Parallel = strings.Join(cut, " ")
	return r
}

// Option is an answer for one accelerator and count.
type Option struct {
	Answer
	Chip  string  `json:"accelerator"`
	Count float64 `json:"count"`
	Micro float64 `json:"micro_batch,omitempty"` // 0: not chosen
}

// one answers for a count of an accelerator, and chooses the micro-batch where
// none is stated: the largest power of two, up to 256, that fits.
func (e *Estimator) one(q Request, chip Chip, count float64) Option {
	micro := q.Micro
	if m := q.Model; micro == 0 && (m.GMACs > 0 || q.Seq > 0) && m.Kind != shape.Trees {
		micro = e.largest(q, chip, count)
	}
	r := q.Row(chip, count, micro)
	prices := e.prices
	if q.Price > 0 {
		e.prices = flat(q.Price)
	}
	o := Option{Answer: e.Estimate(r), Chip: chip.Name, Count: count, Micro: micro}
	e.prices = prices
	return o
}

// largest is the largest power of two up to 256 that fits, and 1 where none does or
// nobody can say. Only the batch differs from one to the next, so the rest is worked
// out once; where memory was learned from runs its correction depends on the batch too.
func (e *Estimator) largest(q Request, chip Chip, count float64) float64 {
	r := q.Row(chip, count, 1)
	s := r.Setup(e.chips)
	if s.Card <= 0 {
		return 1
	}
	micro := 1.0
	for next := 1.0; next <= 256; next *= 2 {
		if s.Micro = next; len(e.weight.Seen) > 0 {
			r = q.Row(chip, count, next)
		}
		m, ok := s.Memory()
		mean, half := e.weigh(r)
		if !ok || !Fits(*around(m.Total()*math.Exp(mean), half), s.Card) {
			break
		}
		micro = next
	}
	return micro
}

// flat is a price that the user gave.
type flat float64

func (f flat) Hourly(string, string, float64) (float64, string, bool) {
	return float64(f), "as given", true
}

// Answer is the option of a request that names its accelerator. Where no count is stated it is
// the one that Options takes, and the fewest that the model can be cut over where none fits.
func (e *Estimator) Answer(q Request) (Option, error) {
	if err := q.Check(); err != nil {
		return Option{}, err
	}
	chip, ok := e.chips.Find(q.Chip)
	if !ok {
		return Option{}, fmt.Errorf("nothing is known of the accelerator %s", q.Chip)
	}
	if q.Count > 0 {
		return e.one(q, chip, q.Count), nil
	}
	if o, ok := e.few(q, chip); ok {
		return o, nil
	}
	return e.one(q, chip, q.cut()), nil
}

// few is the smallest count of 1, 2, 4 … 64 on which a run fits, and from there on what costs
// no more: one accelerator of a machine that is only sold with eight is paid for eight times.
func (e *Estimator) few(q Request, chip Chip) (best Option, ok bool) {
	paid := 0.0
	for n := 1.0; n <= 64; n *= 2 {
		usd, priced := q.Price, q.Price > 0
		if e.prices != nil && !priced {
			usd, _, priced = e.prices.Hourly(chip.Name, "", n)
		}
		if ok && (!priced || q.Price > 0 || usd > paid) {
			break
		}
		if !q.divides(n) {
			continue
		}
		o := e.one(q, chip, n)
		if o.Throughput == nil {
			break
		}
		if o.Fits != nil && !*o.Fits {
			continue
		}
		best, ok, paid = o, true, usd
		if q.Model.Kind == shape.Trees { // their programs take one
			break
		}
	}
	return best, ok
}

// divides reports whether the run can be cut over n accelerators.
func (q Request) divides(n float64) bool {
	return math.Mod(n, q.cut()) == 0 && (q.Global <= 0 || q.Micro <= 0 || n*q.Micro <= q.Global)
}

// Options answers a request for every accelerator that has a price: the smallest
// count of 1, 2, 4 … 64 on which it fits and those that are paid for with it, or the
// count that is stated. They are ordered by dollars, then by throughput for a dollar.
func (e *Estimator) Options(q Request) ([]Option, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	var out []Option
	for _, chip := range e.chips.sorted() {
		if !trains(chip, q.Model.Kind) {
			continue
		}
		if _, _, priced := e.prices.Hourly(chip.Name, "", math.Max(1, q.Count)); !priced {
			continue
		}
		var o Option
		var ok bool
		if q.Count > 0 {
			o = e.one(q, chip, q.Count)
			ok = o.Throughput != nil && (o.Fits == nil || *o.Fits)
		} else {
			o, ok = e.few(q, chip)
		}
		if ok {
			out = append(out, o)
		}
	}
	value := func(o Option) float64 {
		if o.Cost != nil {
			return o.Cost.Value
		}
		usd, _, _ := e.prices.Hourly(o.Chip, "", o.Count)
		return usd / o.Throughput.Value
	}
	sort.SliceStable(out, func(i, j int) bool { return value(out[i]) < value(out[j]) })
	return out, nil
}

// trains says whether an accelerator trains models of a kind at all: Inferentia
// serves them, and boosted trees have programs for one vendor's accelerators.
func trains(c Chip, k shape.Kind) bool {
	return !strings.HasPrefix(c.Name, "Inferentia") && (k != shape.Trees || c.Vendor == "nvidia")
}

// sorted is the chips by name, each once.
func (c Chips) sorted() []Chip {
	var out []Chip
	for _, k := range c {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Programme is what a number of experiments like one run need, a week and a year
// of 52 weeks.
type Programme struct {
	Runs  float64 `json:"runs_per_week"`
	Hours *Range  `json:"hours_per_week"` // of the machine, all runs after one another
	Week  *Range  `json:"week_usd"`
	Year  *Range  `json:"year_usd"`
}

// Programme is what so many of these runs a week need. The interval of a sum of
// runs that share one estimate is as wide as that of each.
func (a Answer) Programme(runs float64) Programme {
	p := Programme{Runs: runs}
	if a.Hours != nil {
		h := a.Hours.Times(runs)
		p.Hours = &h
	}
	if a.Cost != nil {
		w := a.Cost.Times(runs)
		y := w.Times(52)
		p.Week, p.Year = &w, &y
	}
	return p
}
