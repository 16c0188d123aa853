package multizone

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/lines"
	"scrimp/internal/lib/money"
)

// byteOrderMark is what some spreadsheets write first.
const byteOrderMark = "\ufeff"

// Trace is the market of one zone in one window, tick by tick.
type Trace struct {
	Up    []bool
	Count []int        // available machines; nil if the file holds only 0 and 1
	Price []money.Rate // spot
	Line  int          // its last line in the availability file
}

// Window is one period of wall-clock time over all zones.
type Window struct {
	Number int
	Zones  map[string]*Trace
}

// A BadLine describes a problem with one line of a file and its fix.
type BadLine struct {
	File  string
	Line  int
	Field string
	Cause string
	Fix   string
}

func (e *BadLine) Error() string {
	at := e.File
	if e.Line > 0 {
		at += ":" + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		at += ": " + e.Field
	}
	return at + ": " + e.Cause + "; " + e.Fix
}

// span is one run-length row.
type span struct {
	line, window int
	zone         string
	start, ticks int
	value        string
}

// readSpans reads the rows window, zone, start_tick, ticks and the column named last. Within a window and zone each row
// must begin where the previous one ended, the first at 0.
func readSpans(file string, in io.Reader, last string) ([]span, error) {
	r := csv.NewReader(lines.Reader(in))
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	want := []string{"window", "zone", "start_tick", "ticks", last}
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, &BadLine{file, 0, "", "the file is empty",
			"give a file with the line " + strings.Join(want, ",") + " first"}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	head[0] = strings.TrimPrefix(head[0], byteOrderMark)
	if !slices.Equal(head, want) {
		return nil, &BadLine{file, 1, "", fmt.Sprintf("the columns are %q", strings.Join(head, ",")),
			"make the first line " + strings.Join(want, ",")}
	}
	type key struct {
		window int
		zone   string
	}
	ends, before := map[key]int{}, map[key]int{}
	var rows []span
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		line, _ := r.FieldPos(0)
		bad := func(field, cause, fix string) error { return &BadLine{file, line, field, cause, fix} }
		if len(rec) != len(want) {
			return nil, bad("", fmt.Sprintf("%d fields instead of %d", len(rec), len(want)), "write "+strings.Join(want, ","))
		}
		s, err := spanOf(rec, bad)
		if err != nil {
			return nil, err
		}
		s.line = line
		k := key{s.window, s.zone}
		if err := s.follows(ends[k], before[k], bad); err != nil {
			return nil, err
		}
		ends[k], before[k] = ends[k]+s.ticks, s.start
		rows = append(rows, s)
	}
	if len(rows) == 0 {
		return nil, &BadLine{file, 1, "", "no row follows the first line", "add rows"}
	}
	return rows, nil
}

// spanOf parses the fields of a row. Bad makes the error of a field.
func spanOf(rec []string, bad func(field, cause, fix string) error) (span, error) {
	s := span{zone: rec[1], value: rec[4]}
	for _, f := range []struct {
		name string
		text string
		to   *int
		low  int
	}{{"window", rec[0], &s.window, 0}, {"start_tick", rec[2], &s.start, 0}, {"ticks", rec[3], &s.ticks, 1}} {
		n, err := strconv.Atoi(f.text)
		if err != nil || n < f.low || n > 1<<24 {
			return span{}, bad(f.name, fmt.Sprintf("%q is not a whole number from %d to %d", f.text, f.low, 1<<24), "write one")
		}
		*f.to = n
	}
	if s.zone == "" {
		return span{}, bad("zone", "it is empty", "write the name of a zone, such as us-east-1a")
	}
	return s, nil
}

// follows checks that a row begins at end, where the rows above it in its window and zone end. The row above it begins
// at before.
func (s span) follows(end, before int, bad func(field, cause, fix string) error) error {
	switch {
	case s.start > end:
		return bad("start_tick", fmt.Sprintf("hole: window %d of %s is known to tick %d and goes on at %d", s.window,
			s.zone, end, s.start), fmt.Sprintf("add the row for ticks %d to %d, or sort the rows by start_tick where it "+
			"stands further down", end, s.start-1))
	case s.start < before:
		return bad("start_tick", fmt.Sprintf("wrong order: tick %d of window %d of %s stands after tick %d", s.start,
			s.window, s.zone, before), "sort the rows by start_tick")
	case s.start < end:
		return bad("start_tick", fmt.Sprintf("overlap: window %d of %s is known to tick %d already", s.window, s.zone,
			end), fmt.Sprintf("begin at %d or shorten the row before", end))
	}
	return nil
}

