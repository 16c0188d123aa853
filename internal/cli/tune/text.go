package tune

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/study"
)

// overFor says why a search of a user's own loop is over.
func overFor(v api.Search) string {
	switch v.Over {
	case "budget_spent":
		if v.Spent == nil || v.Budget == nil || v.Spent.Cmp(*v.Budget) >= 0 {
			return "its budget is spent"
		}
		unit := "trial"
		if f := v.Study.Fidelity; f != nil {
			unit = show.Clean(f.Name)
		}
		return fmt.Sprintf("the rest of its budget, %s, pays for no other %s",
			money.Short(v.Budget.Sub(*v.Spent), money.USD), unit)
	case "search_done":
		return "the searcher has no further trials"
	case "plateau":
		return "another dollar is expected to gain too little"
	}
	return show.Clean(v.Over)
}

// answerText formats what a loop trains next.
func answerText(v api.SearchAnswer) string {
	switch {
	case v.Do == "end":
		return fmt.Sprintf("%s is over: %s\n", show.Clean(v.Search.Name), overFor(v.Search))
	case v.Trial == nil:
		return "nothing to train before another worker tells a value\n"
	}
	t := v.Trial
	text := fmt.Sprintf("trial %d  %s", t.Number, params(t.Params))
	if f := v.Search.Study.Fidelity; f != nil {
		text += fmt.Sprintf("  trained %s, train to %s %s", number(t.At), show.Clean(f.Name), number(t.Until))
	}
	return text + "\n"
}

// spentOn returns the cost of a search.
func spentOn(v api.Search) string {
	if v.Spent == nil {
		return "unknown"
	}
	text := money.Short(*v.Spent, money.USD)
	if v.Budget != nil {
		text += " of " + money.Short(*v.Budget, money.USD)
	}
	return text
}

// bestText formats the best trial of a search of a user's own loop; empty without one.
func bestText(v api.Search) string {
	if v.Best == nil {
		return ""
	}
	var b strings.Builder
	p, t, at := show.Place{}, v.Best, ""
	if f := v.Study.Fidelity; f != nil {
		at = fmt.Sprintf(" at %s %s", show.Clean(f.Name), number(t.BestAt))
	}
	p.Fact(&b, "best", "%s %s%s, by trial %d", show.Clean(v.Study.Metric), number(*t.Best), at, t.Number)
	p.Fact(&b, "parameters", "%s", params(t.Params))
	p.Fact(&b, "trials", "%d, with %s", v.Trials, draw.Count(v.Values, "value"))
	p.Fact(&b, "cost", "%s", spentOn(v))
	if v.Over != "" {
		p.Fact(&b, "over", "%s", overFor(v))
	}
	return b.String()
}

// listText lists searches of users' own loops.
func listText(list []api.Search) string {
	if len(list) == 0 {
		return "no searches: scrimp tune ask study.yaml opens one\n"
	}
	var b strings.Builder
	for _, v := range list {
		state := "open"
		if v.Over != "" {
			state = "over"
		}
		fmt.Fprintf(&b, "%s  %s, %s, %s, cost %s\n", show.Clean(v.Name), state, draw.Count(v.Trials, "trial"),
			draw.Count(v.Values, "value"), spentOn(v))
	}
	return b.String()
}

func params(values map[string]api.Raw) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text := string(values[name])
		var quoted string
		if json.Unmarshal(values[name], &quoted) == nil {
			text = quoted
		}
		list = append(list, show.Clean(name)+"="+show.Clean(text))
	}
	return strings.Join(list, " ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

// pruning says what a searcher does with trials that look poor; empty: it trains each in full.
func pruning(s *study.Spec) string {
	switch s.Searcher {
	case "default":
		return "the next unit goes to the trial with the largest expected gain per dollar; the others pause"
	case "median-stop":
		return "a trial ends once its best value is behind the median of the others' means so far"
	case "asha-stop":
		return "the best third goes on at each rung; the others end"
	case "asha-promo", "hyperband-async":
		return "the best third goes on at each rung; the others pause"
	case "top-k":
		return "each trains one unit until half the budget is spent, then the best go on in full"
	}
	return ""
}
