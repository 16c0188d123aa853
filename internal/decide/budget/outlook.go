package budget

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Course is how a job that runs, or waits for its turn, is expected to go on.
type Course struct {
	ID    string
	Owner ledger.Owner
	User  string
	GPUs  int        // of the machine that it has, or the fewest that it can run on
	Runs  bool       // it holds a machine; else it takes one when its turn comes
	Rate  money.Rate // what an hour of that machine costs
	// Lasts is for how long that is paid, from now or from its turn on, Quick and Slow
	// the times that one such job in ten stays below and above. Where Known is false
	// nobody can say, and they mean nothing.
	Lasts, Quick, Slow time.Duration
	Known              bool
	// Rest is what is left of the job's budget, which stops it, where it is Bounded.
	Rest    money.Amount
	Bounded bool
}

// Outlook is what a limit's dollars will come to by the jobs that are there now.
type Outlook struct {
	// By is the end of the window; null where it never ends.
	By *time.Time `json:"by"`
	// Spent is what is expected to be spent by then, Least and Most what it is below and
	// above once in twenty. With jobs of which nobody knows how long they run, Most is
	// what it is where they go on; null: there is no most.
	Spent money.Amount  `json:"spent"`
	Least money.Amount  `json:"least"`
	Most  *money.Amount `json:"most"`
	// Chance is that of reaching the limit in this window. Breach is when, where it is
	// at least one half: as likely before as after. Earliest and Latest are its range,
	// outside which it is once in twenty to each side; null where it is not reached so often.
	Chance   float64    `json:"chance"`
	Breach   *time.Time `json:"breach"`
	Earliest *time.Time `json:"earliest"`
	Latest   *time.Time `json:"latest"`
	// Jobs are those that are expected to spend the most from now until the limit is
	// reached, the dearest first; More is how many others do.
	Jobs []Spender `json:"jobs"`
	More int       `json:"more,omitempty"`
	// Unknown are the first few jobs by name of which nobody knows how long they run, and
	// UnknownJobs how many there are. What is said above, but for Most, is without them;
	// Open is when the limit is reached where they go on, null: not in this window.
	Unknown     []string   `json:"unknown"`
	UnknownJobs int        `json:"unknown_jobs,omitempty"`
	Open        *time.Time `json:"open"`
	// Beyond says that more jobs wait than were looked at, and that before the end of this
	// they have their turn: what they cost is not in it.
	Beyond bool `json:"beyond,omitempty"`
}

// Spender is a job and what it spends from now until the limit is reached, as expected.
type Spender struct {
	Job  string       `json:"job"`
	Cost money.Amount `json:"cost"`
}

const (
	named   = 3                      // jobs that are named
	forever = 100 * 8760 * time.Hour // no play goes on for longer
	plays   = 61                     // a prime number, so that jobs differ from each other in them
	seldom  = plays / 20             // plays that a range leaves out to each side
)

// Foresee plays forward what each limit of dollars will come to: what runs is paid
// until it ends, and gives its place to the most urgent that waits and for which the
// limits on what runs at once have room. A job costs no more than the rest of its
// budget. courses are in the order of urgency, uses those of the limits by name; as many
// jobs as places hold a machine at once. beyond says that more wait.
//
// It is played 61 times, in which each job lasts for each 61st part of its spread once,
// one independently of the other: nothing is drawn, and the same jobs give the same answer.
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

// outlook is what a limit comes to over all plays.
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

// unknown names the jobs in the limit's scope of which nobody knows how long they run.
func (o *Outlook) unknown(l Limit, courses []Course) {
	for _, c := range courses {
		if !c.Known && l.Scope.Holds(c.Owner, c.User) {
			o.Unknown, o.UnknownJobs = append(o.Unknown, c.ID), o.UnknownJobs+1
		}
	}
	slices.Sort(o.Unknown)
	o.Unknown = o.Unknown[:min(named, len(o.Unknown))]
}

// share is which part of its spread job i takes in play n: each part once over the
// plays, in an order of its own.
func share(n, i int) float64 {
	step, first := 1+(i*7+i/(plays-1))%(plays-1), i*23%plays
	return (float64((n*step+first)%plays) + 0.5) / plays
}

// drawn is for how long the job is paid at that part of its spread, which is normal to
// each side of what is expected; not at all where nobody knows.
func (c Course) drawn(u float64) time.Duration {
	if !c.Known {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(2*u-1) / 1.2816 // in tenths of the jobs
	side := c.Slow - c.Lasts
	if z < 0 {
		side = c.Lasts - c.Quick
	}
	return c.cut(min(max(0, quantity.Add(c.Lasts, quantity.Nanoseconds(z*float64(min(side, forever))))), forever))
}

// longest is as expected where that is known, else for ever.
func (c Course) longest() time.Duration {
	if c.Known {
		return c.drawn(0.5)
	}
	return c.cut(forever)
}

// cut is d, or for how long the rest of the budget lasts.
func (c Course) cut(d time.Duration) time.Duration {
	if c.Bounded {
		if most, ok := c.Rate.Buys(c.Rest); ok {
			d = min(d, most)
		}
	}
	return d
}

// sane cuts prices so that no sum of those that are paid at once is too large to count.
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
