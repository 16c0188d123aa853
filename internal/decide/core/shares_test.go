package core_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// ending is when a running job of a market ends.
type ending struct {
	at  time.Time
	job string
}

type endings []ending

func (e endings) Len() int { return len(e) }
func (e endings) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].job < e[j].job
}
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)   { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

// crowd is a yard whose teams have more jobs than machines. Each job states its work, and ends when it is done.
type crowd struct {
	*yard
	lasts   map[string]time.Duration
	team    map[string]string
	ends    endings
	started []string
	cost    map[string]time.Duration // work of the started jobs by team; a machine costs $1 an hour
}

func newCrowd(t testing.TB, places int) *crowd {
	c := &crowd{yard: newYard(t, places), lasts: map[string]time.Duration{}, team: map[string]string{},
		cost: map[string]time.Duration{}}
	c.launched = func(job string) {
		c.started = append(c.started, job)
		c.cost[c.team[job]] += c.lasts[job]
		heap.Push(&c.ends, ending{c.now.Add(c.lasts[job]), job})
	}
	return c
}

// shares sets how teams share the queue.
func (c *crowd) shares(teams ...fair.Team) { c.sharesFor(fair.DefaultHalfLife, teams...) }

func (c *crowd) sharesFor(halfLife time.Duration, teams ...fair.Team) {
	r := &fair.Rules{HalfLife: halfLife, Teams: teams}
	must.Do(c.t, fair.Check(r, nil))
	c.step("", core.BudgetsSet{Rules: budget.Rules{Fair: r}})
}

func (c *crowd) add(team string, lasts time.Duration, change func(*core.Terms)) string {
	id := fmt.Sprintf("%s-%d", team, len(c.lasts))
	c.lasts[id], c.team[id] = lasts, team
	c.submit(id, team, "ann", func(t *core.Terms) {
		t.Work, t.Restart = lasts, time.Second
		if change != nil {
			change(t)
		}
	})
	return id
}

// next ends the job that is due first, and reports whether there was one.
func (c *crowd) next() bool {
	if len(c.ends) == 0 {
		return false
	}
	e := heap.Pop(&c.ends).(ending)
	c.now = e.at
	c.end(e.job)
	return true
}

// beyond returns how much more work than its weighted share a team has started.
func (c *crowd) beyond(team string, share float64) time.Duration {
	all := time.Duration(0)
	for _, d := range c.cost {
		all += d
	}
	return c.cost[team] - time.Duration(share*float64(all))
}

// followed runs two teams with the weights 2 and 1, which have more work than machines, and returns the largest
// distance of a team from its share at any time.
func followed(t *testing.T, seed uint64, faults core.Faults) (worst time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 7))
	c := newCrowd(t, 1+rng.IntN(6))
	c.m.Break(faults)
	c.sharesFor(fair.MostHalfLife, fair.Team{Name: "vision", Weight: 2}, fair.Team{Name: "text", Weight: 1})
	c.step("", core.Configured{Config: func() core.Config { v := core.DefaultConfig(); v.MaxRunning = 0; return v }()})
	for range 60 {
		c.add("vision", time.Duration(1+rng.IntN(5))*time.Hour, nil)
		c.add("text", time.Duration(1+rng.IntN(5))*time.Hour, nil)
	}
	cfg := core.DefaultConfig()
	cfg.MaxRunning = 1 + rng.IntN(6)
	c.step("", core.Configured{Config: cfg})
	for c.next() && len(c.started) < 60 {
		worst = max(worst, c.beyond("vision", 2.0/3).Abs())
	}
	return worst
}

