package state

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// Study is the extra state of a group that searches for the best configuration. Trials are its members in the order
// in which they started. Reports only grows.
type Study struct {
	Trials  []groups.Trial  `json:"trials,omitempty"`
	Reports []groups.Report `json:"reports,omitempty"`
	// Ignored counts values that were dropped: repeats of a reported unit (after a restart), values without a unit,
	// and values beyond MaxReports.
	Ignored int `json:"ignored,omitempty"`
	// Flat is the expected gain per dollar at which the search ended because it was too small; nil: it did not.
	Flat *float64 `json:"flat,omitempty"`
	// Promotes is the number of reports after which the money for the trials of its proxy was spent; nil: it is not.
	Promotes *int `json:"promotes,omitempty"`
}

// TrialLeft: a trial of a study is paused or has ended. Spent is its cost so far in dollars, for the searcher; the
// ledger does not read it.
type TrialLeft struct {
	Job   string  `json:"job"`
	Spent float64 `json:"spent,omitempty"`
}

// StudyFlat: the search of a study ends because another dollar gains too little. Gain is the expected gain of the
// metric per dollar.
type StudyFlat struct {
	Group string  `json:"group"`
	Gain  float64 `json:"gain_per_usd,omitempty"`
}

// StudyPromotes: the money for the trials of a study's proxy is spent, and the best are trained in full.
type StudyPromotes struct {
	Group string `json:"group"`
}

func (StudyPromotes) Fact() string { return "study_promotes" }
func (TrialLeft) Fact() string     { return "trial_left" }
func (StudyFlat) Fact() string     { return "study_flat" }

func init() {
	reads[TrialLeft]()
	reads[StudyFlat]()
	reads[StudyPromotes]()
}

// MaxReports bounds the reports kept for a study.
const MaxReports = 200_000

// Active returns the number of trials that wait for a machine, train, or save before they leave.
func (y *Study) Active() (n int) {
	for i := range y.Trials {
		if p := y.Trials[i].Phase; p == groups.Open || p == groups.Leaving {
			n++
		}
	}
	return n
}

// Has reports whether a configuration has been started, on the study's proxy or promoted.
func (y *Study) Has(config int, promoted bool) bool {
	return slices.ContainsFunc(y.Trials, func(t groups.Trial) bool { return t.Config == config && t.Promoted == promoted })
}

// Promoted returns the number of started trials that train a configuration of the proxy in full.
func (y *Study) Promoted() (n int) {
	for i := range y.Trials {
		if y.Trials[i].Promoted {
			n++
		}
	}
	return n
}

// Best returns the index of the trial with the best value, or -1. With a proxy, only promoted trials count.
func (y *Study) Best(spec *study.Spec) int { return y.best(spec, spec.Proxy != nil) }

// BestOnProxy returns the index of the trial with the best value on the proxy, or -1.
func (y *Study) BestOnProxy(spec *study.Spec) int {
	if spec.Proxy == nil {
		return -1
	}
	return y.best(spec, false)
}

func (y *Study) best(spec *study.Spec, promoted bool) int {
	best := -1
	for n := range y.Trials {
		if t := &y.Trials[n]; t.Values > 0 && t.Promoted == promoted && (!promoted || t.Full(spec)) &&
			(best < 0 || better(t.Best, y.Trials[best].Best, spec.Maximize)) {
			best = n
		}
	}
	return best
}

func better(a, b float64, maximize bool) bool {
	if maximize {
		return a > b
	}
	return a < b
}

// clone returns a copy that does not change with y.
func (y *Study) clone() *Study {
	if y == nil {
		return nil
	}
	c := *y
	c.Trials = slices.Clone(y.Trials)
	c.Reports = y.Reports[:len(y.Reports):len(y.Reports)]
	return &c
}

// StudyOf returns the study and the trial of a job, or nil if it is no trial.
func (s *State) StudyOf(j *Job) (*Group, *groups.Trial) {
	g := s.groups[j.r.Terms.Group]
	if g == nil || g.Study == nil || j.r.Terms.Index >= len(g.Study.Trials) {
		return nil, nil
	}
	return g, &g.Study.Trials[j.r.Terms.Index]
}

// trialBegins adds a trial to its study. The event that submits it names its configuration.
func (s *State) trialBegins(g *Group, e *Event, j *Job) {
	b, ok := e.Body.(Proposed)
	if !ok || g.Study == nil {
		return
	}
	for _, v := range b.Moves {
		if v.Do == groups.Start && v.Member == j.r.Terms.Index {
			g.Study.Trials = append(g.Study.Trials, groups.Trial{Config: v.Config, Phase: groups.Open, Promoted: v.Promoted,
				Since: s.now.Sub(g.Opened)})
			return
		}
	}
	panic("state: no move of the event starts trial " + j.r.ID)
}

// movedJob returns the job whose state a fact changes, or "".
func movedJob(f Fact) string {
	switch f := f.(type) {
	case JobQueued:
		return f.Job
	case JobEnding:
		return f.Job
	case JobOver:
		return f.Job
	case JobSuspended:
		return f.Job
	case JobReopened:
		return f.Job
	}
	return ""
}

