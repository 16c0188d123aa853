package draw

import (
	"fmt"
	"html"
	"strings"
)

// An Axis is one of several parallel axes, with the labels of its ends.
type Axis struct{ Name, Low, High string }

// A Thread is a line across parallel axes. At has its place on each, from 0 at the bottom to 1 at the top; a thread
// ends before a place outside of that. Class determines its colour, and Title is shown when the mouse is over it.
type Thread struct {
	At    []float64
	Class string
	Title string
}

// The margins of parallel axes.
const (
	axesLeft, axesTop, axesRight, axesBottom = 70.0, 46.0, 70.0, 246.0
)

// Parallel draws threads across parallel axes, the first thread at the bottom. It draws nothing on fewer than two axes.
func Parallel(title string, axes []Axis, threads []Thread) string {
	if len(axes) < 2 || len(threads) == 0 {
		return ""
	}
	x := func(i int) float64 {
		return axesLeft + float64(i)/float64(len(axes)-1)*(svgWidth-axesLeft-axesRight)
	}
	y := func(v float64) float64 { return axesBottom - v*(axesBottom-axesTop) }
	var s strings.Builder
	open(&s, "chart", axesBottom+26, title)
	for _, t := range threads {
		path, command := "", "M"
		for i := range axes {
			if i >= len(t.At) || !(t.At[i] >= 0 && t.At[i] <= 1) {
				break
			}
			path, command = path+fmt.Sprintf("%s%.1f %.1f", command, x(i), y(t.At[i])), "L"
		}
		if strings.Contains(path, "L") {
			fmt.Fprintf(&s, `<path d="%s" class="line %s" fill="none"><title>%s</title></path>`, path,
				html.EscapeString(t.Class), html.EscapeString(t.Title))
		}
	}
	for i, a := range axes {
		name, end := a.Name, "tick mid"
		if wide := max(6, 120/len(axes)); len([]rune(name)) > wide {
			name = Cut(name, wide)
		}
		fmt.Fprintf(&s, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="rail"/>`, x(i), x(i), axesTop, axesBottom)
		for _, label := range []struct {
			y    float64
			text string
		}{{14, name}, {axesTop - 10, a.High}, {axesBottom + 18, a.Low}} {
			fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" class="%s">%s</text>`, x(i), label.y, end, html.EscapeString(label.text))
		}
	}
	s.WriteString("</svg>")
	return s.String()
}
