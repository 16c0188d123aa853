package draw

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Block is a span on a lane of a timeline. Use is its class: start-up, useful, lost, idle.
type Block struct {
	Lane     string
	From, To time.Time
	Use      string
	Title    string
}

// Mark is a moment on a lane, such as an interruption.
type Mark struct {
	Lane  string
	At    time.Time
	Class string // notice or kill
	Title string
}

const (
	svgWidth  = 900.0
	laneLeft  = 190.0
	laneRight = 14.0
)

// Timeline draws lanes of blocks with marks over a time axis.
func Timeline(blocks []Block, marks []Mark) string {
	return Gantt{Title: "Timeline of the attempts by offer", Blocks: blocks, Marks: marks}.SVG()
}

// Gantt is a timeline with everything that it may show.
type Gantt struct {
	Title  string
	Lanes  []string // in this order, followed by other lanes that blocks name
	Blocks []Block
	Marks  []Mark
	Until  time.Time // draws a line over all lanes; zero: none
	Line   string    // name of that line
	Keys   []Key     // meanings of the classes
}

// Key explains the blocks of a class below a timeline.
type Key struct{ Use, Says string }

// SVG returns the drawing, or "" if there are no blocks.
func (g Gantt) SVG() string {
	if len(g.Blocks) == 0 {
		return ""
	}
	lanes, row, first, last := g.extent()
	whole := max(last.Sub(first), time.Second)
	x := func(t time.Time) float64 {
		return laneLeft + float64(t.Sub(first))/float64(whole)*(svgWidth-laneLeft-laneRight)
	}
	bottom := float64(len(lanes))*34 + 34
	height := bottom
	if len(g.Keys) > 0 {
		height += 24
	}
	var s strings.Builder
	open(&s, "timeline", height, g.Title)
	for i, l := range lanes {
		y := float64(i)*34 + 10
		fmt.Fprintf(&s,
			`<text x="0" y="%.1f" class="lane">%s</text><line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="rail"/>`,
			y+15, laneText(l), laneLeft, svgWidth-laneRight, y+11, y+11)
	}
	for _, b := range g.Blocks {
		y := float64(row[b.Lane])*34 + 10
		fmt.Fprintf(&s,
			`<rect x="%.1f" y="%.1f" width="%.1f" height="22" rx="3" class="use %s"><title>%s</title></rect>`,
			x(b.From), y, max(1, x(b.To)-x(b.From)-1), html.EscapeString(b.Use), html.EscapeString(b.Title))
	}
	for _, m := range g.Marks {
		r, ok := row[m.Lane]
		if !ok || m.At.Before(first) || m.At.After(last.Add(whole)) {
			continue
		}
		y := float64(r)*34 + 10
		cx := min(x(m.At), svgWidth-laneRight)
		fmt.Fprintf(&s, `<path d="M%.1f %.1f l5 -8 h-10 z" class="mark %s"><title>%s</title></path>`, cx, y+1,
			html.EscapeString(m.Class), html.EscapeString(m.Title))
	}
	if !g.Until.IsZero() && !g.Until.Before(first) {
		fmt.Fprintf(&s, `<line x1="%.1f" x2="%.1f" y1="2" y2="%.1f" class="until"><title>%s</title></line>`, x(g.Until),
			x(g.Until), bottom-30, html.EscapeString(g.Line))
	}
	axis(&s, bottom-14, 0, whole.Seconds(), laneLeft, svgWidth-laneRight, moments(0, whole.Seconds()), Moment)
	g.keys(&s, height-10)
	s.WriteString("</svg>")
	return s.String()
}

// laneText returns the name of a lane in HTML. A name that is cut is whole in its tooltip.
func laneText(name string) string {
	short := Cut(name, 26)
	if short == name {
		return html.EscapeString(name)
	}
	return html.EscapeString(short) + "<title>" + html.EscapeString(name) + "</title>"
}

