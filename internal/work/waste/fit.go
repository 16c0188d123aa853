package waste

import (
	"fmt"
	"math"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// Run is what the machines of one run of a recurring job were measured to do.
type Run struct {
	Job, Team, Series string
	SKU, Capacity     string
	Seconds           float64  // measured
	GPUs              int      // of the task
	GPU               *float64 // mean used share of its GPUs; nil: unknown
	Cores             *float64 // mean cores in use; nil: unknown
	Memory            *float64 // peak in bytes; nil: unknown
	GPUMemory         *float64 // sum of the peaks of its GPUs in bytes; nil: unknown
	GPUEach           int64    // memory of one GPU in bytes; 0: unknown
}

// Offer is a machine type for sale.
type Offer struct {
	Name, Provider, Region, SKU, Capacity string
	CPUs                                  int
	Memory                                int64 // bytes; 0: unknown
	Accelerator                           string
	Accelerators                          int
	Rate                                  money.Rate // of an hour
	Currency                              money.Currency
}

// measured is the use of a recurring job over its runs. A share is the mean over the measured time; cores and memory
// are those of the run that needed most.
type measured struct {
	runs, gpus               int
	gpu, cores, memory       float64
	gpuKnown, coreKnown, mem bool
	held, each               float64 // GPU memory: the peak of all GPUs together, and the memory of one
	heldKnown                bool
}

// measure returns the use of the runs of a series on one machine type.
func measure(runs []Run) (m measured) {
	weight := 0.0
	m.coreKnown, m.mem, m.heldKnown = len(runs) > 0, len(runs) > 0, len(runs) > 0
	for _, r := range runs {
		m.runs++
		m.gpus = max(m.gpus, r.GPUs)
		if r.GPU != nil && r.Seconds > 0 {
			m.gpu, weight = m.gpu+float64(*r.GPU*r.Seconds), weight+r.Seconds
		}
		if m.coreKnown = m.coreKnown && r.Cores != nil; m.coreKnown {
			m.cores = max(m.cores, *r.Cores)
		}
		if m.mem = m.mem && r.Memory != nil; m.mem {
			m.memory = max(m.memory, *r.Memory)
		}
		if m.heldKnown = m.heldKnown && r.GPUMemory != nil && r.GPUEach > 0; m.heldKnown {
			if m.held = max(m.held, *r.GPUMemory); m.each == 0 || float64(r.GPUEach) < m.each {
				m.each = float64(r.GPUEach)
			}
		}
	}
	if m.gpuKnown = weight > 0; m.gpuKnown {
		m.gpu /= weight
	}
	return m
}

// need is what a machine must have for the job.
type need struct {
	gpus, cpus int
	memory     float64
}

// needOf returns the needs of a job, with a margin. What is unknown stays as large as the present machine.
func needOf(m measured, at Offer) need {
	n := need{gpus: at.Accelerators, cpus: at.CPUs, memory: float64(at.Memory)}
	if m.gpuKnown && m.gpu < UsedBelow && m.heldKnown { // fewer GPUs have less memory
		n.gpus = max(1, int(math.Ceil(float64(at.Accelerators)*m.gpu/UseOf)), int(math.Ceil(m.held*MemoryRoom/m.each)))
		if m.gpu < NoUse && m.held < NoUse*m.each {
			n.gpus = 0
		}
		n.gpus = min(n.gpus, at.Accelerators)
	}
	if m.coreKnown {
		n.cpus = min(at.CPUs, max(1, int(math.Ceil(m.cores/UseOf))))
	}
	if m.mem && at.Memory > 0 {
		n.memory = min(n.memory, m.memory*MemoryRoom)
	}
	return n
}

// gpuEvidence says how little the GPUs were used; nil: they were busy, or nobody knows.
func (m measured) gpuEvidence() []string {
	if m.gpus == 0 || !m.gpuKnown || m.gpu >= UsedBelow {
		return nil
	}
	used := fmt.Sprintf("its GPUs were used %.0f %%", 100*m.gpu)
	if !m.heldKnown {
		return []string{used, "their memory was not measured"}
	}
	return []string{used, fmt.Sprintf("their memory peaked at %s of %s", size.About(m.held),
		size.About(m.each*float64(m.gpus)))}
}

// evidence says what is too large; "": nothing is. A machine with GPUs is not too large while its GPUs are busy, or if
// nobody knows whether they are.
func (m measured) evidence(at Offer, known bool) string {
	parts := m.gpuEvidence()
	if len(parts) == 0 && (m.gpus > 0 || at.Accelerators > 0) {
		return ""
	}
	small := known && m.mem && at.Memory > 0 && m.memory < UsedBelow*float64(at.Memory)
	low := known && m.coreKnown && at.CPUs > 0 && m.cores < UsedBelow*float64(at.CPUs)
	if small && (low || len(parts) > 0) {
		parts = append(parts, fmt.Sprintf("its host memory peaked at %s of %s", size.About(m.memory),
			size.About(float64(at.Memory))))
	}
	if low && len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("it used %.1f of %d cores", m.cores, at.CPUs))
	}
	return strings.Join(parts, ", ")
}

