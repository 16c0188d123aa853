package replay

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/sim/protocol"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// drawnProtocol is a small protocol with one setting, its files, and the numbers in them.
type drawnProtocol struct {
	yaml, up, price         string
	tick, work, deadline    int // seconds
	restart, move, fee      int
	gb                      int
	sight                   string
	latch, counted          bool
	perTick, nodes, windows int
	zones, regions          []string
	demand                  []float64 // by zone
	fare                    map[[2]string]float64
	there                   [][][]int // available machines, by window, zone and tick
	spot                    [][][]float64
}

func drawProtocol(seed uint64) drawnProtocol {
	rng := rand.New(rand.NewPCG(seed, 40))
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	d := drawnProtocol{tick: pick(195, 300, 600), restart: pick(0, 180, 360, 720), move: pick(0, 90, 300), fee: pick(0, 60, 300),
		gb: pick(0, 50, 400), sight: []string{"A", "B", "C"}[seed%3], latch: rng.IntN(2) == 0, perTick: rng.IntN(3), windows: 2,
		nodes: pick(1, 1, 2, 3), fare: map[[2]string]float64{}}
	d.counted = d.nodes > 1
	d.work = pick(2, 4, 7) * 3600
	d.work += rng.IntN(100)
	d.deadline = max(d.work*(105+rng.IntN(90))/100, d.work+d.restart+2*d.tick)
	names := []string{"us-east-1a", "us-east-1c", "europe-west4-a", "europe-west4-b", "westeurope-1", "lab"}
	regions := []string{"us-east-1", "us-east-1", "europe-west4", "europe-west4", "westeurope", "lab"}
	for _, z := range rng.Perm(len(names))[:1+rng.IntN(5)] {
		d.zones, d.regions = append(d.zones, names[z]), append(d.regions, regions[z])
	}
	var b strings.Builder
	per := ""
	if d.sight == "C" {
		per = fmt.Sprintf("look: {fee: %ds, per_tick: %s}\n", d.fee, map[int]string{0: "any", 1: "1", 2: "2"}[d.perTick])
	}
	fmt.Fprintf(&b, "tick: %ds\njobs: [{work: %ds, deadline: %ds}]\nrestart: %ds\nsight: %s\n%sguard: %s\n", d.tick, d.work,
		d.deadline, d.restart, d.sight, per, map[bool]string{false: "keep", true: "latch"}[d.latch])
	fmt.Fprintf(&b, "checkpoint:\n  gb: %d\n  move_time: %ds\n  usd_per_gb:\n", d.gb, d.move)
	all := slices.Compact(slices.Clone(regions))
	for _, from := range all {
		row := []string{}
		for _, to := range all {
			if from != to {
				cents := rng.IntN(16)
				d.fare[[2]string{from, to}] = float64(cents*d.gb) / 100
				row = append(row, fmt.Sprintf("%s: 0.%02d", to, cents))
			}
		}
		fmt.Fprintf(&b, "    %s: {%s}\n", from, strings.Join(row, ", "))
	}
	fmt.Fprint(&b, "on_demand:\n  default: 3.06\n  us-east-1: 2.75\n  europe-west4-b: 2.70\n")
	for z, name := range d.zones {
		d.demand = append(d.demand, map[string]float64{"us-east-1a": 2.75, "us-east-1c": 2.75, "europe-west4-b": 2.70}[name])
		if d.demand[z] == 0 {
			d.demand[z] = 3.06
		}
	}
	fmt.Fprintf(&b, "groups: [[%s]]\n", strings.Join(d.zones, ", "))
	d.yaml = b.String()
	d.drawMarket(rng)
	return d
}

func (d *drawnProtocol) drawMarket(rng *rand.Rand) {
	d.up, d.price = "window,zone,start_tick,ticks,available\n", "window,zone,start_tick,ticks,usd_per_hour\n"
	for w := range d.windows {
		var there [][]int
		var spot [][]float64
		for z, name := range d.zones {
			var up []int
			var cost []float64
			for len(up) < d.deadline/d.tick {
				n, span, usd := rng.IntN(2), 1+rng.IntN(12), float64(40+rng.IntN(200))/100
				if d.counted {
					n = rng.IntN(5)
				}
				d.up += fmt.Sprintf("%d,%s,%d,%d,%d\n", w, name, len(up), span, n)
				d.price += fmt.Sprintf("%d,%s,%d,%d,%.2f\n", w, name, len(up), span, min(usd, d.demand[z]*0.9))
				for range span {
					up, cost = append(up, n), append(cost, math.Round(100*min(usd, d.demand[z]*0.9))/100)
				}
			}
			there, spot = append(there, up), append(spot, cost)
		}
		d.there, d.spot = append(d.there, there), append(d.spot, spot)
	}
}

