// Package draw draws: tables and sparklines for terminals, SVG for pages.
package draw

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Table aligns rows of cells in columns, at most width runes wide: cells of the
// widest column are cut with … where there is no room. Columns named in right are
// aligned to the right. The first row is the head.
func Table(rows [][]string, width int, right ...int) string {
	if len(rows) == 0 {
		return ""
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for total(widths) > width {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= 4 {
			break
		}
		widths[widest]--
	}
	isRight := map[int]bool{}
	for _, i := range right {
		isRight[i] = true
	}
	var b strings.Builder
	for _, r := range rows {
		line := ""
		for i, c := range r {
			c = Cut(c, widths[i])
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if isRight[i] {
				c = pad + c
			} else {
				c += pad
			}
			if i > 0 {
				line += "  "
			}
			line += c
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

func total(widths []int) int {
	n := 2 * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}

// Cut shortens s to width runes, the last being … where something is left out.
func Cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}

// Spark draws values as a line of blocks, width runes wide; what is not finite is a gap.
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

// Span writes a duration in the two largest units that matter: 2h 05m, 3m 20s, 4.2s.
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

// Ago writes how long before now t was, for people.
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
