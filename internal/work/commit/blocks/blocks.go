// Package blocks plans capacity blocks: machines that are paid for in advance for a number of days and end at a fixed
// time of the day. It is exact for the demand that it is given.
package blocks

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/commit"
)

// Rules of Amazon's Capacity Blocks for ML, from its user guide ("Find and purchase Capacity Blocks" and "How Capacity
// Blocks work") in November 2026.
const (
	// MostMachines is how many machines one account may hold in all its blocks.
	MostMachines = 256
	// MostInBlock is how many machines one block may have.
	MostInBlock = 64
	// LongestDays is the longest block: up to 14 days any number, then multiples of 7.
	LongestDays = 182
	startHalf   = 23 // blocks start and end at 11:30 UTC, the half-hour 23 of a day
	lostHalves  = 1  // the machines are ended 30 minutes before the end
)

// Lengths returns the lengths of blocks up to a number of days, ascending.
func Lengths(longest int) (days []int) {
	for d := 1; d <= min(longest, LongestDays); d++ {
		if d <= 14 || d%7 == 0 {
			days = append(days, d)
		}
	}
	return days
}

// Terms are the prices and limits of a plan.
type Terms struct {
	Block, OnDemand money.Rate // of an hour of one machine
	Machines        int64      // in blocks at once; at most MostMachines
	Longest         int        // days of a block; at most LongestDays
}

// A Block is a number of machines with the same start and end. More than MostInBlock need several purchases.
type Block struct {
	Start    time.Time
	Days     int
	Machines int64
	Used     int64 // half-hours of machines that the demand uses
}

// End returns when the block ends.
func (b Block) End() time.Time { return b.Start.AddDate(0, 0, b.Days) }

// Paid returns the half-hours of machines that the block costs.
func (b Block) Paid() int64 { return 48 * int64(b.Days) * b.Machines }

// Cost returns what a number of half-hours of machines costs, without rounding between them.
func Cost(rate money.Rate, halves int64) money.Amount {
	return rate.Until(time.Hour).Times(int(halves / 2)).Add(rate.Until(30 * time.Minute).Times(int(halves % 2)))
}

// A Plan is the cheapest purchase for the demand of a region.
type Plan struct {
	Blocks []Block
	Demand int64 // half-hours of machines
	Rest   int64 // those that no block serves
}

// Plan returns the blocks that make the demand of a region cheapest, with on-demand machines for the rest. It is exact:
// the n-th machine is needed exactly when the demand is at least n, so the machines are planned one by one, each by the
// best set of blocks that do not overlap (dynamic programming over the days).
func (t Terms) Plan(r commit.Region, zero time.Time) Plan {
	p := Plan{}
	top := int64(0)
	for _, n := range r.Units {
		p.Demand += 2 * n
		top = max(top, min(n, t.Machines))
	}
	p.Rest = p.Demand
	first := zero.Truncate(24 * time.Hour)
	shift := int(zero.Sub(first) / (30 * time.Minute)) // of the first hour in its day
	found := map[Block]int{}
	var last []Block
	for n := int64(1); n <= top; n++ {
		if n == 1 || slices.ContainsFunc(r.Units, func(u int64) bool { return u == n-1 }) { // else it is needed as n-1 is
			last = t.best(needed(r.Units, n), shift, first)
		}
		for _, b := range last {
			p.Rest -= b.Used
			key := b
			key.Used = 0
			i, known := found[key]
			if !known {
				i = len(p.Blocks)
				found[key] = i
				p.Blocks = append(p.Blocks, key)
			}
			p.Blocks[i].Used += b.Used
			p.Blocks[i].Machines += b.Machines
		}
	}
	for i := range p.Blocks {
		p.Blocks[i].Machines-- // the key counts one machine
	}
	slices.SortFunc(p.Blocks, func(a, b Block) int {
		return cmp.Or(a.Start.Compare(b.Start), -cmp.Compare(a.Days, b.Days))
	})
	return p
}

// needed returns, for each half-hour, how many half-hours before it have a demand of at least n.
func needed(units []int64, n int64) []int32 {
	sum := make([]int32, 2*len(units)+1)
	for i := range 2 * len(units) {
		sum[i+1] = sum[i]
		if units[i/2] >= n {
			sum[i+1]++
		}
	}
	return sum
}

// best returns the blocks of one machine, ascending. Ties go to fewer and earlier blocks.
func (t Terms) best(sum []int32, shift int, first time.Time) []Block {
	halves := len(sum) - 1
	at := func(half int) int32 { return sum[min(max(half-shift, 0), halves)] }
	days := (halves+shift)/48 + 1
	lengths := Lengths(t.Longest)
	saved := make([]money.Amount, days+1+LongestDays)
	take := make([]int, days+1)
	use := make([]int32, days+1)
	block := make([]money.Amount, len(lengths))
	for i, n := range lengths {
		block[i] = Cost(t.Block, 48*int64(n))
	}
	// A block may begin on the day before the first hour, and serve its morning.
	for d := days; d >= 0; d-- {
		saved[d] = saved[d+1]
		start := 48*(d-1) + startHalf
		if at(start) == at(start+48*LongestDays) {
			continue // nothing is needed from here on
		}
		for i, n := range lengths {
			used := at(start+48*n-lostHalves) - at(start)
			gain := Cost(t.OnDemand, int64(used)).Sub(block[i]).Add(saved[d+n])
			if gain.Cmp(saved[d]) > 0 {
				saved[d], take[d], use[d] = gain, n, used
			}
		}
	}
	var list []Block
	for d := 0; d <= days; d += max(1, take[d]) {
		if take[d] > 0 {
			start := first.AddDate(0, 0, d-1).Add(startHalf * 30 * time.Minute)
			list = append(list, Block{Start: start, Days: take[d], Machines: 1, Used: int64(use[d])})
		}
	}
	return list
}
