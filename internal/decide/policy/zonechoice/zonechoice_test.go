package zonechoice_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/lane"
)

// market is a small simulated market: the state and price of each zone by tick.
type market struct {
	job   zonechoice.Job
	up    [][]bool // by tick, zone
	price []money.Rate
}

// generate draws a market of zones in two regions. Their spot periods and gaps last about two hours, one of them
// long.
func generate(seed uint64, zones int, slack time.Duration, looks bool) *market {
	chance := rand.New(rand.NewPCG(seed, 7))
	m := &market{job: zonechoice.Job{
		Tick: 3 * time.Minute, Work: 6 * time.Hour, Deadline: 6*time.Hour + slack,
		Restart: 8 * time.Minute, Transfer: 90 * time.Second, Carry: money.Picos(500_000_000_000), Looks: looks,
	}}
	state := make([]bool, zones)
	for z := range zones {
		m.job.Zones = append(m.job.Zones, zonechoice.Zone{Name: fmt.Sprint("z", z), Region: fmt.Sprint("r", z%2), OnDemand: 3_000_000_000_000})
		m.price = append(m.price, money.Rate(900_000_000_000+chance.Int64N(600_000_000_000)))
		state[z] = chance.IntN(3) > 0
	}
	for range m.job.Ticks() {
		for z := range state {
			turn := 1. / 40
			if !state[z] {
				turn = 1. / 20
			}
			if chance.Float64() < turn {
				state[z] = !state[z]
			}
		}
		m.up = append(m.up, append([]bool(nil), state...))
	}
	return m
}

type outcome struct {
	dollars float64
	done    bool
	choices []zonechoice.Choice
	broken  string
}

// play runs p by the rules, with the guard, and records violations.
func (m *market) play(p zonechoice.Policy) (out outcome) {
	j := &m.job
	v := zonechoice.View{Left: j.Work, Prices: m.price, Seen: make([]zonechoice.Sight, len(j.Zones)), Past: make([]hazard.Record, len(j.Zones))}
	look, _ := p.(zonechoice.Poller)
	for ; v.Tick < j.Ticks() && v.Left > 0; v.Tick++ {
		up := m.up[v.Tick]
		v.Now = time.Unix(0, 0).UTC().Add(time.Duration(v.Tick) * j.Tick)
		v.Lost = v.Held == zonechoice.Spot && !up[v.Zone]
		see := func(z int) {
			v.Seen[z] = zonechoice.Down
			if up[z] {
				v.Seen[z] = zonechoice.Up
			}
			v.Past[z] = v.Past[z].See(v.Now, up[z])
		}
		for z := range up {
			v.Seen[z] = zonechoice.Unseen
			if !j.Looks || v.Held == zonechoice.Spot && v.Zone == z {
				see(z)
			}
		}
		if v.Lost {
			v.Held, v.Overhead = zonechoice.None, 0
		}
		if j.Looks && look != nil {
			z := look.Poll(v)
			if z >= len(up) || z >= 0 && v.Seen[z] != zonechoice.Unseen {
				out.broken = fmt.Sprintf("tick %d: a look at zone %d, which was seen", v.Tick, z)
				return out
			}
			if z >= 0 {
				see(z)
			}
		}
		c := j.Guard(v, p.Decide(v))
		if c.Kind == zonechoice.Spot && v.Seen[c.Zone] != zonechoice.Up {
			out.broken = fmt.Sprintf("tick %d: spot in zone %d, which is not seen up", v.Tick, c.Zone)
			return out
		}
		out.choices = append(out.choices, c)
		if c.Kind == zonechoice.None {
			v.Held, v.Overhead = zonechoice.None, 0
			continue
		}
		region := j.Zones[c.Zone].Region
		if c.Kind != v.Held || c.Zone != v.Zone && (c.Kind != zonechoice.OnDemand || j.Zones[v.Zone].Region != region) {
			v.Overhead = j.Restart
			if v.Home != "" && v.Home != region {
				v.Overhead += j.Transfer
				out.dollars += j.Carry.Float()
			}
			v.Home = region
		}
		v.Held, v.Zone = c.Kind, c.Zone
		rate := j.Zones[c.Zone].OnDemand
		if c.Kind == zonechoice.Spot {
			rate = m.price[c.Zone]
		}
		out.dollars += rate.Until(j.Tick).Float()
		used := min(v.Overhead, j.Tick)
		v.Overhead -= used
		work := min(j.Tick-used, v.Left)
		v.Left, v.Done = v.Left-work, v.Done+work
	}
	out.done = v.Left == 0
	return out
}

// reckless gives random answers that the rules allow.
type reckless struct {
	chance *rand.Rand
	zones  int
}