// With the weights 2 and 1, the started work of the teams never differs from two thirds and one third by more than the
// cost of the largest job, for any lengths of jobs and number of machines. Without weights it does.
func TestShares_FollowWeightsWithinOneJob(t *testing.T) {
	const largest = 5 * time.Hour
	caught := 0
	for seed := range uint64(20) {
		if worst := followed(t, seed, core.Faults{}); worst > largest {
			t.Errorf("seed %d: a team was %v of work from its share, and the largest job takes %v", seed, worst, largest)
		}
		if followed(t, seed, core.Faults{Flat: true}) > largest {
			caught++
		}
	}
	if caught < 20 {
		t.Errorf("%d of 20 runs with ignored weights were noticed", caught)
	}
}

// A thousand jobs of one team do not keep the first job of another from starting next.
func TestShares_LetASmallTeamPassALongQueue(t *testing.T) {
	for _, on := range []bool{false, true} {
		c := newCrowd(t, 2)
		if on {
			c.shares(fair.Team{Name: "big", Weight: 5})
		}
		for range 200 {
			c.add("big", time.Hour, nil)
		}
		late := c.add("small", time.Hour, nil)
		c.next()
		if got := c.started[len(c.started)-1]; (got == late) != on {
			t.Errorf("shared: %v: %s started next", on, got)
		}
	}
}

// starved plays four teams with more work than machines, under drawn weights, guarantees and limits, and returns which
// team with jobs started none while 120 others did; empty: none.
func starved(t *testing.T, seed uint64, faults core.Faults) string {
	rng := rand.New(rand.NewPCG(seed, 3))
	c := newCrowd(t, 1+rng.IntN(4))
	c.m.Break(faults)
	names := []string{"a", "b", "c", "d"}
	var teams []fair.Team
	for _, name := range names[:1+rng.IntN(4)] {
		f := fair.Team{Name: name, Weight: []float64{0.5, 1, 2, 8}[rng.IntN(4)]}
		if rng.IntN(2) == 0 {
			f.Guarantee = money.Rate(rng.IntN(4)) * 1e12
		}
		if rng.IntN(2) == 0 {
			f.Borrow = new(money.Rate(rng.IntN(3)) * 1e12)
		}
		teams = append(teams, f)
	}
	c.shares(teams...)
	for range 200 {
		for _, name := range names {
			c.add(name, time.Duration(1+rng.IntN(3))*time.Hour, nil)
		}
	}
	since := map[string]int{}
	for i := 0; c.next() && len(c.started) < 200; { // each team has jobs to the end
		for ; i < len(c.started); i++ {
			for _, name := range names {
				since[name]++
			}
			since[c.team[c.started[i]]] = 0
		}
		for _, name := range names {
			if since[name] > 120 {
				return fmt.Sprintf("seed %d: %d jobs started, and none of team %s: %+v", seed, since[name], name, teams)
			}
		}
	}
	return ""
}

// Whatever the weights, guarantees and limits are, each team with jobs starts one within a bounded number of others.
// Where one team is favoured, it does not.
func TestShares_StarveNobody(t *testing.T) {
	caught := 0
	for seed := range uint64(10) {
		if wrong := starved(t, seed, core.Faults{}); wrong != "" {
			t.Error(wrong)
		}
		if starved(t, seed, core.Faults{Favours: true}) != "" {
			caught++
		}
	}
	if caught < 5 { // some teams may borrow nothing, and let the others in
		t.Errorf("%d of 10 runs with a favoured team were noticed", caught)
	}
}

// A deadline outranks the shares: a job of a team far beyond its share starts once its deadline requires it, and before
// that in its team's turn.
func TestShares_DeadlineThatNeedsAJobNowComesFirst(t *testing.T) {
	for _, hours := range []int{3, 300} {
		c := newCrowd(t, 1)
		c.shares(fair.Team{Name: "vision", Weight: 1, Borrow: new(money.Rate)}, fair.Team{Name: "text", Weight: 1})
		c.add("vision", 40*time.Hour, nil)
		for range 30 {
			c.add("text", time.Hour, nil)
		}
		begin := c.now
		c.next() // vision has had 40 hours, and text none
		end := c.now.Add(time.Duration(hours) * time.Hour)
		due := c.add("vision", time.Hour, func(t *core.Terms) { t.Deadline = end })
		for on := true; on; {
			on = c.started[len(c.started)-1] != due && c.next()
		}
		_, d := c.m.Job(due)
		if !d || c.now.After(end.Add(-time.Hour)) {
			t.Errorf("the job with %d h left started at %v after %v", hours, c.now.Sub(begin), end.Sub(begin))
		}
		if waits := len(c.started); (hours == 3) != (waits <= 3) {
			t.Errorf("the job with %d h left was the %dth to start", hours, waits)
		}
	}
}

