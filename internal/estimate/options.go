package estimate

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/market/accelerator"
)

// Option is an answer for one accelerator and count.
type Option struct {
	Answer
	Chip    string            `json:"accelerator"`
	Count   float64           `json:"count"`
	Micro   float64           `json:"micro_batch,omitempty"` // 0 if not chosen
	Machine *hardware.Machine `json:"machine,omitempty"`     // carries the accelerators; nil if unknown
}

// one answers for a count of an accelerator, on the machine for sale with the lowest cost per unit of work. If no
// micro-batch is stated, it chooses the largest power of two, up to 256, that fits.
func (e *Estimator) one(q Request, chip hardware.Chip, count float64) Option {
	micro := q.Micro
	if m := q.Model; micro == 0 && (m.GMACs > 0 || q.Seq > 0) && m.Kind != shape.Trees {
		micro = e.largest(q, chip, count)
	}
	r := q.Row(chip, count, micro)
	var best Option
	least := math.Inf(1)
	for i, h := range e.hosts(q, chip, count) {
		r.Host = h.Host()
		o := Option{Answer: e.Estimate(r), Chip: chip.Name, Count: count, Micro: micro}
		if h.Each > 0 {
			o.Machine = &h
		}
		paid := math.Inf(1) // per unit of work
		if o.Throughput != nil {
			paid = h.Hourly / o.Throughput.Value
		}
		if i == 0 || paid < least {
			best, least = o, paid
		}
	}
	if _, why, err := chip.Format(q.Precision); err == nil && why != "" && q.Model.Kind != shape.Trees {
		best.Provenance = strings.TrimSuffix(best.Provenance, ".") + "; " + why + "."
	}
	return best
}

// largest returns the largest power of two up to 256 that fits, or 1 if none does or the memory is unknown. Only the
// batch differs between candidates, so the rest is computed once; a learned memory correction depends on the batch,
// too.
func (e *Estimator) largest(q Request, chip hardware.Chip, count float64) float64 {
	r := q.Row(chip, count, 1)
	s := physics.SetupOf(r, e.chips)
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

// Answer returns the option of a request that names its accelerator. If no count is stated, it uses the count of
// Options, or the smallest count that the model can be split over if none fits.
func (e *Estimator) Answer(q Request) (Option, error) {
	if err := q.Check(); err != nil {
		return Option{}, err
	}
	chip, ok := e.chips.Find(q.Chip)
	if !ok {
		return Option{}, fmt.Errorf("nothing is known of the accelerator %s", q.Chip)
	}
	if err := q.runs(chip); err != nil {
		return Option{}, err
	}
	if q.Count > 0 {
		return e.one(q, chip, q.Count), nil
	}
	if o, ok := e.few(q, chip); ok {
		return o, nil
	}
	return e.one(q, chip, q.cut()), nil
}

// few returns the smallest count of 1, 2, 4 … 64 on which a run fits, or a larger one for the same price: one
// accelerator of a machine that is sold only with eight costs as much as eight.
func (e *Estimator) few(q Request, chip hardware.Chip) (best Option, ok bool) {
	paid := 0.0
	for n := 1.0; n <= 64; n *= 2 {
		if usd, priced := e.least(chip.Name, "", n); ok && (!priced || q.Price > 0 || usd > paid) {
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
		best, ok, paid = o, true, o.Hourly
		if q.Model.Kind == shape.Trees { // their programs use one
			break
		}
	}
	return best, ok
}

// divides reports whether the run can be split over n accelerators.
func (q Request) divides(n float64) bool {
	return math.Mod(n, q.cut()) == 0 && (q.Global <= 0 || q.Micro <= 0 || n*q.Micro <= q.Global)
}

// Options answers a request for every accelerator with a price: with the stated count, or else with the smallest count
// of 1, 2, 4 … 64 on which it fits, plus those that the same price includes. The options are sorted by dollars, then by
// throughput per dollar.
func (e *Estimator) Options(q Request) ([]Option, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	var out []Option
	for _, chip := range e.chips.Sorted() {
		if q.runs(chip) != nil {
			continue
		}
		if _, priced := e.least(chip.Name, "", math.Max(1, q.Count)); !priced {
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
		return o.Hourly / o.Throughput.Value
	}
	sort.SliceStable(out, func(i, j int) bool { return value(out[i]) < value(out[j]) })
	return out, nil
}

// runs returns why an accelerator cannot train the request: Inferentia only serves models, boosted trees have programs
// for one vendor's accelerators, and not every accelerator supports every format.
func (q Request) runs(c hardware.Chip) error {
	switch {
	case accelerator.InferenceOnly(c.Name):
		return fmt.Errorf("%s %w", c.Name, ErrInferenceOnly)
	case q.Model.Kind == shape.Trees && c.Vendor != "nvidia":
		return fmt.Errorf("no program grows boosted trees on %s: name one of NVIDIA's", c.Name)
	case q.Model.Kind == shape.Trees:
		return nil
	}
	if _, _, err := c.Format(q.Precision); err != nil {
		return fmt.Errorf("%w: %w", ErrPrecision, err)
	}
	return nil
}

// Reasons why an accelerator trains nothing, or not the request.
var (
	ErrInferenceOnly = errors.New("serves models and trains none")
	ErrPrecision     = errors.New("no such format")
)

// hosts returns the machines to estimate for: the stated ones, those for sale, or an unknown one.
func (e *Estimator) hosts(q Request, chip hardware.Chip, count float64) []hardware.Machine {
	switch {
	case q.Host != nil:
		return []hardware.Machine{*q.Host}
	case q.Price > 0:
		return []hardware.Machine{{Hourly: q.Price, Source: "as given"}}
	case e.prices != nil:
		if list := e.prices.Machines(chip.Name, "", count); len(list) > 0 {
			return list
		}
	}
	return []hardware.Machine{{}}
}
