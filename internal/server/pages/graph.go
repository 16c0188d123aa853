package pages

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// mostDrawn bounds the stages in a drawing of a pipeline; more would be unreadable.
const mostDrawn = 200

// Sizes in units of the drawing.
const (
	columnWide = 150.0
	leastWide  = 1100.0
	fewColumns = 3 // a drawing of so many columns fits a phone
	fewWide    = 400.0
	rowHigh    = 74.0
	largest    = 24.0 // radius of the most expensive stage
	smallest   = 4.0
)

// graph draws the stages of a pipeline as circles with areas in proportion to their costs, each to the right of the
// stages that it needs. A thicker line marks the path that took longest.
func graph(stages []client.StageState, c money.Currency) template.HTML {
	if len(stages) == 0 || len(stages) > mostDrawn {
		return ""
	}
	at, column, rows := map[string]int{}, make([]int, len(stages)), map[int]int{}
	row := make([]int, len(stages))
	wide, high, most := 0, 0, 0.0
	for i, s := range stages { // each follows the stages that it needs
		at[s.Name] = i
		for _, need := range s.Needs {
			if n, ok := at[need]; ok {
				column[i] = max(column[i], column[n]+1)
			}
		}
		row[i] = rows[column[i]]
		rows[column[i]]++
		wide, high, most = max(wide, column[i]+1), max(high, rows[column[i]]), max(most, s.Cost.Float())
	}
	width, class := max(leastWide, columnWide*float64(wide)), "many"
	if wide <= fewColumns {
		width, class = max(fewWide, columnWide*float64(wide)), "few"
	}
	x := func(i int) float64 { return width / float64(wide) * (float64(column[i]) + 0.5) }
	y := func(i int) float64 { return rowHigh*(float64(row[i])+0.5) - 8 }
	long := longest(stages, at)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="%s" viewBox="0 0 %.0f %.0f" role="img" aria-label="Stages of the pipeline, by cost">`,
		class, width, rowHigh*float64(high))
	for i, s := range stages {
		for _, need := range s.Needs {
			n, ok := at[need]
			if !ok {
				continue
			}
			class := "edge"
			if long[i] && long[n] {
				class = "edge long"
			}
			fmt.Fprintf(&b, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x(n), y(n), x(i), y(i))
		}
	}
	for i, s := range stages {
		r := smallest
		if most > 0 {
			r = max(smallest, largest*math.Sqrt(max(0, s.Cost.Float())/most))
		}
		name := template.HTMLEscapeString(s.Name)
		fmt.Fprintf(&b, `<circle class="stage %s" cx="%.1f" cy="%.1f" r="%.1f"><title>%s: %s, %s</title></circle>`,
			template.HTMLEscapeString(s.State), x(i), y(i), r, name, template.HTMLEscapeString(s.State), money.Short(s.Cost, c))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x(i), y(i)+largest+14,
			template.HTMLEscapeString(draw.Cut(s.Name, 20)))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// longest returns the stages on the path with the longest total run time.
func longest(stages []client.StageState, at map[string]int) map[int]bool {
	took, from, last := make([]float64, len(stages)), make([]int, len(stages)), -1
	for i, s := range stages {
		from[i] = -1
		for _, need := range s.Needs {
			if n, ok := at[need]; ok && (from[i] < 0 || took[n] > took[from[i]]) {
				from[i] = n
			}
		}
		if from[i] >= 0 {
			took[i] = took[from[i]]
		}
		if s.Started != nil && s.Finished != nil {
			took[i] += s.Finished.Sub(*s.Started).Seconds()
		}
		if took[i] > 0 && (last < 0 || took[i] > took[last]) {
			last = i
		}
	}
	path := map[int]bool{}
	for i := last; i >= 0; i = from[i] {
		path[i] = true
	}
	return path
}