// trialMoves updates the phase of a trial after a fact about its job.
func (s *State) trialMoves(j *Job) {
	g, t := s.StudyOf(j)
	if g == nil {
		return
	}
	switch {
	case j.r.State.Over():
		t.Phase = groups.Over
	case j.r.State == Paused:
		t.Phase = groups.Paused
	case j.Ending() != "":
		t.Phase = groups.Leaving
	default:
		if t.Phase == groups.Paused {
			t.Since = s.now.Sub(g.Opened)
		}
		t.Phase = groups.Open
	}
}

// uses adds to a report what its trial has used.
func (s *State) uses(r groups.Report, j *Job, g *Group, t *groups.Trial) groups.Report {
	used, _ := j.GPUTime(s.now)
	r.GPUHours, r.At = used.Hours(), s.now.Sub(g.Opened)
	r.Took, t.Since = max(0, r.At-t.Since), r.At
	if a := j.Live(); a != nil && r.Phase == "" {
		r.Rate = a.Rate().Float()
	}
	return r
}

// GPUTime returns the GPU time that a job has used by t, and how many GPUs it has now.
func (j *Job) GPUTime(t time.Time) (used time.Duration, gpus int) {
	used = j.GPUServed()
	for _, a := range j.Open() {
		for _, k := range a.Tasks() {
			if !k.Live() || k.From().IsZero() {
				continue
			}
			until := t
			if gpus += k.GPUs(); !k.Until().IsZero() && k.Until().Before(t) {
				until = k.Until()
			}
			used = quantity.Add(used, quantity.Times(max(0, until.Sub(k.From())), k.GPUs()))
		}
	}
	return used, gpus
}

// trialLeft reports to the searcher that a trial is paused or has ended.
func (s *State) trialLeft(f TrialLeft) {
	j := s.jobs[f.Job]
	g, t := s.StudyOf(j)
	if g == nil {
		return
	}
	r := s.uses(groups.Report{Trial: j.r.Terms.Index, Unit: t.Unit, Spent: f.Spent, Phase: t.Phase}, j, g, t)
	if t.Phase == groups.Over {
		if g.Terms.Study.Fidelity.Name == "" && t.Values > 0 { // a run counts by its newest value
			g.Study.adds(groups.Report{Trial: r.Trial, Unit: 1, Value: t.Last, Spent: f.Spent, GPUHours: r.GPUHours,
				At: r.At, Took: r.Took})
		}
		r.Bad, r.Cut = j.r.State == Failed || j.r.State == Cancelled || t.Broken, j.r.State == Stopped
	}
	g.Study.adds(r)
}

// adds stores a report. It stores the end of a trial even beyond MaxReports, so that no search waits for it.
func (y *Study) adds(r groups.Report) bool {
	if len(y.Reports) >= MaxReports && r.Phase == "" {
		return false
	}
	y.Reports = append(y.Reports, r)
	return true
}

// seesTrial records the values of its metric that a trial reports, and each unit once.
func (s *State) seesTrial(j *Job, b Progressed) {
	g, t := s.StudyOf(j)
	if g == nil {
		return
	}
	spec := g.Terms.Study
	length := spec.Length(t.Promoted)
	whole := spec.Fidelity.Name == "" // it counts when the run ends
	for _, v := range b.Objective(j.r.Terms.Metric) {
		unit := length.Unit(v.Step, v.Epoch)
		if t.Broken || !v.Broken && (unit < 1 || unit <= t.Unit && !whole) {
			t.Beyond = t.Beyond || beyond(length, t, v)
			g.Study.Ignored++
			continue
		}
		r := groups.Report{Trial: j.r.Terms.Index, Unit: unit, Value: v.Value, Spent: Dollars(j.Spent(s.now)), Bad: v.Broken}
		if (v.Broken || !whole) && (t.Values >= study.MaxUnits || !g.Study.adds(s.uses(r, j, g, t))) {
			g.Study.Ignored++
			continue
		}
		if t.Broken = v.Broken; !v.Broken {
			counts(spec, t, v, unit)
		}
	}
}

// beyond reports whether a trial that has trained in full goes on training.
func beyond(f study.Fidelity, t *groups.Trial, v policy.Value) bool {
	if f.Name == "" || t.Unit <= 0 || t.Unit != f.Units() {
		return false
	}
	return v.Step > t.Step || f.Name != study.Step && v.Epoch > f.Max
}

// counts records a value of a trial's metric. For a trial that counts when its run ends, only the newest value counts.
func counts(spec *study.Spec, t *groups.Trial, v policy.Value, unit int) {
	whole := spec.Fidelity.Name == ""
	if t.Values == 0 || whole || better(v.Value, t.Best, spec.Maximize) {
		t.Best, t.At = v.Value, unit
	}
	t.Unit, t.Last, t.Step = unit, v.Value, v.Step
	if t.Values++; whole {
		t.Values = 1
	}
}

// Dollars converts an amount to float64 for searchers. It returns 0 if the result is not finite.
func Dollars(a money.Amount) float64 {
	if v := a.Float(); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v
	}
	return 0
}