// extent returns all lanes in order, the row of each, and the times of the first and the last thing drawn.
func (g Gantt) extent() (lanes []string, row map[string]int, first, last time.Time) {
	lanes, row = slices.Clone(g.Lanes), map[string]int{}
	for i, l := range lanes {
		row[l] = i
	}
	first, last = g.Blocks[0].From, g.Blocks[0].To
	for _, b := range g.Blocks {
		if _, ok := row[b.Lane]; !ok {
			row[b.Lane] = len(lanes)
			lanes = append(lanes, b.Lane)
		}
		if b.From.Before(first) {
			first = b.From
		}
		if b.To.After(last) {
			last = b.To
		}
	}
	if g.Until.After(last) {
		last = g.Until
	}
	return lanes, row, first, last
}

// keys writes the meanings of the classes in a line at height y.
func (g Gantt) keys(s *strings.Builder, y float64) {
	at := laneLeft
	for _, k := range g.Keys {
		switch k.Use {
		case "mark":
			fmt.Fprintf(s, `<path d="M%.1f %.1f l5 -8 h-10 z" class="mark"/>`, at+6, y)
		case "until":
			fmt.Fprintf(s, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="until"/>`, at+6, at+6, y-11, y+1)
		default:
			fmt.Fprintf(s, `<rect x="%.1f" y="%.1f" width="12" height="10" rx="2" class="use %s"/>`, at, y-9,
				html.EscapeString(k.Use))
		}
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" class="tick">%s</text>`, at+18, y, html.EscapeString(k.Says))
		at += 44 + 6.5*float64(utf8.RuneCountInString(k.Says))
	}
}

// Point is one value of a series.
type Point struct{ X, Y float64 }

// Series is a line of a chart. Class determines its colour.
type Series struct {
	Name   string
	Class  string
	Points []Point
}

// Lines draws series over common axes, with X in seconds. It leaves out values that are not finite.
func Lines(title string, series []Series, xs, ys func(float64) string) string {
	return lines(title, series, moments, xs, ys)
}

// Curves is Lines with X in any other unit.
func Curves(title string, series []Series, xs, ys func(float64) string) string {
	return lines(title, series, rounds, xs, ys)
}

// lines draws series over common axes; ticks returns the labelled values of the x axis.
func lines(title string, series []Series, ticks func(x0, x1 float64) []float64, xs, ys func(float64) string) string {
	left, top, right, bottom := 62.0, 30.0, 20.0, 226.0
	x0, x1, y0, y1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for i := range series {
		kept := series[i].Points[:0:0]
		for _, p := range series[i].Points {
			if finite(p.X) && finite(p.Y) {
				kept = append(kept, p)
				x0, x1, y0, y1 = min(x0, p.X), max(x1, p.X), min(y0, p.Y), max(y1, p.Y)
			}
		}
		series[i].Points = kept
	}
	if math.IsInf(x0, 1) {
		return ""
	}
	if x1 == x0 {
		x1 = x0 + 1
	}
	if y1 == y0 {
		y1 = y0 + 1
	}
	if t := rounds(y0, y1); len(t) > 1 { // the axis ends at round numbers
		step := t[1] - t[0]
		y0, y1 = math.Floor(y0/step+1e-9)*step, math.Ceil(y1/step-1e-9)*step
	}
	names := namePlaces(series, left)
	lower := names[len(names)-1][1] - 12
	top, bottom = top+lower, bottom+lower
	x := func(v float64) float64 { return left + (v-x0)/(x1-x0)*(svgWidth-left-right) }
	y := func(v float64) float64 { return bottom - (v-y0)/(y1-y0)*(bottom-top) }
	var s strings.Builder
	open(&s, "chart", bottom+26, title)
	for _, v := range rounds(y0, y1) {
		fmt.Fprintf(&s,
			`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="grid"/><text x="%.1f" y="%.1f" class="tick end">`+
				`%s</text>`, left, svgWidth-right, y(v), y(v), left-6, y(v)+4, html.EscapeString(ys(v)))
	}
	axis(&s, bottom+18, x0, x1, left, svgWidth-right, ticks(x0, x1), xs)
	for i, line := range series {
		if len(line.Points) == 0 {
			continue
		}
		var path strings.Builder
		for n, p := range line.Points {
			command := "L"
			if n == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", command, x(p.X), y(p.Y))
		}
		fmt.Fprintf(&s, `<path d="%s" class="line %s" fill="none"/><text x="%.1f" y="%.1f" class="key %s">%s</text>`,
			path.String(), html.EscapeString(line.Class), names[i][0], names[i][1], html.EscapeString(line.Class),
			html.EscapeString(line.Name))
	}
	s.WriteString("</svg>")
	return s.String()
}

// namePlaces returns the places of the names of series: side by side, and in further rows where one does not fit.
func namePlaces(series []Series, left float64) (at [][2]float64) {
	x, y := left, 12.0
	for _, one := range series {
		wide := 8.5 * float64(Width(one.Name))
		if x > left && x+wide > svgWidth {
			x, y = left, y+18
		}
		at = append(at, [2]float64{x, y})
		x += max(180, wide+20)
	}
	return at
}

func open(s *strings.Builder, class string, height float64, title string) {
	fmt.Fprintf(s,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" class="%s" role="img" aria-label="%s">`+
			`<title>%s</title>`, svgWidth, height, class, html.EscapeString(title), html.EscapeString(title))
}

// axis writes labels of ticks below a drawing from x0 to x1.
func axis(s *strings.Builder, y, v0, v1, x0, x1 float64, ticks []float64, label func(float64) string) {
	for _, v := range ticks {
		at := x0 + (v-v0)/(v1-v0)*(x1-x0)
		class := "tick mid"
		switch {
		case at < x0+30:
			class = "tick"
		case at > x1-30:
			class = "tick end"
		}
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" class="%s">%s</text>`, at, y, class, html.EscapeString(label(v)))
	}
}

// clocks lists the usual steps of an axis of time, in seconds.
var clocks = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600,
	24 * 3600, 48 * 3600}