// smaller returns the cheapest offer that fits, of the same provider, region, capacity and kind of accelerator.
func (s *search) smaller(at Offer, n need) (best Offer, ok bool) {
	for _, o := range s.Offers {
		if o.SKU == at.SKU || !o.replaces(at, n) {
			continue
		}
		if !ok || o.Rate < best.Rate || o.Rate == best.Rate && o.Name < best.Name {
			best, ok = o, true
		}
	}
	return best, ok
}

// replaces reports whether an offer of the same place and sort has what is needed.
func (o Offer) replaces(at Offer, n need) bool {
	switch {
	case o.Provider != at.Provider || o.Region != at.Region || o.Capacity != at.Capacity || o.Currency != at.Currency:
		return false
	case o.CPUs < n.cpus || float64(o.Memory) < n.memory || o.Accelerators < n.gpus:
		return false
	case n.gpus > 0:
		return o.Accelerator == at.Accelerator
	}
	return o.Accelerators == 0
}

// own returns the cheapest offer of the machine type that the row names.
func (s *search) own(r *Row) (at Offer, ok bool) {
	for _, o := range s.Offers {
		if o.Provider == r.Provider && o.Region == r.Region && o.SKU == r.SKU && o.Capacity == r.Capacity &&
			o.Currency == r.Currency && (!ok || o.Rate < at.Rate) {
			at, ok = o, true
		}
	}
	return at, ok
}

// oversized claims the machine time of recurring jobs that use too little of their machines.
func (s *search) oversized() {
	runs := map[string][]Run{}
	for _, r := range s.Runs {
		k := strings.Join([]string{r.Team, r.Series, r.SKU, r.Capacity}, "\x00")
		runs[k] = append(runs[k], r)
	}
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		ok := r.Series != "" && r.Job != "" && r.Time > 0 && !r.Idle && !r.Part && !r.Reserved && r.Capacity != "reserved"
		return r.Series + " on " + r.SKU + ", " + r.Capacity + "\x00" + r.Provider + "\x00" + r.Region, r.Team, ok
	}) {
		row := &s.rows[p.rows[0]]
		p.about, _, _ = strings.Cut(p.about, "\x00")
		m := measure(runs[strings.Join([]string{row.Team, row.Series, row.SKU, row.Capacity}, "\x00")])
		at, listed := s.own(row)
		text := m.evidence(at, listed)
		if m.runs < RunsLeast || p.time < TimeLeast || text == "" {
			continue
		}
		f := Finding{Kind: Oversized, Action: Shrink, Command: "scrimp diagnose " + p.jobs[len(p.jobs)-1],
			Evidence: fmt.Sprintf("over %d measured runs and %s, %s", m.runs, hours(p.time), text)}
		if o, ok := s.smaller(at, needOf(m, at)); ok && listed {
			s.shrink(p, &f, o)
		}
		if f.saved == nil {
			f.Evidence += "; no smaller machine for sale is known to fit and to cost less"
		}
		s.claim(p, f)
	}
}

// shrink adds what the same hours cost on a smaller machine, if that is less than what they did cost.
func (s *search) shrink(p *candidate, f *Finding, o Offer) {
	saved := p.cost
	for _, i := range p.rows {
		saved = saved.Sub(o.Rate.Until(s.rows[i].Time))
	}
	if saved.Sign() <= 0 || o.Rate < 0 {
		return
	}
	f.saved, f.Waste = &saved, new(saved)
	f.Evidence += fmt.Sprintf("; %s at %s %s an hour fits with a margin", o.SKU, o.Currency, o.Rate)
	parts := []string{fmt.Sprintf("cpus: %d", o.CPUs)}
	if o.Memory > 0 {
		parts = append(parts, "memory: "+size.Bytes(o.Memory).String())
	}
	if o.Accelerators > 0 {
		parts = append(parts, fmt.Sprintf("accelerator: %s:%d", o.Accelerator, o.Accelerators))
	}
	f.Command = "write resources: {" + strings.Join(parts, ", ") + "} in the job file"
}

// Promise is what an applied finding was expected to save.
type Promise struct {
	ID       string         `json:"id"`
	Kind     Kind           `json:"kind"`
	Team     string         `json:"team"`
	About    string         `json:"about"`
	Action   Action         `json:"action"`
	Currency money.Currency `json:"currency"`
	Monthly  *money.Amount  `json:"monthly"` // what it cost a month; nil: unknown
	Saving   *money.Amount  `json:"saving"`  // a month; nil: unknown
	// Begins and Ends bound the time in which a saving that comes once accrues; zero: it comes every month.
	Begins   time.Time `json:"begins,omitzero"`
	Ends     time.Time `json:"ends,omitzero"`
	Pipeline string    `json:"pipeline,omitempty"` // identity of what a schedule runs; "": unknown
}

