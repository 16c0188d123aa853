package inference

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/serving"
)

// shown is how many offers a terminal gets.
const shown = 15

// Text is the answer for people.
func (v Answer) Text(p show.Place) string {
	var b strings.Builder
	b.WriteString(draw.Wrap("", v.head(), p.Columns()))
	var offers, rules []Choice
	for _, c := range v.Choices {
		if c.first {
			offers = append(offers, c)
		}
		if c.Offer == v.Choices[0].Offer {
			rules = append(rules, c)
		}
	}
	all := len(offers)
	if p.Width > 0 {
		offers = offers[:min(shown, all)]
	}
	b.WriteString("\n" + draw.Grid(offerColumns, offerRows(offers), p.Columns()))
	if all > len(offers) {
		fmt.Fprintf(&b, "and %s: --json lists all\n", draw.Count(all-len(offers), "more offer"))
	}
	if len(rules) > 1 {
		b.WriteString("\n" + draw.Wrap("", "Rules on "+rules[0].name(), p.Columns()))
		b.WriteString(draw.Grid(ruleColumns, ruleRows(rules), p.Columns()))
	}
	b.WriteString("\n")
	v.facts(&b, p)
	return b.String()
}

// head says what was asked for.
func (v Answer) head() string {
	var targets []string
	for _, t := range v.Targets {
		targets = append(targets, t.String())
	}
	text := fmt.Sprintf("%s: %s in %s, %s", show.Clean(v.Head), requests(len(v.Trace.At)), draw.Span(v.Trace.Window),
		strings.Join(targets, ", "))
	if v.Choices[0].Meets == "no" {
		text += ". No rule that was tried meets this; the nearest comes first."
	}
	return text
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return draw.Short(int64(n)) + " requests"
}

var offerColumns = []draw.Column{{Name: "OFFER", Least: 16}, {Name: "FORMAT", Leaves: 1}, {Name: "RULE"},
	{Name: "BATCH", Right: true, Leaves: 2}, {Name: "MACHINES", Right: true}, {Name: "P50", Right: true, Leaves: 3},
	{Name: "P99", Right: true}, {Name: "IDLE", Right: true}, {Name: "PER 1,000", Right: true},
	{Name: "COST", Right: true}, {Name: "MEETS", Leaves: 4}}

func offerRows(list []Choice) (rows [][]string) {
	for _, c := range list {
		rows = append(rows, []string{c.name(), dash(c.Format), string(c.Rule), fmt.Sprint(c.Batch), c.rule.Machines(),
			Latency(c.p50), Latency(c.p99), share(c.Idle), money.Short(c.Each.Times(1000), c.Currency), c.cost(), c.Meets})
	}
	return rows
}

var ruleColumns = []draw.Column{{Name: "RULE", Key: true}, {Name: "BATCH", Right: true}, {Name: "WAIT", Right: true},
	{Name: "MACHINES", Right: true}, {Name: "P50", Right: true}, {Name: "P99", Right: true}, {Name: "IDLE", Right: true},
	{Name: "COLD STARTS", Right: true, Leaves: 1}, {Name: "COST", Right: true}}

func ruleRows(list []Choice) (rows [][]string) {
	for _, c := range list {
		rows = append(rows, []string{string(c.Rule), fmt.Sprint(c.Batch), Latency(c.rule.Wait), c.rule.Machines(),
			Latency(c.p50), Latency(c.p99), share(c.Idle), fmt.Sprint(c.Colds), c.cost()})
	}
	return rows
}

// name is the offer with its machine first, which stays where the name is cut.
func (c Choice) name() string {
	if c.Machine == "" {
		return show.Clean(c.Offer)
	}
	return show.Clean(c.Machine + " " + c.Provider + "/" + c.Region)
}

