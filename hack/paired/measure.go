package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Measure is one run that gives one or more figures.
type Measure struct {
	Name    string
	Rounds  int
	Alike   bool // unaffected by other load: both trees run at the same time
	Run     func(ctx context.Context, t *Tree) (map[string]float64, error)
	Figures []Figure
}

// Form sets how much is measured.
type Form struct {
	Quick bool
	Jobs  int // in the queue of the server's load
}

// pick returns the value for the form.
func pick[T any](f Form, quick, full T) T {
	if f.Quick {
		return quick
	}
	return full
}

// The limits, as ratios to base.
const (
	rateFloor   = 0.8
	timeCeiling = 1.25
	logCeiling  = 0.5
)

// measures returns all measures, the short ones first.
func measures(f Form, note func(string)) []Measure {
	list := []Measure{decisions(f), steps(f), quote(f), memory(f), year(f), jobLog(f, note)}
	for _, db := range []string{"sqlite", "postgres"} {
		list = append(list, load(f, db))
	}
	return list
}

// bench returns the measure of one benchmark.
func bench(b Bench, rounds int, figures ...Figure) Measure {
	return Measure{Name: b.Pkg + " " + b.Match, Rounds: rounds, Run: b.Run, Figures: figures}
}

// decisions measures core.Step with its events, attempts and postings.
func decisions(f Form) Measure {
	b := Bench{Pkg: "internal/sim/replay", Match: "^BenchmarkDecisions$", Time: pick(f, "1s", "3s"), One: true}
	return bench(b, pick(f, 5, 9), Figure{
		Name: "decisions through core.Step, 1 processor", Unit: "/s",
		Key: "Decisions decisions/s", Higher: true, Ratio: rateFloor,
	})
}

// steps measures submissions and ends of jobs that cannot run.
func steps(f Form) Measure {
	name := "DecisionStep/jobs=100000"
	b := Bench{
		Pkg: "internal/decide/core", Match: "^BenchmarkDecisionStep$/^jobs=100000$", Time: pick(f, "500ms", "3s"), One: true,
	}
	return bench(b, pick(f, 5, 9), Figure{
		Name: "core steps, 100,000 jobs in the queue", Unit: "/s", Key: name + " steps/s", Higher: true, Ratio: rateFloor,
	})
}

// quote measures one changed quote with 1,000 running jobs and 1,000 offers.
func quote(f Form) Measure {
	b := Bench{
		Pkg: "internal/decide/core", Match: "^BenchmarkChangedQuote$", Time: pick(f, "3x", "20x"),
		Borrow: "changed_quote_test.go", Func: "BenchmarkChangedQuote",
	}
	name := "a changed quote, 1,000 running x 1,000 offers: "
	return bench(b, pick(f, 1, 3),
		Figure{Name: name + "longest step", Unit: "ms", Key: "ChangedQuote ms-longest", Most: 5},
		Figure{Name: name + "all reviewed", Unit: "ms", Key: "ChangedQuote ms-reviewed", Most: 1000},
		Figure{Name: name + "logged", Unit: "KB", Key: "ChangedQuote KB-logged", Most: 64})
}

// memory measures a server's memory per queued job: the difference between two queues, so that the server's own
// memory does not count.
func memory(f Form) Measure {
	few, many := pick(f, 5_000, 20_000), pick(f, 20_000, 220_000)
	b := Bench{Pkg: "internal/store", Match: "^BenchmarkResident$/^sqlite$", Time: "1x"}
	return Measure{
		Name: b.Pkg + " " + b.Match, Rounds: 1,
		Run: func(ctx context.Context, t *Tree) (map[string]float64, error) {
			var heap [2]float64
			for i, jobs := range []int{few, many} {
				b.Flags = []string{"-jobs", strconv.Itoa(jobs)}
				found, err := b.Run(ctx, t)
				if err != nil {
					return nil, err
				}
				v, ok := found["Resident/sqlite heap-MB"]
				if !ok {
					return nil, fmt.Errorf("%w: %s does not report the heap", errNotThere, b.Match)
				}
				heap[i] = v
			}
			return map[string]float64{"KB/job": (heap[1] - heap[0]) * 1e3 / float64(many-few)}, nil
		},
		Figures: []Figure{{Name: "memory of a queued job", Unit: "KB", Key: "KB/job", Most: 1.5}},
	}
}

