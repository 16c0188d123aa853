package draw

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"
)

func TestGrid_FitsAndNeverCutsANumber(t *testing.T) {
	columns := []Column{{Name: "ID", Least: 8}, {Name: "SPENT", Right: true}, {Name: "WHEN", Leaves: 2},
		{Name: "WHY", Leaves: 1, Least: 5}, {Name: "EMPTY", Leaves: 1}}
	rows := [][]string{{"a-job-with-a-long-name", "$1234.5678", "50 min ago", strings.Repeat("because ", 30), "-"},
		{"b", "$0.1", "-", "ü", "-"}}
	for width, heads := range map[int]string{0: "ID SPENT WHEN WHY", 120: "ID SPENT WHEN WHY", 40: "ID SPENT WHEN WHY",
		28: "ID SPENT WHY", 21: "ID SPENT"} {
		text := Grid(columns, rows, width)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if got := strings.Join(strings.Fields(lines[0]), " "); got != heads {
			t.Errorf("width %d shows %q, want %q", width, got, heads)
		}
		if !strings.Contains(lines[1], "$1234.5678") {
			t.Errorf("width %d cuts a number: %q", width, lines[1])
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

func TestWrap_KeepsAllWordsAndTheIndent(t *testing.T) {
	const text = "the budget stops it, after a checkpoint that is verified"
	for _, width := range []int{0, 20, 30, 80} {
		got := Wrap("  cost  ", text, width)
		if strings.Join(strings.Fields(got), " ") != "cost "+text {
			t.Errorf("width %d: %q", width, got)
		}
		for i, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
			if n := utf8.RuneCountInString(line); width > 0 && n > width && strings.Count(line[8:], " ") > 0 {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
			if i > 0 && !strings.HasPrefix(line, "        ") {
				t.Errorf("width %d: no indent: %q", width, line)
			}
		}
	}
}

func TestShort_ShortensLargeCounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 99_999: "99999", 100_000: "100k", 999_499: "999k", 999_500: "1M",
		1_250_000: "1.25M", 90_000_000: "90M", 999_499_999: "999M", 999_500_000: "1G", 8_030_000_000: "8.03G",
		-1_250_000: "-1.25M"} {
		if got := Short(n); got != want {
			t.Errorf("%d reads %q, want %q", n, got, want)
		}
	}
}

func TestDrawings_AreWellFormedForAnyData(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	evil := `<script>&"`
	for name, svg := range map[string]string{
		"gantt": Gantt{Title: evil, Lanes: []string{evil, "empty"},
			Blocks: []Block{{evil, now, now.Add(time.Hour), evil, evil}}, Until: now.Add(2 * time.Hour), Line: evil,
			Keys: []Key{{evil, evil}, {"mark", evil}, {"until", evil}}}.SVG(),
		"timeline": Timeline([]Block{{evil, now, now.Add(time.Hour), evil, evil}, {"b", now, now, "useful", ""}},
			[]Mark{{evil, now, evil, evil}}),
		"chart": Lines(evil, []Series{{evil, evil, []Point{{0, 1}, {1, math.NaN()}, {2, math.Inf(1)}, {3, 4}}},
			{"empty", "", nil}}, Bytes, Bytes),
		"point": Lines("one", []Series{{"one", "x", []Point{{1, 1}}}}, Bytes, Bytes),
	} {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in %s", name, err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, "<script") {
			t.Errorf("%s holds what it must not: %s", name, svg)
		}
	}
	if Lines("none", []Series{{"n", "n", nil}}, Bytes, Bytes) != "" || Timeline(nil, nil) != "" {
		t.Error("nothing was drawn as something")
	}
}

// Bytes returns a fixed label.
func Bytes(float64) string { return "v" }

func TestSpan_UsesTheTwoLargestUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 4200 * time.Millisecond: "4.2s", 75 * time.Second: "1m 15s", 125 * time.Minute: "2h 05m",
		73 * time.Hour: "3d 01h", -75 * time.Second: "-1m 15s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v reads %q, want %q", int64(d), got, want)
		}
	}
}

func TestSpark_KeepsItsWidthAndSkipsNonFiniteValues(t *testing.T) {
	if got := Spark([]float64{1, math.NaN(), 3, 2}, 4); got != "▁ █▄" && utf8.RuneCountInString(got) != 4 {
		t.Errorf("spark %q", got)
	}
	if Spark(nil, 10) != "" {
		t.Error("a spark of nothing")
	}
}

