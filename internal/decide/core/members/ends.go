package members

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/work/groups"
)

// used says how much of a limit a group has used when it ends by it, and why it does not use the rest. Its planner may
// say what it lacks.
func (ms *Members) used(g *state.Group, why string, short *groups.Shortage) string {
	switch why {
	case step.NoValues:
		return ms.withoutValues(g)
	case step.HoursSpent:
		return ms.hoursUsed(g, short)
	case step.TimeSpent:
		wall, _ := g.Terms.Limits()
		passed := min(ms.Now().Sub(g.Opened), wall)
		text := fmt.Sprintf("%s of %s have passed", passed.Round(time.Second), wall)
		if g.Study == nil || passed == wall {
			return text
		}
		return text + lacks(g, short, func(hours float64) string {
			return quantity.Hours(hours).Round(time.Second).String()
		})
	case step.BudgetSpent:
		in := func(a money.Amount) string { return money.Short(a, g.Terms.Member.Currency) }
		spent := ms.GroupSpent(g, ms.Now())
		text := fmt.Sprintf("%s of %s is spent", in(spent), in(g.Terms.Budget))
		rest := g.Terms.Budget.Sub(spent)
		if rest.Sign() <= 0 {
			return text
		}
		if least := ms.LeastOfTrial(g.Terms.Member); rest.Cmp(least) < 0 {
			return text + fmt.Sprintf(", and a trial that begins or goes on needs %s for starts and saves", in(least))
		}
		return text + lacks(g, short, func(dollars float64) string {
			return money.ShortFloat(dollars, g.Terms.Member.Currency)
		})
	}
	return ""
}

// hoursUsed says how much of its limit on GPU-hours a group has used.
func (ms *Members) hoursUsed(g *state.Group, short *groups.Shortage) string {
	_, limit := g.Terms.Limits()
	used, gpus := ms.GPUTime(g, ms.Now())
	text := fmt.Sprintf("%.3g of %.3g GPU-hours are used", used.Hours(), limit)
	saves := quantity.Times(g.Terms.Grace, gpus).Hours()
	switch {
	case saves > 0 && limit > used.Hours() && limit-used.Hours() <= saves*(1+1e-9):
		return text + fmt.Sprintf(", and saving on %s takes up to %.3g", step.Count(gpus, "GPU"), saves)
	case g.Study == nil || used.Hours() >= limit:
		return text
	}
	return text + lacks(g, short, func(hours float64) string { return fmt.Sprintf("%.3g", hours) })
}

// lacks says why a study ends before it has used up a limit.
func lacks(g *state.Group, s *groups.Shortage, of func(float64) string) string {
	if s == nil || math.IsNaN(s.Left) || math.IsNaN(s.Kept) || math.IsNaN(s.Needs) {
		return ", and the rest is too little for another unit of training"
	}
	text := ""
	if s.Kept > 0 {
		text = fmt.Sprintf(", %s is kept to train another trial in full that becomes the best", of(s.Kept))
	}
	what := "another unit of training"
	switch {
	case s.Full && g.Study.Promoted() == 0:
		what = "a full training"
	case s.Full:
		what = "another full training"
	}
	if s.Needs <= 0 {
		return text + fmt.Sprintf(", and the rest, %s, is too little for %s", of(max(0, s.Left)), what)
	}
	return text + fmt.Sprintf(", and %s may need %s of the rest, %s", what, of(s.Needs), of(max(0, s.Left)))
}

// withoutValues says how the trials of a study ended that has no value of its metric, and what to do.
func (ms *Members) withoutValues(g *state.Group) string {
	failed, last, causes := 0, "", map[string]int{}
	for n := range g.Began {
		if j := ms.State.Job(g.MemberID(n)); j != nil && j.State() == state.Failed {
			failed, last = failed+1, j.ID()
			cause := strings.ReplaceAll(j.Why(), "_", " ")
			if j.Exit() != 0 {
				cause = fmt.Sprintf("exit status %d", j.Exit())
			}
			causes[cause]++
		}
	}
	text := fmt.Sprintf("%s have begun, and none has reported a value of %s", step.Count(g.Began, "trial"),
		g.Terms.Study.Metric)
	if failed == 0 {
		return text + fmt.Sprintf(": let progress.pattern match what the program prints; scrimp logs %s shows it",
			g.MemberID(g.Began-1))
	}
	var list []string
	for _, cause := range slices.SortedFunc(maps.Keys(causes), func(a, b string) int {
		return cmp.Or(cmp.Compare(causes[b], causes[a]), cmp.Compare(a, b))
	}) {
		list = append(list, fmt.Sprintf("%d with %s", causes[cause], cause))
	}
	how := ", " + strings.Join(list, ", ")
	if len(list) == 1 {
		how = strings.TrimPrefix(list[0], strconv.Itoa(failed))
	}
	return text + fmt.Sprintf("; %d failed%s: correct the command or the space, and start the search again; scrimp logs "+
		"%s shows why the newest failed", failed, how, last)
}
