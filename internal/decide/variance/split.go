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
// Machine time of a period costs C = w · e · (1 + f + i) · Σ s·p: w is the work done, e the useful machine time per
// unit of work, f and i the lost and the waiting time relative to the useful, s the share of each machine in all
// time, p its price. The part of each factor is its Shapley value: the mean change of the cost when this factor
// changes, over all orders in which the six factors can change. Costs without a time are compared directly. Parts
// within the rounding error become zero; the largest part absorbs them.
func Split(before, after *Period) Parts {
	parts := split(before, after)
	parts.fold(before.rounding().Add(after.rounding()))
	return parts
}

func split(before, after *Period) Parts {
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
	default: // one period has machine time but no useful time: compare each use directly
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

// factors holds the factors of a period's cost.
type factors struct {
	work, efficiency, lost, waiting *big.Rat
	shares, prices                  map[machine]*big.Rat
}

// usable reports whether the cost of the period is a product of factors.
func (f *factors) usable() bool { return f != nil }

// idle returns the factors of a period without work and otherwise equal to f.
func (f *factors) idle() *factors {
	empty := *f
	empty.work = new(big.Rat)
	return &empty
}

// factorsOf returns nil if the period has no useful time.
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

// order lists the causes of the factors; the index of each is its bit in a set.
var order = [...]Cause{Volume, Efficiency, Failures, Waiting, Mix, Price}

// weights[n] is the share of the orders of six in which exactly n given factors change before another: n! (5 - n)!
// / 6!.
var weights = [...]*big.Rat{big.NewRat(120, 720), big.NewRat(24, 720), big.NewRat(12, 720), big.NewRat(12, 720),
	big.NewRat(24, 720), big.NewRat(120, 720)}

// shapley returns what each factor adds to the cost of machine time.
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

// averages returns the mean hourly price for both sets of shares and prices: bit 0 selects the shares of after, bit
// 1 the prices of after. A machine of one period only has that period's price in both, so all its effect is mix.
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

// rounded truncates the parts to 1e-12, towards zero. The largest part gets the rest, so the parts add up to the
// whole, which is a multiple of 1e-12.
func rounded(exact []*big.Rat) Parts {
	left, parts := new(big.Rat), Parts{}
	for i, c := range order {
		n := new(big.Int).Quo(exact[i].Num(), exact[i].Denom())
		left.Add(left, new(big.Rat).Sub(exact[i], new(big.Rat).SetInt(n)))
		parts[c] = amountOf(n)
	}
	c := parts.largest()
	parts[c] = parts[c].Add(amountOf(left.Num()))
	return parts
}

func amountOf(picos *big.Int) money.Amount {
	amount, ok := money.FromBig(picos)
	if !ok {
		panic("variance: a part overflows money.Amount")
	}
	return amount
}

// largest returns the cause of the largest part by absolute value; the earlier one on a tie.
func (p Parts) largest() Cause {
	return slices.MaxFunc(Causes, func(a, b Cause) int { return size(p[a]).Cmp(size(p[b])) })
}

// fold moves the parts of at most least into the largest part. The sum does not change.
func (p Parts) fold(least money.Amount) {
	most := p.largest()
	for _, c := range Causes {
		if c != most && size(p[c]).Cmp(least) <= 0 {
			p[most], p[c] = p[most].Add(p[c]), money.Amount{}
		}
	}
}
