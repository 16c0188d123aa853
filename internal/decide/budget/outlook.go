package budget

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Course is how a running or waiting job is expected to continue.
type Course struct {
	ID    string
	Owner ledger.Owner
	User  string
	GPUs  int        // of its machine, or the smallest number that it can run on
	Runs  bool       // it holds a machine; otherwise it takes one when its turn comes
	Rate  money.Rate // hourly price of that machine
	// Lasts is how long the machine is paid for, from now or from the job's turn. One such job in ten takes less
	// than Quick, and one in ten more than Slow. If Known is false, the times are unknown and meaningless.
	Lasts, Quick, Slow time.Duration
	Known              bool
	// Rest is what is left of the job's budget, which stops the job if it is Bounded.
	Rest    money.Amount
	Bounded bool
}

// Outlook is the expected spending under a limit in dollars, from the current jobs.
type Outlook struct {
	// By is the end of the window; null if it never ends.
	By *time.Time `json:"by"`
	// Spent is the expected spending by then. The actual amount is below Least once in twenty times, and above Most
	// once in twenty. If there are jobs of unknown duration, Most assumes that they continue; null: there is no
	// maximum.
	Spent money.Amount  `json:"spent"`
	Least money.Amount  `json:"least"`
	Most  *money.Amount `json:"most"`
	// Chance is the probability of reaching the limit in this window. If it is at least one half, Breach is the
	// median time of that. Earliest and Latest are its range, with one time in twenty outside on each side; null if
	// the limit is not reached that often.
	Chance   float64    `json:"chance"`
	Breach   *time.Time `json:"breach"`
	Earliest *time.Time `json:"earliest"`
	Latest   *time.Time `json:"latest"`
	// Jobs are the jobs that are expected to spend the most until the limit is reached, the most expensive first.
	// More is the number of others.
	Jobs []Spender `json:"jobs"`
	More int       `json:"more,omitempty"`
	// Unknown names the first few jobs of unknown duration, sorted, and UnknownJobs is their number. All fields
	// above, except Most, ignore those jobs. Open is when the limit is reached if they continue; null: not in this
	// window.
	Unknown     []string   `json:"unknown"`
	UnknownJobs int        `json:"unknown_jobs,omitempty"`
	Open        *time.Time `json:"open"`
	// Beyond is set if more jobs wait than were considered and they get their turn before the end of the window;
	// their cost is not included.
	Beyond bool `json:"beyond,omitempty"`
}

// Spender is a job and its expected spending until the limit is reached.
type Spender struct {
	Job  string       `json:"job"`
	Cost money.Amount `json:"cost"`
}

const (
	named   = 3                      // jobs listed by name
	forever = 100 * 8760 * time.Hour // longest time of a play
	plays   = 61                     // a prime number, so that jobs take different shares in each play
	seldom  = plays / 20             // plays outside a range on each side
)

// Foresee plays forward what will be spent under each limit in dollars: a running job is paid until it ends, and
// then gives its place to the most urgent waiting job that the limits on running jobs and GPUs have room for. A job
// costs no more than the rest of its budget. courses are sorted by urgency, and uses has the current use of each
// limit by name. At most places jobs hold a machine at once. beyond says that more jobs wait.
//
// Foresee plays 61 times. Over the plays, each job takes each 61st part of its spread once, independently of the
// others. Nothing is random, so the same jobs give the same result.
func Foresee(limits []Limit, uses map[string]Use, courses []Course, places int, beyond bool,
	now time.Time) map[string]Outlook {
	outlooks := map[string]Outlook{}
	courses = sane(courses, places)
	b := board{limits, uses, courses, places, now}
	var all []map[string]*course
	if slices.ContainsFunc(limits, func(l Limit) bool { return l.Dollars != nil }) {
		for n := range plays {
			all = append(all, b.play(func(i int) time.Duration { return courses[i].drawn(share(n, i)) }))
		}
	}
	var usual, open map[string]*course
	for _, l := range limits {
		if l.Dollars == nil {
			continue
		}
		if usual == nil {
			usual = b.play(func(i int) time.Duration { return courses[i].drawn(0.5) })
		}
		n := l.Name()
		o := l.outlook(all, now)
		idle := usual[n].idle
		o.Beyond = beyond && idle != nil && (o.By == nil || idle.Before(*o.By)) &&
			(o.Latest == nil || idle.Before(*o.Latest))
		if o.Breach != nil {
			o.Jobs, o.More = usual[n].spenders(courses, *o.Breach)
		}
		if o.unknown(l, courses); o.UnknownJobs > 0 {
			if open == nil {
				open = b.play(func(i int) time.Duration { return courses[i].longest() })
			}
			o.Open, o.Most = open[n].breach, nil
			if !open[n].open {
				o.Most = &open[n].spent
			}
		}
		outlooks[n] = o
	}
	return outlooks
}

