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
	"scrimp/internal/work/serving/load"
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

// A narrow terminal shows what a choice is made by: the rule, its batch, the latency, the cost and whether it is met.
var offerColumns = []draw.Column{{Name: "OFFER", Least: 16}, {Name: "FORMAT", Leaves: 1}, {Name: "RULE"},
	{Name: "BATCH", Right: true}, {Name: "MACHINES", Right: true}, {Name: "P50", Right: true, Leaves: 2},
	{Name: "P99", Right: true}, {Name: "IDLE", Right: true, Leaves: 4}, {Name: "PER 1,000", Right: true, Leaves: 3},
	{Name: "COST", Right: true}, {Name: "MEETS"}}

func offerRows(list []Choice) (rows [][]string) {
	for _, c := range list {
		rows = append(rows, []string{c.name(), dash(c.Format), string(c.Rule), fmt.Sprint(c.Batch), c.rule.Machines(),
			Latency(c.p50), Latency(c.p99), share(c.Idle), c.thousand(), c.cost(), c.Meets})
	}
	return rows
}

var ruleColumns = []draw.Column{{Name: "RULE", Key: true}, {Name: "BATCH", Right: true}, {Name: "WAIT", Right: true},
	{Name: "MACHINES", Right: true}, {Name: "P50", Right: true}, {Name: "P99", Right: true}, {Name: "IDLE", Right: true},
	{Name: "COLD STARTS", Right: true, Leaves: 1}, {Name: "COST", Right: true}, {Name: "MEETS"}}

func ruleRows(list []Choice) (rows [][]string) {
	for _, c := range list {
		rows = append(rows, []string{string(c.Rule), fmt.Sprint(c.Batch), Latency(c.rule.Wait), c.rule.Machines(),
			Latency(c.p50), Latency(c.p99), share(c.Idle), fmt.Sprint(c.Colds), c.cost(), c.Meets})
	}
	return rows
}

// name is the offer with its machine first, which stays where the name is cut.
func (x Choice) name() string {
	if x.Machine == "" {
		return show.Clean(x.Offer)
	}
	return show.Clean(x.Machine + " " + x.Provider + "/" + x.Region)
}

// cost is the total, and what is known of it with a sign that more is due.
func (x Choice) cost() string {
	if x.Total == nil {
		return x.known(x.Machines)
	}
	return x.known(*x.Total)
}

// thousand is the cost of a thousand predictions, with the sign of cost.
func (x Choice) thousand() string { return x.known(x.Each.Times(1000)) }

// known writes a part of the total, with a sign where more is due.
func (x Choice) known(sum money.Amount) string {
	if x.Total == nil {
		return money.Short(sum, x.Currency) + "+"
	}
	return money.Short(sum, x.Currency)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// share writes a share in whole per cent. 0 % and 100 % are exact: what is near them has more digits, or a sign.
func share(v *float64) string {
	if v == nil {
		return "-"
	}
	switch p := *v * 100; {
	case p > 0 && p < 0.1:
		return "<0.1 %"
	case p > 99.9 && p < 100:
		return ">99.9 %"
	case p > 0 && p < 0.5 || p >= 99.5 && p < 100:
		return fmt.Sprintf("%.1f %%", p)
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

// source says where the price is from, and of when it is.
func (x *Choice) source() string {
	switch {
	case x.At != nil:
		return show.Clean(x.Source) + ", " + x.At.Format(time.DateOnly)
	case x.Machine != "":
		return show.Clean(x.Provider) + " price list, no date known"
	}
	return show.Clean(x.Source)
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
	v.formats(line)
	line("cost", "%s a prediction", c.known(c.Each))
	if c.Tokens != nil {
		text := c.known(*c.Tokens) + " per million tokens"
		if c.Input != nil && c.Output != nil {
			text += fmt.Sprintf("; %s per million in and %s per million out, in proportion to the time of each phase",
				c.known(*c.Input), c.known(*c.Output))
		}
		line("tokens", "%s", text)
	}
	switch {
	case c.Egress != nil:
		line("egress", "%s for %s", small(*c.Egress, c.Currency), sent(v.Trace.BytesOut))
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
	if c.Machine == "" {
		line("cold start", "%s until a new instance of %s answers (cold_start in the file of --serverless)", c.cold,
			c.name())
	}
	if slices.ContainsFunc(v.Choices, func(c Choice) bool { return c.Colds > 0 && c.Machine != "" }) {
		line("cold start", "%s until a new machine answers (--cold-start)", v.Cold)
	}
	line("price", "%s", c.source())
	if text := v.skipped(); text != "" {
		line("not planned", "%s", text)
	}
	for _, n := range v.Notes {
		line("note", "%s", n)
	}
}

// small writes a sum, and that it is below a hundredth of a cent where it is.
func small(sum money.Amount, c money.Currency) string {
	if f := sum.Float(); f > 0 && f < 0.0001 {
		return "less than " + money.Short(money.Picos(100_000_000), c)
	}
	return money.Short(sum, c)
}

// sent writes bytes in the decimal units in which providers sell egress.
func sent(n int64) string {
	v := float64(n)
	for _, u := range []struct {
		name  string
		bytes float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if v >= u.bytes {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", v/u.bytes), ".0") + " " + u.name
		}
	}
	return draw.Count(int(n), "byte")
}

// formats says what a quantised format means where the first choice has one, and what full precision costs.
func (v Answer) formats(line func(name, format string, args ...any)) {
	first := v.Choices[0]
	if first.Format == "" || first.Format == load.Formats[0].Name {
		return
	}
	text := fmt.Sprintf("quantised weights (%s) change the answers, and the server and the accelerator must support them",
		first.Format)
	for _, c := range v.Choices {
		if c.Format == load.Formats[0].Name {
			text += fmt.Sprintf("; in %s the first is %s on %s for %s (meets: %s)", c.Format, c.Rule, c.name(), c.cost(),
				c.Meets)
			break
		}
	}
	line("format", "%s", text)
}

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

// skipped counts the offers that the plan leaves out, by the reason.
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
