package draw

import (
	"strconv"
	"strings"
)

// NumberedGrid is like Grid for rows that are named by the first column. If the names leave too little room for the
// other columns, the rows are numbered, and lines below the table give the name of each number.
func NumberedGrid(columns []Column, rows [][]string, width int) string {
	if whole := Grid(columns, rows, 0); Fits(whole, width) {
		return whole
	}
	var names []string
	numbered := make([][]string, len(rows))
	for i, r := range rows {
		names = append(names, r[0])
		numbered[i] = append([]string{strconv.Itoa(i + 1)}, r[1:]...)
	}
	columns = append([]Column{{Name: "#", Right: true, Key: true}}, columns[1:]...)
	return Grid(columns, numbered, width) + legend(names, width)
}

// longHead is the width of names above which columns that do not fit are numbered.
const longHead = 16

// Blocks is like Grid for rows that are named by the first column, if no column may be left out. Columns that do not
// fit side by side are drawn in blocks below each other. Columns with long names are then numbered, and lines below the
// table give the name of each number.
func Blocks(columns []Column, rows [][]string, width int) string {
	if whole := Grid(columns, rows, 0); Fits(whole, width) {
		return whole
	}
	columns = append([]Column(nil), columns...)
	var names []string
	long := false
	for _, c := range columns[1:] {
		names = append(names, c.Name)
		long = long || Width(c.Name) > longHead
	}
	below := ""
	if long {
		for i := range names {
			columns[i+1].Name = strconv.Itoa(i + 1)
		}
		below = "\n" + legend(names, width)
	}
	var blocks []string
	for first := 1; first < len(columns); {
		text, next := block(columns, rows, first, first+1), first+1
		for next < len(columns) {
			wider := block(columns, rows, first, next+1)
			if !Fits(wider, width) {
				break
			}
			text, next = wider, next+1
		}
		blocks = append(blocks, text)
		first = next
	}
	return strings.Join(blocks, "\n") + below
}

// block returns a table of the first column and a range of columns.
func block(columns []Column, rows [][]string, from, below int) string {
	part := make([][]string, len(rows))
	for i, r := range rows {
		part[i] = append([]string{r[0]}, r[from:below]...)
	}
	return Grid(append([]Column{columns[0]}, columns[from:below]...), part, 0)
}

// Fits reports whether no line is wider than width; 0 means any width fits.
func Fits(text string, width int) bool {
	for line := range strings.Lines(text) {
		if width > 0 && Width(strings.TrimSuffix(line, "\n")) > width {
			return false
		}
	}
	return true
}

// legend lists the name of each number, one per line.
func legend(names []string, width int) string {
	var b strings.Builder
	for i, name := range names {
		b.WriteString(Wrap(strconv.Itoa(i+1)+": ", name, width))
	}
	return b.String()
}
