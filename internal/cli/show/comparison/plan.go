package comparison

import (
	"fmt"
	"math"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/ab"
)

// Plan holds the expected cost of a comparison and the power of its pairs, before it spends anything. null means
// unknown.
type Plan struct {
	Name     string         `json:"name"`
	Baseline string         `json:"baseline"`
	Design   ab.Design      `json:"design"`
	Runs     int            `json:"runs"`
	Each     [2]*[3]float64 `json:"run_usd"`   // per run of the baseline and of the change: 10 %, median, 90 %
	AllUSD   *float64       `json:"all_usd"`   // sum of the medians of all runs
	Budget   *string        `json:"budget"`    // for all runs; null if none was given
	PaidFor  *int           `json:"paid_for"`  // number of pairs that the budget pays for
	CanTell  *bool          `json:"can_tell"`  // of differences, relative to the tolerance, at which 80 % decide
	Scatter  *float64       `json:"scatter"`   // smallest number with a verdict
	MinPairs int            `json:"min_pairs"` // smallest number that can give a verdict
	Unfit    string         `json:"unfit,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
}

// Total computes the cost of all runs, if both arms have an estimate, and the power of the pairs.
func (v *Plan) Total(budget *money.Amount) {
	v.MinPairs = ab.MinPairs
	if v.Each[0] != nil && v.Each[1] != nil {
		pair := v.Each[0][1] + v.Each[1][1]
		v.AllUSD = new(pair * float64(v.Design.Pairs))
		if budget != nil && pair > 0 {
			v.PaidFor = new(int(math.Min(budget.Float()/pair, float64(v.Design.Pairs))))
		}
	}
	if v.Design.Metric != "" {
		ratio, can := ab.Reach(v.Design.Pairs)
		if v.CanTell = &can; can {
			scatter := 1 / ratio
			v.Scatter = &scatter
		}
	}
}

// never returns the sentence for too few pairs.
func never(pairs int) string {
	if pairs == 1 {
		return "1 pair never tells"
	}
	return fmt.Sprintf("%d pairs never tell", pairs)
}

// Text formats the plan for people.
func (v Plan) Text(p show.Place) string {
	var b strings.Builder
	d := v.Design
	b.WriteString(draw.Wrap("", fmt.Sprintf("%s compares %s with the same job with %s", show.Clean(v.Name),
		show.Clean(v.Baseline), show.Clean(strings.Join(d.Set, ", "))), p.Columns()))
	seeds := fmt.Sprintf("seed %d", d.First)
	if d.Pairs > 1 {
		seeds = fmt.Sprintf("seeds %d to %d", d.First, d.First+d.Pairs-1)
	}
	p.Fact(&b, "runs", "%s of two runs, with %s; both runs of a pair at once", draw.Count(d.Pairs, "pair"), seeds)
	for i, name := range []string{"baseline", "change"} {
		if x := v.Each[i]; x != nil {
			p.Fact(&b, name, "%s a run (%s to %s)", show.USD(x[1]), show.USD(x[0]), show.USD(x[2]))
		} else {
			p.Fact(&b, name, "nobody knows what a run costs: give work in the job file, or run it once")
		}
	}
	if v.AllUSD != nil {
		p.Fact(&b, "all", "about %s for %s", show.USD(*v.AllUSD), draw.Count(v.Runs, "run"))
	}
	if v.Budget != nil {
		p.Fact(&b, "budget", "%s for all runs together", *v.Budget)
	} else {
		p.Fact(&b, "budget", "none: give --budget, such as --budget '$20'")
	}
	if v.PaidFor != nil && *v.PaidFor < d.Pairs {
		p.Fact(&b, "", "it pays for about %s of %d", draw.Count(*v.PaidFor, "pair"), d.Pairs)
	}
	switch {
	case v.CanTell == nil:
		p.Fact(&b, "tells", "time, memory and cost; quality is not judged without --tolerance METRIC=AMOUNT")
	case !*v.CanTell:
		p.Fact(&b, "tells", "no verdict: %s with an error of at most %g %%. %d can: --seeds %d", never(d.Pairs),
			100*ab.Error, ab.MinPairs, ab.MinPairs)
	default:
		goal, much := "less", fmt.Sprintf("%g", d.Tolerance)
		if d.Maximize {
			goal = "more"
		}
		if d.Relative {
			much = fmt.Sprintf("%g %% of the baseline's value", 100*d.Tolerance)
		}
		p.Fact(&b, "tells", "whether %s is worse by more than %s (%s is better), with an error of at most %g %%",
			show.Clean(d.Metric), much, goal, 100*ab.Error)
		p.Fact(&b, "", "equal arms are found no worse in 80 %% of such comparisons if the differences of pairs have a "+
			"standard deviation of %.0f %% of the tolerance or less", 100**v.Scatter)
	}
	for _, n := range v.Notes {
		p.Fact(&b, "note", "%s", n)
	}
	return b.String()
}
