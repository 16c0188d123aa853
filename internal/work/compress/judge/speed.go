package judge

import (
	"math"
	"time"
)

// Ratio is how many times as long the copy takes as the original, with its 95 % interval.
type Ratio struct {
	Is, Low, High float64
	Pairs         int // of turns
}

// Verdicts on the speed of a copy.
const (
	Faster     = "faster"
	Slower     = "slower"
	CannotTell = "cannot tell"
)

// Verdict says whether the whole interval lies on one side of 1.
func (r Ratio) Verdict() string {
	switch {
	case r.High < 1:
		return Faster
	case r.Low > 1:
		return Slower
	}
	return CannotTell
}

// Compare compares the medians of turns. The turns of a pair ran one right after the other, so what slows the machine
// for longer than a turn meets both. It takes the logarithms of the ratios of the pairs as independent and normal:
//
//	mean ± t · s / √n, with Student's t for n − 1 degrees of freedom
//
// It needs two pairs at least. One pair says nothing about the error: its interval is everything.
func Compare(before, after [][]time.Duration) Ratio {
	n := min(len(before), len(after))
	logs, mean := make([]float64, n), 0.0
	for i := range n {
		logs[i] = math.Log(float64(Quantile(after[i], 0.5)) / float64(Quantile(before[i], 0.5)))
		mean += logs[i] / float64(n)
	}
	if n < 2 {
		return Ratio{math.Exp(mean), 0, math.Inf(1), n}
	}
	sum := 0.0
	for _, l := range logs {
		sum += float64((l - mean) * (l - mean))
	}
	half := student(n-1) * math.Sqrt(sum/float64(n-1)/float64(n))
	return Ratio{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half), n}
}

// twoSided lists Student's t at 97.5 %, by degrees of freedom from 1.
var twoSided = [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
	2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}

// student returns Student's t at 97.5 %. Above 30 degrees it returns the value of 30, which is larger by 4 % at most.
func student(degrees int) float64 { return twoSided[min(degrees, len(twoSided))-1] }
