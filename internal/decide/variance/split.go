package variance

import (
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Split returns what each cause adds to the cost between two periods. The parts add up to the difference exactly.
//
// Machine time of a period costs C = w · e · (1 + f + i) · Σ s·p: w the work done, e useful machine time for a unit of
// it, f and i lost and waiting time as shares of the useful, s the share of each machine in all time, p its price. Each
// factor's part is its Shapley value: the mean, over all orders in which the six could have changed, of what the cost
// changes when this one does. What has no time is compared as it is.
func Split(before, after *Period) Parts {
	parts := Parts{}
	for _, c := range Causes {
		parts[c] = after.untimed[c].Sub(before.untimed[c])
	}
	b, a := factorsOf(before), factorsOf(after)
	switch {
	case b.usable() && a.usable():
	case b.usable() && len(after.machines) == 0:
		a = b.idle()
	case a.usable() && len(before.machines) == 0:
		b = a.idle()
	default: // a period has machine time and none of it useful: each use is compared with itself
		for c := range maps.Keys(causesOfTime) {
			parts[c] = parts[c].Add(after.byUse[c].Sub(before.byUse[c]))
		}
		return parts
	}
	for c, part := range shapley(b, a) {
		parts[c] = parts[c].Add(part)
	}
	return parts
}

var causesOfTime = map[Cause]bool{Volume: true, Failures: true, Waiting: true}

// factors are those of a period.
type factors struct {
	work, efficiency, lost, waiting *big.Rat
	shares, prices                  map[machine]*big.Rat
}

// usable reports whether the cost of the period is the product of its factors.
func (f *factors) usable() bool { return f != nil }

// idle is a period in which no work was done, and all else was like f.
func (f *factors) idle() *factors {
	empty := *f
	empty.work = new(big.Rat)
	return &empty
}

// factorsOf is nil where a period has no useful time.
func factorsOf(p *Period) *factors {
	work, useful := new(big.Rat).SetFloat64(p.work), int64(p.time[Volume])
	if useful == 0 || work == nil || work.Sign() <= 0 {
		return nil
	}
	all := time.Duration(0)
	for _, b := range p.machines {
		all += b.time
	}
	f := &factors{work: work, efficiency: new(big.Rat).Quo(new(big.Rat).SetInt64(useful), work),
		lost: big.NewRat(int64(p.time[Failures]), useful), waiting: big.NewRat(int64(p.time[Waiting]), useful),
		shares: map[machine]*big.Rat{}, prices: map[machine]*big.Rat{}}
	for m, b := range p.machines {
		f.shares[m] = big.NewRat(int64(b.time), int64(all))
		f.prices[m] = new(big.Rat).SetFrac(b.amount.Big(), big.NewInt(int64(b.time)))
	}
	return f
}

// order is the factors, each with its cause; the place is its bit.
var order = [...]Cause{Volume, Efficiency, Failures, Waiting, Mix, Price}

// weights are how often, of all orders of six, n given others have changed before one does: n! (5 - n)! / 6!.
var weights = [...]*big.Rat{big.NewRat(120, 720), big.NewRat(24, 720), big.NewRat(12, 720), big.NewRat(12, 720),
	big.NewRat(24, 720), big.NewRat(120, 720)}

// shapley is what each factor adds to the cost of machine time, exact.
func shapley(before, after *factors) Parts {
	const all = 1 << len(order)
	average := averages(before, after)
	var cost [all]*big.Rat
	for set := range all {
		of := func(bit int, get func(*factors) *big.Rat) *big.Rat {
			if set>>bit&1 == 1 {
				return get(after)
			}
			return get(before)
		}
		v := new(big.Rat).Mul(of(0, func(f *factors) *big.Rat { return f.work }),
			of(1, func(f *factors) *big.Rat { return f.efficiency }))
		more := new(big.Rat).Add(of(2, func(f *factors) *big.Rat { return f.lost }),
			of(3, func(f *factors) *big.Rat { return f.waiting }))
		v.Mul(v, more.Add(more, big.NewRat(1, 1)))
		cost[set] = v.Mul(v, average[set>>4])
	}
	exact := make([]*big.Rat, len(order))
	for bit := range order {
		exact[bit] = new(big.Rat)
		for set := range all {
			if set>>bit&1 == 1 {
				continue
			}
			step := new(big.Rat).Sub(cost[set|1<<bit], cost[set])
			exact[bit].Add(exact[bit], step.Mul(step, weights[ones(set)]))
		}
	}
	return rounded(exact)
}

func ones(set int) (n int) {
	for ; set > 0; set >>= 1 {
		n += set & 1
	}
	return n
}

// averages are the price of an hour over the shares and prices of before and after: by bit 0 the shares are those of
// after, by bit 1 the prices. A machine of one period only has that period's price in both, so that it is all mix.
func averages(before, after *factors) (list [4]*big.Rat) {
	known := map[machine]bool{}
	for _, f := range []*factors{before, after} {
		for m := range f.prices {
			known[m] = true
		}
	}
	machines := slices.SortedFunc(maps.Keys(known), compare)
	for n := range list {
		shares, prices, others := before.shares, before.prices, after.prices
		if n&1 == 1 {
			shares = after.shares
		}
		if n&2 == 2 {
			prices, others = after.prices, before.prices
		}
		list[n] = new(big.Rat)
		for _, m := range machines {
			price := prices[m]
			if price == nil {
				price = others[m]
			}
			if share := shares[m]; share != nil {
				list[n].Add(list[n], new(big.Rat).Mul(share, price))
			}
		}
	}
	return list
}

func compare(a, b machine) int {
	return strings.Compare(a.provider+"\x00"+a.region+"\x00"+a.sku+"\x00"+string(a.capacity),
		b.provider+"\x00"+b.region+"\x00"+b.sku+"\x00"+string(b.capacity))
}

// rounded cuts the parts off at 1e-12 and gives what that loses to the parts that lost the most, the earlier of equals
// first: they add up to the whole, which is a count of 1e-12.
func rounded(exact []*big.Rat) Parts {
	parts, lost := make([]*big.Int, len(exact)), make([]*big.Rat, len(exact))
	left := new(big.Rat)
	byLoss := make([]int, len(exact))
	for i, v := range exact {
		parts[i] = new(big.Int).Div(v.Num(), v.Denom()) // towards minus infinity: what is lost is never negative
		lost[i] = new(big.Rat).Sub(v, new(big.Rat).SetInt(parts[i]))
		left.Add(left, lost[i])
		byLoss[i] = i
	}
	slices.SortStableFunc(byLoss, func(a, b int) int { return lost[b].Cmp(lost[a]) })
	for _, i := range byLoss[:left.Num().Int64()] { // fewer than there are parts
		parts[i].Add(parts[i], big.NewInt(1))
	}
	sum := Parts{}
	for i, c := range order {
		amount, ok := money.FromBig(parts[i])
		if !ok {
			panic("variance: a part beyond all amounts")
		}
		sum[c] = amount
	}
	return sum
}
