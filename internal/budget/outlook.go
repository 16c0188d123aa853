package budget

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/money"
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
		o := Outlook{Jobs: []Spender{}, Unknown: []string{}}
		if end, ok := l.Window.End(now); ok {
			o.By = &end
		}
		var spent []money.Amount
		var reached []time.Time
		for _, p := range all {
			if spent = append(spent, p[n].spent); p[n].breach != nil {
				reached = append(reached, *p[n].breach)
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
		o.Chance, o.Earliest, o.Breach, o.Latest = float64(len(reached))/plays, at(seldom), at(plays/2), at(plays-1-seldom)
		idle := usual[n].idle
		o.Beyond = beyond && idle != nil && (o.By == nil || idle.Before(*o.By)) && (o.Latest == nil || idle.Before(*o.Latest))
		if o.Breach != nil {
			o.Jobs, o.More = usual[n].spenders(courses, *o.Breach)
		}
		for _, c := range courses {
			if !c.Known && l.Scope.Holds(c.Owner, c.User) {
				o.Unknown, o.UnknownJobs = append(o.Unknown, c.ID), o.UnknownJobs+1
			}
		}
		slices.Sort(o.Unknown)
		if o.Unknown = o.Unknown[:min(named, len(o.Unknown))]; o.UnknownJobs > 0 {
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
	return c.cut(min(max(0, c.Lasts+time.Duration(z*float64(min(side, forever)))), forever))
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

// course is one limit in a play.
type course struct {
	Limit
	end     time.Time // of the window; zero: never
	spent   money.Amount
	rate    money.Rate
	at      time.Time // up to which spent is summed
	running int
	gpus    int
	breach  *time.Time
	spells  []spell
	open    bool       // something goes on for ever
	idle    *time.Time // the first moment at which a place was free and nobody was there for it
}

// spell is when a job was paid for.
type spell struct {
	job         int
	begin, over time.Time
}

// until sums up to t.
func (l *course) until(t time.Time) {
	if !l.end.IsZero() && t.After(l.end) {
		t = l.end
	}
	if !t.After(l.at) {
		return
	}
	if l.Dollars != nil && l.breach == nil {
		left := l.Dollars.Sub(l.spent)
		if d, ok := l.rate.Buys(left); ok && left.Sign() > 0 {
			if at := l.at.Add(min(d, forever)); d <= forever && !at.After(t) && (l.end.IsZero() || at.Before(l.end)) {
				l.breach = &at
			}
		}
	}
	l.spent, l.at = l.spent.Add(l.rate.Until(t.Sub(l.at))), t
}

// spenders are who spends the most from now until then.
func (l *course) spenders(courses []Course, until time.Time) ([]Spender, int) {
	list := []Spender{}
	for _, s := range l.spells {
		over := s.over
		if over.After(until) {
			over = until
		}
		if over.After(s.begin) {
			if cost := courses[s.job].Rate.Until(over.Sub(s.begin)); cost.Sign() > 0 {
				list = append(list, Spender{courses[s.job].ID, cost})
			}
		}
	}
	slices.SortFunc(list, func(a, b Spender) int { return cmp.Or(b.Cost.Cmp(a.Cost), cmp.Compare(a.Job, b.Job)) })
	more := max(0, len(list)-named)
	return list[:len(list)-more], more
}

// ends are the jobs that run, the first to end on top.
type ends []spell

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	if !e[i].over.Equal(e[j].over) {
		return e[i].over.Before(e[j].over)
	}
	return e[i].job < e[j].job
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(spell)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// board is what all plays begin with.
type board struct {
	limits  []Limit
	uses    map[string]Use
	courses []Course
	places  int
	now     time.Time
}

// play goes through what happens where the jobs are paid for so long.
func (b *board) play(lasts func(int) time.Duration) map[string]*course {
	limits, uses, courses, places, now := b.limits, b.uses, b.courses, b.places, b.now
	all, by := make([]*course, 0, len(limits)), map[string]*course{}
	last := now
	for _, l := range limits {
		c := &course{Limit: l, at: now, spent: uses[l.Name()].Spent}
		if end, ok := l.Window.End(now); ok {
			c.end = end
		}
		if l.Dollars != nil {
			if c.spent.Cmp(*l.Dollars) >= 0 {
				c.breach = &now
			}
			if c.end.IsZero() {
				last = now.Add(forever)
			} else if c.end.After(last) {
				last = c.end
			}
		}
		all, by[l.Name()] = append(all, c), c
	}
	holds := make([][]*course, len(courses))
	var run ends
	begin := func(i int, t time.Time) {
		s := spell{i, t, t.Add(min(lasts(i), forever-t.Sub(now)))}
		heap.Push(&run, s)
		for _, l := range holds[i] {
			l.until(t)
			l.rate, l.running, l.gpus = l.rate+courses[i].Rate, l.running+1, l.gpus+courses[i].GPUs
			l.spells = append(l.spells, s)
		}
	}
	var waits []int
	for i, c := range courses {
		for _, l := range all {
			if l.Scope.Holds(c.Owner, c.User) {
				holds[i] = append(holds[i], l)
			}
		}
		if c.Runs {
			begin(i, now)
		} else {
			waits = append(waits, i)
		}
	}
	room := func(i int) bool {
		return !slices.ContainsFunc(holds[i], func(l *course) bool {
			return l.Running != nil && l.running >= *l.Running || l.GPUs != nil && courses[i].GPUs > 0 &&
				l.gpus+courses[i].GPUs > *l.GPUs
		})
	}
	var idle *time.Time
	for t := now; ; {
		for len(run) < places {
			n := slices.IndexFunc(waits, room)
			if n < 0 {
				break
			}
			begin(waits[n], t)
			waits = slices.Delete(waits, n, n+1)
		}
		if len(run) < places && idle == nil {
			idle = new(time.Time)
			*idle = t
		}
		if len(run) == 0 || run[0].over.After(last) {
			break
		}
		s := heap.Pop(&run).(spell)
		t = s.over
		for _, l := range holds[s.job] {
			l.until(t)
			l.rate, l.running, l.gpus = l.rate-courses[s.job].Rate, l.running-1, l.gpus-courses[s.job].GPUs
			l.open = l.open || l.end.IsZero() && s.over.Sub(now) >= forever && courses[s.job].Rate > 0
		}
	}
	for _, l := range all {
		if l.until(last); len(run) > 0 && l.rate > 0 && l.end.IsZero() {
			l.open = true
		}
		l.idle = idle
	}
	return by
}