// A higher priority class comes before the shares of a lower one.
func TestShares_HoldWithinAPriority(t *testing.T) {
	c := newCrowd(t, 1)
	c.shares(fair.Team{Name: "vision", Weight: 1})
	c.add("vision", 40*time.Hour, nil)
	c.add("text", time.Hour, nil)
	first := c.add("vision", time.Hour, func(t *core.Terms) { t.Priority = 2 })
	if c.next(); c.started[1] != first {
		t.Errorf("%s started before a critical job", c.started[1])
	}
}

// While a team spends less per hour than its guarantee, it starts before teams that spend more than their share,
// whatever it spent before.
func TestShares_GuaranteeComesBeforeOthersBeyondTheirShare(t *testing.T) {
	running := func(guarantee money.Rate) (n int) {
		c := newCrowd(t, 4)
		c.shares(fair.Team{Name: "vision", Weight: 1, Guarantee: guarantee}, fair.Team{Name: "text", Weight: 1})
		for range 4 {
			c.add("vision", 40*time.Hour, nil)
		}
		for range 4 {
			c.add("text", 2*time.Hour, nil)
			c.add("vision", 2*time.Hour, nil)
		}
		for range 4 {
			c.next()
		}
		for j := range c.m.Jobs() {
			if j.State() == core.Running && j.Terms().Owner.Team == "vision" {
				n++
			}
		}
		return n
	}
	if with, without := running(2e12), running(0); with != 2 || without != 0 {
		t.Errorf("vision had 160 hours; then %d of its jobs run with a guarantee of $2 an hour, and %d without, want 2 and 0",
			with, without)
	}
}

// A team that spends as much beyond its share as it may borrow starts no job, and the job's explanation says so. Others
// start.
func TestShares_BorrowLimitsWhatATeamTakes(t *testing.T) {
	c := newCrowd(t, 9)
	c.shares(fair.Team{Name: "vision", Weight: 1, Borrow: new(money.Rate(1e12))}, fair.Team{Name: "text", Weight: 1})
	for range 4 {
		c.add("vision", time.Hour, nil)
	}
	// $2 an hour are $1 beyond the half of $2.
	c.want("RRqq")
	last, _ := c.m.Job("vision-3")
	limit, detail, waits := c.m.Waits(last)
	if !waits || limit != "the share of team vision" {
		t.Errorf("it says %q %q", limit, detail)
	}
	c.add("text", time.Hour, nil)
	c.want("RRRqR") // with text at $1, vision's share is $1.5 of $3
}

// Without a setting, teams change nothing: the jobs start in the order of submission.
func TestShares_AreOffWithoutASetting(t *testing.T) {
	c := newCrowd(t, 1)
	for i := range 40 {
		c.add([]string{"a", "a", "a", "b"}[i%4], time.Hour, nil)
	}
	for c.next() {
	}
	for i, id := range c.started {
		if id != fmt.Sprintf("%s-%d", c.team[id], i) {
			t.Fatalf("%s was the %dth to start", id, i+1)
		}
	}
}

