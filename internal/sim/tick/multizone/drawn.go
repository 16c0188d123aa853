package multizone

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
)

// drawnTick is the tick of a drawn market.
const drawnTick = 5 * time.Minute

// drawnZones lists the zones of a drawn market, by continent and region, in the order of the groups.
var drawnZones = []struct{ name, continent string }{
	{"us-central1-a", "us"}, {"europe-west4-a", "eu"}, {"us-east1-b", "us"}, {"us-central1-b", "us"},
	{"asia-northeast1-a", "as"}, {"us-west1-a", "us"}, {"europe-west4-b", "eu"}, {"europe-north1-c", "eu"},
	{"australia-southeast1-a", "au"}, {"us-east1-c", "us"}, {"asia-northeast1-c", "as"}, {"us-west1-b", "us"},
	{"europe-west1-d", "eu"},
}

// DrawnKind says how long the zones of a drawn market stay up and down.
type DrawnKind string

// The kinds of drawn markets.
const (
	Mixed    DrawnKind = "mixed"    // zones that stay up for days, zones that change often, and zones between
	Flapping DrawnKind = "flapping" // every zone changes often
	Brief    DrawnKind = "brief"    // up for less than an hour, and down for longer
	Scarce   DrawnKind = "scarce"   // down for most of the time
	Storms   DrawnKind = "storms"   // the zones of a region are lost together every four hours
)

// DrawnKinds lists the kinds of drawn markets.
var DrawnKinds = []DrawnKind{Mixed, Flapping, Brief, Scarce, Storms}

// DrawnMarket returns a generated market to develop policies on: thirteen zones on four continents, on-demand prices
// that differ by 30 %, spot at 0.15 to 0.85 of them, losses common to the zones of a region, and counts of machines. It
// is deterministic in kind and seed. The protocol has groups of 2, 3, 5, 8 and 13 zones; the caller sets its jobs,
// checkpoints and sights.
func DrawnMarket(kind DrawnKind, seed uint64, windows int, span time.Duration) (*Protocol, []Window) {
	rng := rand.New(rand.NewPCG(seed, 13))
	base := 2 + 8*rng.Float64()
	zones := make([]zonechoice.Zone, len(drawnZones))
	traits := make([]drawnTrait, len(drawnZones))
	regions := map[string]float64{}
	for i, z := range drawnZones {
		at := Region(z.name)
		if regions[at] == 0 {
			regions[at] = base * (0.85 + 0.3*rng.Float64())
		}
		zones[i] = zonechoice.Zone{Name: z.name, Region: at, OnDemand: rateAt(regions[at])}
		traits[i] = drawTrait(rng, kind, regions[at])
	}
	// The groups of each market start at a different zone.
	p := &Protocol{Tick: drawnTick, MoveTime: 5 * time.Minute, Fee: time.Minute, PerTick: 1}
	first := rng.IntN(len(zones))
	for _, n := range []int{2, 3, 5, 8, 13} {
		var group []zonechoice.Zone
		for i := range n {
			group = append(group, zones[(first+i)%len(zones)])
		}
		p.Groups = append(p.Groups, group)
	}
	var list []Window
	for w := range windows {
		list = append(list, drawWindow(rng, kind, w, int(span/drawnTick), zones, traits))
	}
	return p, list
}

// DrawnBenchmark returns the mixed market of a seed with the jobs of its benchmark: four windows, 24 h of work by 26,
// 32 and 46 h, restarts of 10 min, a checkpoint of 100 GB, groups of 3, 5 and 13 zones, and all sights.
func DrawnBenchmark(seed uint64) (*Protocol, []Window) {
	const work, longest = 24 * time.Hour, 46 * time.Hour
	p, windows := DrawnMarket(Mixed, seed, 4, longest)
	p.Jobs = []Size{{work, 26 * time.Hour}, {work, 32 * time.Hour}, {work, longest}}
	p.Restarts = []time.Duration{10 * time.Minute}
	p.Checkpoints = []Checkpoint{DrawnFares(100)}
	p.Sights = []Sight{SeesAll, SeesOne, SeesNone}
	p.Groups = [][]zonechoice.Zone{p.Groups[1], p.Groups[2], p.Groups[4]}
	return p, windows
}

