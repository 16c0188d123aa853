package incident

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

const (
	// Step is the factor by which one dismissed incident raises the threshold of its kind in its team. One that is
	// confirmed lowers it by the same factor.
	Step = 1.25
	// MostRaised bounds the dismissed incidents less the confirmed ones: the factor is 2.44 at most.
	MostRaised = 4
	// MostLowered bounds the confirmed incidents less the dismissed ones: the factor is 0.64 at least.
	MostLowered = 2
)

// Answer is what somebody said about an incident. A newer answer about the same incident replaces it.
type Answer struct {
	Name      string // of the incident
	Kind      Kind
	Team      string
	At        time.Time
	Confirmed bool // it was a problem; else it was dismissed
}

// Settings is what people have said about incidents.
type Settings struct {
	Answers []Answer
	Plans   []Plan
	// Until is the present: an incident that costs nothing any more ends, though no later row shows that. Zero: the end
	// of the last row.
	Until time.Time
}

// Count counts the newest answers, as of a time, about the incidents of a kind in a team.
func (s *Settings) Count(kind Kind, team string, now time.Time) (dismissed, confirmed int) {
	newest := map[string]Answer{}
	for _, a := range s.Answers {
		if a.Kind != kind || a.Team != team || a.At.After(now) {
			continue
		}
		if old, known := newest[a.Name]; !known || !a.At.Before(old.At) {
			newest[a.Name] = a
		}
	}
	for _, a := range newest {
		if a.Confirmed {
			confirmed++
		} else {
			dismissed++
		}
	}
	return dismissed, confirmed
}

// Factor returns the factor of a threshold after answers about incidents of its kind and team.
func Factor(dismissed, confirmed int) float64 {
	return math.Pow(Step, float64(max(-MostLowered, min(dismissed-confirmed, MostRaised))))
}

// turn is a threshold's factor from a time on.
type turn struct {
	at     time.Time
	factor float64
}

// turns returns the factors of each kind and team over time.
func (s *Settings) turns() map[[2]string][]turn {
	of, newest, count := map[[2]string][]turn{}, map[[3]string]bool{}, map[[2]string]*[2]int{}
	sorted := slices.Clone(s.Answers)
	slices.SortStableFunc(sorted, func(a, b Answer) int { return a.At.Compare(b.At) })
	side := map[bool]int{true: 1}
	for _, a := range sorted {
		k, incident := [2]string{string(a.Kind), a.Team}, [3]string{string(a.Kind), a.Team, a.Name}
		n := at(count, k)
		if old, known := newest[incident]; known {
			n[side[old]]--
		}
		n[side[a.Confirmed]]++
		newest[incident] = a.Confirmed
		of[k] = append(of[k], turn{a.At, Factor(n[0], n[1])})
	}
	return of
}

// factor returns the factor of a threshold. While an alert is open it stays as it was when the alert was found, so an
// answer does not end the incident.
func (w *watch) factor(kind Kind, team, about string) float64 {
	list, at := w.turns[[2]string{string(kind), team}], w.now
	if len(list) == 0 {
		return 1
	}
	if f := w.open[key{kind, team, about}]; f != nil {
		at = f.Found
	}
	return factorAt(list, at)
}

func factorAt(list []turn, at time.Time) float64 {
	for _, t := range slices.Backward(list) {
		if !t.at.After(at) {
			return t.factor
		}
	}
	return 1
}

// over returns a limit that is a factor of the usual, such as 1.5, with its part above 1 scaled.
func over(limit, factor float64) float64 { return 1 + (limit-1)*factor }

// longer scales a span.
func longer(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor).Round(time.Second)
}

