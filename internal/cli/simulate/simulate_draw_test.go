package simulate

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/decide/core"
	"scrimp/internal/market"
)

// The lanes of a simulation fit the screen, and the deadline's label is at its mark.
func TestLanes_FitScreen(t *testing.T) {
	opened := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &stage{trace: market.Trace{Name: "m"}, opened: opened, seeds: 1, terms: core.Terms{Deadline: opened.Add(8 * time.Hour)}}
	early := simulated{Policy: "uniform-progress-2", finish: 4 * time.Hour, first: []simPiece{{to: time.Hour, spot: true, lost: true}, {from: 2 * time.Hour, to: 4 * time.Hour}}}
	late := simulated{Policy: "greedy", finish: 10 * time.Hour, first: []simPiece{{to: 10 * time.Hour, spot: true}}}
	for _, width := range []int{0, 40, 80, 120} {
		text := lanes([]simulated{early, late}, s, width)
		at := map[int]bool{}
		for _, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
			if strings.HasPrefix(line, early.Policy) || strings.HasPrefix(line, late.Policy) {
				at[strings.Index(line, "|")] = true
			}
		}
		if len(at) != 1 || at[-1] {
			t.Errorf("width %d: the deadline stands at %v in\n%s", width, at, text)
		}
		if !strings.Contains(text, "=x") && !strings.Contains(text, " x.") || !strings.Contains(text, ".#") {
			t.Errorf("width %d: taken, nothing held, then on-demand in\n%s", width, text)
		}
	}
}
