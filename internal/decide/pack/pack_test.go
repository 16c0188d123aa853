package pack

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/lane"
)

// market returns a few machine types.
func market() []Type {
	price := func(s string) money.Rate {
		r, err := money.ParseRate(s)
		if err != nil {
			panic(err)
		}
		return r
	}
	return []Type{
		{Name: "cpu-small", Size: Size{0, 4000, 16000}, Price: price("0.2")},
		{Name: "cpu-large", Size: Size{0, 32000, 128000}, Price: price("1.5")},
		{Name: "gpu-1", Size: Size{1000, 8000, 60000}, Price: price("3.06")},
		{Name: "gpu-8", Size: Size{8000, 64000, 480000}, Price: price("24.48")},
	}
}

func drawnSizes(r *rand.Rand, n int) (list []Size) {
	for range n {
		list = append(list, Size{int64(r.IntN(3)) * 1000, int64(1+r.IntN(12)) * 1000, int64(1+r.IntN(60)) * 1000})
	}
	return list
}

// Static puts every task on one machine with room for it and costs no less than the bound.
func TestStatic_PacksEachTaskOnceWithinItsMachine(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(6, 300)) {
		r := rand.New(rand.NewPCG(seed, 3))
		types, sizes := market(), drawnSizes(r, 1+r.IntN(120))
		p := Static(types, sizes)
		seen := make([]int, len(sizes))
		for _, b := range p.Bins {
			room := types[b.Type].Size
			for _, i := range b.Tasks {
				seen[i]++
				room = room.Sub(sizes[i])
			}
			if !(Size{}).Fits(room) {
				t.Errorf("seed %d: a machine has more tasks than room", seed)
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Errorf("seed %d: task %d is on %d machines", seed, i, n)
			}
		}
		if cost := p.Cost(types).Float(); cost < p.Bound*(1-1e-9) {
			t.Errorf("seed %d: costs %f, below the bound %f", seed, cost, p.Bound)
		}
		if again := Static(types, sizes); !reflect.DeepEqual(p, again) {
			t.Errorf("seed %d: the same input gives another packing", seed)
		}
	}
}

// cheapest tries every packing. It returns the least cost of tasks from i on, given the loads of open machines of
// any type.
func cheapest(types []Type, sizes []Size, i int, loads []Size) money.Amount {
	if i == len(sizes) {
		var sum money.Amount
		for _, l := range loads {
			k, ok := Cheapest(types, l)
			if !ok {
				return money.Picos(math.MaxInt64)
			}
			sum = sum.Add(types[k].Price.Until(3600e9))
		}
		return sum
	}
	best := cheapest(types, sizes, i+1, append(loads[:len(loads):len(loads)], sizes[i]))
	for k := range loads {
		next := append([]Size{}, loads...)
		next[k] = next[k].Add(sizes[i])
		if _, ok := Cheapest(types, next[k]); ok {
			best = money.Min(best, cheapest(types, sizes, i+1, next))
		}
	}
	return best
}

// The bound is at most the cost of the optimal packing, and Static is at most 5 % above the optimum.
func TestStatic_IsCloseToTheBestOfAllPackings(t *testing.T) {
	t.Parallel()
	sum, least := 0.0, 0.0
	for seed := range uint64(lane.Pick(30, 300)) {
		r := rand.New(rand.NewPCG(seed, 4))
		types, sizes := market(), drawnSizes(r, 1+r.IntN(7))
		p, best := Static(types, sizes), cheapest(types, sizes, 0, nil).Float()
		cost := p.Cost(types).Float()
		if p.Bound > best*(1+1e-9) || cost < best*(1-1e-9) {
			t.Errorf("seed %d: bound %f, best %f, found %f", seed, p.Bound, best, cost)
		}
		sum, least = sum+cost, least+best
	}
	if sum > 1.05*least {
		t.Errorf("costs %f, the best packings %f", sum, least)
	}
}

