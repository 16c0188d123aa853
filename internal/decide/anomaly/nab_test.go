package anomaly

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// labelled is a series of test data with the windows in which an alert is right, first and last row included.
type labelled struct {
	kind    string
	points  []point
	windows [][2]int
}

// profile is what the benchmark pays and charges.
type profile struct {
	name               string
	falseAlarm, missed float64
}

var profiles = []profile{{"standard", 0.11, 1}, {"low-FP", 0.22, 1}, {"low-FN", 0.11, 2}}

// probation is how many of the first rows are not judged.
func probation(n int) int { return int(min(math.Floor(0.15*float64(n)), 750)) }

// sigmoid is what an alert is worth at a place relative to a window: 1 long before its end, 0 at it, -1 long after.
func sigmoid(x float64) float64 {
	if x > 3 {
		return -1
	}
	return 2/(1+math.Exp(5*x)) - 1
}

// worth is what alerts at each row add to the sum of a series: for rows outside windows, and for rows inside a window
// what the first alert of the window earns.
type judged struct {
	score  float64
	window int // -1: outside
	worth  float64
}

func judge(s *labelled, scores []float64) (list []judged) {
	for i := probation(len(s.points)); i < len(s.points); i++ {
		j := judged{scores[i], -1, -1}
		for w, span := range s.windows {
			length := float64(span[1] - span[0] + 1)
			switch {
			case i > span[1]:
				j.worth = sigmoid(float64(i-span[1]) / max(length-1, 1))
			case i >= span[0]:
				j.window, j.worth = w, sigmoid(-float64(span[1]-i+1)/length)/sigmoid(-1)
			}
		}
		list = append(list, j)
	}
	return list
}

// nab is the benchmark's figure for one threshold over all series, the best one, and that threshold.
func nab(set []*labelled, scores [][]float64, p profile) (figure, threshold float64) {
	type row struct {
		judged
		series, at int
	}
	var rows []row
	windows := 0
	for k, s := range set {
		for i, j := range judge(s, scores[k]) {
			rows = append(rows, row{j, k, i})
		}
		windows += len(s.windows)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.score, a.score) })
	sum := -p.missed * float64(windows)
	null, best := sum, sum
	threshold = math.Inf(1)
	first := map[[2]int]row{}
	for i, r := range rows {
		if r.window < 0 {
			sum += r.worth * p.falseAlarm
		} else {
			k := [2]int{r.series, r.window}
			old, found := first[k]
			switch {
			case !found:
				sum += p.missed + r.worth
				first[k] = r
			case r.at < old.at:
				sum += r.worth - old.worth
				first[k] = r
			}
		}
		if sum > best && (i+1 == len(rows) || rows[i+1].score < r.score) {
			best, threshold = sum, r.score
		}
	}
	return 100 * (best - null) / (float64(windows) - null), threshold
}

type point struct {
	Time  time.Time
	Value float64
}
