package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Models is the list of versions.
func Models(list []api.ModelVersion, p show.Place) string {
	if len(list) == 0 {
		return "no pipeline has made a version of a model: it needs a stage named deploy, or one with deploy: true\n"
	}
	several := slices.ContainsFunc(list, func(v api.ModelVersion) bool { return v.Project != list[0].Project })
	columns := []draw.Column{{Name: "VERSION", Key: true}, {Name: "STATE"}, {Name: "SUBMITTED", Leaves: 3},
		{Name: "COST", Right: true, Leaves: 2}, {Name: "GATES", Leaves: 1}, {Name: "METRICS", Least: 12, Leaves: 4},
		{Name: "RUN", Leaves: 5}}
	if several {
		columns = append(columns, draw.Column{Name: "PROJECT", Leaves: 6})
	}
	var rows [][]string
	for _, v := range list {
		row := []string{show.Clean(v.ID()), show.Words(v.State), p.When(v.Submitted), money.Format(v.Cost, v.Currency, 4),
			show.Words(v.Verdict), show.OrDash(show.Clean(judgedMetrics(v))), show.Clean(v.Run)}
		if several {
			row = append(row, show.OrDash(show.Clean(v.Project)))
		}
		rows = append(rows, row)
	}
	return draw.Grid(columns, rows, p.Columns()) + unknownPlaces(list)
}

// unknownPlaces lists the pipelines whose deployed model is unknown.
func unknownPlaces(list []api.ModelVersion) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, v := range list {
		if run := v.UnknownSince; run != "" && !seen[run] {
			seen[run] = true
			fmt.Fprintf(&b, "\nwhat %s has in place is %s\n", show.Clean(v.Pipeline), unknownSince(run))
		}
	}
	return b.String()
}

// unknownSince says why nobody knows what is in place, and what to do.
func unknownSince(run string) string {
	return fmt.Sprintf("unknown since %s: its deploy stage failed; the next run whose deploy stage succeeds settles it",
		show.Clean(run))
}

// metricsListed is how many metrics of a version a line has, where no gate says which count.
const metricsListed = 3

// judgedMetrics are the metrics that gates judge; of a version without gates the first ones.
func judgedMetrics(v api.ModelVersion) string {
	var list []string
	for _, g := range v.Gates {
		if text := g.Stage + "." + g.Metric + " " + g.Value; !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		names := slices.Sorted(maps.Keys(v.Metrics))
		for _, name := range names[:min(len(names), metricsListed)] {
			list = append(list, name+" "+v.Metrics[name])
		}
	}
	return strings.Join(list, ", ")
}

// Model is the page of a version.
func Model(v api.ModelVersion, p show.Place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s\n", show.Clean(v.ID()), show.Words(v.State))
	p.Fact(&b, "run", "%s, submitted %s by %s", v.Run, p.When(v.Submitted), v.User)
	if v.Project != "" || v.Team != "" {
		p.Fact(&b, "project", "%s of team %s", show.OrDash(v.Project), show.OrDash(v.Team))
	}
	if v.DeployedAt != nil {
		p.Fact(&b, "deployed", "%s by the stage %s", p.When(*v.DeployedAt), v.Stage)
	}
	if v.UnknownSince != "" {
		p.Fact(&b, "in place", "%s", unknownSince(v.UnknownSince))
	}
	if v.Why != "" {
		p.Fact(&b, "why", "%s", v.Why)
	}
	p.Fact(&b, "cost", "%s for the run, as in its receipt", money.Format(v.Cost, v.Currency, 6))
	p.Fact(&b, "gates", "%s", show.Words(v.Verdict))
	for _, g := range v.Gates {
		p.Fact(&b, "gate", "%s", GateText(g))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Metrics)) {
		p.Fact(&b, "metric", "%s %s", name, v.Metrics[name])
	}
	b.WriteString("\n")
	short := func(digest string) string { return digest[:min(len(digest), 12)] }
	var rows [][]string
	for _, s := range v.Lineage {
		add := func(what, name, digest string) {
			rows = append(rows, []string{show.Clean(s.Stage), what, show.Clean(name), show.OrDash(show.Clean(digest))})
		}
		add(s.State, show.OrDash(s.Job), short(s.Key))
		for _, c := range s.Inputs {
			add("input", c.Path, short(c.Digest))
		}
		if w := s.WarmStart; w != nil && w.Version > 0 {
			add("start", fmt.Sprintf("%s of %s@%d", w.From, v.Pipeline, w.Version), short(w.Digest))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Params)) {
			add("param", name, s.Params[name])
		}
		for _, c := range s.Outs {
			add("output", c.Path, short(c.Digest))
		}
	}
	b.WriteString(draw.Grid([]draw.Column{{Name: "STAGE", Key: true}, {Name: "WHAT"}, {Name: "NAME", Least: 8},
		{Name: "DIGEST OR VALUE", Least: 12}}, rows, p.Columns()))
	return b.String()
}

// GateText is what a gate compared, in a sentence.
func GateText(g api.GateVerdict) string {
	text := "passes: "
	if !g.Pass {
		text = "does not pass: "
	}
	text += g.Why
	if in := g.Interval; in != nil {
		how := fmt.Sprintf("%d examples", in.Examples)
		switch {
		case in.Paired:
			how = fmt.Sprintf("%d paired examples", in.Examples)
		case in.Others > 0:
			how = fmt.Sprintf("%d examples against %d", in.Examples, in.Others)
		}
		text += fmt.Sprintf("; %s interval %s to %s, from %s (%d resamples, seed %d)", in.Confidence, in.Low, in.High, how,
			in.Resamples, in.Seed)
	}
	return text
}

// gateFacts are what the gates of a run compared, and what the stages that they skipped would have cost.
func gateFacts(b *strings.Builder, g api.Group, p show.Place) {
	spared, known, unknown := money.Amount{}, 0, []string(nil)
	for _, s := range g.Pipeline.Stages {
		for _, v := range s.Gates {
			p.Fact(b, "gate", "%s: %s", s.Name, GateText(v))
		}
		if s.Drift != nil {
			p.Fact(b, "drift", "%s: %s", s.Name, show.Clean(s.Drift.Why))
		}
		if s.WarmStart != nil {
			p.Fact(b, "warm start", "%s: %s", s.Name, show.Clean(s.WarmStart.Why))
		}
		switch fails := slices.ContainsFunc(s.Gates, func(v api.GateVerdict) bool { return !v.Pass }) ||
			s.Drift != nil && !s.Drift.Pass; {
		case s.Spared != nil:
			spared, known = spared.Add(*s.Spared), known+1
		case fails && s.State == "skipped":
			unknown = append(unknown, s.Name)
		}
	}
	if known > 0 {
		p.Fact(b, "spared", "%s by gates, by what skipped stages (%d) had cost when they last ran",
			money.Format(spared, g.Currency, 4), known)
	}
	if len(unknown) > 0 {
		p.Fact(b, "spared", "unknown for %s: no earlier run that came to it had a final cost", strings.Join(unknown, ", "))
	}
}
