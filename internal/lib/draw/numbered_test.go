package draw_test

import (
	"strings"
	"testing"

	"scrimp/internal/lib/draw"
)

// Rows whose names leave no room are numbered: no column is lost, no name is cut, and each number is explained.
func TestNumberedGrid_KeepsNamesAndColumns(t *testing.T) {
	columns := []draw.Column{{Name: "TERM", Key: true, Least: 10}, {Name: "YEARS", Right: true, Leaves: 1}, {Name: "COST", Right: true}}
	long := strings.Repeat("compute-savings-plan-", 3)
	rows := [][]string{{long + "no-upfront", "1", "72.00 %"}, {long + "all-upfront", "3", "50.00 %"}}
	if got := draw.NumberedGrid(columns, rows, 0); !strings.HasPrefix(got, "TERM") || !strings.Contains(got, long+"all-upfront  ") {
		t.Errorf("any width:\n%s", got)
	}
	got := draw.NumberedGrid(columns, rows, 80)
	want := "#  YEARS     COST\n1      1  72.00 %\n2      3  50.00 %\n1: " + long + "no-upfront\n2: " + long + "all-upfront\n"
	if got != want {
		t.Errorf("80 columns:\n%s", got)
	}
}

// Columns that do not fit are drawn in blocks: none is lost, and long names are numbered.
func TestBlocks_LoseNoColumn(t *testing.T) {
	columns := []draw.Column{{Name: "", Key: true}}
	row := []string{"total"}
	for _, name := range []string{"a", "b", "c", "d"} {
		columns, row = append(columns, draw.Column{Name: name, Right: true}), append(row, "$1.00"+name)
	}
	got := draw.Blocks(columns, [][]string{row}, 22)
	if want := "            a       b\ntotal  $1.00a  $1.00b\n\n            c       d\ntotal  $1.00c  $1.00d\n"; got != want {
		t.Errorf("blocks:\n%s", got)
	}
	columns[2].Name = "an option with a long name"
	got = draw.Blocks(columns, [][]string{row}, 30)
	if want := "            1       2       3\ntotal  $1.00a  $1.00b  $1.00c\n\n            4\ntotal  $1.00d\n\n1: a\n2: an option with a long name\n3: c\n4: d\n"; got != want {
		t.Errorf("numbered:\n%s", got)
	}
	if got = draw.Blocks(columns, [][]string{row}, 0); strings.Count(got, "\n") != 2 {
		t.Errorf("any width:\n%s", got)
	}
}
