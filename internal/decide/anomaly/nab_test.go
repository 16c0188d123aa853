package anomaly

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// labelled is a test series with the windows in which an alert is correct, first and last row included.
type labelled struct {
	kind    string
	points  []point
	windows [][2]int
}

// profile holds the benchmark's rewards and penalties.
type profile struct {
	name               string
	falseAlarm, missed float64
}

var profiles = []profile{{"standard", 0.11, 1}, {"low-FP", 0.22, 1}, {"low-FN", 0.11, 2}}

// probation is the number of first rows that do not count.
func probation(n int) int { return int(min(math.Floor(0.15*float64(n)), 750)) }

// sigmoid returns the worth of an alert by its place relative to a window: 1 long before its end, 0 at it, -1 long
// after.
func sigmoid(x float64) float64 {
	if x > 3 {
		return -1
	}
	return 2/(1+math.Exp(5*x)) - 1
}

// worth returns what an alert at each row adds to the sum of a series: outside windows any alert, inside a window
// the first alert.
type judged struct {
	score  float64
	window int // -1: outside any window
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

// nab returns the benchmark's score over all series at one threshold, the best score, and its threshold.
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
