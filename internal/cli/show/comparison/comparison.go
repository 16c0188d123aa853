// Package comparison shows scrimp ab: the runs of a job unchanged and with a change, and their plan.
package comparison

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/work/ab"
)

// Units of a run's time, the most precise first.
const (
	PerEpoch = "s/epoch"
	PerStep  = "s/step"
	PerRun   = "s/run"
)

// Memory series of a run, the preferred one first: of the GPU, or of the program's processes.
const (
	OfGPU     = "gpu_memory_used_bytes"
	OfProgram = "task_memory_bytes"
)

// Run is a run of a comparison.
type Run struct {
	Seed   int          `json:"seed"`
	Job    string       `json:"job,omitempty"` // empty before the run starts
	State  string       `json:"state"`
	Why    string       `json:"why,omitempty"`
	Value  *float64     `json:"value"` // of the metric at its end; null if it is open or reported none
	Cost   money.Amount `json:"cost"`
	Closed bool         `json:"closed"`

	NoNumber bool               `json:"-"` // its last value of the metric is NaN or infinite
	Reported []string           `json:"-"` // reported metrics
	Times    map[string]float64 `json:"times,omitempty"`
	Memory   map[string]float64 `json:"peak_memory_bytes,omitempty"`
}

// Arm is one of the two variants. Means are over the complete pairs; null means unknown.
type Arm struct {
	Name     string        `json:"name"`
	Runs     []Run         `json:"runs"`
	Mean     *float64      `json:"mean"`
	Least    *float64      `json:"least"`
	Most     *float64      `json:"most"`
	Time     *float64      `json:"time"`
	TimeUnit string        `json:"time_unit,omitempty"`
	Memory   *float64      `json:"peak_memory_bytes"` // highest ten-second mean
	MemoryOf string        `json:"memory_of,omitempty"`
	Cost     *money.Amount `json:"cost"` // per run
}

// Comparison is the state of a comparison.
type Comparison struct {
	Group    string         `json:"group"`
	Baseline string         `json:"baseline"`
	Metric   string         `json:"metric,omitempty"` // the displayed metric, even if none is judged
	Design   ab.Design      `json:"design"`
	State    string         `json:"state"`
	Closed   bool           `json:"closed"`
	Arms     [2]Arm         `json:"arms"`
	Complete int            `json:"complete_pairs"`
	Currency money.Currency `json:"currency"`
	Spent    money.Amount   `json:"spent"`

	Pairs      int         `json:"judged_pairs"`
	Difference *float64    `json:"difference"` // the change minus the baseline
	Low        *float64    `json:"low"`        // of its interval; null if the pairs do not bound it
	High       *float64    `json:"high"`
	Allowed    *float64    `json:"allowed"` // how much worse the change may be, in units of the metric
	Error      float64     `json:"error"`   // maximum probability of a false verdict
	Verdict    *ab.Verdict `json:"verdict"` // null if quality is not judged
	Why        string      `json:"why"`
	// Decided means that further runs are useless; Failed, that a run failed or lacks the metric.
	Decided bool `json:"decided"`
	Failed  bool `json:"failed"`
	// MorePairs would probably decide, in a new comparison; null if unknown.
	MorePairs *int          `json:"more_pairs"`
	MoreCost  *money.Amount `json:"more_cost"`

	Saving     *money.Amount `json:"saving_per_run"`
	Saving1000 *money.Amount `json:"saving_per_1000_runs"`
}

// Sum computes the results from the runs.
func (v *Comparison) Sum() {
	base, change := &v.Arms[0], &v.Arms[1]
	done, pairs := v.done()
	v.Complete, v.Error = len(done[0]), ab.Error
	for i := range v.Arms {
		v.Arms[i].sum(done[i], done[0], done[1], v.Metric != "")
	}
	r := ab.Judge(v.Design, pairs)
	v.Pairs, v.Why, v.Decided = r.Pairs, r.Why, r.Over
	if v.Design.Metric != "" {
		v.Verdict = &r.Verdict
	}
	if v.Design.Metric != "" && len(pairs) > 0 {
		v.Difference, v.Low, v.High, v.Allowed = &r.Difference, r.Low, r.High, &r.Allowed
	}
	if base.Cost != nil && change.Cost != nil {
		var sum money.Amount
		for i := range done[0] {
			sum = sum.Add(done[0][i].Cost).Sub(done[1][i].Cost)
		}
		v.Saving, v.Saving1000 = new(sum.Over(len(done[0]))), new(sum.Times(1000).Over(len(done[0])))
	}
	if r.Verdict == ab.CannotTell && r.More > 0 && len(pairs) > 0 {
		v.MorePairs = &r.More
		if base.Cost != nil {
			v.MoreCost = new(base.Cost.Add(*change.Cost).Times(r.More))
		}
	}
	v.broken()
}

