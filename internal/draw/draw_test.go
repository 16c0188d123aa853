package draw

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestATableIsNeverWiderThanItsTerminal(t *testing.T) {
	rows := [][]string{{"ID", "STATE", "WHY"}, {"a-job-with-a-long-name", "running", strings.Repeat("because ", 30)}, {"b", "queued", "ü"}}
	for _, width := range []int{40, 80, 120} {
		for _, line := range strings.Split(Table(rows, width, 0), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

func TestDrawingsAreWellFormedWhateverTheData(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	evil := `<script>&"`
	for name, svg := range map[string]string{
		"timeline": Timeline([]Block{{evil, now, now.Add(time.Hour), evil, evil}, {"b", now, now, "useful", ""}}, []Mark{{evil, now, evil, evil}}),
		"chart":    Lines(evil, []Series{{evil, evil, []Point{{0, 1}, {1, math.NaN()}, {2, math.Inf(1)}, {3, 4}}}, {"empty", "", nil}}, Bytes, Bytes),
		"point":    Lines("one", []Series{{"one", "x", []Point{{1, 1}}}}, Bytes, Bytes),
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

// Bytes is any label.
func Bytes(float64) string { return "v" }

func TestSpansReadAsPeopleSayThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 4200 * time.Millisecond: "4.2s", 75 * time.Second: "1m 15s", 125 * time.Minute: "2h 05m", 73 * time.Hour: "3d 01h", -75 * time.Second: "-1m 15s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v reads %q, want %q", int64(d), got, want)
		}
	}
}

func TestSparkKeepsItsWidthAndSkipsWhatIsNotFinite(t *testing.T) {
	if got := Spark([]float64{1, math.NaN(), 3, 2}, 4); got != "▁ █▄" && utf8.RuneCountInString(got) != 4 {
		t.Errorf("spark %q", got)
	}
	if Spark(nil, 10) != "" {
		t.Error("a spark of nothing")
	}
}
