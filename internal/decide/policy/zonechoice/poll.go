package zonechoice

import "math"

// Poll names the zone whose state is worth the most: the probability that it is up, times what it would save. While a
// spot machine is held, and where a poll is an attempt that is billed, only a zone counts that Decide would take: its
// saving exceeds the margin of a live machine, and the charge for the attempts.
func (p *Foresight) Poll(v View) int {
	work, slack := p.begin(v)
	if p.Job.Guarded(v.Tick, v.Left) {
		return -1
	}
	p.best(v, work, slack)
	stay := math.Inf(1)
	for _, o := range p.options {
		stay = min(stay, o.USD)
	}
	look, most := -1, math.Inf(-1)
	needs := p.margin(v) + p.tried(v)
	for z, s := range v.Seen {
		if s != Unseen {
			continue
		}
		gain := stay - p.takeNow(v, z, work, slack)
		if (p.Job.Tries || v.Held == Spot) && gain <= needs {
			continue // it would not be taken
		}
		saves := v.Past[z].Chance(v.Now, p.now.Up[z]) * max(gain, 1e-6)
		if saves > most {
			look, most = z, saves
		}
	}
	return look
}

// inHand is the saving, in hours of on-demand, below which a live machine is not left.
const inHand = 0.2

// margin is how much cheaper an option must be to leave a live spot machine for it.
func (p *Foresight) margin(v View) float64 {
	if v.Held != Spot {
		return 0
	}
	return inHand * p.now.DemandAt(v.Zone)
}

// tried is the charge for the successful attempts of this tick if none of them is taken.
func (p *Foresight) tried(v View) (usd float64) {
	for z, s := range v.Seen {
		if p.Job.Tries && s == Up && (v.Held != Spot || z != v.Zone) {
			usd += v.Prices[z].Until(p.Job.Fee).Float()
		}
	}
	return usd
}

// takeNow is the remaining cost of taking zone z if it is up.
func (p *Foresight) takeNow(v View, z int, work, slack float64) float64 {
	age := 0.0
	if v.Past[z].Up {
		age = v.Past[z].Age()
	}
	return p.tab.Take(z, p.home(v), age, work, slack)
}
