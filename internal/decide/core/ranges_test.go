package core

import (
	"math"
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
)

// asksRange submits a job of ten hours with a range of processors and that parallel share of its work.
func (w *warmRig) asksRange(job string, least, most int, parallel float64, deadline time.Duration) Outcome {
	t := Terms{Name: job, Currency: money.USD, Steps: 100, Work: 10 * time.Hour, Priority: 1, Restart: time.Minute, Promise: 0.99,
		Grace: time.Second, Need: plan.Need{Requirements: plan.Requirements{CPUs: least, MaxCPUs: most}, Parallel: parallel},
		Budget: w.most, HasBudget: true}
	if deadline > 0 {
		t.Deadline = agentsStart.Add(w.at + deadline)
	}
	return w.by("", 0, JobSubmitted{Job: job, Terms: t})
}

// perWork is the part of the machine's price that a job with that many of its eight processors pays beside a task with
// one, by the hour of its work on two.
func perWork(cpus int, parallel float64) float64 {
	hours := 1 - parallel + parallel*2/float64(cpus)
	return float64(cpus) / float64(cpus+1) * hours
}

// Beside a task with one of eight processors a job of cpus: 2..6 has the number that costs its work least, or the least
// that meets its deadline, and the task's speed is that number's.
func TestRanges_SeatHasWhatCostsLeast(t *testing.T) {
	for _, parallel := range []float64{0, 0.1, 0.3, 0.5, 0.9, 1} {
		w := seatRig(t, nil)
		w.asksRange("k", 2, 6, parallel, 0)
		want := 2
		for n := 3; n <= 6; n++ {
			if parallel > 0 && perWork(n, parallel) < perWork(want, parallel) {
				want = n
			}
		}
		k, _ := w.Job("k")
		a := k.Attempt()
		if a == nil || a.Instance() != "i1" || a.Portion() == nil || a.Portion().CPUs != want {
			t.Fatalf("parallel %v: %+v, want %d processors beside j", parallel, a.Portion(), want)
		}
		if speed := 1 / (1 - parallel + parallel*2/float64(want)); math.Abs(a.Speed()-speed) > 1e-9 {
			t.Errorf("parallel %v: its speed is %v, want %v", parallel, a.Speed(), speed)
		}
		if g := k.Last().Gets; g.Units != want || g.Least != 2 || g.Most != 6 || g.Shown != (parallel > 0) {
			t.Errorf("parallel %v: the decision says %+v", parallel, g)
		}
	}
}

// A seat with more processors than cost least is taken where only that meets the deadline: ten hours on two are 9 on 4,
// 8.8 on 5 and 8.7 on 6.
func TestRanges_SeatIsLargeEnoughForDeadline(t *testing.T) {
	const parallel = 0.2 // on 5 instead of 2 it costs 1.1 times as much
	for deadline, want := range map[time.Duration]int{20 * time.Hour: 2, 9 * time.Hour: 5} {
		w := seatRig(t, nil)
		w.asksRange("k", 2, 6, parallel, deadline)
		if k, _ := w.Job("k"); k.Attempt() == nil || k.Attempt().Portion() == nil || k.Attempt().Portion().CPUs != want {
			t.Errorf("with %v to the deadline: %+v, want %d processors", deadline, k.Attempt().Portion(), want)
		}
	}
}

// A job that rents a machine has its upper end there, for the same price, but only its lower end while another waits
// that could share the machine.
func TestRanges_NewMachineLeavesRoomForWhoWaits(t *testing.T) {
	for _, waits := range []bool{false, true} {
		w := seatRig(t, func(c *Config) { c.MaxRunning = 1 })
		w.asksRange("k", 2, 6, 0.9, 0)
		if waits {
			w.asksRange("l", 2, 2, 0, 0)
		}
		w.ends("j.1", time.Minute) // no machine is kept idle
		w.step(0, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at), Cause: "terminated"})
		w.step(time.Second, Tick{})
		k, _ := w.Job("k")
		a := k.Asked()
		if a == nil || a.Portion() == nil {
			t.Fatalf("it has requested %+v", a)
		}
		want := 6
		if waits {
			want = 2
		}
		if a.Portion().CPUs != want || k.Last().Gets.Units != want {
			t.Errorf("another waits: %v: it has %d processors and says %+v, want %d", waits, a.Portion().CPUs, k.Last().Gets, want)
		}
	}
}
