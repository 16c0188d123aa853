package sample

import (
	"slices"
	"testing"
)

// A long series keeps its first and its newest point, in order, within the bound.
func TestSeries_KeepsBothEnds(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, Most - 1, Most, Most + 1, 2 * Most, 2*Most + 1, 123_457} {
		var s Series[int]
		for i := range n {
			s.Add(i)
		}
		list := s.All()
		if len(list) > Most || len(list) < min(n, Most)/2 || list[0] != 0 || list[len(list)-1] != n-1 || !slices.IsSorted(list) {
			t.Errorf("of %d points, the sample has %d: %d to %d", n, len(list), list[0], list[len(list)-1])
		}
		if s.Last() != n-1 || s.Empty() {
			t.Errorf("the newest of %d points is %d", n, s.Last())
		}
	}
}

func TestNamed_LeavesOutNamesBeyondItsLimit(t *testing.T) {
	t.Parallel()
	all := Named[int]{Limit: 2}
	for _, name := range []string{"b", "a", "c", "a"} {
		all.Add(name, len(name))
	}
	if got := all.Names(); !slices.Equal(got, []string{"a", "b"}) || all.Of("c") != nil || len(all.Of("a").All()) != 2 {
		t.Errorf("%v", got)
	}
}
