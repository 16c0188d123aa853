package incident

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// fleet generates the ledger rows of some teams with normal activity: jobs on spot and on-demand, groups of trials,
// nightly jobs, interruptions, idle times, volumes, transfer, and prices that move or arrive late.
type fleet struct {
	*rand.Rand
	start time.Time
	days  int
	rows  []Row
	n     int
	extra []loss // the cost of the planted incident
}

// loss is money wasted by an incident over a span.
type loss struct {
	begin, end time.Time
	cost       float64
}

// lost returns the money wasted before a time.
func (f *fleet) lost(until time.Time) (sum float64) {
	for _, l := range f.extra {
		switch {
		case !l.end.After(until):
			sum += l.cost
		case l.begin.Before(until):
			sum += l.cost * until.Sub(l.begin).Hours() / l.end.Sub(l.begin).Hours()
		}
	}
	return sum
}

type sku struct {
	name      string
	list, now float64
}

var skus = []sku{{"g5.xlarge", 1.0, 0.4}, {"g5.12xlarge", 5.7, 2.3}, {"p4d.24xlarge", 32.8, 13}}

func (f *fleet) id(kind string) string { f.n++; return fmt.Sprintf("%s-%d", kind, f.n) }

// spot returns the spot price at a time: it moves slowly within a few per cent.
func (s *sku) spot(at time.Time) float64 {
	h := float64(at.Unix()) / 3600
	return s.now * (1 + 0.06*math.Sin(h/37+s.list) + 0.04*math.Sin(h/5.3))
}

// machine adds machine time, split at whole hours.
func (f *fleet) machine(r Row, s *sku, begin, end time.Time) {
	for begin.Before(end) {
		cut := begin.Truncate(time.Hour).Add(time.Hour)
		if cut.After(end) {
			cut = end
		}
		price := s.spot(begin)
		if r.Capacity == "on-demand" {
			price = s.list
		}
		r.Begin, r.End, r.Machine, r.Category, r.SKU, r.Provider, r.Region = begin, cut, true, ledger.Compute, s.name, "aws", "us-east-1"
		r.Price, r.Amount, r.Currency = rate(price), dollars(price*cut.Sub(begin).Hours()), "USD"
		if r.BusyKnown {
			r.Busy = max(0, min(1, r.Busy+0.03*f.NormFloat64()))
		}
		f.rows = append(f.rows, r)
		begin = cut
	}
}

func rate(v float64) ledger.Price { return ledger.PriceOf(money.Rate(int64(v*1e12)), true) }

func dollars(v float64) money.Amount { a, _ := money.Estimated(v); return a }

// job adds one job with its attempts, idle time, volume and transfer, and returns its end.
func (f *fleet) job(r Row, s *sku, begin time.Time, length time.Duration) time.Time {
	r.BusyKnown, r.Busy = true, 0.55+0.4*f.Float64()
	at, left := begin, length
	for try := 1; left > 0; try++ {
		r.Attempt, r.Instance = fmt.Sprint(try), f.id("i")
		run, lost := left, false
		if r.Capacity == "spot" && f.Float64() < 0.04*left.Hours() && left > time.Hour {
			run, lost = time.Duration(float64(left)*f.Float64()), true
		}
		r.Use = ledger.StartUp
		first := at
		f.machine(r, s, at, at.Add(4*time.Minute))
		at = at.Add(4 * time.Minute)
		r.Use = ledger.Useful
		f.machine(r, s, at, at.Add(run))
		at, left = at.Add(run), left-run
		if lost {
			r.Use = ledger.Lost
			f.machine(r, s, at, at.Add(10*time.Minute))
			at = at.Add(10 * time.Minute)
		}
		idle := r
		idle.Job, idle.Attempt, idle.Use, idle.BusyKnown, idle.Group, idle.Series = "", "", ledger.Idle, false, "", ""
		rest := time.Duration(5+f.IntN(16)) * time.Minute
		f.machine(idle, s, at, at.Add(rest))
		f.plain(idle, ledger.Storage, 0.01*at.Add(rest).Sub(first).Hours(), first, at.Add(rest+time.Duration(f.IntN(9))*time.Minute))
	}
	r.Instance = ""
	f.plain(r, ledger.Transfer, 0.02+0.1*f.ExpFloat64(), at, at.Add(10*time.Minute))
	return at
}

// plain adds a cost without machine time.
func (f *fleet) plain(r Row, c ledger.Category, cost float64, begin, end time.Time) {
	r.Machine, r.Category, r.Use, r.SKU, r.Capacity, r.BusyKnown = false, c, ledger.Useful, "", "", false
	r.Begin, r.End, r.Amount, r.Currency, r.Price = begin, end, dollars(cost), "USD", ledger.Price{}
	f.rows = append(f.rows, r)
}

