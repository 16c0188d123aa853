package tick

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Window is a cut of a zone's recorded spot market.
type Window struct {
	Zone  string
	Index int    // as the file numbers it
	From  string // file and line that it stands in, for errors
	Up    []bool // whether spot can be had, tick by tick
}

// ReadSingle reads availability in run-length form (zone, start_tick, ticks,
// available) and the windows cut from it (zone, window, start_tick, ticks). The
// names are those that errors give the files. Windows come in the file's order.
func ReadSingle(availability io.Reader, availName string, windows io.Reader, winName string) ([]Window, error) {
	up, err := readUp(availability, availName)
	if err != nil {
		return nil, err
	}
	type key struct {
		zone  string
		index int
	}
	var out []Window
	twice := map[key]bool{}
	err = readCSV(windows, winName, []string{"zone", "window", "start_tick", "ticks"}, func(line int, f []string) error {
		zone := f[0]
		n, err := numbers(f[1:], []string{"window", "start_tick", "ticks"})
		whole, known := up[zone]
		switch {
		case err != nil:
			return err
		case !known:
			return fmt.Errorf("field zone: %q is not in %s", zone, availName)
		case twice[key{zone, n[0]}]:
			return fmt.Errorf("field window: %s has a window %d further up: number each once", zone, n[0])
		case n[2] == 0:
			return fmt.Errorf("field ticks: a window of none")
		case n[1] > len(whole) || n[2] > len(whole)-n[1]:
			return fmt.Errorf("field ticks: the window ends at tick %d, %s is known to tick %d only: shorten or move it",
				n[1]+n[2], zone, len(whole))
		}
		twice[key{zone, n[0]}] = true
		out = append(out, Window{Zone: zone, Index: n[0], From: fmt.Sprintf("%s: line %d", winName, line),
			Up: whole[n[1] : n[1]+n[2]]})
		return nil
	})
	return out, err
}

// readUp reads for each zone in which ticks spot is available.
func readUp(availability io.Reader, name string) (map[string][]bool, error) {
	up := map[string][]bool{}
	last := ""
	err := readCSV(availability, name, []string{"zone", "start_tick", "ticks", "available"},
		func(_ int, f []string) error {
			zone := f[0]
			n, err := numbers(f[1:], []string{"start_tick", "ticks", "available"})
			switch seen := up[zone]; {
			case zone == "":
				return fmt.Errorf("field zone: missing: name the zone")
			case err != nil:
				return err
			case n[2] > 1:
				return fmt.Errorf("field available: %d is neither 0 nor 1", n[2])
			case n[1] == 0 || n[1] > maxTicks:
				return fmt.Errorf("field ticks: %d is not between 1 and %d", n[1], maxTicks)
			case zone != last && seen != nil:
				return fmt.Errorf("field zone: %s stood further up: keep the rows of a zone together", zone)
			case n[0] > len(seen):
				return fmt.Errorf("field start_tick: %d leaves a hole, %s is known to tick %d only: add the row that begins "+
					"there, or sort the rows", n[0], zone, len(seen))
			case n[0] < len(seen):
				return fmt.Errorf("field start_tick: %d comes before tick %d where the row above ends: sort the rows of %s and "+
					"let none overlap", n[0], len(seen), zone)
			case len(seen)+n[1] > maxTicks:
				return fmt.Errorf("field ticks: %s would have more than %d ticks", zone, maxTicks)
			}
			for range n[1] {
				up[zone] = append(up[zone], n[2] == 1)
			}
			last = zone
			return nil
		})
	return up, err
}

// byteOrder is the mark that some spreadsheets put before what they write.
const byteOrder = "\ufeff"

// maxTicks bounds what a file may claim: 190 years of ticks of ten minutes.
const maxTicks = 10_000_000

// SingleRuns returns the benchmark's runs: each window with each pair of
// deadline and overhead. A window that is shorter than a deadline is an error.
func SingleRuns(windows []Window) ([]Run, error) {
	const gap = 10 * time.Minute
	deadlines := []time.Duration{52 * time.Hour, 70 * time.Hour}
	longest := int(slices.Max(deadlines) / gap)
	var out []Run
	for _, w := range windows {
		for _, deadline := range deadlines {
			for _, over := range []time.Duration{3 * time.Minute, 12 * time.Minute} {
				j := Job{Work: 48 * time.Hour, Deadline: deadline, Overhead: over, Gap: gap, Spot: 973_100_000_000,
					OnDemand: 3_060_000_000_000}
				if len(w.Up) < j.Ticks() {
					return nil, fmt.Errorf("read %s: field ticks: window %d of %s has %d ticks of %.0f minutes, and a job has "+
						"until hour %.0f: give it at least %d", w.From, w.Index, w.Zone, len(w.Up), j.Gap.Minutes(),
						deadline.Hours(), longest)
				}
				out = append(out, Run{Zone: w.Zone, Window: w.Index, Job: j, Up: w.Up})
			}
		}
	}
	return out, nil
}

// Score is a policy's line in the table.
type Score struct {
	Runs   int
	Misses int
	Total  money.Amount
}

// Add counts one run.
func (s *Score) Add(r Result) {
	s.Runs++
	if r.Missed {
		s.Misses++
	}
	s.Total = s.Total.Add(r.Cost)
}

// Mean is the mean dollars a run, a statistic.
func (s Score) Mean() float64 {
	return s.Total.Float() / float64(max(1, s.Runs))
}

// readCSV calls row with the number of each line after the header, which must be
// want, and its fields. Lines of nothing are skipped. Errors name file, line and fix.
func readCSV(r io.Reader, name string, want []string, row func(line int, fields []string) error) error {
	scan := bufio.NewScanner(r)
	line, rows := 0, 0
	for scan.Scan() {
		line++
		text := strings.TrimSuffix(scan.Text(), "\r")
		if line == 1 {
			if strings.TrimPrefix(text, byteOrder) != strings.Join(want, ",") {
				return fmt.Errorf("read %s: line 1: the header is %q: write %q", name, text, strings.Join(want, ","))
			}
			continue
		}
		if text == "" {
			continue
		}
		rows++
		fields := strings.Split(text, ",")
		if len(fields) != len(want) {
			return fmt.Errorf("read %s: line %d: %d fields: write %d (%s)", name, line, len(fields), len(want),
				strings.Join(want, ", "))
		}
		if err := row(line, fields); err != nil {
			return fmt.Errorf("read %s: line %d: %w", name, line, err)
		}
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("read %s: line %d: %w", name, line+1, err)
	}
	if rows == 0 {
		return fmt.Errorf("read %s: no rows: it wants a header (%s) and rows", name, strings.Join(want, ","))
	}
	return nil
}

// numbers reads whole numbers from 0.
func numbers(fields, names []string) ([]int, error) {
	out := make([]int, len(fields))
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("field %s: %q is not a whole number from 0", names[i], f)
		}
		out[i] = n
	}
	return out, nil
}