// done returns the runs of both arms up to the first pair that has not succeeded, because pairs count in the order of
// their seeds, and the metric of those of them that have it.
func (v *Comparison) done() (done [2][]Run, pairs []ab.Pair) {
	base, change := v.Arms[0].Runs, v.Arms[1].Runs
	for i := range min(len(base), len(change)) {
		b, c := base[i], change[i]
		if !b.succeeded() || !c.succeeded() {
			break
		}
		done[0], done[1] = append(done[0], b), append(done[1], c)
		if b.Value != nil && c.Value != nil {
			pairs = append(pairs, ab.Pair{Seed: b.Seed, Base: *b.Value, Other: *c.Value})
		}
	}
	return done, pairs
}

// succeeded reports whether a run is over and succeeded.
func (r *Run) succeeded() bool { return r.Closed && r.State == "succeeded" }

// broken reports a run that failed or did not report the metric. Such a comparison has no verdict, because failures are
// not chance.
func (v *Comparison) broken() {
	if v.Verdict != nil && *v.Verdict != ab.CannotTell {
		return
	}
	for i := range v.Arms {
		for _, r := range v.Arms[i].Runs {
			why := ""
			switch {
			case r.succeeded() && r.Value == nil && v.Design.Metric != "":
				why = r.unreported(v.Design.Metric)
			case r.Closed && r.State != "succeeded" && r.State != "cancelled":
				why = fmt.Sprintf("the run of the %s with seed %d has %s", v.Arms[i].Name, r.Seed, show.Words(r.State))
				if r.Why != "" {
					why += " (" + r.Why + ")"
				}
			}
			if why != "" {
				v.Failed, v.Decided, v.Why, v.MorePairs, v.MoreCost = true, true, why, nil, nil
				return
			}
		}
	}
}

// unreported says what a run has reported instead of a number for the metric.
func (r *Run) unreported(metric string) string {
	slices.Sort(r.Reported)
	none := fmt.Sprintf("%s has reported no %s that is a number: ", r.Job, metric)
	switch {
	case r.NoNumber:
		return fmt.Sprintf("the %s that %s has reported is not a number, but nan or infinite", metric, r.Job)
	case len(r.Reported) > 0:
		return none + "it has reported " + strings.Join(r.Reported, ", ")
	}
	return none + "none at all, or nan"
}

// sum computes an arm's figures from the runs of complete pairs.
func (x *Arm) sum(runs, base, change []Run, known bool) {
	if len(runs) == 0 {
		return
	}
	n := float64(len(runs))
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	var cost money.Amount
	for _, r := range runs {
		cost = cost.Add(r.Cost)
		if known = known && r.Value != nil; known {
			sum, least, most = sum+*r.Value, min(least, *r.Value), max(most, *r.Value)
		}
	}
	if x.Cost = new(cost.Over(len(runs))); known {
		x.Mean, x.Least, x.Most = new(sum/n), &least, &most
	}
	all := slices.Concat(base, change) // both arms use one unit
	for _, unit := range []string{PerEpoch, PerStep, PerRun} {
		if !slices.ContainsFunc(all, func(r Run) bool { return r.Times[unit] == 0 }) {
			mean := 0.0
			for _, r := range runs {
				mean += r.Times[unit] / n
			}
			x.Time, x.TimeUnit = &mean, unit
			break
		}
	}
	for _, of := range []string{OfGPU, OfProgram} {
		if !slices.ContainsFunc(all, func(r Run) bool { return r.Memory[of] == 0 }) {
			peak := 0.0
			for _, r := range runs {
				peak = max(peak, r.Memory[of])
			}
			x.Memory, x.MemoryOf = &peak, of
			break
		}
	}
}

// Progress formats a comparison as one line.
func (v Comparison) Progress() string {
	over := 0
	for i := range v.Arms {
		for _, r := range v.Arms[i].Runs {
			if r.Closed && r.State == "succeeded" {
				over++
			}
		}
	}
	line := fmt.Sprintf("%s: %d of %s over, %s", show.Clean(v.Group), over, draw.Count(2*v.Design.Pairs, "run"),
		money.Format(v.Spent, v.Currency, 4))
	if v.State == "awaits_approval" {
		line += ", waits for approval"
	}
	if v.Decided && !v.Closed {
		line += "; " + show.Clean(v.Why) + ", so what is left is cancelled"
	}
	return line
}

