// Package search formats searches for hyper-parameters as text: their plans, and how they go.
package search

import (
	"fmt"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/work/study"
)

// number formats a statistic with few digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

// PlateauText says when a search ends by itself; empty: never.
func PlateauText(v *api.StudyPlateau, metric string) string {
	if v == nil {
		return ""
	}
	least, during := v.MinGain, "15 % of the spend"
	if v.PointValue > 0 {
		least = 1 / v.PointValue
	}
	if v.Patience > 0 {
		during = draw.Count(v.Patience, "report")
	}
	return fmt.Sprintf("ends the search once another dollar is expected to gain less than %s %s for %s", number(least),
		show.Clean(metric), during)
}

// ProxyText describes the proxy of a search.
func ProxyText(x *api.StudyProxy, f *api.StudyFidelity) string {
	list := (*study.Proxy)(x).Texts()
	if x.Max > 0 && f != nil {
		list = append(list, fmt.Sprintf("to %s %s", f.Name, number(x.Max)))
	}
	best := "the best configuration"
	if x.Promote > 1 {
		best = fmt.Sprintf("the best %d configurations", x.Promote)
	}
	kept := x.Reserve
	if kept == 0 {
		kept = study.DefaultReserve
	}
	return fmt.Sprintf("trials train with %s; %.0f %% of each limit is kept to train %s in full", strings.Join(list, " "),
		100*kept, best)
}

// Plan describes what a search would do, before it spends anything.
type Plan struct {
	Name     string   `json:"name"`
	Metric   string   `json:"metric"`
	Searcher string   `json:"searcher"`
	Configs  int      `json:"configurations"` // from which the trials are chosen
	Trials   int      `json:"trials"`         // at most
	Parallel int      `json:"parallel"`
	Rungs    []string `json:"rungs,omitempty"` // epochs after which trials are compared
	BudgetS  string   `json:"budget"`
	WorstUSD *float64 `json:"worst_usd"` // including the cost of trials while they save at the end
	ExtraUSD *float64 `json:"saves_usd"` // that cost alone
	FullUSD  *float64 `json:"full_usd"`  // median of one full configuration; null if unknown
	FullRuns *float64 `json:"full_runs"` // number of full runs that the budget pays for
	AllUSD   *float64 `json:"all_usd"`   // every full configuration
	OneMore  *float64 `json:"more_runs"` // further full runs that another $20 would pay for
	// ExpectedUSD is the expected spend, and TrialsUSD the cost of as many trials in full; null if unknown.
	ExpectedUSD *float64 `json:"expected_usd"`
	TrialsUSD   *float64 `json:"trials_in_full_usd"`
	Prune       string   `json:"prune,omitempty"`      // what the searcher does with poor trials; empty: nothing
	Checkpoint  string   `json:"checkpoint,omitempty"` // interval of the job's checkpoints; empty: it has none
	Final       bool     `json:"final"`
	GPUHours    float64  `json:"gpu_hours,omitempty"` // limit of all trials together
	// GPUKept is the part of GPUHours that is kept for the saves at the end.
	GPUKept float64  `json:"gpu_hours_kept,omitempty"`
	Wall    string   `json:"wall_clock,omitempty"` // limit of the search
	Proxy   string   `json:"proxy,omitempty"`      // the cheaper training on which it searches
	Plateau string   `json:"plateau,omitempty"`    // when the search ends by itself
	Past    int      `json:"past,omitempty"`       // configurations of earlier searches
	Notes   []string `json:"notes,omitempty"`
	// Warnings say what probably keeps the search from its values.
	Warnings []string `json:"warnings,omitempty"`
}

// expected adds the expected spend, if it is known.
func (v Plan) expected(b *strings.Builder, p show.Place) {
	if v.ExpectedUSD == nil {
		return
	}
	text := "about " + show.USD(*v.ExpectedUSD)
	if saved := *v.TrialsUSD - *v.ExpectedUSD; saved > 0.005**v.TrialsUSD {
		text += fmt.Sprintf("; %d trials in full would cost %s, %s more", v.Trials, show.USD(*v.TrialsUSD), show.USD(saved))
	}
	p.Fact(b, "expected", "%s", text)
}

// Text formats the plan for people.
func (v Plan) Text(p show.Place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s searches for the best %s, by %s\n", show.Clean(v.Name), show.Clean(v.Metric),
		show.Clean(v.Searcher))
	p.Fact(&b, "trials", "at most %d of %d configurations, %d at once", v.Trials, v.Configs, v.Parallel)
	if len(v.Rungs) > 0 {
		p.Fact(&b, "rungs", "trials are compared after %s", strings.Join(v.Rungs, ", "))
	}
	if v.Prune != "" {
		p.Fact(&b, "prune", "%s", v.Prune)
	}
	if v.Checkpoint != "" {
		p.Fact(&b, "checkpoints", "%s", strings.Replace("every "+show.Clean(v.Checkpoint), "every auto",
			"at the interval that loses least (auto)", 1))
	}
	text := "at most " + v.BudgetS + " begins"
	if v.ExtraUSD != nil {
		text += "; ending it all may add " + show.USD(*v.ExtraUSD)
	}
	p.Fact(&b, "budget", "%s", text)
	if v.GPUHours > 0 {
		p.Fact(&b, "GPU-hours", "%s for all trials; the saves of %[3]s need %[2]s of them", number(v.GPUHours),
			number(v.GPUKept), draw.Count(v.Parallel, "trial"))
	}
	if v.Wall != "" {
		p.Fact(&b, "wall clock", "%s: nothing begins that would end later", v.Wall)
	}
	if v.Proxy != "" {
		p.Fact(&b, "proxy", "%s", show.Clean(v.Proxy))
	}
	if v.Plateau != "" {
		p.Fact(&b, "plateau", "%s", v.Plateau)
	}
	if v.Past > 0 {
		p.Fact(&b, "warm start", "%s of earlier searches, which cost this one nothing", draw.Count(v.Past, "configuration"))
	}
	if v.WorstUSD != nil {
		p.Fact(&b, "worst", "%s: trials that run when the budget is spent save first", show.USD(*v.WorstUSD))
	}
	if v.FullUSD != nil {
		p.Fact(&b, "in full", "%s for one configuration (median); the budget pays for %s of them", show.USD(*v.FullUSD),
			number(*v.FullRuns))
		p.Fact(&b, "", "all %d in full would cost %s; another $20 would pay for %s more", v.Configs, show.USD(*v.AllUSD),
			number(*v.OneMore))
		v.expected(&b, p)
	} else {
		p.Fact(&b, "in full", "nobody knows what one configuration costs: give work in the job file")
	}
	if v.Final {
		p.Fact(&b, "final", "money for one full training is held back for the best configuration")
	}
	for _, n := range v.Notes {
		p.Fact(&b, "note", "%s", show.Clean(n))
	}
	for _, n := range v.Warnings {
		p.Fact(&b, "check", "%s", show.Clean(n))
	}
	return b.String()
}
