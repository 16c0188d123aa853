package ab

import (
	"math/bits"
	"slices"

	"scrimp/internal/work/tune"
)

// exactPairs is the number of pairs up to which every combination of signs is tested; beyond it, a group of
// 2^exactPairs of them.
const exactPairs = 12

// signs returns combinations of signs of n differences, as bits: 1 flips a sign. They are closed under exclusive or, so
// the observed combination is as likely as each other one if the differences are symmetric around 0: the test is exact.
// The first is the observed one.
func signs(n int) []uint64 {
	free := min(n, exactPairs)
	columns := make([]uint64, n) // the free bits that flip a difference
	for i := range free {
		columns[i] = 1 << i
	}
	for i, chance := free, tune.NewChance(1); i < n; {
		c := chance.Next() & (1<<exactPairs - 1)
		if bits.OnesCount64(c) >= 4 && !slices.Contains(columns[:i], c) {
			columns[i] = c
			i++
		}
	}
	list := make([]uint64, 1<<free)
	for g := range list {
		for i, c := range columns {
			if bits.OnesCount64(uint64(g)&c)%2 == 1 {
				list[g] |= 1 << i
			}
		}
	}
	return list
}

// positive tests after each pair whether the mean of all differences is above 0. It returns the number of pairs after
// which that is shown, or 0. After k of n pairs at most (k/n)² × level(n) of the combinations count as proof, those
// with the largest sums first. A combination counts once, so testing after each pair adds no error. The square spends
// little on the first pairs, which easily miss one side of skewed noise.
func positive(differences []float64, n int) int {
	group := signs(n)
	sums, taken, spent := make([]float64, len(group)), make([]bool, len(group)), 0
	for k, d := range differences {
		for g, turned := range group {
			if turned>>k&1 == 1 {
				sums[g] -= d
			} else {
				sums[g] += d
			}
		}
		part := float64(k+1) / float64(n)
		may := int(level(n)*float64(part*part)*float64(len(group))+1e-9) - spent
		top := largest(sums, taken, may)
		for _, g := range top {
			taken[g] = true
		}
		if spent += len(top); taken[0] {
			return k + 1
		}
	}
	return 0
}

// largest returns the indices of at most the given number of the largest sums that are not taken yet. Of equal sums it
// returns all or none.
func largest(sums []float64, taken []bool, most int) []int {
	if most <= 0 {
		return nil
	}
	top := make([]int, 0, most+2) // one more than needed, in decreasing order
	for g, s := range sums {
		if taken[g] || len(top) > most && s <= sums[top[most]] {
			continue
		}
		at := len(top)
		for top = append(top, g); at > 0 && sums[top[at-1]] < s; at-- {
			top[at-1], top[at] = top[at], top[at-1]
		}
		top = top[:min(len(top), most+1)]
	}
	if len(top) <= most {
		return top
	}
	next := sums[top[most]]
	for top = top[:most]; len(top) > 0 && same(sums[top[len(top)-1]], next); {
		top = top[:len(top)-1]
	}
	return top
}

// same reports whether two sums differ by no more than rounding.
func same(a, b float64) bool {
	return a == b || a-b < 1e-12*max(a, -a, b, -b) && b-a < 1e-12*max(a, -a, b, -b)
}

// atLeast returns the share of all combinations of signs whose sum is at least the observed one.
func atLeast(differences []float64) float64 {
	group, count := signs(len(differences)), 0
	sum := func(g uint64) (s float64) {
		for k, d := range differences {
			if g>>k&1 == 1 {
				d = -d
			}
			s += d
		}
		return s
	}
	seen := sum(0)
	for _, g := range group {
		if s := sum(g); s > seen || same(s, seen) {
			count++
		}
	}
	return float64(count) / float64(len(group))
}
