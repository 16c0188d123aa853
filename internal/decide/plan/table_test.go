package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// course is a job on a generated market whose zones come and go. The job polls it every tick.
type course struct {
	called                        bool // decided on events and when a decision requests it, not every tick
	tick, work, deadline, restart time.Duration
	up                            [][]bool // by tick, zone
	price                         []money.Rate
	first, last                   int                 // prices move at these ticks
	timed                         func(decide func()) // runs and times a decision; nil: runs it once
}

func drawCourse(seed uint64, zones int) course {
	rng := rand.New(rand.NewPCG(seed, 11))
	c := course{
		tick: time.Duration(5+5*rng.IntN(2)) * time.Minute, work: time.Duration(2+rng.IntN(5)) * time.Hour,
		restart: time.Duration(2+rng.IntN(8)) * time.Minute, first: rng.IntN(20), last: 20 + rng.IntN(20),
	}
	turns := 12
	if seed%5 == 4 {
		c.called, c.tick, turns = true, time.Minute, 60
	}
	c.deadline = c.work + time.Duration(60+rng.IntN(300))*time.Minute
	up := make([]bool, zones)
	for z := range zones {
		c.price = append(c.price, money.Rate(3e11+rng.Int64N(5e11)))
		up[z] = rng.IntN(3) > 0
	}
	for range c.deadline / c.tick {
		for z := range up {
			if rng.IntN(turns) == 0 {
				up[z] = !up[z]
			}
		}
		c.up = append(c.up, append([]bool(nil), up...))
	}
	return c
}

// options are the offers in tick t: spot in each zone, and on-demand in each region.
func (c *course) options(t int, seen []onezone.Watch, records []Record) (list []Listing) {
	for z := range c.price {
		rate := c.price[z]
		if t >= c.first && t < c.last {
			rate += rate / money.Rate(8*(z+1))
		}
		id := market.OfferID(fmt.Sprintf("z%d/spot", z))
		list = append(list, Listing{
			Offer: offerOf(id, z, z%2, market.Spot), Watch: seen[z], Record: records[z],
			Quote: market.Quote{Offer: id, Rate: rate, Priced: true, Available: c.up[t][z]},
		})
	}
	for k := range min(2, len(c.price)) {
		id := market.OfferID(fmt.Sprintf("r%d/on-demand", k))
		list = append(list, Listing{
			Offer: offerOf(id, k, k, market.OnDemand),
			Quote: market.Quote{Offer: id, Rate: 1e12, Priced: true, Available: true},
		})
	}
	return list
}

func offerOf(id market.OfferID, zone, region int, c market.Capacity) market.Offer {
	return market.Offer{
		ID: id, Zone: fmt.Sprint("z", zone), Region: fmt.Sprint("r", region), Capacity: c, CPUs: 1, Speed: 1,
	}
}

// played records a course: its decisions, and whether the job finished in time.
type played struct {
	decisions []Decision
	ticks     []int // ticks of the decisions
	usd       float64
	done      bool
}

