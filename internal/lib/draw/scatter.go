package draw

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Dot is a named point of a drawing. X is in seconds.
type Dot struct {
	X, Y   float64
	Name   string // written beside it; "": none
	Title  string // shown when the mouse is over it
	Hollow bool   // only for comparison
}

// Dots draws points over axes of time and amount, and joins the named ones from left to right. It leaves out values
// that are not finite, and draws nothing if no point is left.
func Dots(title string, dots []Dot, ys func(float64) string) string {
	dots = slices.DeleteFunc(slices.Clone(dots), func(d Dot) bool { return !finite(d.X) || !finite(d.Y) })
	if len(dots) == 0 {
		return ""
	}
	f := frameOf(dots)
	var s strings.Builder
	open(&s, "chart", dotsBottom+40, title)
	for _, v := range rounds(f.y0, f.y1) {
		fmt.Fprintf(&s,
			`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="grid"/><text x="%.1f" y="%.1f" class="tick end">`+
				`%s</text>`, dotsLeft, svgWidth-dotsRight, f.y(v), f.y(v), dotsLeft-6, f.y(v)+4, html.EscapeString(ys(v)))
	}
	axis(&s, dotsBottom+18, 0, f.x1, dotsLeft, svgWidth-dotsRight, moments(0, f.x1), Moment)
	fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" class="tick end">%s</text>`, svgWidth-dotsRight, dotsBottom+36,
		html.EscapeString(title))
	slices.SortStableFunc(dots, func(a, b Dot) int { return cmp.Compare(a.X, b.X) })
	path, command := "", "M"
	for _, d := range dots {
		if d.Name != "" {
			path += fmt.Sprintf("%s%.1f %.1f", command, f.x(d.X), f.y(d.Y))
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
		fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="4" class="%s"><title>%s</title></circle>`, f.x(d.X), f.y(d.Y),
			class, html.EscapeString(d.Title))
	}
	f.names(&s, dots)
	s.WriteString("</svg>")
	return s.String()
}

// The margins of a drawing of dots, and the height of a line of names.
const (
	dotsLeft, dotsTop, dotsRight, dotsBottom = 74.0, 18.0, 20.0, 326.0
	dotsLine                                 = 15.0
)

// frame holds the ranges of the axes: x from 0 to x1, and y from y0 to y1.
type frame struct{ x1, y0, y1 float64 }

func frameOf(dots []Dot) frame {
	x1, y0, y1 := 0.0, math.Inf(1), math.Inf(-1)
	for _, d := range dots {
		x1, y0, y1 = max(x1, d.X), min(y0, d.Y), max(y1, d.Y)
	}
	x1 = max(x1*1.05, 1)
	if y0 > y1/2 || y0 == y1 { // close values are drawn close: the axis begins at zero
		y0 = 0
	}
	y1 = max(y1, y0+1e-9)
	if t := rounds(y0, y1); len(t) > 1 {
		step := t[1] - t[0]
		y0, y1 = math.Floor(y0/step+1e-9)*step, math.Ceil(y1/step-1e-9)*step
	}
	return frame{x1, y0, y1}
}

func (f frame) x(v float64) float64 { return dotsLeft + v/f.x1*(svgWidth-dotsLeft-dotsRight) }

func (f frame) y(v float64) float64 {
	return dotsBottom - (v-f.y0)/(f.y1-f.y0)*(dotsBottom-dotsTop)
}

// names writes the names beside their dots. A name that would cover another is moved up.
func (f frame) names(s *strings.Builder, dots []Dot) {
	var filled []box
	for _, d := range dots {
		if d.Name == "" {
			continue
		}
		wide := 6.1 * float64(len([]rune(d.Name)))
		b, class := box{f.x(d.X) + 8, f.x(d.X) + 8 + wide, f.y(d.Y) - 6}, "name"
		if b.to > svgWidth-dotsRight {
			b, class = box{f.x(d.X) - 8 - wide, f.x(d.X) - 8, f.y(d.Y) - 6}, "name end"
		}
		for slices.ContainsFunc(filled, b.covers) && b.y > dotsTop {
			b.y -= dotsLine
		}
		filled = append(filled, b)
		at := b.from
		if class != "name" {
			at = b.to
		}
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" class="%s">%s</text>`, at, b.y, class, html.EscapeString(d.Name))
	}
}

// box is the area that a name covers: its left and right ends, and the height of its baseline.
type box struct{ from, to, y float64 }

func (b box) covers(o box) bool {
	return b.from < o.to && o.from < b.to && math.Abs(b.y-o.y) < dotsLine
}