// Text formats a comparison for people.
func (v Comparison) Text(p show.Place) string {
	var b strings.Builder
	d := v.Design
	b.WriteString(draw.Wrap("", fmt.Sprintf("%s: %s against the same with %s", show.Clean(v.Group), show.Clean(v.Baseline),
		show.Clean(strings.Join(d.Set, ", "))), p.Columns()))
	b.WriteString(v.table(p))
	b.WriteString("\n")
	p.Fact(&b, "pairs", "%d of %d complete, %s spent", v.Complete, d.Pairs, money.Format(v.Spent, v.Currency, 6))
	if v.Difference != nil {
		text := figure(*v.Difference)
		if v.Low != nil && v.High != nil {
			text += fmt.Sprintf(" (95 %%: %s to %s)", figure(*v.Low), figure(*v.High))
		} else {
			text += fmt.Sprintf(" (no interval: it takes %d pairs or more)", ab.MinPairs)
		}
		p.Fact(&b, "difference", "%s; the tolerance allows %s", text, allowed(d, *v.Allowed))
	}
	if v.Arms[0].TimeUnit == PerRun {
		p.Fact(&b, "time", "of whole runs: not all of them reported epochs, or steps, over ten seconds or more")
	}
	verdict := "not judged"
	if v.Verdict != nil {
		verdict = strings.ReplaceAll(string(*v.Verdict), "_", " ")
	}
	p.Fact(&b, "verdict", "%s: %s", verdict, v.Why)
	if v.MorePairs != nil && v.Decided {
		v.more(&b, p)
	}
	switch {
	case v.Saving == nil:
		p.Fact(&b, "saving", "unknown: no pair is complete")
	case v.Saving.Sign() < 0:
		p.Fact(&b, "saving", "none: the change costs %s more a run, %s more in 1,000",
			money.Format(v.Saving.Neg(), v.Currency, 6), money.Short(v.Saving1000.Neg(), v.Currency))
	default:
		p.Fact(&b, "saving", "%s a run, %s in 1,000", money.Format(*v.Saving, v.Currency, 6),
			money.Short(*v.Saving1000, v.Currency))
	}
	return b.String()
}

// more writes how many more pairs would probably decide.
func (v Comparison) more(b *strings.Builder, p show.Place) {
	cost, n := "", *v.MorePairs
	if v.MoreCost != nil {
		cost = ", and cost about " + money.Short(*v.MoreCost, v.Currency)
	}
	if n > ab.MaxPairs {
		p.Fact(b, "more", "%d more pairs would probably tell%s. A comparison has at most %d: a larger tolerance needs fewer",
			n, cost, ab.MaxPairs)
		return
	}
	p.Fact(b, "more", "%d more pairs tell with a probability of 80 %%%s: --seeds %d --first-seed %d", n, cost, n,
		v.Design.First+v.Design.Pairs)
}

// table has a row for each arm.
func (v Comparison) table(p show.Place) string {
	quality := "QUALITY"
	if v.Metric != "" {
		quality = strings.ToUpper(show.Clean(v.Metric))
	}
	var rows [][]string
	for _, x := range v.Arms {
		row := []string{x.Name, "-", "-", "-", "-", "-"}
		if x.Mean != nil {
			row[1], row[2] = figure(*x.Mean), figure(*x.Least)+" to "+figure(*x.Most)
		}
		if x.Time != nil {
			row[3] = figure(*x.Time) + " " + x.TimeUnit
		}
		if x.Memory != nil {
			row[4] = size.About(*x.Memory)
		}
		if x.Cost != nil {
			row[5] = money.Format(*x.Cost, v.Currency, 6)
		}
		rows = append(rows, row)
	}
	return draw.Grid([]draw.Column{{Name: "ARM", Key: true}, {Name: quality, Right: true}, {Name: "OVER SEEDS"},
		{Name: "TIME", Right: true}, {Name: "PEAK MEMORY", Right: true, Leaves: 1}, {Name: "COST OF A RUN", Right: true}},
		rows, p.Columns())
}

// allowed formats how much worse the change may be.
func allowed(d ab.Design, mean float64) string {
	way := "more"
	if d.Maximize {
		way = "less"
	}
	text := figure(mean) + " " + way
	if d.Relative {
		text += fmt.Sprintf(" (%g %% of the baseline)", 100*d.Tolerance)
	}
	return text
}

// figure formats a measured value with at most five digits.
func figure(v float64) string { return fmt.Sprintf("%.5g", v) }
