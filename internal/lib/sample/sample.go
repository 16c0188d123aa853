// Package sample thins long series to evenly spaced samples.
package sample

import (
	"maps"
	"slices"
)

// Most is the largest number of points in the sample of a series.
const Most = 400

// Series is an evenly spaced sample of a long series in bounded memory. The zero value is an empty series.
type Series[T comparable] struct {
	points []T
	every  int // each such point is kept; 0: each
	seen   int
	last   T
}

// Add adds a point, and thins the series when it grows too long.
func (s *Series[T]) Add(p T) {
	s.every = max(1, s.every)
	if s.last = p; s.seen%s.every == 0 {
		s.points = append(s.points, p)
	}
	s.seen++
	if len(s.points) < 2*Most {
		return
	}
	kept := s.points[:0]
	for i := 0; i < len(s.points); i += 2 {
		kept = append(kept, s.points[i])
	}
	s.points, s.every = kept, 2*s.every
}

// Empty reports whether the series has no point.
func (s *Series[T]) Empty() bool { return s.seen == 0 }

// Last returns the newest point.
func (s *Series[T]) Last() T { return s.last }

// All returns at most Most points, with the first and the newest.
func (s *Series[T]) All() []T {
	list := s.points
	if n := len(list); n > 0 && list[n-1] != s.last {
		list = append(slices.Clip(list), s.last)
	}
	return Evenly(list, Most)
}

// Evenly returns at most n elements of the list at even distances, with its first and its last one. n is at least 2.
func Evenly[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	kept := make([]T, 0, n)
	for i := range n {
		kept = append(kept, list[i*(len(list)-1)/(n-1)])
	}
	return kept
}

// Named holds series by name, up to a number of them.
type Named[T comparable] struct {
	Limit int // names; further ones are left out
	by    map[string]*Series[T]
}

// Add adds a point to the series of that name.
func (n *Named[T]) Add(name string, p T) {
	s := n.by[name]
	if s == nil {
		if len(n.by) >= n.Limit {
			return
		}
		if n.by == nil {
			n.by = map[string]*Series[T]{}
		}
		s = &Series[T]{}
		n.by[name] = s
	}
	s.Add(p)
}

// Names lists the series in order.
func (n *Named[T]) Names() []string { return slices.Sorted(maps.Keys(n.by)) }

// Of returns the series of that name, or nil.
func (n *Named[T]) Of(name string) *Series[T] { return n.by[name] }