// A twin plays the rules of the benchmark in whole seconds and dollars, independently of package tick and as plainly as
// possible.
type twin struct {
	*drawnProtocol
	w            int // window
	t, left      int
	total        int // work
	held         string
	zone, owed   int
	home         string
	paid         float64
	pointer      int
	policy       string
	seen, upSeen []bool
	late         bool
}

func (s *twin) m() int              { return s.deadline/s.tick - s.t }
func (s *twin) tight(more int) bool { return (s.left+more+s.tick-1)/s.tick >= s.m() }
func (s *twin) up(z int) bool       { return s.there[s.w][z][s.t] >= s.nodes }

// reserve returns the zone for on-demand.
func (s *twin) reserve() int {
	if s.held == "on-demand" {
		return s.zone
	}
	list := []int{}
	for z := range s.zones {
		if s.regions[z] == s.home {
			list = append(list, z)
		}
	}
	for z := range s.zones {
		if s.regions[z] != s.home && !slices.Contains(s.regions, s.home) {
			list = append(list, z)
		}
	}
	return slices.MinFunc(list, func(a, b int) int { return cmp.Compare(s.demand[a], s.demand[b]) })
}

func (s *twin) cheapest() int {
	best := -1
	for z := range s.zones {
		if s.upSeen[z] && (best < 0 || s.spot[s.w][z][s.t] < s.spot[s.w][best][s.t]) {
			best = z
		}
	}
	return best
}

// wants returns the policy's choice after the guard, given what it has seen.
func (s *twin) wants() (kind string, zone int) {
	kind, zone = s.rule()
	if s.latch && s.tight(s.restart) {
		if s.held != "" {
			return "on-demand", s.zone
		}
		best, least := 0, math.Inf(1)
		for z := range s.zones {
			busy, cost := s.left+s.restart, 0.0
			if s.home != "" && s.regions[z] != s.home {
				busy, cost = busy+s.move, s.fare[[2]string{s.home, s.regions[z]}]
			}
			ticks := (busy + s.tick - 1) / s.tick
			cost += float64(ticks) * s.demand[z] * float64(s.tick) / 3600
			if ticks > s.m() {
				cost += 1e9
			}
			if cost < least-1e-9 || cost < least+1e-9 && s.regions[best] != s.home && s.regions[z] == s.home {
				best, least = z, cost
			}
		}
		return "on-demand", best
	}
	if !s.latch && s.tight(s.restart+s.move) {
		switch {
		case s.held == "spot" && s.owed == 0, s.held == "on-demand":
			return s.held, s.zone
		}
		return "on-demand", s.reserve()
	}
	return kind, zone
}

func (s *twin) rule() (string, int) {
	z := s.cheapest()
	now := s.t * s.tick
	done := s.total - s.left
	switch {
	case s.policy == "on-demand":
		return "on-demand", s.reserve()
	case s.held == "spot":
		return "spot", s.zone
	case s.policy == "greedy":
		if z < 0 {
			return s.held, s.zone
		}
		return "spot", z
	case s.tight(2 * (s.restart + s.move)):
		return "on-demand", s.reserve()
	case s.held == "on-demand":
		if z >= 0 && (s.policy == "uniform-progress-2" || done*s.deadline > (now+2*(s.restart+s.move))*s.total) {
			return "spot", z
		}
		return "on-demand", s.zone
	case z >= 0:
		return "spot", z
	case done*s.deadline < now*s.total:
		return "on-demand", s.reserve()
	}
	return "", 0
}

// look makes the probes of one tick.
func (s *twin) look() {
	if s.policy == "on-demand" || s.held == "spot" {
		return
	}
	open := func(z int) { s.seen[z], s.upSeen[z] = true, s.up(z) }
	would := func(z int) bool {
		was := s.upSeen[z]
		s.upSeen[z] = true
		kind, at := s.wants()
		s.upSeen[z] = was
		return kind == "spot" && at == z
	}
	switch {
	case s.sight == "B":
		s.pointer = (s.pointer + 1) % len(s.zones)
		open(s.pointer)
	case s.sight == "C" && s.perTick == 1:
		s.pointer = (s.pointer + 1) % len(s.zones)
		if would(s.pointer) {
			open(s.pointer)
		}
	case s.sight == "C":
		order := make([]int, len(s.zones))
		for z := range order {
			order[z] = z
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.spot[s.w][a][s.t], s.spot[s.w][b][s.t]) })
		tries := 0
		for _, z := range order {
			if s.seen[z] || slices.Contains(s.upSeen, true) || s.perTick > 0 && tries == s.perTick || !would(z) {
				continue
			}
			tries++
			open(z)
		}
	}
}