func (f *fleet) capacity() string {
	if f.IntN(8) == 0 {
		return "on-demand"
	}
	return "spot"
}

// length draws the length of a job.
func (f *fleet) length(hours float64) time.Duration {
	return time.Duration(hours * math.Exp(0.6*f.NormFloat64()) * float64(time.Hour)).Round(time.Minute)
}

// usual adds the normal activity of a team. The cost of its nightly jobs grows by the factor grows each day.
func (f *fleet) usual(team string, size float64, grows func(day int) float64) {
	for day := range f.days {
		midnight := f.start.AddDate(0, 0, day)
		busy := size
		if w := midnight.Weekday(); w == time.Saturday || w == time.Sunday {
			busy /= 2
		}
		at := func() time.Time {
			return midnight.Add(time.Duration((8+10*f.Float64()+3*f.NormFloat64())*3600) * time.Second)
		}
		for range int(busy * (6 + 6*f.Float64())) {
			f.job(Row{Team: team, Project: "p", Job: f.id(team), Capacity: f.capacity()}, &skus[f.IntN(2)+f.IntN(4)/3], at(), f.length(2.5))
		}
		for range int(2 * busy * f.Float64() * 1.5) {
			group, begin, s := f.id(team+"-study"), at(), &skus[f.IntN(2)]
			for range 6 + f.IntN(25) {
				f.job(Row{Team: team, Project: "p", Group: group, Job: f.id(group), Capacity: "spot"}, s,
					begin.Add(time.Duration(f.IntN(240))*time.Minute), f.length(0.7))
			}
		}
		for i, name := range []string{"nightly", "evaluate"} {
			hours := []float64{3, 1}[i] * (1 + 0.03*f.NormFloat64()) * grows(day)
			f.job(Row{Team: team, Project: "p", Series: team + "/" + name, Job: f.id(name), Capacity: []string{"on-demand", "spot"}[i]},
				&skus[i], midnight.Add(2*time.Hour), time.Duration(hours*float64(time.Hour)))
		}
	}
	for range f.days / 2 { // prices that are some minutes late
		f.unprice(team, f.start.Add(time.Duration(f.Float64()*float64(f.days)*24)*time.Hour), 4*time.Minute, "")
	}
}

// unprice removes the price of machine time within a span, at row boundaries.
func (f *fleet) unprice(team string, from time.Time, long time.Duration, name string) {
	until := from.Add(long)
	for i, n := 0, len(f.rows); i < n; i++ {
		r := f.rows[i]
		if !r.Machine || r.Team != team || name != "" && r.SKU != name || !r.End.After(from) || !r.Begin.Before(until) {
			continue
		}
		hours, price := r.End.Sub(r.Begin).Hours(), r.Price.Rate.Float()
		if r.Begin.Before(from) {
			a := r
			a.End, a.Amount = from, dollars(r.Amount.Float()*from.Sub(r.Begin).Hours()/hours)
			f.rows = append(f.rows, a)
			r.Begin = from
		}
		if r.End.After(until) {
			b := r
			b.Begin, b.Amount = until, dollars(f.rows[i].Amount.Float()*r.End.Sub(until).Hours()/hours)
			f.rows = append(f.rows, b)
			r.End = until
		}
		if name != "" {
			f.extra = append(f.extra, loss{r.Begin, r.End, price * r.End.Sub(r.Begin).Hours()})
		}
		r.Amount, r.Price = money.Amount{}, ledger.Price{}
		f.rows[i] = r
	}
}

func flat(int) float64 { return 1 }

func newFleet(seed uint64, days int) *fleet {
	return &fleet{Rand: rand.New(rand.NewPCG(seed, 36)), start: time.Date(2026, 8, 3, 0, 0, 0, 0, time.UTC), days: days}
}

// waste adds machine time or a plain cost and counts all of it as lost.
func (f *fleet) waste(add func()) {
	n := len(f.rows)
	add()
	for _, r := range f.rows[n:] {
		f.extra = append(f.extra, loss{r.Begin, r.End, r.Amount.Float()})
	}
}

