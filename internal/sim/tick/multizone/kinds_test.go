package multizone

import (
	"testing"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// The kinds differ in what they are named after.
func TestDrawnMarket_KindsDifferInHowLongZonesStay(t *testing.T) {
	share, changes, together := map[DrawnKind]float64{}, map[DrawnKind]float64{}, map[DrawnKind]float64{}
	for _, kind := range DrawnKinds {
		_, windows := DrawnMarket(kind, 7, 12, 46*time.Hour)
		ticks := 0.0
		for _, w := range windows {
			a, b := w.Zones["us-central1-a"].Up, w.Zones["us-central1-b"].Up // one region
			for _, z := range w.Zones {
				for k := 1; k < len(z.Up); k++ {
					ticks++
					share[kind] += float64(boolInt(z.Up[k]))
					changes[kind] += float64(boolInt(z.Up[k] != z.Up[k-1]))
				}
			}
			for k := 1; k < len(a); k++ {
				together[kind] += float64(boolInt(a[k-1] && b[k-1] && !a[k] && !b[k]))
			}
		}
		share[kind] /= ticks
		changes[kind] /= ticks * drawnTick.Hours()
	}
	for _, o := range []struct {
		what       string
		less, more float64
	}{
		{"a scarce market is up less than a mixed one", 2 * share[Scarce], share[Mixed]},
		{"a brief market is up less than a flapping one", share[Brief], share[Flapping]},
		{"a flapping market changes more often than a mixed one", 2 * changes[Mixed], changes[Flapping]},
		{"a scarce market changes less often than a flapping one", 2 * changes[Scarce], changes[Flapping]},
		{"storms take the zones of a region together", together[Mixed] + together[Scarce], together[Storms]},
	} {
		if o.less >= o.more {
			t.Errorf("%s: %.3f, %.3f", o.what, o.less, o.more)
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// first records what the policy expects a job to cost at its first decision.
type first struct {
	*zonechoice.Foresight
	usd float64
}

func (p *first) Decide(v zonechoice.View) zonechoice.Choice {
	c := p.Foresight.Decide(v)
	if v.Tick == 0 && len(p.Options()) > 0 {
		p.usd = p.Options()[0].USD
		for _, o := range p.Options() {
			p.usd = min(p.usd, o.USD)
		}
	}
	return c
}

// kindSum sums the dollars of the runs of one row.
type kindSum struct {
	policy, paced, paced2, optimum, expects float64
	whole                                   float64 // the work on on-demand in the first zone
	parts, known, least                     split   // of the policy, of the policy with known hazards, of the optimum
}

// Over every kind of market, sight and guard, the default policy costs less than Uniform Progress with or without its
// second condition, meets each deadline, and no run is cheaper than its optimum. The log has the figures of the design
// note.
func TestDrawnMarket_DefaultCostsLessThanUniformProgress(t *testing.T) {
	lane.Nightly(t, "it plays 320 runs on generated markets")
	for _, kind := range DrawnKinds {
		whole := kindSum{}
		for _, rules := range []struct {
			sight Sight
			latch bool
		}{{SeesAll, false}, {SeesAll, true}, {SeesOne, false}, {SeesNone, true}} {
			row := kindSum{}
			for seed := range uint64(8) {
				row.play(t, kind, seed, rules.sight, rules.latch)
			}
			row.log(t, string(kind)+" "+string(rules.sight), rules.latch)
			whole.add(&row)
		}
		whole.log(t, string(kind), false)
	}
}

// play adds the runs of a market: 24 h of work by 25 and 30 h in three zones.
func (s *kindSum) play(t *testing.T, kind DrawnKind, seed uint64, sight Sight, latch bool) {
	t.Helper()
	p, windows := DrawnMarket(kind, seed, 1, 30*time.Hour)
	AtLeast(windows, 1)
	p.Jobs = []Size{{24 * time.Hour, 25 * time.Hour}, {24 * time.Hour, 30 * time.Hour}}
	p.Restarts, p.Checkpoints = []time.Duration{6 * time.Minute}, []Checkpoint{DrawnFares(100)}
	p.Sights, p.Latch, p.Groups = []Sight{sight}, latch, p.Groups[1:2]
	list, _, err := p.Settings(windows)
	must.Do(t, err)
	for i := range list {
		for k := range list[i].Runs {
			r := &list[i].Runs[k]
			least, _ := r.Optimum()
			mind := &first{Foresight: &zonechoice.Foresight{Job: &r.Job}}
			parts, out := r.played(mind)
			known, _ := r.played(newInformed(r))
			if out.Missed || out.Cost.Cmp(least) < 0 {
				t.Errorf("%s, seed %d, %v: missed %v, %v dollars, optimum %v", kind, seed, &list[i], out.Missed, out.Cost, least)
			}
			s.add(&kindSum{out.Cost.Float(), r.Play(&zonechoice.Uniform{Job: &r.Job, Second: true}).Cost.Float(),
				r.Play(&zonechoice.Uniform{Job: &r.Job}).Cost.Float(), least.Float(), mind.usd,
				r.Job.Zones[0].OnDemand.Until(r.Job.Work).Float(), parts, known, r.leastSplit()})
		}
	}
}

func (s *kindSum) add(o *kindSum) {
	s.policy, s.paced, s.paced2 = s.policy+o.policy, s.paced+o.paced, s.paced2+o.paced2
	s.optimum, s.expects, s.whole = s.optimum+o.optimum, s.expects+o.expects, s.whole+o.whole
	s.parts.add(o.parts)
	s.known.add(o.known)
	s.least.add(o.least)
}

// log logs the row, and fails if the default policy costs more than Uniform Progress.
func (s *kindSum) log(t *testing.T, name string, latch bool) {
	t.Helper()
	paced := min(s.paced, s.paced2)
	t.Logf("%-12s latch %-5v of Uniform Progress %.3f, of the optimum %.3f, expected at the start %.3f of its cost", name,
		latch, s.policy/paced, s.policy/s.optimum, s.expects/s.policy)
	for _, row := range []struct {
		name string
		of   *split
	}{{"default", &s.parts}, {"known hazards", &s.known}, {"optimum", &s.least}} {
		of := func(usd float64) float64 { return 100 * usd / s.whole }
		t.Logf("  %-13s %5.1f %% of on-demand: spot %4.1f, on-demand %4.1f, egress %4.1f, fees %4.1f", row.name,
			of(row.of.usd()), of(row.of.spot), of(row.of.onDemand), of(row.of.egress), of(row.of.fees))
	}
	if s.policy >= paced {
		t.Errorf("%s, latch %v: %.2f dollars, Uniform Progress %.2f", name, latch, s.policy, paced)
	}
}