// Read reads the availability and the prices of several zones over several windows, in the run-length form of the
// public benchmark: columns window, zone, start_tick, ticks and available (0 or 1, or a number of machines), or
// usd_per_hour (above zero). Both files must have the same zones in the same windows, each with the same number of
// ticks.
func Read(availabilityFile string, availability io.Reader, priceFile string,
	prices io.Reader) ([]Window, error) {
	ups, err := readSpans(availabilityFile, availability, "available")
	if err != nil {
		return nil, err
	}
	costs, err := readSpans(priceFile, prices, "usd_per_hour")
	if err != nil {
		return nil, err
	}
	windows, err := windowsOf(availabilityFile, ups)
	if err != nil {
		return nil, err
	}
	for _, s := range costs {
		rate, err := money.ParseRate(s.value)
		if err != nil || rate <= 0 {
			return nil, &BadLine{priceFile, s.line, "usd_per_hour", fmt.Sprintf("%q is no price above zero", s.value),
				"write dollars an hour, such as 0.9731"}
		}
		t := windows[s.window].Zones[s.zone]
		if t == nil {
			return nil, &BadLine{priceFile, s.line, "zone",
				fmt.Sprintf("unknown zone: window %d of %s does not know %s", s.window, availabilityFile, s.zone),
				"add its availability or take the row out"}
		}
		if have := len(t.Price) + s.ticks; have > len(t.Up) {
			return nil, &BadLine{priceFile, s.line, "ticks",
				fmt.Sprintf("prices go to tick %d, availability to %d", have, len(t.Up)), "cut the longer one"}
		}
		for range s.ticks {
			t.Price = append(t.Price, rate)
		}
	}
	out := slices.SortedFunc(maps.Values(windows), func(a, b Window) int { return a.Number - b.Number })
	for _, w := range out {
		for _, z := range w.names() {
			if t := w.Zones[z]; len(t.Price) < len(t.Up) {
				return nil, &BadLine{availabilityFile, t.Line, "ticks",
					fmt.Sprintf("window %d of %s has availability for %d ticks and prices for %d", w.Number, z, len(t.Up),
						len(t.Price)), "add the missing rows to " + priceFile}
			}
		}
	}
	return out, nil
}

// windowsOf returns the availability of the rows by window, without prices. Counts are nil where no row of the file has
// more than one machine, because its column then says yes or no.
func windowsOf(file string, rows []span) (map[int]Window, error) {
	windows := map[int]Window{}
	counted := false
	for _, s := range rows {
		n, err := strconv.Atoi(s.value)
		if err != nil || n < 0 || n > mostCount {
			return nil, &BadLine{file, s.line, "available", fmt.Sprintf("%q", s.value),
				fmt.Sprintf("write 1 where spot can be had and 0 where not, or how many machines, up to %d", mostCount)}
		}
		counted = counted || n > 1
		w, ok := windows[s.window]
		if !ok {
			w = Window{Number: s.window, Zones: map[string]*Trace{}}
			windows[s.window] = w
		}
		t := w.Zones[s.zone]
		if t == nil {
			t = &Trace{}
			w.Zones[s.zone] = t
		}
		t.Line = s.line
		for range s.ticks {
			t.Up, t.Count = append(t.Up, n > 0), append(t.Count, n)
		}
	}
	if counted {
		return windows, nil
	}
	for _, w := range windows {
		for _, t := range w.Zones {
			t.Count = nil
		}
	}
	return windows, nil
}

func (w Window) names() []string {
	out := make([]string, 0, len(w.Zones))
	for z := range w.Zones {
		out = append(out, z)
	}
	slices.Sort(out)
	return out
}

// mostCount bounds the machines available in a tick.
const mostCount = 1_000_000

// AtLeast sets the windows' spot to up where at least nodes machines are available. It reports whether the file has
// counts; without counts it changes nothing.
func AtLeast(windows []Window, nodes int) (counted bool) {
	for _, w := range windows {
		for _, t := range w.Zones {
			for i, n := range t.Count {
				t.Up[i], counted = n >= nodes, true
			}
		}
	}
	return counted
}

// zoneNames match how clouds write a zone after its region: us-east-1a, europe-west1-b, eastus2-3.
var zoneNames = []*regexp.Regexp{
	regexp.MustCompile(`^(.+-\d+)[a-z]$`),
	regexp.MustCompile(`^(.+\d)-[a-z]$`),
	regexp.MustCompile(`^([a-z]+\d*)-\d$`),
}

// Region returns the region in a zone's name. A zone whose name has none is a region of its own.
func Region(zone string) string {
	for _, form := range zoneNames {
		if m := form.FindStringSubmatch(zone); m != nil {
			return m[1]
		}
	}
	return zone
}
