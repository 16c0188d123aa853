// Package sizing formats estimates of memory, time and dollars, beside the measurements of runs.
package sizing

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/lib/draw"
)

// Page is the estimate of a run, for --json.
type Page struct {
	Model string `json:"model"`
	estimate.Option
	Programme *estimate.Programme `json:"programme,omitempty"`
}

// Rate formats a rate per hour or second.
func Rate(v float64) string { return show.Digits(v) }

func one(n float64, single, several string) string {
	if n == 1 {
		return single
	}
	return several
}

// between formats a range: the value, and the interval that holds it in four of five cases.
func between(r *estimate.Range, f func(float64) string, unit string) string {
	if r == nil {
		return "unknown"
	}
	return fmt.Sprintf("%s%s (%s to %s)", f(r.Value), unit, f(r.Low), f(r.High))
}

func hoursOf(hours float64) string { return show.Seconds(hours * 3600) }

// machineText names the machines that carry the accelerators, with the parameters that the run shares.
func machineText(m hardware.Machine, o estimate.Option) string {
	text := fmt.Sprintf("%s, %g × %s", m.Name, m.Each, o.Chip)
	if m.Count > 1 {
		text = fmt.Sprintf("%g × %s, each %g × %s", m.Count, m.Name, m.Each, o.Chip)
	}
	if m.CPUs > 0 {
		text += fmt.Sprintf(", %g processors", m.CPUs)
	}
	if m.Count > 1 && m.Network > 0 {
		text += fmt.Sprintf(", %g Gbit/s between them", m.Network)
	}
	return text
}

// Text formats the estimate of one run.
func Text(v Page, p show.Place) string {
	var b strings.Builder
	o := v.Option
	title := fmt.Sprintf("%s on %g × %s", v.Model, o.Count, o.Chip)
	if o.Micro > 0 {
		title += fmt.Sprintf(", %g", o.Micro) + one(o.Micro, " sample", " samples") + " an accelerator at a time"
	}
	b.WriteString(draw.Wrap("", title, p.Columns()))
	if m := o.Machine; m != nil {
		p.Fact(&b, "machine", "%s", machineText(*m, o))
	}
	p.Fact(&b, "throughput", "%s", between(o.Throughput, show.Digits, " "+o.Unit))
	p.Fact(&b, "time", "%s", between(o.Hours, hoursOf, ""))
	cost := between(o.Cost, show.USD, "")
	if o.Hourly > 0 {
		cost += fmt.Sprintf(" at %s an hour", show.USD(o.Hourly))
	}
	p.Fact(&b, "cost", "%s", cost)
	if m := o.Machine; m != nil && m.Spot > 0 && o.Hours != nil {
		p.Fact(&b, "on spot", "%s at %s an hour, without interruptions: scrimp plan --catalog counts them",
			show.USD(o.Hours.Value*m.Spot), show.USD(m.Spot))
	}
	fits := ""
	if o.Fits != nil {
		fits = ", does not fit"
		if *o.Fits {
			fits = ", fits"
		}
	}
	p.Fact(&b, "memory", "%s%s", between(o.PeakMemory, show.Digits, " GB an accelerator"), fits)
	if m := o.Memory; m != nil {
		var parts []string
		for _, c := range []struct {
			name string
			gb   float64
		}{{"weights", m.Weights}, {"gradients", m.Gradients}, {"optimiser", m.Optimiser}, {"activations", m.Activations},
			{"logits", m.Logits}, {"overhead", m.Overhead}} {
			if c.gb > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", c.name, show.Digits(c.gb)))
			}
		}
		p.Fact(&b, "of it, in GB", "%s", strings.Join(parts, ", "))
	}
	if g := v.Programme; g != nil {
		p.Fact(&b, fmt.Sprintf("%g runs", g.Runs), "a week: %s, %s of the machine; a year of 52 weeks: %s",
			between(g.Week, show.USD, ""), between(g.Hours, hoursOf, ""), between(g.Year, show.USD, ""))
	}
	p.Fact(&b, "from", "%s", o.Provenance)
	b.WriteString(draw.Wrap("", "Four of five measured runs lie within these ranges.", p.Columns()))
	return b.String()
}

// NoOption replaces an empty table; gpu is the requested accelerator, or "".
func NoOption(model, gpu string, p show.Place) string {
	text := "No accelerator that has a price holds " + model + ". --gpu names one that has none."
	if gpu != "" {
		text = "No " + gpu + " holds " + model + " as it is asked for."
	}
	return draw.Wrap("", text, p.Columns())
}

