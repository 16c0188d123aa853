package budget

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// course is one limit during a play.
type course struct {
	Limit
	end     time.Time // end of the window; zero: never
	spent   money.Amount
	rate    money.Rate
	at      time.Time // time up to which spent is summed
	running int
	gpus    int
	breach  *time.Time
	spells  []spell
	open    bool       // something continues forever
	idle    *time.Time // first time at which a place was free and no job took it
}

// spell is a time during which a job was paid for.
type spell struct {
	job         int
	begin, over time.Time
}

// until sums the spending up to t.
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

// spenders returns the jobs that spend the most from now until then.
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

// ends is a heap of running jobs, the first to end on top.
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

// board is the common start of all plays.
type board struct {
	limits  []Limit
	uses    map[string]Use
	courses []Course
	places  int
	now     time.Time
}

// start returns a play at its start, in which each job is paid for as long as lasts says.
func (b *board) start(lasts func(int) time.Duration) *play {
	p := &play{board: b, lasts: lasts, by: map[string]*course{}, last: b.now, holds: make([][]*course, len(b.courses))}
	for _, l := range b.limits {
		p.limit(l)
	}
	for i, c := range b.courses {
		for _, l := range p.all {
			if l.Scope.Holds(c.Owner, c.User) {
				p.holds[i] = append(p.holds[i], l)
			}
		}
		if c.Runs {
			p.begin(i, b.now)
		} else {
			p.waits = append(p.waits, i)
		}
	}
	return p
}

// play runs one play in which each job is paid for as long as lasts says.
func (b *board) play(lasts func(int) time.Duration) map[string]*course {
	p := b.start(lasts)
	var idle *time.Time
	for t := b.now; ; t = p.end() {
		p.fill(t)
		if len(p.run) < b.places && idle == nil {
			idle = &t
		}
		if len(p.run) == 0 || p.run[0].over.After(p.last) {
			break
		}
	}
	for _, l := range p.all {
		if l.until(p.last); len(p.run) > 0 && l.rate > 0 && l.end.IsZero() {
			l.open = true
		}
		l.idle = idle
	}
	return p.by
}

// play is one play in progress.
type play struct {
	*board
	lasts func(int) time.Duration
	all   []*course
	by    map[string]*course
	last  time.Time   // end of the play
	holds [][]*course // by job, the limits whose scope contains it
	run   ends
	waits []int                            // jobs without a machine, most urgent first
	turn  func(i int, after time.Duration) // is called when a waiting job gets its turn; may be nil
}

// limit adds a limit as it stands now. The limits in dollars determine how long the play runs.
func (p *play) limit(l Limit) {
	c := &course{Limit: l, at: p.now, spent: p.uses[l.Name()].Spent}
	if end, ok := l.Window.End(p.now); ok {
		c.end = end
	}
	if l.Dollars != nil {
		if c.spent.Cmp(*l.Dollars) >= 0 {
			c.breach = &p.now
		}
		if c.end.IsZero() {
			p.last = p.now.Add(forever)
		} else if c.end.After(p.last) {
			p.last = c.end
		}
	}
	p.all, p.by[l.Name()] = append(p.all, c), c
}

// begin gives a job a machine.
func (p *play) begin(i int, t time.Time) {
	s := spell{i, t, t.Add(min(p.lasts(i), forever-t.Sub(p.now)))}
	heap.Push(&p.run, s)
	for _, l := range p.holds[i] {
		l.until(t)
		l.rate, l.running, l.gpus = l.rate+p.courses[i].Rate, l.running+1, l.gpus+p.courses[i].GPUs
		l.spells = append(l.spells, s)
	}
}

// end takes the machine from the job that ends first, and returns when that is.
func (p *play) end() time.Time {
	s := heap.Pop(&p.run).(spell)
	c := p.courses[s.job]
	for _, l := range p.holds[s.job] {
		l.until(s.over)
		l.rate, l.running, l.gpus = l.rate-c.Rate, l.running-1, l.gpus-c.GPUs
		l.open = l.open || l.end.IsZero() && s.over.Sub(p.now) >= forever && c.Rate > 0
	}
	return s.over
}

// fill gives free places to the most urgent jobs that the limits have room for.
func (p *play) fill(t time.Time) {
	for len(p.run) < p.places {
		n := slices.IndexFunc(p.waits, p.room)
		if n < 0 {
			return
		}
		if p.begin(p.waits[n], t); p.turn != nil {
			p.turn(p.waits[n], t.Sub(p.now))
		}
		p.waits = slices.Delete(p.waits, n, n+1)
	}
}

// room reports whether the limits on running jobs and GPUs have room for a job.
func (p *play) room(i int) bool {
	gpus := p.courses[i].GPUs
	return !slices.ContainsFunc(p.holds[i], func(l *course) bool {
		return l.Running != nil && l.running >= *l.Running || l.GPUs != nil && gpus > 0 && l.gpus+gpus > *l.GPUs
	})
}