// Threshold returns the condition of a kind at a factor, in words.
func Threshold(kind Kind, factor float64) string {
	times := func(limit float64) string { return fmt.Sprintf("%.3g times", over(limit, factor)) }
	minutes := func(d time.Duration) string { return fmt.Sprintf("%.3g min", longer(d, factor).Minutes()) }
	switch kind {
	case IdleMachine:
		return fmt.Sprintf("no task for %s, and for %s as long as usual", minutes(idleLeast), times(2))
	case OrphanVolume:
		return fmt.Sprintf("without a machine for %s, and for %s as long as usual", minutes(orphanLeast), times(2))
	case Interruptions:
		return fmt.Sprintf("%.0f attempts of a job in an hour, or of a team more than %s as many as in any hour before",
			math.Ceil(stormLeast*factor), times(2))
	case RunawayTrials:
		return fmt.Sprintf("more jobs than %s the largest group before, and than %.0f", times(trialsMore),
			math.Floor(trialsLeast*factor))
	case PriceJump:
		return fmt.Sprintf("%s the median price of a week", times(priceJump))
	case FallBack:
		return fmt.Sprintf("attempts on on-demand, e^%.3g times likelier in a fall-back than by chance", fallSure*factor)
	case TransferStorm, Spend:
		return fmt.Sprintf("%s the cost of any hour before", times(2))
	case OtherMachine:
		return fmt.Sprintf("%s the hourly cost of any earlier run", times(dearerBy))
	case LongRun:
		return fmt.Sprintf("%s the machine time of the longest run", times(longerBy))
	case CostCreep:
		return fmt.Sprintf("ten runs that lie %.3g standard deviations above earlier ones in sum, and cost %.3g %% more",
			creepSum*factor, 100*(over(creepRise, factor)-1))
	case Stall:
		return fmt.Sprintf("accelerators busy for less than 1/%.3g of their usual share", 3*factor)
	case Unpriced:
		return fmt.Sprintf("no price for %s", minutes(unpricedFor))
	}
	return ""
}

// Name returns the name of an alert: the same for each search that finds it.
func (a *Alert) Name() string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%d", a.Kind, a.Team, a.About, a.Currency, a.Since.Unix())
	return fmt.Sprintf("a-%010x", h.Sum64()&0xff_ffff_ffff)
}

// Plan is a span in which somebody expects unusual spending. Its rows count as planned, and what begins or is found in
// it is marked as planned.
type Plan struct {
	Since, Until time.Time
	Team         string // "": of all teams
	Project      string // "": of all projects
	Job          string // a job, a group, or the name that the runs of a recurring job share; "": of all jobs
}

// has reports whether a time is in the span of the plan.
func (p *Plan) has(t time.Time) bool { return !t.Before(p.Since) && t.Before(p.Until) }

// covers reports whether the plan concerns the owner of a row.
func (p *Plan) covers(r *Row) bool {
	return (p.Team == "" || p.Team == r.Team) && (p.Project == "" || p.Project == r.Project) &&
		(p.Job == "" || p.Job == r.Job || p.Job == r.Group || p.Job == r.Series)
}

// planned reports whether a plan covers a row at a time. Rows of a machine between jobs belong to its last job.
func (w *watch) planned(r *Row, at time.Time) bool {
	if len(w.plans) == 0 {
		return false
	}
	if r.Job != "" {
		w.owners[r.Job] = r
		if r.Instance != "" {
			w.holders[r.Instance] = r
		}
	} else if last := w.holders[r.Instance]; last != nil && last.Team == r.Team {
		r = last
	}
	return slices.ContainsFunc(w.plans, func(p Plan) bool { return p.has(at) && p.covers(r) })
}

// expected reports whether a plan covers an alert: in all that the alert is about, or in all of its jobs.
func (w *watch) expected(a *Alert) bool {
	whole := Row{Team: a.Team, Project: a.Project, Job: a.About}
	for i := range w.plans {
		p := &w.plans[i]
		if !p.has(a.Since) && !p.has(a.Found) {
			continue
		}
		if p.covers(&whole) {
			return true
		}
		if len(a.Jobs) > 0 && !slices.ContainsFunc(a.Jobs, func(j string) bool {
			return w.owners[j] == nil || !p.covers(w.owners[j])
		}) {
			return true
		}
	}
	return false
}
