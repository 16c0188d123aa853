package receipts

import (
	"slices"
	"testing"
	"time"

	"scrimp/client"
)

// A long series keeps its first and its newest point, in order, within the bound of an answer.
func TestSamples_KeepBothEndsOfALongSeries(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 2, 399, 400, 401, 800, 801, 123_457} {
		s := &samples{step: 1}
		for i := range n {
			s.add(client.CurvePoint{MarketAt: time.Unix(i, 0), Step: i, Value: float64(i)})
		}
		list := s.all()
		if want := min(n, mostPoints); int64(len(list)) > mostPoints || int64(len(list)) < want/2 {
			t.Errorf("%d of %d points", len(list), n)
		}
		if list[0].Step != 0 || list[len(list)-1].Step != n-1 ||
			!slices.IsSortedFunc(list, func(a, b client.CurvePoint) int { return int(a.Step - b.Step) }) {
			t.Errorf("of %d points, the sample has %d to %d", n, list[0].Step, list[len(list)-1].Step)
		}
	}
}
