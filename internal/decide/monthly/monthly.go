// Package monthly computes from charges what a month of each kind of workload costs: training, searches, stages of
// pipelines, sessions, inference and data.
package monthly

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Workloads of charges without a job.
const (
	Idle     = "(idle machines)"
	Reserved = "(reserved, unused)"
	Other    = "(no job)"
)

// Job is what the report needs to know of a job.
type Job struct {
	Workload  string
	Ended     bool // it has ended, and all of its cost lies within the report
	Succeeded bool
}

// Workload is what one kind of workload costs in one currency.
type Workload struct {
	Name     string
	Currency money.Currency
	Spent    money.Amount
	Months   []money.Amount // of each month of the report
	AMonth   *money.Amount  // mean of the whole months; nil: none is whole
	Runs     int            // jobs with a cost

	// Of the runs that have ended:
	Ended, Succeeded int
	Median, P90      *money.Amount // the lowest cost that half, or 90 %, of them do not exceed
	PerSuccess       *money.Amount // their cost by successful run; nil: none succeeded

	GPUHours   float64
	PerGPUHour *money.Amount // nil: no GPU ran
	ListedHour *money.Amount // the same at on-demand prices; nil: none is known
}

// Report collects charges.
type Report struct {
	First time.Time // begin of the first month
	whole []bool    // by month
	costs map[key]*cost
}

type key struct {
	name     string // of the job, or of a workload without jobs
	job      bool
	currency money.Currency
}

type cost struct {
	all               money.Amount
	months            []money.Amount
	gpuCost, gpuList  money.Amount
	gpuTime, listTime *big.Int // accelerator-nanoseconds
}

func (a *cost) add(b *cost) {
	a.all, a.gpuCost, a.gpuList = a.all.Add(b.all), a.gpuCost.Add(b.gpuCost), a.gpuList.Add(b.gpuList)
	for m := range a.months {
		a.months[m] = a.months[m].Add(b.months[m])
	}
	a.gpuTime.Add(a.gpuTime, b.gpuTime)
	a.listTime.Add(a.listTime, b.listTime)
}

// New returns a report of the month of now and as many before it as make months, but none before the month of began,
// the first cost. A month is whole if it is over and began is not in it.
func New(now, began time.Time, months int) *Report {
	r := &Report{First: charge.Month(now).AddDate(0, 1-months, 0), costs: map[key]*cost{}}
	if first := charge.Month(began); first.After(r.First) {
		r.First = first
	}
	for m := r.First; !m.After(now); m = charge.NextMonth(m) {
		r.whole = append(r.whole, !m.Before(began) && !charge.NextMonth(m).After(now))
	}
	return r
}

// Whole reports for each month whether it is whole.
func (r *Report) Whole() []bool { return slices.Clone(r.whole) }

func (r *Report) cost(of map[key]*cost, k key) *cost {
	if of[k] == nil {
		of[k] = &cost{months: make([]money.Amount, len(r.whole)), gpuTime: new(big.Int), listTime: new(big.Int)}
	}
	return of[k]
}

// Add adds a charge. Charges before the first month, or after the last, are left out.
func (r *Report) Add(c *charge.Charge) {
	begin := c.Begin.UTC()
	month := (begin.Year()-r.First.Year())*12 + int(begin.Month()) - int(r.First.Month())
	if month < 0 || month >= len(r.whole) {
		return
	}
	k := key{c.Owner.Job, true, c.Currency}
	if c.Owner.Job == "" {
		k.job, k.name = false, Other
		if c.Rule == state.ReservedRule {
			k.name = Reserved
		} else if c.Use == ledger.Idle {
			k.name = Idle
		}
	}
	a := r.cost(r.costs, k)
	a.all, a.months[month] = a.all.Add(c.Amount), a.months[month].Add(c.Amount)
	if c.Category != ledger.Compute || c.Accelerators == 0 {
		return
	}
	a.gpuCost = a.gpuCost.Add(c.Amount)
	long, timed := c.MachineTime()
	if !timed {
		return
	}
	long.Mul(long, big.NewInt(int64(c.Accelerators)))
	a.gpuTime.Add(a.gpuTime, long)
	if list, known := c.ListAmount(); known {
		a.gpuList = a.gpuList.Add(list)
		a.listTime.Add(a.listTime, long)
	}
}

// Jobs returns the names of all jobs with a cost, sorted.
func (r *Report) Jobs() []string {
	names := map[string]bool{}
	for k := range r.costs {
		if k.job {
			names[k.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Workloads returns the kinds of workloads, the most expensive first. of says what each job is.
func (r *Report) Workloads(of func(job string) Job) []Workload {
	sums, kinds, ended := map[key]*cost{}, map[key]*Workload{}, map[key][]money.Amount{}
	for k, c := range r.costs {
		into := k
		j := Job{}
		if k.job {
			j = of(k.name)
			into = key{cmp.Or(j.Workload, Other), false, k.currency}
		}
		w := kinds[into]
		if w == nil {
			w = &Workload{Name: into.name, Currency: into.currency}
			kinds[into] = w
		}
		if r.cost(sums, into).add(c); k.job {
			w.Runs++
		}
		if j.Ended {
			ended[into] = append(ended[into], c.all)
			if j.Succeeded {
				w.Succeeded++
			}
		}
	}
	list := make([]Workload, 0, len(kinds))
	for k, w := range kinds {
		r.fill(w, sums[k], ended[k])
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Workload) int {
		return cmp.Or(b.Spent.Cmp(a.Spent), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Currency, b.Currency))
	})
	return list
}

func (r *Report) fill(w *Workload, c *cost, ended []money.Amount) {
	w.Spent, w.Months, w.Ended = c.all, c.months, len(ended)
	var whole money.Amount
	months := 0
	for m, is := range r.whole {
		if is {
			whole, months = whole.Add(c.months[m]), months+1
		}
	}
	if months > 0 {
		w.AMonth = new(whole.Over(months))
	}
	if len(ended) > 0 {
		slices.SortFunc(ended, money.Amount.Cmp)
		w.Median, w.P90 = new(rank(ended, 50)), new(rank(ended, 90))
	}
	if w.Succeeded > 0 {
		var all money.Amount
		for _, a := range ended {
			all = all.Add(a)
		}
		w.PerSuccess = new(all.Over(w.Succeeded))
	}
	w.GPUHours, _ = new(big.Rat).SetFrac(c.gpuTime, big.NewInt(int64(time.Hour))).Float64()
	w.PerGPUHour, w.ListedHour = perHour(c.gpuCost, c.gpuTime), perHour(c.gpuList, c.listTime)
}

// rank returns the lowest value that at least percent of the sorted values do not exceed.
func rank(sorted []money.Amount, percent int) money.Amount {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// perHour returns the cost of an accelerator-hour, truncated to 1e-12; nil if there is no time.
func perHour(a money.Amount, long *big.Int) *money.Amount {
	if long.Sign() <= 0 {
		return nil
	}
	n := new(big.Int).Mul(a.Big(), big.NewInt(int64(time.Hour)))
	per, ok := money.FromBig(n.Quo(n, long))
	if !ok {
		return nil
	}
	return &per
}