// incidents plants an incident of each kind into team "a" at a time.
var incidents = []struct {
	name  string
	kinds []Kind
	plant func(f *fleet, at time.Time)
}{
	{"idle machines after a job's end", []Kind{IdleMachine}, func(f *fleet, at time.Time) {
		f.waste(func() {
			f.machine(Row{Team: "a", Instance: "i-left", Use: ledger.Idle, Capacity: "on-demand"}, &skus[2], at, at.Add(40*time.Hour))
		})
	}},
	{"a storm of retries", []Kind{Interruptions}, func(f *fleet, at time.Time) {
		f.waste(func() {
			for job := range 4 {
				for try := range 100 {
					begin := at.Add(time.Duration(try) * 10 * time.Minute)
					f.machine(Row{Team: "a", Job: fmt.Sprint("storm-", job), Attempt: fmt.Sprint(try), Instance: f.id("i"), Use: ledger.Lost,
						Capacity: "spot"}, &skus[1], begin, begin.Add(9*time.Minute))
				}
			}
		})
	}},
	{"a runaway study", []Kind{RunawayTrials}, func(f *fleet, at time.Time) {
		for i := range 1500 {
			begin := at.Add(time.Duration(i) * time.Minute)
			add := func() {
				f.machine(Row{Team: "a", Group: "endless", Job: fmt.Sprint("endless-", i), Attempt: "1", Instance: f.id("i"),
					Use: ledger.Useful, Capacity: "spot", BusyKnown: true, Busy: 0.8}, &skus[0], begin, begin.Add(50*time.Minute))
			}
			if i < 20 {
				add()
			} else {
				f.waste(add)
			}
		}
	}},
	{"a fall-back to on-demand", []Kind{FallBack, PriceJump}, func(f *fleet, at time.Time) {
		f.reprice(at, func(s *sku, now float64) (float64, string) { return s.list, "on-demand" })
	}},
	{"a jump of the spot price", []Kind{PriceJump}, func(f *fleet, at time.Time) {
		f.reprice(at, func(_ *sku, now float64) (float64, string) { return 1.8 * now, "spot" })
	}},
	{"a storm of checkpoints", []Kind{TransferStorm}, func(f *fleet, at time.Time) {
		f.waste(func() {
			for i := range 40 {
				begin := at.Add(time.Duration(i) * time.Hour)
				f.plain(Row{Team: "a", Job: "saver", Attempt: "1"}, ledger.Transfer, 25, begin, begin.Add(time.Hour))
			}
		})
	}},
	{"an orphan volume", []Kind{OrphanVolume}, func(f *fleet, at time.Time) {
		f.waste(func() { f.plain(Row{Team: "a", Instance: "i-gone"}, ledger.Storage, 48, at, at.Add(96*time.Hour)) })
	}},
	{"the wrong machine", []Kind{OtherMachine}, func(f *fleet, at time.Time) {
		f.waste(func() {
			f.machine(Row{Team: "a", Series: "a/nightly", Job: "nightly-wrong", Attempt: "1", Instance: "i-wrong", Use: ledger.Useful,
				Capacity: "on-demand", BusyKnown: true, Busy: 0.7}, &skus[2], at, at.Add(30*time.Hour))
		})
	}},
	{"a creep of 2 % a day", []Kind{CostCreep}, nil},
	{"a data loader that stalls", []Kind{Stall}, func(f *fleet, at time.Time) {
		r := Row{Team: "a", Job: "loader", Attempt: "1", Instance: "i-stall", Use: ledger.Useful, Capacity: "on-demand", BusyKnown: true}
		r.Busy = 0.85
		f.machine(r, &skus[2], at.Add(-5*time.Hour), at)
		r.Busy = 0.04
		f.waste(func() { f.machine(r, &skus[2], at, at.Add(30*time.Hour)) })
	}},
	{"prices that do not come", []Kind{Unpriced}, func(f *fleet, at time.Time) { f.unprice("a", at, 30*time.Hour, "g5.xlarge") }},
}

// planned is a large approved run.
func (f *fleet) planned(at time.Time) {
	for i := range 150 {
		f.job(Row{Team: "a", Project: "p", Group: "big", Job: fmt.Sprint("big-", i), Capacity: "on-demand", Planned: true}, &skus[2], at,
			20*time.Hour)
	}
	f.plain(Row{Team: "a", Project: "p", Group: "big", Job: "big-0", Planned: true}, ledger.Transfer, 900, at, at.Add(time.Hour))
}

// reprice changes the price of the team's spot machines for 40 hours.
func (f *fleet) reprice(at time.Time, to func(s *sku, now float64) (price float64, capacity string)) {
	until := at.Add(40 * time.Hour)
	for i, n := 0, len(f.rows); i < n; i++ {
		r := f.rows[i]
		if !r.Machine || r.Team != "a" || !r.End.After(at) || !r.Begin.Before(until) || r.Capacity != "spot" || !r.Price.Known {
			continue
		}
		if r.Begin.Before(at) {
			a := r
			a.End, a.Amount = at, dollars(r.Amount.Float()*at.Sub(r.Begin).Hours()/r.End.Sub(r.Begin).Hours())
			f.rows = append(f.rows, a)
			r.Begin = at
		}
		for _, s := range skus {
			if s.name == r.SKU {
				hours, now := r.End.Sub(r.Begin).Hours(), r.Price.Rate.Float()
				price, capacity := to(&s, now)
				f.extra = append(f.extra, loss{r.Begin, r.End, (price - now) * hours})
				r.Capacity, r.Price, r.Amount = capacity, rate(price), dollars(price*hours)
			}
		}
		f.rows[i] = r
	}
}