// DrawnFares returns the egress costs of a checkpoint of the given size in a drawn market: expensive from Australia,
// cheap within a continent.
func DrawnFares(gb float64) Checkpoint {
	c := Checkpoint{GB: gb}
	seen := map[zonechoice.Fare]bool{}
	for _, a := range drawnZones {
		for _, b := range drawnZones {
			per := 0.08
			switch {
			case a.continent == "au" || b.continent == "au":
				per = 0.15
			case a.continent == b.continent:
				per = 0.02
			}
			f := zonechoice.Fare{From: Region(a.name), To: Region(b.name)}
			if f.From != f.To && !seen[f] {
				seen[f] = true
				f.Cost, _ = money.Estimated(gb * per)
				c.Egress = append(c.Egress, f)
			}
		}
	}
	return c
}

func rateAt(usd float64) money.Rate { return money.Rate(math.Round(usd*1e6)) * 1_000_000 }

// drawnTrait holds a zone's permanent properties.
type drawnTrait struct {
	up, down float64 // medians in hours
	price    float64 // of spot
	moves    bool    // the price varies
	room     float64 // machines, while spot is available
}

// The zones of a mixed market that do not change often.
const (
	lasting DrawnKind = "lasting" // up for days
	between DrawnKind = "between"
)

// medians has the ranges of the medians, in hours, by kind of zone.
var medians = map[DrawnKind]struct{ up, down [2]float64 }{
	lasting:  {[2]float64{12, 96}, [2]float64{0.3, 4}},
	between:  {[2]float64{1, 16}, [2]float64{0.5, 12}},
	Flapping: {[2]float64{0.3, 3}, [2]float64{0.3, 3}},
	Brief:    {[2]float64{0.2, 1}, [2]float64{0.5, 4}},
	Scarce:   {[2]float64{1, 8}, [2]float64{4, 30}},
	Storms:   {[2]float64{1, 24}, [2]float64{0.5, 6}},
}

func drawTrait(rng *rand.Rand, kind DrawnKind, demand float64) drawnTrait {
	t := drawnTrait{moves: rng.IntN(2) == 0, room: 1 + 30*rng.Float64()}
	t.price = demand * (0.15 + 0.7*rng.Float64()*rng.Float64())
	within := func(r [2]float64) float64 { return r[0] * math.Pow(r[1]/r[0], rng.Float64()) }
	if kind == Mixed {
		kind = []DrawnKind{lasting, Flapping, between}[rng.IntN(3)]
	}
	m := medians[kind]
	t.up, t.down = within(m.up), within(m.down)
	return t
}

func drawWindow(rng *rand.Rand, kind DrawnKind, number, ticks int, zones []zonechoice.Zone,
	traits []drawnTrait) Window {
	w := Window{Number: number, Zones: map[string]*Trace{}}
	hour := drawnTick.Hours()
	storms := map[string][]bool{} // by region: the ticks in which its zones may lose spot together
	for i, z := range zones {
		t, tr := traits[i], &Trace{Line: 1}
		if storms[z.Region] == nil {
			storms[z.Region] = drawStorms(rng, kind, ticks)
		}
		up := rng.Float64() < t.up/(t.up+t.down)
		end, price := 0.0, t.price
		room := 0
		for k := range ticks {
			if up && storms[z.Region][k] && rng.Float64() < 0.6 || float64(k) >= end {
				if k > 0 {
					up = !up
				}
				median := t.down
				if up {
					median = t.up
				}
				end = float64(k) + max(1, median*math.Exp(1.2*rng.NormFloat64())/hour)
			}
			if t.moves && rng.Float64() < hour/6 {
				price = min(max(price*math.Exp(0.08*rng.NormFloat64()), z.OnDemand.Float()*0.15), z.OnDemand.Float()*0.85)
			}
			if k == 0 || rng.Float64() < hour/2 {
				room = max(1, int(t.room*math.Exp(0.7*rng.NormFloat64())))
			}
			n := 0
			if up {
				n = room
			}
			tr.Up, tr.Count, tr.Price = append(tr.Up, n > 0), append(tr.Count, n), append(tr.Price, rateAt(price))
		}
		w.Zones[z.Name] = tr
	}
	return w
}

// drawStorms draws the ticks in which a region's zones may be lost together: one in 30 hours, or in four.
func drawStorms(rng *rand.Rand, kind DrawnKind, ticks int) []bool {
	s, every := make([]bool, ticks), 30.0
	if kind == Storms {
		every = 4
	}
	for k := range s {
		s[k] = rng.Float64() < drawnTick.Hours()/every
	}
	return s
}

// String formats the setting as a row label.
func (s *Setting) String() string {
	return fmt.Sprintf("%d zones, %v by %v, restart %v, %g GB, sight %s", len(s.Group), s.Size.Work, s.Size.Deadline,
		s.Restart, s.Checkpoint.GB, s.Sight)
}
