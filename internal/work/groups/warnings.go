package groups

import (
	"fmt"

	"scrimp/internal/work/study"
)

// Bounds of warnings: several trials must show the same, each with some values.
const (
	warnTrials = 2
	warnValues = 3
)

// Warnings says in sentences what is probably wrong with the trials of a study: they fail, no value arrives, the values
// move away from the goal, or the program trains longer or shorter than the fidelity says. Ignored counts the values
// that were dropped.
func Warnings(spec *study.Spec, trials []Trial, reports []Report, ignored int) (list []string) {
	failed, ended, own := ends(trials, reports)
	if failed >= warnTrials && 2*failed >= ended {
		list = append(list, fmt.Sprintf("%d of the %d trials that have ended failed or were cancelled: scrimp logs TRIAL "+
			"shows why, and scrimp cancel ends the search before others fail", failed, ended))
	}
	silent, heard := 0, false
	for n, t := range trials {
		heard = heard || t.Values > 0 || t.Broken
		if own[n] && t.Values == 0 {
			silent++
		}
	}
	if !heard && silent > 0 {
		list = append(list, noValue(spec, silent, ignored))
	}
	if n := astray(spec, len(trials), reports); n >= warnTrials {
		goal, other := "minimize", "maximize"
		if spec.Maximize {
			goal, other = other, goal
		}
		list = append(list, fmt.Sprintf("%s becomes worse from its first value on in all %d trials with %d values or more: "+
			"is goal %s right, or should it be %s?", spec.Metric, n, warnValues, goal, other))
	}
	return append(append(list, lengths(spec, trials, own)...), poorProxy(spec, trials)...)
}

// ends returns how many trials failed or were cancelled, how many ended, and which of them ended by themselves without
// a failure. A trial whose metric became infinite or not a number is none of the failed.
func ends(trials []Trial, reports []Report) (failed, ended int, own []bool) {
	own = make([]bool, len(trials))
	for _, r := range reports {
		if r.Phase != Over {
			continue
		}
		ended++
		switch {
		case r.Cut:
		case r.Trial >= len(trials):
		case !r.Bad:
			own[r.Trial] = true
		case !trials[r.Trial].Broken:
			failed++
		}
	}
	return failed, ended, own
}

// lengths says that programs train longer or shorter than the fidelity of the study says.
func lengths(spec *study.Spec, trials []Trial, own []bool) (list []string) {
	beyond, full, short, most := 0, 0, 0, 0
	for n, t := range trials {
		if t.Beyond && (spec.Proxy == nil || t.Promoted || spec.Proxy.Max == 0) { // scrimp ends a shorter proxy
			beyond++
		}
		switch {
		case t.Promoted:
		case t.Unit >= spec.Units():
			full++
		case t.Values > 0 && own[n]:
			short, most = short+1, max(most, t.Unit)
		}
	}
	if beyond > 0 {
		list = append(list, fmt.Sprintf("%d of %d trials train beyond %s %g, the end of a full training: let the program "+
			"stop there, or raise fidelity.max", beyond, len(trials), spec.Fidelity.Name, spec.Fidelity.Max))
	}
	if spec.Fidelity.Name != "" && full == 0 && short >= warnTrials {
		list = append(list, fmt.Sprintf("%d trials ended by themselves by %s %g, and none reached %g, the end of a full "+
			"training: let the program train on, or lower fidelity.max", short, spec.Fidelity.Name,
			float64(most)*spec.Fidelity.Min, spec.Length(false).Max))
	}
	return list
}

// noValue says why trials probably have no value.
func noValue(spec *study.Spec, silent, ignored int) string {
	text := fmt.Sprintf("%d trials have ended without a value of %s: ", silent, spec.Metric)
	if silent == 1 {
		text = fmt.Sprintf("a trial has ended without a value of %s: ", spec.Metric)
	}
	if ignored > 0 && spec.Fidelity.Name != "" {
		return text + fmt.Sprintf("the program reports it without %s %g or later; let progress.pattern name the %[1]s too",
			spec.Fidelity.Name, spec.Fidelity.Min)
	}
	return text + "does progress.pattern match what the program prints, and is it a number?"
}

// astray returns the number of trials with enough values, if in all of them the first value is the best and the newest
// is worse. Otherwise it returns 0.
func astray(spec *study.Spec, trials int, reports []Report) (n int) {
	first, best, last := make([]float64, trials), make([]float64, trials), make([]float64, trials)
	count := make([]int, trials)
	for _, r := range reports {
		if r.Phase != "" || r.Bad || r.Trial >= trials {
			continue
		}
		v := r.Value
		if spec.Maximize {
			v = -v
		}
		if count[r.Trial]++; count[r.Trial] == 1 {
			first[r.Trial], best[r.Trial] = v, v
		}
		best[r.Trial], last[r.Trial] = min(best[r.Trial], v), v
	}
	for t := range count {
		switch {
		case count[t] < warnValues:
		case best[t] < first[t] || last[t] <= first[t]:
			return 0
		default:
			n++
		}
	}
	return n
}
