package draw_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"scrimp/internal/lib/draw"
)

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

func TestPlot_PlacesPointsByTheirValues(t *testing.T) {
	got := draw.Plot([]draw.Spot{{X: 0, Y: 10, Letter: 'a'}, {X: 8, Y: 0, Letter: 'b'}, {X: 4, Y: 5, Letter: 'c'}}, 13, 3, whole, whole)
	want := "10 |a\n   |    c\n 0 |        b\n   +---------\n    0       8\n"
	if got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if draw.Plot(nil, 80, 5, whole, whole) != "" || draw.Plot([]draw.Spot{{X: math.NaN()}}, 80, 5, whole, whole) != "" {
		t.Error("something is drawn of nothing")
	}
	if one := draw.Plot([]draw.Spot{{X: 3, Y: 3, Letter: '*'}}, 0, 0, whole, whole); !strings.Contains(one, "*") {
		t.Errorf("one point: %s", one)
	}
}

func TestExtents_SpanTheirValues(t *testing.T) {
	got := draw.Extents([]draw.Extent{{"rent", 0, 10, "$0 to $10"}, {"power", 4, 6, "$4 to $6"}, {"none", 5, 5, "$5"}}, 5, 29)
	want := "rent   =====|=====  $0 to $10\npower      =|=      $4 to $6\nnone        |       $5\n"
	if got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if draw.Extents(nil, 5, 40) != "" || draw.Extents([]draw.Extent{{"a", math.Inf(-1), 2, ""}}, 1, 40) != "" {
		t.Error("something is drawn of nothing")
	}
}