// Options formats the table of accelerators for one run, cheapest first. dates gives the age of the prices, or is empty
// for the user's own. It returns "" if nothing holds the run.
func Options(list []estimate.Option, most int, dates string, p show.Place) string {
	if len(list) == 0 {
		return ""
	}
	left := 0
	if most > 0 && len(list) > most {
		left, list = len(list)-most, list[:most]
	}
	value := func(r *estimate.Range, f func(float64) string) string {
		if r == nil {
			return "-"
		}
		return f(r.Value)
	}
	low := func(r *estimate.Range, f func(float64) string) string {
		if r == nil {
			return "-"
		}
		return f(r.Low) + " to " + f(r.High)
	}
	var rows [][]string
	for _, o := range list {
		micro := "-"
		if o.Micro > 0 {
			micro = fmt.Sprintf("%g", o.Micro)
		}
		rows = append(rows, []string{fmt.Sprintf("%g × %s", o.Count, o.Chip), micro, value(o.PeakMemory, show.Digits),
			value(o.Throughput, show.Digits), value(o.Hours, hoursOf), value(o.Cost, show.USD), low(o.Cost, show.USD),
			spotCost(o)})
	}
	var b strings.Builder
	b.WriteString(draw.Grid([]draw.Column{
		{Name: "ACCELERATORS", Least: 12}, {Name: "BATCH", Right: true, Leaves: 3}, {Name: "GB", Right: true, Leaves: 2},
		{Name: list[0].Unit, Right: true, Leaves: 1},
		{Name: "TIME", Right: true}, {Name: "COST", Right: true}, {Name: "80 % RANGE", Right: true, Leaves: 4},
		{Name: "ON SPOT", Right: true, Leaves: 5},
	}, rows, p.Columns()))
	if left > 0 {
		b.WriteString(draw.Wrap("", fmt.Sprintf("%d more: --limit 0 shows all.", left), p.Columns()))
	}
	text := "At the price that is given."
	if dates != "" {
		text = "On-demand list prices, " + dates + ": scrimp catalog update fetches newer ones."
	}
	b.WriteString(draw.Wrap("", text+" --gpu says more of one of them.", p.Columns()))
	if slices.ContainsFunc(list, func(o estimate.Option) bool { return spotCost(o) != "-" }) {
		b.WriteString(draw.Wrap("", "ON SPOT is the cost at the lowest spot price without an interruption: scrimp plan "+
			"--catalog counts them.", p.Columns()))
	}
	for _, o := range list {
		if m := o.Machine; m != nil && m.Count > 1 {
			b.WriteString(draw.Wrap("", fmt.Sprintf("%g × %s are %s.", o.Count, o.Chip, severalText(*m)), p.Columns()))
		}
	}
	return b.String()
}

// spotCost formats what a run costs at the lowest spot price of its machines, or "-".
func spotCost(o estimate.Option) string {
	if o.Machine == nil || o.Machine.Spot <= 0 || o.Hours == nil {
		return "-"
	}
	return show.USD(o.Hours.Value * o.Machine.Spot)
}

// severalText says how many machines carry an option's accelerators, and what joins them, which is slower than the
// links inside a machine.
func severalText(m hardware.Machine) string {
	network := "a network of unknown speed"
	if m.Network > 0 {
		network = fmt.Sprintf("%g Gbit/s", m.Network)
	}
	return fmt.Sprintf("%g machines of %g (%s), joined by %s: what they exchange, such as the shards of --zero 3, takes "+
		"longer than inside one machine", m.Count, m.Each, m.Name, network)
}

// Knob is a flag that would make a run fit or cost less, with its cheapest option.
type Knob struct {
	Flag   string
	Option estimate.Option
}

// Unheld reports a transformer that no combination of flags makes fit. counted means that the number of accelerators
// was given.
func Unheld(counted bool, p show.Place) string {
	more := "Give larger accelerators"
	if counted {
		more = "Give more accelerators, larger ones"
	}
	return "\n" + draw.Wrap("", "Neither sharing out (--zero 3), activation checkpointing (--checkpointing full), --lora "+
		"nor --qlora, nor all of them together, makes it fit. "+more+", or --tp and --pp to cut the model itself.",
		p.Columns())
}

// Knobs lists the options that flags would give, or returns "".
func Knobs(list []Knob, p show.Place) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nIt would fit, and cost least, with\n")
	tuning := false
	for _, k := range list {
		tuning = tuning || strings.Contains(k.Flag, "lora")
		text := fmt.Sprintf("%g × %s", k.Option.Count, k.Option.Chip)
		if k.Option.Cost != nil {
			text += fmt.Sprintf(", %s in %s", show.USD(k.Option.Cost.Value), hoursOf(k.Option.Hours.Value))
		}
		b.WriteString(draw.Wrap(fmt.Sprintf("  %-29s  ", k.Flag), text, p.Columns()))
	}
	if tuning {
		b.WriteString(draw.Wrap("", "--lora and --qlora train small matrices beside frozen weights: where fine-tuning is "+
			"all that is wanted.", p.Columns()))
	}
	return b.String()
}