// play decides every tick, or when called. It passes each missing table to ready, and decides again if ready
// returns true.
func (c *course) play(m *Planner, ready func(TableRequest, time.Time) bool) (out played) {
	seen, records := make([]onezone.Watch, len(c.price)), make([]Record, len(c.price))
	left, offer, warm := c.work, Listing{}, time.Duration(0)
	job := Job{Rule: policy.Default, Transfer: time.Minute, EgressCost: money.Picos(2e10), Need: Need{Requirements: Requirements{CPUs: 1}}}
	d, called := Decision{}, true
	for t := 0; t < len(c.up) && left > 0; t++ {
		at := now.Add(time.Duration(t) * c.tick)
		for z, up := range c.up[t] {
			called = called || seen[z].Up != up
			seen[z], records[z] = seen[z].See(at, up), records[z].See(at, up)
		}
		options := c.options(t, seen, records)
		for i := range options {
			if options[i].Offer.ID == offer.Offer.ID && !options[i].Quote.Available {
				offer = Listing{}
			}
		}
		job.Held, job.HeldRate, job.Warming = offer.Offer.ID, offer.Quote.Rate, 0
		if job.Held != "" {
			job.Warming = warm
		}
		job.Progress = c.progress(at, left, c.restart+job.Transfer)
		called = called || !c.called || !d.Again.IsZero() && !d.Again.After(at)
		if called || d.Table != nil && ready(*d.Table, at) {
			decide := func() { d = m.Decide(job, classOf(job, options)) }
			if decide(); c.timed != nil {
				c.timed(decide)
			}
			for d.Table != nil && ready(*d.Table, at) {
				job.TableSince = d.TableSince
				if decide(); c.timed != nil {
					c.timed(decide)
				}
			}
			job.TableSince = d.TableSince
			out.decisions, out.ticks = append(out.decisions, d), append(out.ticks, t)
			if d.Take != job.Held {
				offer = take(&job, options, d.Take)
				warm = c.restart
				if job.CheckpointRegion != "" && job.CheckpointRegion != offer.Offer.Region {
					warm += job.Transfer
				}
				job.CheckpointRegion = offer.Offer.Region
			}
		}
		called = false
		if offer.Offer.ID == "" {
			continue
		}
		out.usd += offer.Quote.Rate.Until(c.tick).Float()
		serves := min(warm, c.tick)
		called = warm > 0 && serves == warm
		warm -= serves
		left -= min(left, c.tick-serves)
	}
	out.done = left == 0
	return out
}

// progress returns the progress of the job.
func (c *course) progress(at time.Time, left, restart time.Duration) policy.Progress {
	p := policy.Progress{
		Now: at, Began: now, Deadline: now.Add(time.Duration(len(c.up)) * c.tick), Known: true,
		Left: left, Done: c.work - left, Restart: restart, Poll: c.tick,
	}
	if c.called { // it learns of events, and is called up to a tick late
		p.Poll, p.Detect = 0, 2*c.tick
	}
	return p
}

// take returns the option with the given ID; none means to wait.
func take(job *Job, options []Listing, id market.OfferID) Listing {
	for _, o := range options {
		if o.Offer.ID == id {
			return o
		}
	}
	return Listing{Offer: market.Offer{Region: job.CheckpointRegion}}
}

// atOnce builds a table as soon as it is requested.
func atOnce(m *Planner, built *int) func(TableRequest, time.Time) bool {
	return func(r TableRequest, _ time.Time) bool {
		*built++
		m.Adopt(Build(r))
		return true
	}
}

func TestOnRequest_DecidesAsPlannerThatBuildsTables(t *testing.T) {
	shared, built, weighed := NewPlanner().OnRequest(), 0, 0
	for seed := range uint64(lane.Pick(4, 16)) {
		c := drawCourse(seed, 1+int(seed%4))
		m := shared
		if seed%2 == 0 {
			m = NewPlanner().OnRequest()
		}
		want, got := c.play(NewPlanner(), nil), c.play(m, atOnce(m, &built))
		for i, d := range want.decisions {
			a, b := jsonOf(t, d), jsonOf(t, got.decisions[i])
			if a != b || !reflect.DeepEqual(d, got.decisions[i]) {
				t.Fatalf("seed %d, decision %d:\n%s\n%s", seed, i, a, b)
			}
			if d.Expect != nil {
				weighed++
			}
		}
		if !want.done {
			t.Errorf("seed %d is late", seed)
		}
	}
	if built < lane.Pick(12, 50) || weighed < lane.Pick(75, 300) {
		t.Errorf("%d tables built, %d decisions weighed", built, weighed)
	}
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must.Do(t, err)
	return string(text)
}

// lateness counts what became of decisions without their tables.
type lateness struct{ waits, kept, uniform int }

