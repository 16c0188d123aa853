package scheduler

import (
	"cmp"
	"slices"

	"scrimp/internal/decide/pack"
)

// classes groups the tasks of a view that a scheduler cannot tell apart: same kind, same size.
type classes struct {
	of      []int // by task
	list    []class
	index   map[classKey]int
	dearest []int // types, the most expensive first
	stamp   [2][]int
	turn    int
	noted   []int
	types   int
}

type classKey struct {
	kind int
	size pack.Size
}

// class is one kind of task with one size.
type class struct {
	kind     int
	size     pack.Size
	cheapest int     // type that fits it alone
	price    float64 // of that type: the reservation price
}

// read assigns the tasks of a view to classes. Classes persist between rounds, and so does what was learned about
// each.
func (c *classes) read(v *pack.View) {
	if c.index == nil || c.types != len(v.Types) {
		*c = classes{index: map[classKey]int{}, types: len(v.Types)}
		for i := range v.Types {
			c.dearest = append(c.dearest, i)
		}
		slices.SortStableFunc(c.dearest, func(a, b int) int { return cmp.Compare(v.Types[b].Price, v.Types[a].Price) })
	}
	c.of = c.of[:0]
	for _, t := range v.Tasks {
		key := classKey{t.Kind, t.Size}
		i, known := c.index[key]
		if !known {
			i = len(c.list)
			c.index[key] = i
			cheapest, ok := pack.Cheapest(v.Types, t.Size)
			x := class{kind: t.Kind, size: t.Size, cheapest: pack.Waiting}
			if ok {
				x.cheapest, x.price = cheapest, pack.Hourly(v.Types[cheapest].Price)
			}
			c.list = append(c.list, x)
		}
		c.of = append(c.of, i)
	}
}

func (c *classes) cheapest(task int) int  { return c.list[c.of[task]].cheapest }
func (c *classes) price(task int) float64 { return c.list[c.of[task]].price }

// fresh starts a new set of tried classes.
func (c *classes) fresh() *classes {
	c.turn++
	for len(c.noted) < len(c.list) {
		c.noted = append(c.noted, 0)
	}
	for i := range c.stamp {
		for len(c.stamp[i]) < len(c.list) {
			c.stamp[i] = append(c.stamp[i], 0)
		}
	}
	return c
}

func half(there bool) int {
	if there {
		return 1
	}
	return 0
}

// again reports whether a task of the same class, on the same machine (there) or not, was tried in this set.
func (c *classes) again(task int, there bool) bool { return c.stamp[half(there)][c.of[task]] == c.turn }

func (c *classes) mark(task int, there bool) { c.stamp[half(there)][c.of[task]] = c.turn }

// find returns the number that put recorded for a task's class in this set.
func (c *classes) find(task int) (int, bool) {
	k := c.of[task]
	return c.noted[k], c.stamp[0][k] == c.turn
}

// put records a number for a task's class.
func (c *classes) put(task, number int) {
	k := c.of[task]
	c.stamp[0][k], c.noted[k] = c.turn, number
}
