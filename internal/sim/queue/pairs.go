package queue

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// Interference is how fast tasks are beside each other.
type Interference struct {
	uniform []int64   // by number of tasks: units a second
	pairs   [][]int64 // by kind, by neighbour's kind
}

// U95 is the rate 0.95^(n-1) of each of n tasks.
func U95() Interference { return Interference{} }

// rate is the units that a task makes in a second beside the busy ones.
func (f *Interference) rate(tasks []task, i int, busy []int) int64 {
	if f.pairs == nil {
		for len(f.uniform) <= len(busy) {
			f.uniform = append(f.uniform, int64(math.Round(unit*math.Pow(0.95, float64(max(0, len(f.uniform)-1))))))
		}
		return max(1, f.uniform[len(busy)])
	}
	rate := float64(unit)
	for _, o := range busy {
		if o != i {
			rate *= float64(f.pairs[tasks[i].Kind][tasks[o].Kind]) / unit
		}
	}
	return max(1, int64(math.Round(rate)))
}

// slowestPair is the least rate of one workload beside another, in units.
const slowestPair = unit / 100

// ReadPairs reads how fast each workload is beside each other one.
func ReadPairs(file string, in io.Reader, jobs []Job) (Interference, error) {
	const value = "normalised_throughput"
	t, err := newTable(file, in, "workload", "colocated_with", value)
	if err != nil {
		return Interference{}, err
	}
	var names []string
	kinds := map[string]int{}
	for _, j := range jobs {
		if _, known := kinds[j.Workload]; !known {
			kinds[j.Workload] = j.Kind
			names = append(names, j.Workload)
		}
	}
	f := Interference{pairs: make([][]int64, len(names))}
	for i := range f.pairs {
		f.pairs[i] = make([]int64, len(names))
	}
	for {
		more, err := t.next()
		if err != nil {
			return Interference{}, err
		}
		if !more {
			break
		}
		n, err := t.number(value, unit, 1)
		if err != nil {
			return Interference{}, err
		}
		if n < slowestPair {
			return Interference{}, t.wrong(value, "give 0.01 to 1: a job beside another still makes progress")
		}
		a, ok := kinds[t.text("workload")]
		b, also := kinds[t.text("colocated_with")]
		if !ok || !also {
			continue
		}
		if f.pairs[a][b] != 0 {
			return Interference{}, t.wrong("workload", "this pair is there twice: remove one")
		}
		f.pairs[a][b] = n
	}
	if a, b, missing := f.missing(); missing {
		return Interference{}, fmt.Errorf("%s: has no line for %s beside %s: add it with its %s", file, names[a], names[b],
			value)
	}
	return f, nil
}

// missing returns the first pair of kinds without a rate.
func (f *Interference) missing() (a, b int, ok bool) {
	for a, row := range f.pairs {
		if b := slices.Index(row, 0); b >= 0 {
			return a, b, true
		}
	}
	return 0, 0, false
}