func (r *reckless) Decide(v zonechoice.View) zonechoice.Choice {
	z := r.chance.IntN(r.zones)
	if v.Seen[z] == zonechoice.Up && r.chance.IntN(2) == 0 {
		return zonechoice.Choice{Kind: zonechoice.Spot, Zone: z}
	}
	if r.chance.IntN(4) == 0 {
		return zonechoice.Choice{Kind: zonechoice.OnDemand, Zone: z}
	}
	return zonechoice.Choice{}
}

func TestGuard_IsOnTimeForAnyDecisions(t *testing.T) {
	for seed := range uint64(300) {
		m := generate(seed, 1+int(seed%4), time.Duration(seed%5)*20*time.Minute+20*time.Minute, false)
		out := m.play(&reckless{rand.New(rand.NewPCG(seed, 1)), len(m.price)})
		if !out.done {
			t.Fatalf("seed %d: late with the guard", seed)
		}
	}
}

func TestDefault_IsOnTimeAndKeepsTheRules(t *testing.T) {
	for seed := range uint64(lane.Pick(20, 200)) {
		m := generate(seed, 1+int(seed%5), time.Duration(1+seed%4)*30*time.Minute, seed%2 == 1)
		out := m.play(&zonechoice.Foresight{Job: &m.job})
		if !out.done || out.broken != "" {
			t.Fatalf("seed %d: on time %v, %s", seed, out.done, out.broken)
		}
	}
}

func TestDefault_IsDeterministic(t *testing.T) {
	for seed := range uint64(lane.Pick(4, 20)) {
		a := generate(seed, 4, time.Hour, seed%2 == 1)
		x, y := a.play(&zonechoice.Foresight{Job: &a.job}), a.play(&zonechoice.Foresight{Job: &a.job})
		if fmt.Sprint(x) != fmt.Sprint(y) {
			t.Fatalf("seed %d: %v\n%v", seed, x, y)
		}
	}
}

// mean returns the mean cost of the default policy over generated markets.
func mean(seeds uint64, of func(seed uint64) *market) float64 {
	sum := 0.0
	for seed := range seeds {
		m := of(seed)
		sum += m.play(&zonechoice.Foresight{Job: &m.job}).dollars
	}
	return sum / float64(seeds)
}

func TestDefault_BetterMarketsCostNoMore(t *testing.T) {
	seeds := uint64(lane.Pick(10, 200))
	base := mean(seeds, func(s uint64) *market { return generate(s, 3, 90*time.Minute, false) })
	slack := mean(seeds, func(s uint64) *market { return generate(s, 3, 4*time.Hour, false) })
	cheap := mean(seeds, func(s uint64) *market {
		m := generate(s, 3, 90*time.Minute, false)
		for z := range m.price {
			m.price[z] = m.price[z] * 9 / 10
		}
		return m
	})
	// The same market without its first zone.
	fewer := mean(seeds, func(s uint64) *market {
		m := generate(s, 3, 90*time.Minute, false)
		for t := range m.up {
			m.up[t][0] = false
		}
		return m
	})
	if slack > base*1.005 || cheap > base*1.005 || fewer < base*0.995 {
		t.Errorf("mean dollars %.3f; with more slack %.3f, at 90 %% of the price %.3f, without a zone %.3f", base, slack, cheap, fewer)
	}
	demand := 6.13 * 3
	if base > demand {
		t.Errorf("%.3f dollars, more than on-demand's %.3f", base, demand)
	}
}

// withTwin gives every zone a twin that is never up and costs twice as much.
func withTwin(m *market) *market {
	n := *m
	n.job.Zones = append([]zonechoice.Zone(nil), m.job.Zones...)
	n.price = append([]money.Rate(nil), m.price...)
	for z := range m.job.Zones {
		twin := m.job.Zones[z]
		twin.Name += "-twin"
		n.job.Zones = append(n.job.Zones, twin)
		n.price = append(n.price, m.price[z]*2)
	}
	n.up = nil
	for _, up := range m.up {
		n.up = append(n.up, append(append([]bool(nil), up...), make([]bool, len(up))...))
	}
	return &n
}