// Moment writes a time of an axis, given in seconds, without units that are zero: 10m, 1h 30m, 45s.
func Moment(seconds float64) string {
	d := time.Duration(math.Round(seconds*1000)) * time.Millisecond
	h, m := d/time.Hour, d%time.Hour/time.Minute
	switch {
	case d%time.Second != 0 || d < 0:
		return Span(d)
	case d == 0:
		return "0"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", h/24)
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", h)
	case h > 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dh %02dm", h, m)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", m)
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return Span(d)
}

// moments returns at most six round times from v0 to v1, in seconds.
func moments(v0, v1 float64) []float64 {
	step := clocks[len(clocks)-1]
	for _, c := range clocks {
		if (v1-v0)/c <= 5 {
			step = c
			break
		}
	}
	if v1-v0 < 4*clocks[0] {
		return rounds(v0, v1)
	}
	for (v1-v0)/step > 5 {
		step *= 2
	}
	return multiples(v0, v1, step)
}

// rounds returns at most six round numbers from v0 to v1, in steps of 1, 2 or 5.
func rounds(v0, v1 float64) []float64 {
	unit := math.Pow(10, math.Floor(math.Log10((v1-v0)/5)))
	for _, m := range []float64{1, 2, 5, 10} {
		if step := m * unit; (v1-v0)/step <= 5 {
			return multiples(v0, v1, step)
		}
	}
	return multiples(v0, v1, 20*unit)
}

func multiples(v0, v1, step float64) []float64 {
	var list []float64
	for k := math.Ceil(v0/step - 1e-9); k*step <= v1+1e-9*step; k++ {
		list = append(list, k*step+0) // +0: an axis shows no minus zero
	}
	return list
}

//go:embed standalone.css
var colours string

// PageStyle is the style sheet of pages that are files of their own. It includes the colours of drawings.
//
//go:embed page.css
var PageStyle string

// Standalone adds to a drawing the colours that a page would give it, so that it can be a file of its own.
func Standalone(svg string) string {
	at := strings.IndexByte(svg, '>')
	if at < 0 {
		return svg
	}
	return svg[:at+1] + "<style>\n" + colours + "</style>" + svg[at+1:]
}
