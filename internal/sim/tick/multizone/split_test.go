package multizone

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/money"
)

// split is the cost of runs in dollars, by what was paid for.
type split struct{ spot, onDemand, egress, fees float64 }

func (s *split) add(o split) {
	s.spot, s.onDemand = s.spot+o.spot, s.onDemand+o.onDemand
	s.egress, s.fees = s.egress+o.egress, s.fees+o.fees
}

func (s *split) usd() float64 { return s.spot + s.onDemand + s.egress + s.fees }

// recorder adds up what the choices of a policy cost on spot and on on-demand, including the guard's choices.
type recorder struct {
	zonechoice.Policy
	job *zonechoice.Job
	by  [3]money.Amount // by Kind
}

func (p *recorder) Decide(v zonechoice.View) zonechoice.Choice {
	c := p.job.Guard(v, p.Policy.Decide(v))
	switch c.Kind {
	case zonechoice.Spot:
		p.by[c.Kind] = p.by[c.Kind].Add(v.Prices[c.Zone].Until(p.job.Tick))
	case zonechoice.OnDemand:
		p.by[c.Kind] = p.by[c.Kind].Add(p.job.Zones[c.Zone].OnDemand.Until(p.job.Tick))
	case zonechoice.None:
	}
	return c
}

// Poll makes the recorder a Poller; it is called only if the job's polls are limited.
func (p *recorder) Poll(v zonechoice.View) int { return p.Policy.(zonechoice.Poller).Poll(v) }

// played splits the cost of a policy that is a Poller. What is neither machine time nor a fee is egress.
func (r *Run) played(p zonechoice.Policy) (split, Outcome) {
	rec := &recorder{Policy: p, job: &r.Job}
	out := r.Play(rec)
	spot, demand := rec.by[zonechoice.Spot], rec.by[zonechoice.OnDemand]
	egress := out.Cost.Sub(spot).Sub(demand).Sub(out.Fees)
	return split{spot.Float(), demand.Float(), egress.Float(), out.Fees.Float()}, out
}

// tinyRise is a price increase that leaves the cheapest choices in place.
const tinyRise = 1e-6

// leastSplit splits the cost of the optimum. The part of a price is what the optimum gains in dollars per relative
// rise of that price: while the choices stay, the cost is linear in each price.
func (r *Run) leastSplit() split {
	least, _ := r.Optimum()
	part := func(raised Run) float64 {
		more, _ := raised.Optimum()
		return more.Sub(least).Float() / tinyRise
	}
	rise := func(x money.Rate) money.Rate { return x + money.Rate(math.Round(float64(x)*tinyRise)) }
	spot, demand, egress := *r, *r, *r
	spot.Traces = nil
	for _, t := range r.Traces {
		c := *t
		c.Price = slices.Clone(c.Price)
		for k := range c.Price {
			c.Price[k] = rise(c.Price[k])
		}
		spot.Traces = append(spot.Traces, &c)
	}
	demand.Job.Zones = slices.Clone(r.Job.Zones)
	for z := range demand.Job.Zones {
		demand.Job.Zones[z].OnDemand = rise(demand.Job.Zones[z].OnDemand)
	}
	fare := func(a money.Amount) money.Amount {
		n, _ := picos(a)
		return money.Picos(n + int64(math.Round(float64(n)*tinyRise)))
	}
	egress.Job.Carry, egress.Job.Egress = fare(r.Job.Carry), slices.Clone(r.Job.Egress)
	for i := range egress.Job.Egress {
		egress.Job.Egress[i].Cost = fare(egress.Job.Egress[i].Cost)
	}
	return split{spot: part(spot), onDemand: part(demand), egress: part(egress)}
}

// informed is the default policy with the losses and returns of the whole window known in number, though not in time.
// It shows how much of the loss against the optimum is due to hazards that are not known.
type informed struct {
	*zonechoice.Foresight
	whole []hazard.Record
}

// sure is the weight of the whole window against the priors.
const sure = 20