// Late or missing tables cost money at most: a job keeps what it holds, and a waiting job keeps waiting for a
// minute, then follows Uniform Progress.
func TestMeanwhile_LateTableMakesNoJobLateAndMovesNone(t *testing.T) {
	var sum lateness
	for seed := range uint64(lane.Pick(15, 40)) {
		c := drawCourse(seed, 1+int(seed%3))
		m := NewPlanner().OnRequest()
		got := c.play(m, inSomeTicks(m, &c, seed))
		if !got.done {
			t.Errorf("seed %d is late", seed)
		}
		for i, d := range got.decisions {
			if seed%3 == 0 && d.Table == nil && d.Expect != nil {
				t.Fatalf("seed %d, decision %d was weighed with a table that nobody built", seed, i)
			}
			if d.Table == nil {
				continue
			}
			if wrong := sum.check(&c, &got, i); wrong != "" {
				t.Fatalf("seed %d, decision %d %s: %s", seed, i, wrong, jsonOf(t, d))
			}
		}
	}
	if sum.waits < 30 || sum.kept < 100 || sum.uniform < 30 {
		t.Errorf("without a table: %+v", sum)
	}
}

// inSomeTicks delivers a table 0 to 2 ticks after the first request, or never with every third seed.
func inSomeTicks(m *Planner, c *course, seed uint64) func(TableRequest, time.Time) bool {
	rng, due := rand.New(rand.NewPCG(seed, 12)), map[string]time.Time{}
	return func(r TableRequest, at time.Time) bool {
		if _, ok := due[r.Key()]; !ok {
			due[r.Key()] = at.Add(time.Duration(rng.IntN(3)) * c.tick)
		}
		if seed%3 == 0 || at.Before(due[r.Key()]) {
			return false
		}
		m.Adopt(Build(r))
		return true
	}
}

// check returns what is wrong with decision i, which lacked its table.
func (l *lateness) check(c *course, got *played, i int) string {
	d, held := got.decisions[i], market.OfferID("")
	if i > 0 {
		held = got.decisions[i-1].Take
	}
	lives := held != "" && held[0] == 'r'
	for z := range c.price {
		lives = lives || held == market.OfferID(fmt.Sprintf("z%d/spot", z)) && c.up[got.ticks[i]][z]
	}
	patience := time.Minute
	if c.called {
		patience = 2 * c.tick // longest delay of a call
	}
	switch {
	case lives && (d.Take != held || d.Why != Stays):
		return "leaves its machine for want of a table"
	case lives:
		l.kept++
	case d.Why == Weighing && (d.Take != "" || d.Again.After(d.TableSince.Add(patience))):
		return "does not wait, or for too long"
	case d.Why == Weighing:
		l.waits++
	default:
		l.uniform++
	}
	return ""
}

// A job without a table is decided again when the guard will apply.
func TestMeanwhile_AgainIsNoLaterThanGuard(t *testing.T) {
	c := drawCourse(4, 1)
	c.up[0][0] = true
	options := c.options(0, make([]onezone.Watch, 1), make([]Record, 1))
	for _, held := range []market.OfferID{"", "z0/spot"} {
		p := policy.Progress{
			Now: now, Began: now.Add(-time.Hour), Left: 3 * time.Hour, Known: true,
			Restart: 5 * time.Minute, Detect: 2 * time.Minute,
		}
		p.Deadline = now.Add(p.Left + p.Restart + p.Detect + 20*time.Second)
		job := Job{Held: held, HeldRate: c.price[0], Need: Need{Requirements: Requirements{CPUs: 1}}, Progress: p}
		d := NewPlanner().OnRequest().Decide(job, classOf(job, options))
		if d.Table == nil || d.Take != held || !d.Again.Equal(now.Add(20*time.Second+1)) {
			t.Fatalf("with %q held 20 s before the guard holds: %s", held, jsonOf(t, d))
		}
	}
}

