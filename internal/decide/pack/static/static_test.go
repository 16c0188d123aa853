package static

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"scrimp/internal/decide/pack"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/lane"
)

// market returns a few machine types.
func market() []pack.Type {
	price := func(s string) money.Rate {
		r, err := money.ParseRate(s)
		if err != nil {
			panic(err)
		}
		return r
	}
	return []pack.Type{
		{Name: "cpu-small", Size: pack.Size{0, 4000, 16000}, Price: price("0.2")},
		{Name: "cpu-large", Size: pack.Size{0, 32000, 128000}, Price: price("1.5")},
		{Name: "gpu-1", Size: pack.Size{1000, 8000, 60000}, Price: price("3.06")},
		{Name: "gpu-8", Size: pack.Size{8000, 64000, 480000}, Price: price("24.48")},
	}
}

func drawnSizes(r *rand.Rand, n int) (list []pack.Size) {
	for range n {
		list = append(list, pack.Size{int64(r.IntN(3)) * 1000, int64(1+r.IntN(12)) * 1000, int64(1+r.IntN(60)) * 1000})
	}
	return list
}

// Pack puts every task on one machine with room for it and costs no less than the bound.
func TestPack_PacksEachTaskOnceWithinItsMachine(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(6, 300)) {
		r := rand.New(rand.NewPCG(seed, 3))
		types, sizes := market(), drawnSizes(r, 1+r.IntN(120))
		p := Pack(types, sizes)
		seen := make([]int, len(sizes))
		for _, b := range p.Bins {
			room := types[b.Type].Size
			for _, i := range b.Tasks {
				seen[i]++
				room = room.Sub(sizes[i])
			}
			if !(pack.Size{}).Fits(room) {
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
		if again := Pack(types, sizes); !reflect.DeepEqual(p, again) {
			t.Errorf("seed %d: the same input gives another packing", seed)
		}
	}
}

// cheapest tries every packing. It returns the least cost of tasks from i on, given the loads of open machines of
// any type.
func cheapest(types []pack.Type, sizes []pack.Size, i int, loads []pack.Size) money.Amount {
	if i == len(sizes) {
		var sum money.Amount
		for _, l := range loads {
			k, ok := pack.Cheapest(types, l)
			if !ok {
				return money.Picos(math.MaxInt64)
			}
			sum = sum.Add(types[k].Price.Until(3600e9))
		}
		return sum
	}
	best := cheapest(types, sizes, i+1, append(loads[:len(loads):len(loads)], sizes[i]))
	for k := range loads {
		next := append([]pack.Size{}, loads...)
		next[k] = next[k].Add(sizes[i])
		if _, ok := pack.Cheapest(types, next[k]); ok {
			best = money.Min(best, cheapest(types, sizes, i+1, next))
		}
	}
	return best
}

// The bound is at most the cost of the optimal packing, and Pack is at most 5 % above the optimum.
func TestPack_IsCloseToTheBestOfAllPackings(t *testing.T) {
	t.Parallel()
	sum, least := 0.0, 0.0
	for seed := range uint64(lane.Pick(30, 300)) {
		r := rand.New(rand.NewPCG(seed, 4))
		types, sizes := market(), drawnSizes(r, 1+r.IntN(7))
		p, best := Pack(types, sizes), cheapest(types, sizes, 0, nil).Float()
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

func TestPack_LeavesOutWhatFitsNowhere(t *testing.T) {
	t.Parallel()
	p := Pack(market(), []pack.Size{{0, 1_000_000, 0}, {1000, 1000, 1000}})
	if len(p.Bins) != 1 || !reflect.DeepEqual(p.Bins[0].Tasks, []int{1}) {
		t.Errorf("%+v", p)
	}
	if p := Pack(market(), nil); len(p.Bins) != 0 || p.Bound != 0 {
		t.Errorf("%+v", p)
	}
}