// cost is the total, and what is known of it with a sign that more is due.
func (c Choice) cost() string {
	if c.Total == nil {
		return money.Short(c.Machines, c.Currency) + "+"
	}
	return money.Short(*c.Total, c.Currency)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func share(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", *v*100)
}

// Latency writes a latency with three digits: 8.21ms, 310ms, 2.40s, and longer ones as spans.
func Latency(d time.Duration) string {
	switch s := d.Seconds(); {
	case d == 0:
		return "0"
	case s < 0.00999:
		return fmt.Sprintf("%.2fms", s*1e3)
	case s < 0.0999:
		return fmt.Sprintf("%.1fms", s*1e3)
	case s < 0.9995:
		return fmt.Sprintf("%.0fms", s*1e3)
	case s < 9.995:
		return fmt.Sprintf("%.2fs", s)
	case s < 59.5:
		return fmt.Sprintf("%.1fs", s)
	}
	return draw.Span(d)
}

// facts explains the choice that comes first.
func (v Answer) facts(b *strings.Builder, p show.Place) {
	c := v.Choices[0]
	line := func(name, format string, args ...any) { p.Fact(b, name, format, args...) }
	line("rule", "%s on %s", c.rule, c.name())
	if c.Needs != nil {
		copies := draw.Count(c.Copies, "copy")
		if c.Copies > 1 {
			copies = fmt.Sprintf("%d copies", c.Copies)
		}
		line("memory", "%s of %s: weights in %s are %s, the rest is the longest request; %s on a machine, each on %s",
			serving.Gigabytes(*c.Needs), serving.Gigabytes(*c.Have), c.Format, serving.Gigabytes(*c.Weights), copies,
			draw.Count(c.Shards, "accelerator"))
	}
	line("cost", "%s a prediction", money.Short(c.Each, c.Currency))
	if c.Tokens != nil {
		text := money.Short(*c.Tokens, c.Currency) + " per million tokens"
		if c.Input != nil && c.Output != nil {
			text += fmt.Sprintf("; %s per million in and %s per million out, by the time that prompts and answers take",
				money.Short(*c.Input, c.Currency), money.Short(*c.Output, c.Currency))
		}
		line("tokens", "%s", text)
	}
	switch {
	case c.Egress != nil:
		line("egress", "%s for %s", money.Short(*c.Egress, c.Currency), gigabytesOut(v.Trace.BytesOut))
	case v.Trace.Sized:
		line("egress", "unknown: the catalogue has no price of sending data from there; + in COST marks it")
	default:
		line("egress", "not counted: the trace has no bytes_out")
	}
	if c.Estimated {
		v.estimate(line, c)
	} else {
		line("service time", "measured (--measured)")
	}
	if slices.ContainsFunc(v.Choices, func(c Choice) bool { return c.Colds > 0 && c.Machine != "" }) {
		line("cold start", "%s until a new machine answers (--cold-start)", v.Cold)
	}
	price := show.Clean(c.Source)
	if c.At != nil {
		price += ", " + c.At.Format(time.DateOnly)
	}
	line("price", "%s", price)
	if text := v.skipped(); text != "" {
		line("not planned", "%s", text)
	}
	for _, n := range v.Notes {
		line("note", "%s", n)
	}
}

func gigabytesOut(n int64) string { return fmt.Sprintf("%.3g GB", float64(n)/1e9) }

// estimate says that the service time is an estimate, and what its ends give.
func (v Answer) estimate(line func(name, format string, args ...any), c Choice) {
	end := func(s *float64) string {
		if s == nil {
			return "never ends"
		}
		return Latency(time.Duration(*s * 1e9))
	}
	text := "estimated from the model and the accelerator's rate and bandwidth"
	if c.ranged {
		text += fmt.Sprintf(": p99 is %s at the full rate and bandwidth, %s with a slow server",
			end(c.FastP99), end(c.SlowP99))
	}
	if c.Meets == "uncertain" {
		text += ", which misses the target. Measure it (--measured)"
	}
	line("service time", "%s", text)
}

// skipped counts the offers that are not planned with, by why.
func (v Answer) skipped() string {
	by := map[string]int{}
	var order []string
	for _, s := range v.Skipped {
		if by[s.Why] == 0 {
			order = append(order, s.Why)
		}
		by[s.Why]++
	}
	var parts []string
	for _, why := range order {
		parts = append(parts, fmt.Sprintf("%s: %s", draw.Count(by[why], "offer"), why))
	}
	return strings.Join(parts, "; ")
}
