package draw

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Dot is a named point of a drawing, X in seconds.
type Dot struct {
	X, Y   float64
	Name   string // written beside it; "" for none
	Title  string // shown by who points at it
	Hollow bool   // it is only shown for comparison
}

// Dots draws points over axes of time and amount, the named ones joined from left to right; what
// is not finite is left out, and nothing is drawn of nothing.
func Dots(title string, dots []Dot, ys func(float64) string) string {
	const left, top, right, bottom, line = 74.0, 18.0, 20.0, 326.0, 15.0
	dots = slices.DeleteFunc(slices.Clone(dots), func(d Dot) bool { return !finite(d.X) || !finite(d.Y) })
	if len(dots) == 0 {
		return ""
	}
	x1, y0, y1 := 0.0, math.Inf(1), math.Inf(-1)
	for _, d := range dots {
		x1, y0, y1 = max(x1, d.X), min(y0, d.Y), max(y1, d.Y)
	}
	x1 = max(x1*1.05, 1)
	if y0 > y1/2 || y0 == y1 { // what is close is drawn close: from nothing
		y0 = 0
	}
	y1 = max(y1, y0+1e-9)
	if t := rounds(y0, y1); len(t) > 1 {
		step := t[1] - t[0]
		y0, y1 = math.Floor(y0/step+1e-9)*step, math.Ceil(y1/step-1e-9)*step
	}
	x := func(v float64) float64 { return left + v/x1*(svgWidth-left-right) }
	y := func(v float64) float64 { return bottom - (v-y0)/(y1-y0)*(bottom-top) }
	var s strings.Builder
	open(&s, "chart", bottom+40, title)
	for _, v := range rounds(y0, y1) {
		fmt.Fprintf(&s,
			`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="grid"/><text x="%.1f" y="%.1f" class="tick end">`+
				`%s</text>`, left, svgWidth-right, y(v), y(v), left-6, y(v)+4, html.EscapeString(ys(v)))
	}
	axis(&s, bottom+18, 0, x1, left, svgWidth-right, moments(0, x1), Moment)
	fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" class="tick end">%s</text>`, svgWidth-right, bottom+36,
		html.EscapeString(title))
	slices.SortStableFunc(dots, func(a, b Dot) int { return cmp.Compare(a.X, b.X) })
	path, command := "", "M"
	for _, d := range dots {
		if d.Name != "" {
			path += fmt.Sprintf("%s%.1f %.1f", command, x(d.X), y(d.Y))
			command = "L"
		}
	}
	if strings.Contains(path, "L") {
		fmt.Fprintf(&s, `<path d="%s" class="line" fill="none"/>`, path)
	}
	for _, d := range dots {
		class := "dot"
		if d.Hollow {
			class = "dot hollow"
		}
		fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="4" class="%s"><title>%s</title></circle>`, x(d.X), y(d.Y),
			class, html.EscapeString(d.Title))
	}
	var taken []box // where names stand
	for _, d := range dots {
		if d.Name == "" {
			continue
		}
		wide := 6.1 * float64(len([]rune(d.Name)))
		b, class := box{x(d.X) + 8, x(d.X) + 8 + wide, y(d.Y) - 6}, "name"
		if b.to > svgWidth-right {
			b, class = box{x(d.X) - 8 - wide, x(d.X) - 8, y(d.Y) - 6}, "name end"
		}
		for slices.ContainsFunc(taken, func(o box) bool {
			return b.from < o.to && o.from < b.to && math.Abs(b.y-o.y) < line
		}) && b.y > top {
			b.y -= line
		}
		taken = append(taken, b)
		at := b.from
		if class != "name" {
			at = b.to
		}
		fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" class="%s">%s</text>`, at, b.y, class, html.EscapeString(d.Name))
	}
	s.WriteString("</svg>")
	return s.String()
}

// box is where a name stands: from and to across, and the height of its foot.
type box struct{ from, to, y float64 }