func TestStatic_LeavesOutWhatFitsNowhere(t *testing.T) {
	t.Parallel()
	p := Static(market(), []Size{{0, 1_000_000, 0}, {1000, 1000, 1000}})
	if len(p.Bins) != 1 || !reflect.DeepEqual(p.Bins[0].Tasks, []int{1}) {
		t.Errorf("%+v", p)
	}
	if p := Static(market(), nil); len(p.Bins) != 0 || p.Bound != 0 {
		t.Errorf("%+v", p)
	}
}

// A rollback restores a statement to its mark after any attempts.
func TestStatement_RollsBackToItsMark(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	v := &View{Types: market()}
	for i := range 12 {
		v.Tasks = append(v.Tasks, Task{ID: i, Size: Size{0, 1000, 1000}, On: i % 3})
	}
	for m := range 3 {
		x := Machine{ID: m, Type: 1}
		for i := m; i < 12; i += 3 {
			x.Tasks = append(x.Tasks, i)
		}
		v.Machines = append(v.Machines, x)
	}
	s := NewStatement(v)
	step := func() {
		if r.IntN(5) == 0 {
			s.Open(r.IntN(len(v.Types)))
			return
		}
		s.Move(r.IntN(12), r.IntN(len(s.machines)+1)-1)
	}
	for range 50 {
		step()
		mark := s.Mark()
		before := NewStatement(v)
		before.machines, before.on = nil, append([]int{}, s.on...)
		for _, m := range s.machines {
			before.machines = append(before.machines, seats{m.kind, m.room, append([]int{}, m.tasks...)})
		}
		for range r.IntN(20) {
			step()
		}
		s.Rollback(mark)
		if !reflect.DeepEqual(s.on, before.on) || len(s.machines) != len(before.machines) {
			t.Fatal("a rollback leaves tasks or machines that were not there")
		}
		for i, m := range s.machines {
			if m.room != before.machines[i].room || len(m.tasks) != len(before.machines[i].tasks) {
				t.Fatalf("machine %d is not as it was", i)
			}
			for k := range m.tasks {
				if m.tasks[k] != before.machines[i].tasks[k] {
					t.Fatalf("machine %d has its tasks in another order", i)
				}
			}
		}
	}
	s.Rollback(0)
	if p := s.Commit(); len(p.Launches)+len(p.Moves)+len(p.Releases) != 0 {
		t.Errorf("a statement that was rolled back plans %+v", p)
	}
}

func TestCommit_RefusesAFullMachine(t *testing.T) {
	t.Parallel()
	v := &View{Types: market(), Tasks: []Task{{Size: Size{0, 9000, 0}, On: Waiting}}}
	s := NewStatement(v)
	s.Move(0, s.Open(0))
	defer func() {
		if recover() == nil {
			t.Error("a task of 9 vCPU is on a machine of 4")
		}
	}()
	s.Commit()
}

// The learner finds the rates of pairs from tasks with several neighbours.
func TestRates_LearnsPairsFromGroups(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	truth := [3][3]float64{{0.93, 0.8, 1}, {0.99, 0.7, 0.85}, {0.9, 0.95, 0.97}}
	var rates Rates
	if got := rates.Of(1, 2); got != assumedPair {
		t.Errorf("an unknown pair runs at %f", got)
	}
	for range 400 {
		kind, rate := r.IntN(3), 1.0
		var beside []int
		for range 1 + r.IntN(4) {
			b := r.IntN(3)
			beside, rate = append(beside, b), rate*truth[kind][b]
		}
		rates.Observe(kind, beside, rate)
	}
	for a := range truth {
		for b, want := range truth[a] {
			if got := rates.Of(a, b); math.Abs(got-want) > 0.02 {
				t.Errorf("kind %d beside %d: learned %f, is %f", a, b, got, want)
			}
		}
	}
	before := rates.Of(0, 1)
	for _, odd := range []float64{0, -1, math.NaN(), math.Inf(1), 1.5} {
		rates.Observe(0, []int{1}, odd)
	}
	if rates.Of(0, 1) != before {
		t.Error("a measurement that is no rate changes what is known")
	}
}