// outlook sums up a limit over all plays.
func (l Limit) outlook(all []map[string]*course, now time.Time) Outlook {
	o := Outlook{Jobs: []Spender{}, Unknown: []string{}}
	if end, ok := l.Window.End(now); ok {
		o.By = &end
	}
	var spent []money.Amount
	var reached []time.Time
	for _, p := range all {
		c := p[l.Name()]
		if spent = append(spent, c.spent); c.breach != nil {
			reached = append(reached, *c.breach)
		}
	}
	slices.SortFunc(spent, money.Amount.Cmp)
	slices.SortFunc(reached, time.Time.Compare)
	o.Least, o.Spent, o.Most = spent[seldom], spent[plays/2], &spent[plays-1-seldom]
	at := func(i int) *time.Time {
		if i >= len(reached) {
			return nil
		}
		return &reached[i]
	}
	o.Chance = float64(len(reached)) / plays
	o.Earliest, o.Breach, o.Latest = at(seldom), at(plays/2), at(plays-1-seldom)
	return o
}

// unknown names the jobs in the limit's scope that have an unknown duration.
func (o *Outlook) unknown(l Limit, courses []Course) {
	for _, c := range courses {
		if !c.Known && l.Scope.Holds(c.Owner, c.User) {
			o.Unknown, o.UnknownJobs = append(o.Unknown, c.ID), o.UnknownJobs+1
		}
	}
	slices.Sort(o.Unknown)
	o.Unknown = o.Unknown[:min(named, len(o.Unknown))]
}

// share is the part of its spread that job i takes in play n. Each job takes each part once over the plays, in its
// own order.
func share(n, i int) float64 {
	step, first := 1+(i*7+i/(plays-1))%(plays-1), i*23%plays
	return (float64((n*step+first)%plays) + 0.5) / plays
}

// drawn is how long the job is paid at that part of its spread, which is normal on each side of the expected time;
// 0 if unknown.
func (c Course) drawn(u float64) time.Duration {
	if !c.Known {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(2*u-1) / 1.2816 // in units of the distance to one tenth of the jobs
	side := c.Slow - c.Lasts
	if z < 0 {
		side = c.Lasts - c.Quick
	}
	return c.cut(min(max(0, quantity.Add(c.Lasts, quantity.Nanoseconds(z*float64(min(side, forever))))), forever))
}

// longest is the expected time if known, otherwise forever.
func (c Course) longest() time.Duration {
	if c.Known {
		return c.drawn(0.5)
	}
	return c.cut(forever)
}

// cut is d, or less if the rest of the budget ends before.
func (c Course) cut(d time.Duration) time.Duration {
	if c.Bounded {
		if most, ok := c.Rate.Buys(c.Rest); ok {
			d = min(d, most)
		}
	}
	return d
}

// sane caps prices so that sums of rates paid at once do not overflow.
func sane(courses []Course, places int) []Course {
	at := max(1, places)
	for _, c := range courses {
		if c.Runs {
			at++
		}
	}
	list := slices.Clone(courses)
	for i := range list {
		list[i].Rate = min(max(0, list[i].Rate), math.MaxInt64/money.Rate(at))
	}
	return list
}