// Readers between two steps see complete sums and change nothing, so that several may read at the same time. The race
// detector checks the second half.
func TestShares_AreReadBySeveralAtOnce(t *testing.T) {
	c := newCrowd(t, 3)
	c.shares(fair.Team{Name: "a", Weight: 3, Borrow: new(money.Rate)})
	for i := range 40 {
		c.add([]string{"a", "b"}[i%2], time.Duration(5+i)*time.Hour, nil)
	}
	read := func(m *core.Machine) string {
		list, _ := m.Shares(c.now)
		said := fmt.Sprintf("%+v\n", list)
		for j := range m.Jobs() {
			limit, detail, _ := m.Waits(j)
			said += limit + detail + m.PreemptsNobody(j, time.Time.String)
		}
		courses, places, beyond := m.Courses(c.now, 10)
		return said + fmt.Sprint(courses, places, beyond, m.Waiting())
	}
	for c.next() {
		saved, err := c.m.Snapshot()
		must.Do(t, err)
		restored, err := core.Restore(saved)
		must.Do(t, err)
		var answers [4]string
		var done sync.WaitGroup
		for i := range answers {
			done.Go(func() { answers[i] = read([]*core.Machine{c.m, restored}[i%2]) })
		}
		done.Wait()
		for _, a := range answers[1:] {
			if a != answers[0] {
				t.Fatalf("one reader sees\n%s\nand another\n%s", answers[0], a)
			}
		}
	}
}

// The figures of a team equal those of a plain sum over the postings, each halved per half-life, and over what runs.
func TestShares_EqualAPlainSum(t *testing.T) {
	c := newCrowd(t, 2)
	c.shares(fair.Team{Name: "a", Weight: 3})
	for i := range 30 {
		c.add([]string{"a", "b", "B"}[i%3], time.Duration(5+i)*time.Hour, nil)
	}
	for range 20 {
		c.next()
	}
	list, ok := c.m.Shares(c.now)
	if !ok || len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	want := map[string]float64{}
	for _, w := range c.log {
		for _, p := range w.out.Postings {
			want[fair.Key(p.Owner.Team)] += costs(p) * halves(c.now.Sub(p.At))
		}
	}
	for _, s := range list {
		near(t, "what "+s.Name+" spent", s.Spent.Float(), want[fair.Key(s.Name)])
		burn, held, n := 0.0, 0.0, 0
		for j := range c.m.Jobs() {
			if j.State() == core.Running && fair.Key(j.Terms().Owner.Team) == fair.Key(s.Name) {
				burn++
				n++
				held += c.lasts[j.ID()].Hours()
				for _, w := range c.log {
					for _, p := range w.out.Postings {
						if p.Owner.Job == j.ID() {
							held -= costs(p)
						}
					}
				}
			}
		}
		near(t, "what "+s.Name+" burns", s.Burn.Float(), burn)
		near(t, "what "+s.Name+" holds", s.Held.Float(), held)
		if s.Running != n {
			t.Errorf("%s has %d jobs running, want %d", s.Name, s.Running, n)
		}
	}
	near(t, "the share of a", list[0].Wanted, 0.75)
}

func costs(p ledger.Posting) float64 { a := core.Cost(p); return a.Float() }

// halves is the part that is left after a span.
func halves(d time.Duration) float64 { return math.Exp2(-d.Hours() / fair.DefaultHalfLife.Hours()) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// BenchmarkSharesNext measures a step in which a job ends and the next one starts, with many jobs (-waiting) of ten
// teams in the queue and 10,000 that run, without and with shares.
func BenchmarkSharesNext(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("shared=%v", on), func(b *testing.B) {
			c := newCrowd(b, 10_000)
			if on {
				c.shares(fair.Team{Name: "t0", Weight: 2}, fair.Team{Name: "t1", Weight: 1, Guarantee: 5e12})
			}
			for i := range *waiting + 10_000 {
				c.add(fmt.Sprint("t", i%10), time.Hour, nil)
			}
			var longest time.Duration
			for b.Loop() {
				begun := time.Now()
				if !c.next() {
					b.Fatal("no job runs")
				}
				longest = max(longest, time.Since(begun))
			}
			b.ReportMetric(float64(longest.Microseconds())/1e3, "ms-longest")
		})
	}
}