func (s *twin) play(grid int) {
	s.left = (s.work + grid - 1) / grid * grid
	s.total = s.left
	for s.t = 0; s.left > 0; s.t++ {
		if s.m() <= 0 {
			s.late = true
			return
		}
		s.seen, s.upSeen = make([]bool, len(s.zones)), make([]bool, len(s.zones))
		for z := range s.zones {
			if s.sight == "A" || s.held == "spot" && s.zone == z {
				s.seen[z], s.upSeen[z] = true, s.up(z)
			}
		}
		if s.held == "spot" && !s.up(s.zone) {
			s.held, s.owed = "", 0
		}
		s.look()
		kind, z := s.wants()
		if kind == "" {
			s.held, s.owed = "", 0
			continue
		}
		if kind != s.held || z != s.zone && (kind == "spot" || s.regions[z] != s.regions[s.zone]) {
			s.owed = s.restart
			if s.home != "" && s.home != s.regions[z] {
				s.owed += s.move
				s.paid += s.fare[[2]string{s.home, s.regions[z]}]
			}
			s.home = s.regions[z]
		}
		s.held, s.zone = kind, z
		rate := s.demand[z]
		if kind == "spot" {
			rate = s.spot[s.w][z][s.t]
		}
		s.paid += rate * float64(s.tick) / 3600
		served := min(s.owed, s.tick)
		s.owed -= served
		s.left = max(0, s.left-(s.tick-served))
	}
}

// The policies that are simple enough to write twice cost the same in two programs under any protocol. None costs less
// than the optimum, nor does the default policy, which also meets the deadline.
func TestProtocol_AgreesWithSecondProgram(t *testing.T) {
	for seed := range uint64(lane.Pick(60, 2000)) {
		names := []string{"on-demand", "greedy", "uniform-progress", "uniform-progress-2", Optimum}
		if seed%10 < 2 { // its tables are slow to build
			names = append(names, "default")
		}
		d := drawProtocol(seed)
		p, err := protocol.Read("p.yaml", []byte(d.yaml))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, d.yaml)
		}
		windows, err := multizone.Read("up.csv", strings.NewReader(d.up), "price.csv", strings.NewReader(d.price))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		multizone.AtLeast(windows, d.nodes)
		list, _, err := p.Settings(windows)
		if err != nil || len(list) != 1 {
			t.Fatalf("seed %d: %d settings, %v", seed, len(list), err)
		}
		optima, err := multizone.Optima(t.Context(), list[0].Runs, "", nil)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, d.yaml)
		}
		list[0].Runs = multizone.OnNodes(list[0].Runs, d.nodes, false)
		for i := range optima {
			optima[i] = tick.Times(optima[i], d.nodes)
		}
		by, _, err := Protocol(t.Context(), Settings{list, [][]money.Amount{optima}}, names, time.Now, func(string, int, int) {})
		must.Do(t, err)
		best := by[0].Scores[4].MeanUSD
		for _, row := range by[0].Scores {
			if row.MeanUSD < best-1e-6 || row.Name == "default" && row.Misses > 0 {
				t.Errorf("seed %d: %s costs %.4f with %d misses, the optimum %.4f\n%s", seed, row.Name, row.MeanUSD, row.Misses, best, d.yaml)
			}
			if row.Name == Optimum || row.Name == "default" {
				continue
			}
			want, late := 0.0, 0
			for w := range d.windows {
				s := twin{drawnProtocol: &d, w: w, policy: row.Name}
				s.play(int(list[0].Grid() / time.Second))
				want += s.paid * float64(d.nodes) / float64(d.windows)
				if s.late {
					late++
				}
			}
			if math.Abs(row.MeanUSD-want) > 1e-6 || row.Misses != late {
				t.Errorf("seed %d: %s costs %.6f with %d misses, by the other program %.6f with %d\n%s", seed, row.Name, row.MeanUSD,
					row.Misses, want, late, d.yaml)
			}
		}
		if t.Failed() {
			return
		}
	}
}