func newInformed(r *Run) *informed {
	p := &informed{Foresight: &zonechoice.Foresight{Job: &r.Job}}
	for _, t := range r.Traces {
		rec := hazard.Record{}
		for k := range r.Job.Ticks() {
			rec = rec.See(epoch.Add(time.Duration(k)*r.Job.Tick), t.Up[k])
		}
		rec = rec.Until(rec.Seen)
		for _, tally := range []*hazard.Tally{&rec.Loss, &rec.Back} { // a third of an event keeps the rates above zero
			tally.Events, tally.Expected = sure*(tally.Events+0.3), sure*(tally.Expected+0.3)
		}
		rec.UpFor, rec.All = sure*rec.UpFor, sure*rec.All
		p.whole = append(p.whole, rec)
	}
	return p
}

func (p *informed) knows(v zonechoice.View) zonechoice.View {
	v.Past = slices.Clone(v.Past)
	for z := range v.Past {
		now, w := &v.Past[z], &p.whole[z]
		now.Loss, now.Back, now.UpFor, now.All = w.Loss, w.Back, w.UpFor, w.All
	}
	return v
}

// Decide is that of Foresight with the known hazards.
func (p *informed) Decide(v zonechoice.View) zonechoice.Choice { return p.Foresight.Decide(p.knows(v)) }

// Poll is that of Foresight with the known hazards.
func (p *informed) Poll(v zonechoice.View) int { return p.Foresight.Poll(p.knows(v)) }

// The parts of the optimum add up to it, and there is no egress within one region.
func TestSplit_OptimumIsTheSumOfItsParts(t *testing.T) {
	moved := 0
	for seed := range uint64(40) {
		r := smallRun(rand.New(rand.NewPCG(seed, 3)))
		for i := range r.Traces { // whole dollars, so that a tiny rise is not rounded away
			r.Job.Zones[i].OnDemand = 3_060_000_000_000
			for k := range r.Traces[i].Price {
				r.Traces[i].Price[k] *= 1_000_000
			}
		}
		r.Job.Carry = r.Job.Carry.Times(10_000)
		least, ok := r.Optimum()
		if !ok {
			continue
		}
		s := r.leastSplit()
		if d := s.usd() - least.Float(); math.Abs(d) > 1e-4*least.Float() {
			t.Errorf("seed %d: the parts %+v are %v more than the optimum %v", seed, s, d, least)
		}
		if s.egress > 0.0001 {
			moved++
			if r.Job.Carry.IsZero() || math.Abs(math.Remainder(s.egress, r.Job.Carry.Float())) > 1e-4 {
				t.Errorf("seed %d: egress of %v dollars, at %v a move", seed, s.egress, r.Job.Carry)
			}
		}
	}
	if moved == 0 {
		t.Error("no optimum moves to another region")
	}
}

// What a policy pays besides machine time and fees is the fare of its moves between regions.
func TestSplit_EgressIsTheFareOfTheMoves(t *testing.T) {
	carried := 0
	for seed := range uint64(6) {
		p, windows := DrawnMarket(Flapping, seed, 1, 12*time.Hour)
		p.Jobs, p.Restarts = []Size{{6 * time.Hour, 8 * time.Hour}}, []time.Duration{6 * time.Minute}
		p.Checkpoints, p.Sights = []Checkpoint{{GB: 1, Carry: money.Picos(20_000_000_000)}}, []Sight{SeesAll}
		p.Groups = p.Groups[1:2]
		list, _, err := p.Settings(windows)
		if err != nil {
			t.Fatal(err)
		}
		s, out := list[0].Runs[0].played(&zonechoice.Foresight{Job: &list[0].Runs[0].Job})
		if want := 0.02 * float64(out.Carries); math.Abs(s.egress-want) > 1e-9 {
			t.Errorf("seed %d: egress of %v dollars for %d moves at $0.02", seed, s.egress, out.Carries)
		}
		carried += out.Carries
	}
	if carried == 0 {
		t.Error("no run moves to another region")
	}
}