func TestDefault_IgnoresAZoneThatIsNeverUp(t *testing.T) {
	with, without := 0.0, 0.0
	for seed := range uint64(lane.Pick(12, 60)) {
		m := generate(seed, 1+int(seed%3), 90*time.Minute, false)
		n := withTwin(m)
		for name, p := range map[string]func(*zonechoice.Job) zonechoice.Policy{
			"greedy":  func(j *zonechoice.Job) zonechoice.Policy { return &zonechoice.Greedy{Job: j} },
			"uniform": func(j *zonechoice.Job) zonechoice.Policy { return &zonechoice.Uniform{Job: j} },
		} {
			if a, b := m.play(p(&m.job)), n.play(p(&n.job)); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%s, seed %d: $%.3f becomes $%.3f", name, seed, a.dollars, b.dollars)
			}
		}
		without += m.play(&zonechoice.Foresight{Job: &m.job}).dollars
		with += n.play(&zonechoice.Foresight{Job: &n.job}).dollars
	}
	// The default policy cannot know that a zone never comes up. It may wait for the zone, but that must cost next to
	// nothing.
	if math.Abs(with-without) > 0.02*without {
		t.Errorf("%.3f dollars become %.3f", without, with)
	}
}

// The policy leaves a live machine only to save a fifth of an on-demand hour or more.
func TestDefault_TakesTheCheapestAndRarelyLeavesALiveMachine(t *testing.T) {
	const hand = 0.2 * 3
	weighed, kept, left := 0, 0, 0
	for seed := range uint64(lane.Pick(10, 60)) {
		m := generate(seed, 4, time.Duration(1+seed%8)*time.Hour, false)
		f := &zonechoice.Foresight{Job: &m.job}
		m.play(checked{f, func(v zonechoice.View, c zonechoice.Choice) {
			best, held := zonechoice.Option{USD: math.Inf(1)}, math.Inf(1)
			for _, o := range f.Options() {
				if math.IsNaN(o.USD) || o.USD < 0 {
					t.Errorf("seed %d tick %d: %v", seed, v.Tick, o)
				}
				if v.Held == zonechoice.Spot && o.Choice == (zonechoice.Choice{Kind: zonechoice.Spot, Zone: v.Zone}) {
					held = o.USD
				}
				if o.USD < best.USD-1e-9 {
					best = o
				}
			}
			if len(f.Options()) == 0 {
				return
			}
			weighed++
			want := best.Choice
			if held > best.USD+1e-9 && !math.IsInf(held, 1) {
				left++
				if held < best.USD+hand {
					want = zonechoice.Choice{Kind: zonechoice.Spot, Zone: v.Zone}
					kept, left = kept+1, left-1
				}
			}
			if want != c {
				t.Errorf("seed %d tick %d: %v taken of %v, not %v, with %v in zone %d held", seed, v.Tick, c, f.Options(), want, v.Held, v.Zone)
			}
		}})
	}
	if weighed < 50 || kept < 5 || left < 1 {
		t.Errorf("of %d decisions %d kept a live machine that was not the cheapest, %d left one", weighed, kept, left)
	}
}

type checked struct {
	*zonechoice.Foresight
	check func(zonechoice.View, zonechoice.Choice)
}

func (c checked) Decide(v zonechoice.View) zonechoice.Choice {
	x := c.Foresight.Decide(v)
	c.check(v, x)
	return x
}

// anew asks a fresh policy every time.
type anew struct{ job *zonechoice.Job }

func (a anew) Decide(v zonechoice.View) zonechoice.Choice {
	return (&zonechoice.Foresight{Job: a.job}).Decide(v)
}
func (a anew) Poll(v zonechoice.View) int { return (&zonechoice.Foresight{Job: a.job}).Poll(v) }

func TestDefault_DependsOnTheViewAlone(t *testing.T) {
	for seed := range uint64(4) {
		m := generate(seed, 1+int(seed), time.Duration(1+seed)*time.Hour, seed%2 == 1)
		kept, fresh := m.play(&zonechoice.Foresight{Job: &m.job}), m.play(anew{&m.job})
		if fmt.Sprint(kept) != fmt.Sprint(fresh) {
			t.Errorf("seed %d: a policy that was asked before answers otherwise:\n%v\n%v", seed, kept, fresh)
		}
	}
}

func TestHazard_IgnoresPollsWithoutAChange(t *testing.T) {
	at := func(t int) time.Time { return time.Unix(0, 0).UTC().Add(time.Duration(t) * time.Minute) }
	var often, seldom hazard.Record
	for t := 0; t <= 600; t += 3 {
		up := t/150%2 == 0
		often = often.See(at(t), up)
		if t%150 == 0 || t%150 == 147 || t == 600 { // the first and the last look at each state
			seldom = seldom.See(at(t), up)
		}
	}
	if often != seldom || often.Loss.Events == 0 || often.Back.Events == 0 || often.Loss.Expected == 0 {
		t.Errorf("looked at often %+v, seldom %+v", often, seldom)
	}
	if again := often.See(at(600), false); again != often {
		t.Errorf("a second look at the same time makes %+v of %+v", again, often)
	}
}
