package sizing

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// MeasuredRuns formats the table of runs that estimates learn from, newest first.
func MeasuredRuns(runs []runhistory.Run, chips hardware.Chips, most int, p show.Place) string {
	if len(runs) == 0 {
		return draw.Wrap("", "No measured runs yet. A finished run that reported its steps is one; scrimp profile "+
			"measures one in a few minutes.", p.Columns())
	}
	all := len(runs)
	if most > 0 && all > most {
		runs = runs[:most]
	}
	var rows [][]string
	taught := 0
	for _, r := range runs {
		machine := r.Machine
		if r.Accelerators > 0 {
			machine = fmt.Sprintf("%d × %s", r.Accelerators, r.Accelerator)
		}
		pace, rate, work, memory := "-", "-", "-", "-"
		if r.StepsPerHour != nil {
			pace = show.Digits(*r.StepsPerHour)
		}
		if r.Throughput != nil {
			rate = show.Digits(*r.Throughput) + " " + r.Unit
		}
		if r.WorkS != nil {
			work = show.Seconds(*r.WorkS)
		}
		if r.PeakMemory != nil {
			memory = show.Digits(*r.PeakMemory)
		}
		teaches := "-"
		if _, ok := r.Row(chips); ok {
			teaches = "yes"
			taught++
		}
		rows = append(rows, []string{r.Job, r.Finished.Format("2006-01-02"), show.OrDash(machine), pace, work, rate, memory,
			costOf(r), teaches})
	}
	s := draw.Grid([]draw.Column{
		{Name: "JOB", Key: true}, {Name: "OVER", Leaves: 3}, {Name: "MACHINE", Least: 8}, {Name: "STEPS/H", Right: true},
		{Name: "ALL TAKES", Right: true},
		{Name: "THROUGHPUT", Right: true}, {Name: "GB", Right: true, Leaves: 1}, {Name: "COST", Right: true, Leaves: 2},
		{Name: "LEARNED", Right: true, Leaves: 4},
	}, rows, p.Columns())
	if len(runs) < all {
		s += draw.Wrap("", fmt.Sprintf("%d more: --limit 0 shows all.", all-len(runs)), p.Columns())
	}
	s += draw.Wrap("", "Steps and time are of a machine of speed 1. Plans and checks of a job use "+
		"its newest runs.", p.Columns())
	if taught < len(runs) {
		s += draw.Wrap("", "LEARNED: other models and machines are estimated from it. That takes model and work.tokens "+
			"or work.samples in the job file, and an accelerator.", p.Columns())
	}
	return s
}

// costOf formats the cost of a run, with more digits below a cent.
func costOf(r runhistory.Run) string {
	places := 2
	if v := r.Cost.Float(); v > 0 && v < 0.01 {
		places = 6
	}
	currency := r.Currency
	if currency == "" {
		currency = money.USD
	}
	return money.Format(r.Cost, currency, places)
}

// History holds the estimates of runs beside their results.
type History struct {
	LeftOut []estimate.Error    // of runs in tables, and of the user's own
	Missed  []runhistory.Missed // by kind
	Pairs   []runhistory.Pair   // newest first
}

// Text formats the past errors for people.
func (v History) Text(most int, p show.Place) string {
	if len(v.LeftOut) == 0 && len(v.Pairs) == 0 {
		return draw.Wrap("", "Nothing can be compared yet: no run is over that says what was expected of it (work.time, "+
			"a deadline, or model with work.tokens or work.samples) and showed its steps, and no table of measured runs is "+
			"given with --calibrate.", p.Columns())
	}
	var b strings.Builder
	percent := func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
	if len(v.Pairs) > 0 {
		var rows [][]string
		for _, m := range v.Missed {
			within := "-"
			if m.Within != nil {
				within = fmt.Sprintf("%.0f %%", 100**m.Within)
			}
			rows = append(rows, []string{m.What, m.Kind, fmt.Sprint(m.Runs), percent(m.Median), percent(m.Mean),
				fmt.Sprintf("%+.1f %%", 100*m.Bias), within})
		}
		b.WriteString(draw.Wrap("", "Your runs: what was expected when they were submitted, against what came out",
			p.Columns()))
		b.WriteString(draw.Grid([]draw.Column{
			{Name: "OF", Least: 6}, {Name: "KIND", Least: 8}, {Name: "RUNS", Right: true}, {Name: "MEDIAN", Right: true},
			{Name: "MEAN", Right: true}, {Name: "TOO MUCH", Right: true}, {Name: "IN RANGE", Right: true, Leaves: 1},
		}, rows, p.Columns()))
		left, list := 0, v.Pairs
		if most > 0 && len(list) > most {
			left, list = len(list)-most, list[:most]
		}
		rows = nil
		for _, x := range list {
			of := x.What
			if of == "throughput" {
				of = x.Unit
			}
			rows = append(rows, []string{x.Job, x.Finished.Format("2006-01-02"), of, amountOf(x, x.Expected),
				amountOf(x, x.Actual), fmt.Sprintf("%+.1f %%", 100*(x.Expected/x.Actual-1))})
		}
		b.WriteString("\n" + draw.Grid([]draw.Column{
			{Name: "JOB", Key: true}, {Name: "OVER", Leaves: 1}, {Name: "OF", Least: 6}, {Name: "EXPECTED", Right: true},
			{Name: "CAME OUT", Right: true}, {Name: "TOO MUCH", Right: true},
		}, rows, p.Columns()))
		if left > 0 {
			b.WriteString(draw.Wrap("", fmt.Sprintf("%d more: --limit 0 shows all.", left), p.Columns()))
		}
		b.WriteString(draw.Wrap("", "Hours are of all the work on a machine of speed 1, as the job file or earlier runs "+
			"said; dollars as expected at the first decision, or else that work at the price of the first machine; "+
			"throughput as it could have been estimated then.", p.Columns()))
	}
	if len(v.LeftOut) > 0 {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(Accuracy(v.LeftOut, p))
	}
	return b.String()
}

// amountOf formats a value of a pair.
func amountOf(x runhistory.Pair, v float64) string {
	if x.What == "dollars" {
		return show.USD(v)
	}
	return show.Digits(v)
}

// Accuracy formats the table of past errors by kind, for runs that were left out of the fit.
func Accuracy(list []estimate.Error, p show.Place) string {
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{e.What, e.LeftOut, e.Kind, fmt.Sprint(e.Runs), fmt.Sprint(e.Groups),
			fmt.Sprintf("%.1f %%", 100*e.Median), fmt.Sprintf("%.1f %%", 100*e.Mean), fmt.Sprintf("%.0f %%", 100*e.Covered)})
	}
	return draw.Grid([]draw.Column{
		{Name: "OF", Least: 6}, {Name: "LEFT OUT", Least: 6}, {Name: "KIND", Least: 8}, {Name: "RUNS", Right: true},
		{Name: "GROUPS", Right: true, Leaves: 1},
		{Name: "MEDIAN", Right: true}, {Name: "MEAN", Right: true}, {Name: "IN RANGE", Right: true},
	}, rows, p.Columns()) + draw.Wrap("", "Each run is estimated as if its group had not been measured. Stack: runs of "+
		"one program, task, model and accelerator; source: all of one source.", p.Columns())
}