// Promise returns what the finding promises.
func (f *Finding) Promise() Promise {
	return Promise{ID: f.ID, Kind: f.Kind, Team: f.Team, About: f.About, Action: f.Action, Currency: f.Currency,
		Monthly: f.Monthly, Saving: f.Saving, Begins: f.Begins, Ends: f.Ends, Pipeline: f.Pipeline}
}

// Outcome is what an applied finding saved so far.
type Outcome struct {
	Span  time.Duration // measured: at most a month
	Over  bool          // a month has passed
	Cost  money.Amount  // of the same thing since then
	Due   *money.Amount // the promised saving of the span; nil: unknown
	Saved *money.Amount // what it would have cost less Cost; nil: unknown
}

// Measure compares a promise with the ledger since the time of the decision. Groups says what each group is a run of.
func Measure(p Promise, at, now time.Time, rows []Row, groups map[string]Group) Outcome {
	end := at.Add(Month)
	o := Outcome{Span: Month, Over: !now.Before(end)}
	if !o.Over {
		end, o.Span = now, max(0, now.Sub(at))
	}
	from := at
	if p.Begins.After(at) {
		from = p.Begins
	}
	before := map[string]bool{} // groups that were running when it was decided
	for i := range rows {
		if r := &rows[i]; r.Group != "" && r.Begin.Before(at) {
			before[r.Group] = true
		}
	}
	fresh := money.Amount{} // cost of what began since
	for i := range rows {
		if r := &rows[i]; r.Currency == p.Currency && p.covers(r, groups) {
			cost := r.within(from, end)
			o.Cost = o.Cost.Add(cost)
			if r.Group == "" || !before[r.Group] {
				fresh = fresh.Add(cost)
			}
		}
	}
	if p.Kind == UnusedMachine {
		o.once(p, end)
		return o
	}
	o.Due = scaled(p.Saving, o.Span, Month)
	if o.Saved = scaled(p.Monthly, o.Span, Month); o.Saved != nil {
		pace := *o.Saved
		if *o.Saved = pace.Sub(o.Cost); o.Saved.Sign() < 0 { // what was running is no new cost
			*o.Saved = least(money.Amount{}, pace.Sub(fresh))
		}
	}
	return o
}

// once fills in the promise and the saving of what would have ended by itself.
func (o *Outcome) once(p Promise, end time.Time) {
	whole := p.Ends.Sub(p.Begins)
	if p.Ends.IsZero() || whole <= 0 {
		return
	}
	if o.Due = scaled(p.Saving, min(whole, max(0, end.Sub(p.Begins))), whole); o.Due != nil {
		if o.Saved = new(o.Due.Sub(o.Cost)); o.Saved.Sign() < 0 && o.Saved.Cmp(money.Picos(-rounding)) > 0 {
			*o.Saved = money.Amount{}
		}
	}
}

// rounding is the largest difference, in 1e-12, that cuts of the ledger make: below what any bill shows.
const rounding = 1000

func least(a, b money.Amount) money.Amount {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// scaled is Scaled of an amount that may be unknown.
func scaled(a *money.Amount, to, from time.Duration) *money.Amount {
	if a == nil {
		return nil
	}
	if v, ok := Scaled(*a, to, from); ok {
		return &v
	}
	return nil
}

// covers reports whether a row is a cost of what the promise is about: the idle time of a machine, or every run of the
// same pipeline, whoever began it.
func (p *Promise) covers(r *Row, groups map[string]Group) bool {
	switch p.Kind {
	case UnusedMachine:
		return r.Idle && r.Instance == p.About
	case FailingSchedule:
		g, ok := groups[r.Group]
		return ok && (g.Schedule == p.About || p.Pipeline != "" && g.Pipeline == p.Pipeline)
	case UnusedReservation, OrphanVolume, UnknownMachine, SilentMachine, IdleTime, Oversized, Untagged, BillLine:
	}
	return false
}

// within returns what a row cost between two times.
func (r *Row) within(from, until time.Time) money.Amount {
	part, _ := r.Between(from, until)
	return part.Amount
}

// Between returns the part of a row between two times; false: it has none. The parts of spans that meet add up exactly.
// A row without a length belongs to the moment of its begin.
func (r Row) Between(from, until time.Time) (Row, bool) {
	whole := r.End.Sub(r.Begin)
	if whole <= 0 {
		return r, !r.Begin.Before(from) && r.Begin.Before(until)
	}
	begin, end := r.Begin, r.End
	if begin.Before(from) {
		begin = from
	}
	if end.After(until) {
		end = until
	}
	if !begin.Before(end) {
		return Row{}, false
	}
	upTo := func(t time.Time) (money.Amount, time.Duration) {
		a, _ := Scaled(r.Amount, t.Sub(r.Begin), whole) // no more than the whole
		d, _ := Scaled(money.Picos(int64(r.Time)), t.Sub(r.Begin), whole)
		return a, time.Duration(d.Big().Int64())
	}
	a1, t1 := upTo(begin)
	a2, t2 := upTo(end)
	r.Begin, r.End, r.Amount, r.Time = begin, end, a2.Sub(a1), t2-t1
	return r, true
}
