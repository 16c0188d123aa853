package utilization

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
)

// shownOperators bounds how many operators of profiles are listed.
const shownOperators = 8

// Diagnosis formats the causes of a job's poor machine use.
func Diagnosis(r diagnose.Report, p show.Place) string {
	var b strings.Builder
	head := fmt.Sprintf("%s: measured for %s", r.Job, lasting(r.Measured))
	if r.HourlyUSD != nil {
		head += fmt.Sprintf(", %s an hour", show.USD(*r.HourlyUSD))
	} else {
		head += ", price unknown"
	}
	b.WriteString(draw.Wrap("", show.Clean(head), p.Columns()))
	if text := inUse(r.Use); text != "" {
		p.Fact(&b, "used", "%s", text)
	}
	if r.Measured > 0 {
		p.Fact(&b, "time", "set-up %s, work %s, after it %s", lasting(r.Phases.SetUp), lasting(r.Phases.Work),
			lasting(r.Phases.After))
	}
	if len(r.Causes) == 0 {
		b.WriteString(draw.Wrap("", show.Clean(cmp.Or(r.Note, "No cause found: the machines have enough to do.")),
			p.Columns()))
	} else if r.Note != "" {
		b.WriteString(draw.Wrap("", show.Clean(r.Note), p.Columns()))
	}
	for i, c := range r.Causes {
		b.WriteString("\n" + draw.Wrap("", fmt.Sprintf("%d. %s (%s): %s", i+1, c.Class, c.Group, saving(c)), p.Columns()))
		p.Fact(&b, "evidence", "%s", c.Evidence)
		p.Fact(&b, "change", "%s", c.Change)
		p.Fact(&b, "effort", "%s, risk to the result %s", c.Effort, c.Risk)
		if c.AB != nil {
			p.Fact(&b, "try", "%s", *c.AB)
		}
	}
	if len(r.Operators) > 0 {
		var rows [][]string
		for _, o := range r.Operators[:min(len(r.Operators), shownOperators)] {
			rows = append(rows, []string{short(show.Clean(o.Name)), telemetry.Percent(o.Share), string(o.Part)})
		}
		b.WriteString("\n" + draw.Grid([]draw.Column{{Name: "OPERATOR", Key: true}, {Name: "TIME", Right: true},
			{Name: "FOR"}}, rows, p.Columns()))
	}
	return b.String()
}

// short cuts a long name to one line.
func short(s string) string {
	if r := []rune(s); len(r) > 44 {
		return string(r[:43]) + "…"
	}
	return s
}

// lasting formats a duration in seconds.
func lasting(s float64) string {
	return draw.Span(time.Duration(math.Min(s, 1e9) * float64(time.Second)).Round(time.Second))
}

// saving formats the saving from removing a cause.
func saving(c diagnose.Cause) string {
	switch {
	case c.Share == nil:
		return "its saving is unknown"
	case c.SavingUSD == nil:
		return fmt.Sprintf("%s of the cost (%s to %s)", telemetry.Percent(c.Share.Value), telemetry.Percent(c.Share.Low),
			telemetry.Percent(c.Share.High))
	}
	return fmt.Sprintf("%s an hour (%s to %s), %s of the cost", show.USD(*c.SavingUSD), show.USD(*c.Low),
		show.USD(*c.High),
		telemetry.Percent(c.Share.Value))
}

// inUse formats the utilization while the program worked.
func inUse(use map[string]float64) string {
	var parts []string
	add := func(name, metric string, write func(float64) string) {
		if v, known := use[metric]; known {
			parts = append(parts, name+" "+write(v))
		}
	}
	rate := func(v float64) string { return size.About(v) + "/s" }
	add("GPU", telemetry.GPU.String(), telemetry.Percent)
	add("GPU memory", "gpu_memory_used_ratio", telemetry.Percent)
	add("program's CPU", "task_cpu_ratio", telemetry.Percent)
	add("I/O wait", telemetry.IOWait.String(), telemetry.Percent)
	add("program's memory", telemetry.TaskMemory.String(), size.About)
	add("disk read", telemetry.TaskRead.String(), rate)
	add("received", telemetry.NetReceive.String(), rate)
	return strings.Join(parts, ", ")
}

// Diagnoses summarizes the findings about a team's jobs.
func Diagnoses(team string, list []diagnose.Report, p show.Place) string {
	if len(list) == 0 {
		text := fmt.Sprintf("No job of team %s was submitted in this time: scrimp jobs --team %s --all lists its jobs, and "+
			"--since goes further back.", team, team)
		return draw.Wrap("", show.Clean(text), p.Columns())
	}
	var rows [][]string
	byClass, sum, priced := map[class.Class]float64{}, 0.0, 0
	unmeasured, without, busy := 0, 0, []string{}
	for _, r := range list {
		switch {
		case len(r.Causes) > 0:
		case r.Busy:
			busy = append(busy, show.Clean(r.Job+", machine busy: "+r.Note))
			continue
		case r.Note != "":
			unmeasured++
			continue
		default:
			without++
			continue
		}
		c := r.Causes[0]
		row := []string{show.Clean(r.Job), string(c.Class), "-", "-"}
		if c.Share != nil {
			row[2] = telemetry.Percent(c.Share.Value)
		}
		if c.SavingUSD != nil {
			row[3] = show.USD(*c.SavingUSD)
			byClass[c.Class] += *c.SavingUSD
			sum, priced = sum+*c.SavingUSD, priced+1
		}
		rows = append(rows, row)
	}
	text := fmt.Sprintf("%s of team %s: %d with a cause, %d without, %d on a busy machine, %d not measured.",
		draw.Count(len(list), "job"), team, len(rows), without, len(busy), unmeasured)
	out := draw.Wrap("", show.Clean(text), p.Columns())
	for _, text := range busy {
		out += draw.Wrap("", text, p.Columns())
	}
	if len(rows) == 0 {
		return out
	}
	out += "\n" + draw.Grid([]draw.Column{{Name: "JOB", Key: true}, {Name: "FIRST CAUSE"}, {Name: "OF COST", Right: true},
		{Name: "SAVES $/H", Right: true}}, rows, p.Columns())
	if priced > 0 {
		classes := make([]class.Class, 0, len(byClass))
		for c := range byClass {
			classes = append(classes, c)
		}
		slices.SortFunc(classes, func(a, b class.Class) int {
			return cmp.Or(cmp.Compare(byClass[b], byClass[a]), cmp.Compare(a, b))
		})
		parts := make([]string, 0, len(classes))
		for _, c := range classes {
			parts = append(parts, fmt.Sprintf("%s %s", c, show.USD(byClass[c])))
		}
		out += draw.Wrap("", fmt.Sprintf("The first causes of %s waste %s an hour while they run: %s.",
			draw.Count(priced, "job"), show.USD(sum), strings.Join(parts, ", ")), p.Columns())
	}
	return out + draw.Wrap("", "scrimp diagnose JOB says what to change.", p.Columns())
}
