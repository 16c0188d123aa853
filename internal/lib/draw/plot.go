package draw

import (
	"math"
	"strings"
)

// A Spot is a point of a plot in text, drawn as its letter.
type Spot struct {
	X, Y   float64
	Letter rune
}

// Plot draws points in text, height lines high and width columns wide including the labels of the y axis. The ends of
// both axes are labelled. If points share a place, the last one is shown. Plot draws nothing if there are no points.
func Plot(points []Spot, width, height int, xs, ys func(float64) string) string {
	x0, x1, y0, y1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, p := range points {
		x0, x1, y0, y1 = min(x0, p.X), max(x1, p.X), min(y0, p.Y), max(y1, p.Y)
	}
	if x0 > x1 || !finite(x0) || !finite(x1) || !finite(y0) || !finite(y1) {
		return ""
	}
	high, low := ys(y1), ys(y0)
	left := max(Width(high), Width(low))
	wide := max(width-left-2, 8)
	height = max(height, 2)
	rows := make([][]rune, height)
	for i := range rows {
		rows[i] = []rune(strings.Repeat(" ", wide))
	}
	at := func(v, v0, v1 float64, n int) int {
		if v1 == v0 {
			return 0
		}
		return int(math.Round((v - v0) / (v1 - v0) * float64(n-1)))
	}
	for _, p := range points {
		rows[height-1-at(p.Y, y0, y1, height)][at(p.X, x0, x1, wide)] = p.Letter
	}
	var b strings.Builder
	for i, r := range rows {
		label := ""
		switch i {
		case 0:
			label = high
		case height - 1:
			label = low
		}
		line := strings.Repeat(" ", left-Width(label)) + label + " |" + string(r)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	first, last := xs(x0), xs(x1)
	gap := max(1, wide-Width(first)-Width(last))
	b.WriteString(strings.Repeat(" ", left+1) + "+" + strings.Repeat("-", wide) + "\n")
	b.WriteString(strings.Repeat(" ", left+2) + first + strings.Repeat(" ", gap) + last + "\n")
	return b.String()
}

// An Extent is a named span of values, such as the total with one value at its lowest and at its highest.
type Extent struct {
	Name      string
	Low, High float64
	Ends      string // written after it
}

// Extents draws spans over one axis in text, each followed by its Ends, with | at middle. It cuts names that do not
// fit.
func Extents(bars []Extent, middle float64, width int) string {
	x0, x1, name, ends := middle, middle, 0, 0
	for _, b := range bars {
		x0, x1 = min(x0, b.Low, b.High), max(x1, b.Low, b.High)
		name, ends = max(name, Width(b.Name)), max(ends, Width(b.Ends))
	}
	if len(bars) == 0 || !finite(x0) || !finite(x1) {
		return ""
	}
	if width <= 0 {
		width = 100
	}
	name = min(name, 24)
	wide := max(width-name-ends-4, 10)
	at := func(v float64) int {
		if x0 == x1 {
			return 0
		}
		return int(math.Round((v - x0) / (x1 - x0) * float64(wide-1)))
	}
	var s strings.Builder
	for _, b := range bars {
		line := []rune(strings.Repeat(" ", wide))
		for i := at(min(b.Low, b.High)); i <= at(max(b.Low, b.High)); i++ {
			line[i] = '='
		}
		line[at(middle)] = '|'
		label := Cut(b.Name, name)
		label += strings.Repeat(" ", name-Width(label))
		s.WriteString(strings.TrimRight(label+"  "+string(line)+"  "+b.Ends, " ") + "\n")
	}
	return s.String()
}
