// Package draw makes drawings: tables and sparklines for terminals, SVG for pages.
package draw

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Column is a column of a grid.
type Column struct {
	Name  string
	Right bool // aligns numbers to the right
	// Least is the smallest width to which cells may be cut, in columns of the terminal. 0: cells are never cut,
	// because half a number is a different number.
	Least int
	// Leaves decides when the column is left out for lack of room: the highest first. Columns with 0 follow, the last
	// one first. A column with a value above 0 that holds only dashes is always left out.
	Leaves int
	Key    bool // it identifies rows: it is neither cut nor left out
}

// Grid aligns rows of cells below a head. The grid is at most width columns of a terminal wide, if its keys allow that;
// 0 means any width. It leaves out columns first, then cuts cells with ….
func Grid(columns []Column, rows [][]string, width int) string {
	g := grid{columns: columns, widths: make([]int, len(columns)), shown: make([]bool, len(columns))}
	for i, c := range columns {
		g.widths[i] = Width(c.Name)
		for _, r := range rows {
			g.widths[i] = max(g.widths[i], Width(r[i]))
			g.shown[i] = g.shown[i] || r[i] != "-"
		}
		g.shown[i] = g.shown[i] || c.Leaves == 0
	}
	if width > 0 {
		g.leave(width)
		g.narrow(width)
	}
	var b strings.Builder
	b.WriteString(g.line(func(i int) string { return columns[i].Name }))
	for _, r := range rows {
		b.WriteString(g.line(func(i int) string { return r[i] }))
	}
	return b.String()
}

// grid holds columns with their widths, and which of them are shown.
type grid struct {
	columns []Column
	widths  []int
	shown   []bool
}

// wide returns the width of a line, or its smallest width if cells are cut.
func (g grid) wide(cut bool) int {
	n := -2
	for i, c := range g.columns {
		switch {
		case !g.shown[i]:
		case cut && c.Least > 0:
			n += 2 + min(g.widths[i], c.Least)
		default:
			n += 2 + g.widths[i]
		}
	}
	return n
}

// leave removes columns until the others can be cut to fit, in the order of Leaves.
func (g grid) leave(width int) {
	for g.wide(true) > width {
		next := -1
		for i, c := range g.columns {
			if g.shown[i] && c.Leaves > 0 && (next < 0 || c.Leaves > g.columns[next].Leaves) {
				next = i
			}
		}
		if next < 0 {
			next = g.lastLess()
		}
		if next < 0 {
			return
		}
		g.shown[next] = false
	}
}

// lastLess returns the last shown column that is not a key, if there are keys, or -1.
func (g grid) lastLess() int {
	last, keys := -1, false
	for i, c := range g.columns {
		keys = keys || c.Key
		if g.shown[i] && !c.Key {
			last = i
		}
	}
	if !keys {
		return -1
	}
	return last
}

// narrow shrinks the widest column that may be cut until all columns fit.
func (g grid) narrow(width int) {
	for g.wide(false) > width {
		widest := -1
		for i, c := range g.columns {
			if g.shown[i] && c.Least > 0 && g.widths[i] > c.Least && (widest < 0 || g.widths[i] > g.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		g.widths[widest]--
	}
}

func (g grid) line(cell func(i int) string) string {
	text := ""
	for i, c := range g.columns {
		if !g.shown[i] {
			continue
		}
		if text != "" {
			text += "  "
		}
		s := Cut(cell(i), g.widths[i])
		pad := strings.Repeat(" ", g.widths[i]-Width(s))
		if c.Right {
			text += pad + s
		} else {
			text += s + pad
		}
	}
	return strings.TrimRight(text, " ") + "\n"
}

// Cut shortens s to width columns of a terminal, and ends it with … if something is left out.
func Cut(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += widthOf(r); n > width-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// Wrap writes text after first and breaks it at spaces, so that no line is wider than width columns; 0 means any width.
// Further lines are aligned with the text. A word wider than a line stays whole, because it may be a path that people
// copy.
func Wrap(first, text string, width int) string {
	indent := strings.Repeat(" ", Width(first))
	var b strings.Builder
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		switch {
		case empty:
			line += word
		case width > 0 && Width(line)+1+Width(word) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
		empty = false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}

// Count writes a number with its noun: 1 interruption, 2 interruptions.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Short writes a large count with three digits: 1.25M. Counts below 100,000 are exact.
func Short(n int64) string {
	switch v := float64(n); {
	case n > -100_000 && n < 100_000:
		return fmt.Sprint(n)
	case n > -999_500_000 && n < 999_500_000 && (n >= 999_500 || n <= -999_500):
		return fmt.Sprintf("%.3gM", v/1e6)
	case n > -999_500 && n < 999_500:
		return fmt.Sprintf("%.3gk", v/1e3)
	default:
		return fmt.Sprintf("%.3gG", v/1e9)
	}
}

// Tick writes a measurement with three digits: 0.0125, 20k, 1.25M. Only larger and smaller ones have an exponent.
func Tick(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if size := math.Abs(v); size >= 0.9995*unit.size && size < 999.5*unit.size {
			return fmt.Sprintf("%.3g%s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g", v)
}

// SparkOf draws the last width values as blocks between 0 and most. Values that are not finite are gaps.
func SparkOf(values []float64, most float64, width int) string {
	var b strings.Builder
	for _, v := range values[max(0, len(values)-width):] {
		if !finite(v) || most <= 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[int(max(0, min(v/most, 1))*7.999)])
	}
	return b.String()
}

// Spark draws values as a line of blocks, width runes wide. Values that are not finite are gaps.
func Spark(values []float64, width int) string {
	if len(values) == 0 || width <= 0 {
		return ""
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	width = min(width, len(values))
	var b strings.Builder
	for i := range width {
		v := values[i*(len(values)-1)/max(1, width-1)]
		switch {
		case !finite(v):
			b.WriteByte(' ')
		case high == low:
			b.WriteRune('▄')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[int((v-low)/(high-low)*7.999)])
		}
	}
	return b.String()
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Span writes a duration in its two largest useful units: 2h 05m, 3m 20s, 4.2s.
func Span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%s%dd %02dh", sign, d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%s%dh %02dm", sign, d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%s%dm %02ds", sign, d/time.Minute, d%time.Minute/time.Second)
	case d >= 10*time.Second:
		return fmt.Sprintf("%s%.0fs", sign, d.Seconds())
	}
	return fmt.Sprintf("%s%.1fs", sign, d.Seconds())
}

// SimulatedClock says how fast the clock of an emulated market runs, which its prices, spans and deadlines use.
func SimulatedClock(speed float64) string {
	return fmt.Sprintf("simulated clock, %g × real time", speed)
}

// Ago writes for people how long before now t was.
func Ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return fmt.Sprintf("%d days ago", d/(24*time.Hour))
}

// Bar draws a share from 0 to 1 as a bar of width runes.
func Bar(share float64, width int) string {
	if !finite(share) {
		share = 0
	}
	full := int(math.Round(max(0, min(1, share)) * float64(width)))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// Starts writes when a waiting job is expected to start, from 10 %, median and 90 % of the time until then, in seconds:
// "in about 1h 30m (1h 00m to 2h 00m)".
func Starts(in [3]float64) string {
	text := func(s float64) string { return Span(time.Duration(s * float64(time.Second))) }
	switch low, high := text(in[0]), text(in[2]); {
	case in[2] < 1:
		return "next"
	case low == high:
		return "in about " + low
	default:
		return fmt.Sprintf("in about %s (%s to %s)", text(in[1]), low, high)
	}
}
