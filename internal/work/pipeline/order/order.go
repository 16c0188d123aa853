// Package order sorts things that need each other.
package order

import "slices"

// Of returns the positions of things so that each follows those that it needs, and otherwise keeps their order. needs
// returns the positions that a thing needs. If things need each other in a circle, cycle lists them, the first again at
// the end, and order is nil.
func Of(n int, needs func(at int) []int) (order, cycle []int) {
	const open, done = 1, 2
	mark := make([]int, n)
	type visit struct{ at, next int }
	for first := range n {
		if mark[first] != 0 {
			continue
		}
		mark[first] = open
		for path := []visit{{at: first}}; len(path) > 0; {
			last := &path[len(path)-1]
			if last.next == len(needs(last.at)) {
				mark[last.at], order = done, append(order, last.at)
				path = path[:len(path)-1]
				continue
			}
			need := needs(last.at)[last.next]
			last.next++
			switch mark[need] {
			case open:
				for _, v := range path[slices.IndexFunc(path, func(v visit) bool { return v.at == need }):] {
					cycle = append(cycle, v.at)
				}
				return nil, append(cycle, need)
			case 0:
				mark[need], path = open, append(path, visit{at: need})
			}
		}
	}
	return order, nil
}