// After a minute without a table a waiting job follows Uniform Progress.
func TestMeanwhile_UniformProgressDecidesAfterAMinute(t *testing.T) {
	taken := map[policy.Choice]int{}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 13))
		c := drawCourse(seed, 1+int(seed%3))
		records, seen := make([]Record, len(c.price)), make([]onezone.Watch, len(c.price))
		options := c.options(rng.IntN(len(c.up)), seen, records)
		job := Job{Rule: policy.Default, Need: Need{Requirements: Requirements{CPUs: 1}}, TableSince: now.Add(-time.Minute)}
		job.Progress = policy.Progress{
			Now: now, Began: now.Add(-time.Duration(rng.IntN(5)) * time.Hour), Deadline: now.Add(c.deadline), Left: c.work,
			Done: time.Duration(rng.IntN(3)) * time.Hour, Known: true, Restart: c.restart, Poll: c.tick,
		}
		d := NewPlanner().OnRequest().Decide(job, classOf(job, options))
		if d.Table == nil {
			continue // the guard applies
		}
		plain := job
		plain.Rule = policy.UniformProgress
		want := decide(plain, options)
		if d.Take != want.Take || d.Why != want.Why {
			t.Fatalf("seed %d: takes %q (%s), Uniform Progress %q (%s)", seed, d.Take, d.Why, want.Take, want.Why)
		}
		if d.Again.IsZero() || !d.Again.After(now) || !want.Again.IsZero() && d.Again.After(want.Again) {
			t.Fatalf("seed %d: decided again at %v, Uniform Progress at %v", seed, d.Again, want.Again)
		}
		switch {
		case d.Take == "":
			taken[policy.Wait]++
		case d.Take[0] == 'r':
			taken[policy.NonPreemptible]++
		default:
			taken[policy.Spot]++
		}
	}
	if taken[policy.Wait] < 5 || taken[policy.Spot] < 50 || taken[policy.NonPreemptible] < 20 {
		t.Errorf("%v", taken)
	}
}

// requests returns the distinct table requests of some courses.
func requests(t testing.TB, courses int) (list []TableRequest) {
	t.Helper()
	known := map[string]bool{}
	for seed := range uint64(courses) {
		c := drawCourse(seed, 1+int(seed%4))
		m := NewPlanner().OnRequest()
		c.play(m, func(r TableRequest, _ time.Time) bool {
			if !known[r.Key()] {
				known[r.Key()] = true
				list = append(list, r)
			}
			return false
		})
	}
	return list
}

func TestBuild_IsPure(t *testing.T) {
	hashes, zones, zone := map[string]string{}, 0, 0
	for _, r := range requests(t, 8) {
		var back TableRequest
		must.Do(t, json.Unmarshal([]byte(jsonOf(t, r)), &back))
		a, b := Build(r), Build(back)
		if a.Key() != r.Key() || a.Key() != b.Key() || a.Hash() != b.Hash() || a.Bytes() == 0 || a.Bytes() != b.Bytes() {
			t.Fatalf("%s: %s of %d bytes, and from JSON %s of %d bytes", jsonOf(t, r), a.Hash(), a.Bytes(), b.Hash(), b.Bytes())
		}
		if other, ok := hashes[a.Hash()]; ok {
			t.Fatalf("%s and %s have tables that answer the same", jsonOf(t, r), other)
		}
		hashes[a.Hash()] = jsonOf(t, r)
		if r.Zones != nil {
			zones++
		} else {
			zone++
		}
		if zones > 12 && zone > 1 {
			return
		}
	}
	t.Errorf("only %d and %d requests", zone, zones)
}

// Tables are built concurrently with decisions; run it under the race detector.
func TestBuild_IsSafeBesideDecisions(t *testing.T) {
	m := NewPlanner().OnRequest()
	fork := m.Fork()
	ready := make(chan Table, 1)
	building := false
	beside := 0
	for seed := range uint64(6) {
		c := drawCourse(seed, 1+int(seed%4))
		c.play(m, func(r TableRequest, _ time.Time) bool {
			if building {
				select {
				case table := <-ready:
					building = false
					fork.Adopt(table)
					return true
				default:
					beside++
					return false
				}
			}
			building = true
			go func() { ready <- Build(r) }()
			return false
		})
	}
	if building {
		<-ready
	}
	t.Logf("%d decisions beside a table being built", beside)
}