// An axis has at most six ticks, at round numbers between its ends.
func TestTicks_AreRoundAndFew(t *testing.T) {
	for _, c := range []struct {
		v0, v1 float64
		want   string
	}{
		{0, 2554, "0 10m 20m 30m 40m"}, {106, 2558, "10m 20m 30m 40m"}, {0, 31, "0 10s 20s 30s"},
		{0, 7 * 3600, "0 2h 4h 6h"}, {0, 90 * 60, "0 30m 1h 1h 30m"}, {0, 9 * 86400, "0 2d 4d 6d 8d"},
	} {
		var names []string
		for _, v := range moments(c.v0, c.v1) {
			names = append(names, Moment(v))
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.v0, c.v1, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v0 := rapid.Float64Range(-1e6, 1e6).Draw(t, "from")
		v1 := v0 + rapid.Float64Range(1e-3, 1e7).Draw(t, "span")
		for name, ticks := range map[string][]float64{"moments": moments(v0, v1), "rounds": rounds(v0, v1)} {
			for _, v := range ticks {
				if v == 0 && math.Signbit(v) {
					t.Fatalf("%s from %v to %v: minus zero", name, v0, v1)
				}
			}
			if n := len(ticks); n < 1 || n > 6 || ticks[0] < v0-1e-6*(v1-v0) || ticks[n-1] > v1+1e-6*(v1-v0) {
				t.Fatalf("%s from %v to %v: %v", name, v0, v1, ticks)
			}
		}
	})
}

// A grid is as wide as its letters are on a terminal, and other columns are left out before a key is cut.
func TestGrid_CountsTerminalColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "訓練": 4, "e\u0301": 1, "한국": 4, "🚀": 2, "…█": 2, "ａ": 2} {
		if got := Width(text); got != want {
			t.Errorf("%q is %d wide, want %d", text, got, want)
		}
	}
	if got := Cut("訓練訓練", 6); got != "訓練…" {
		t.Errorf("cut to 6: %q", got)
	}
	columns := []Column{{Name: "ID", Key: true}, {Name: "A"}, {Name: "B", Least: 2}, {Name: "C"}}
	row := []string{"a-name-of-20-letters", "12345", "123456", "123456"}
	for width, want := range map[int]string{0: "A B C", 45: "A B C", 38: "A B", 30: "A", 22: "", 5: ""} {
		head, _, _ := strings.Cut(Grid(columns, [][]string{row}, width), "\n")
		if got := strings.Join(strings.Fields(head)[1:], " "); got != want || !strings.Contains(Grid(columns, [][]string{row}, width), row[0]) {
			t.Errorf("at %d columns it has %q, want %q", width, got, want)
		}
	}
}

func TestTick_HasThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0125: "0.0125", 999.4: "999", 999.5: "1k", 1000: "1k", 20_000: "20k", 15_500: "15.5k",
		-5000: "-5k", 999_499: "999k", 999_500: "1M", 1.25e9: "1.25G", 3e12: "3e+12", 1e-7: "1e-07"} {
		if got := Tick(v); got != want {
			t.Errorf("%g reads %q, want %q", v, got, want)
		}
	}
}

// A lane whose name is cut has all of it in a tooltip; a short one needs none.
func TestTimeline_CutsALongLane(t *testing.T) {
	t.Parallel()
	at, long := time.Unix(0, 0).UTC(), "$12.50/h cloud/us-east-1a/p5.48xlarge/spot"
	drawing := Timeline([]Block{{long, at, at.Add(time.Hour), "useful", "a"}, {"short", at, at.Add(time.Hour), "useful", "b"}}, nil)
	for _, want := range []string{`class="lane">$12.50/h cloud/us-east-`, "<title>" + long + "</title></text>", `class="lane">short</text>`} {
		if !strings.Contains(drawing, want) {
			t.Errorf("%s is not in %s", want, drawing)
		}
	}
}

// The names of lines do not overlap: those that do not fit side by side get a row of their own, above the lines.
func TestLines_NamesHaveRoom(t *testing.T) {
	t.Parallel()
	var all []Series
	for i := range 5 {
		all = append(all, Series{Name: fmt.Sprintf("cloud/us-east-1a/p5.48xlarge/on-demand-%d", i), Class: "one", Points: []Point{{0, 1}, {1, 2}}})
	}
	drawing := Lines("prices", all, Moment, Tick)
	type place struct{ x, y, wide float64 }
	var names []place
	for _, m := range regexp.MustCompile(`<text x="([0-9.]+)" y="([0-9.]+)" class="key one">([^<]+)<`).FindAllStringSubmatch(drawing, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		names = append(names, place{x, y, 7 * float64(len(m[3]))})
	}
	if len(names) != len(all) {
		t.Fatalf("%d names in %s", len(names), drawing)
	}
	for i, a := range names {
		if a.x+a.wide > svgWidth {
			t.Errorf("the name %d ends outside of the drawing: %+v", i, a)
		}
		for _, b := range names[:i] {
			if a.y == b.y && a.x < b.x+b.wide {
				t.Errorf("the names %+v and %+v overlap", b, a)
			}
		}
	}
	if !strings.Contains(drawing, fmt.Sprintf("viewBox=\"0 0 900 %.0f\"", 252+names[4].y-12)) {
		t.Errorf("the drawing did not grow with its names: %.80s", drawing)
	}
}