// year measures the year of a team; the quick form measures a tenth of it. It is one run on one processor, so that
// other load on the machine does not lengthen its processor time.
func year(f Form) Measure {
	b := Bench{Pkg: "internal/sim", Match: "^BenchmarkAYearOfATeam$", Time: "1x"}
	name, key := "year of a team of 1,000 jobs", "AYearOfATeam s/op"
	if f.Quick {
		b.Match, b.Borrow, b.Func = "^BenchmarkASmallYear$", "small_year_test.go", "BenchmarkASmallYear"
		name, key = "year of a team of 100 jobs", "ASmallYear s/op"
	}
	return bench(b, pick(f, 2, 3),
		Figure{Name: name + ": processor time", Unit: "s", Key: processorTime, Ratio: timeCeiling},
		Figure{Name: name, Unit: "s", Key: key})
}

// jobLog measures what jobs leave in the log, with the real program.
func jobLog(f Form, note func(string)) Measure {
	l := JobLog{Hours: pick(f, 6.0, 36.0), Watch: pick(f, 25*time.Second, 2*time.Minute), Note: note}
	m := Measure{Name: "log of a job", Rounds: 1, Alike: true, Run: l.Run}
	for _, kind := range []string{steady, interrupted} {
		name := fmt.Sprintf("log of a job of %.0f h, %s", l.Hours, kind)
		m.Figures = append(m.Figures,
			Figure{Name: name, Unit: "KB", Key: kind, Ratio: logCeiling},
			Figure{Name: name + ": share of what is allowed", Unit: "", Key: kind + " share", Most: 1},
			Figure{Name: name + ": with indexes", Unit: "KB", Key: kind + " used"},
			Figure{Name: name + ": database file", Unit: "KB", Key: kind + " file"})
	}
	m.Figures = append(m.Figures,
		Figure{Name: "log of a running hour, speed 1", Unit: "KB", Key: "real-time", Ratio: logCeiling})
	return m
}

// load measures a server over HTTP at full size. A load of one second depends on other users of the machine, so the
// quick form limits processor time only.
func load(f Form, db string) Measure {
	b := Bench{
		Pkg: "internal/server", Match: "^BenchmarkLoad$/^" + db + "$", Time: "1x",
		Flags: []string{"-jobs", strconv.Itoa(f.Jobs), "-for", pick(f, "1s", "10s")},
	}
	key, on := "Load/"+db+" ", ", "+db
	rate := func(name, unit string) Figure {
		return Figure{Name: name + on, Unit: "/s", Key: key + unit, Higher: true, Ratio: pick(f, 0, rateFloor)}
	}
	restart := func(name, unit string) Figure {
		name = fmt.Sprintf("restart with %s jobs%s%s", number(float64(f.Jobs)), name, on)
		return Figure{Name: name, Unit: "s", Key: key + unit, Ratio: pick(f, 0, timeCeiling)}
	}
	spent := func(name, unit, as string) Figure {
		return Figure{Name: "processor time of " + name + on, Unit: as, Key: key + unit, Ratio: timeCeiling}
	}
	return bench(b, pick(f, 2, 3),
		rate("submissions one by one", "submit/s"),
		rate("submissions in batches of 100", "submit-batches-of-100/s"),
		spent("a submission, one by one", "submit-cpu-ms", "ms"),
		spent("a submission, in batches of 100", "submit-batches-of-100-cpu-ms", "ms"),
		restart("", "restart-s"),
		restart(" after kill -9", "restart-after-kill-s"),
		spent("a restart", "restart-cpu-s", "s"),
		spent("a restart after kill -9", "restart-after-kill-cpu-s", "s"))
}
