// Package diagnose names what makes a training job use its machines badly: from what its machines were measured to do,
// what its program reported and printed, what the receipt says, and profiles. It never guesses money: a saving is a
// share of what an hour of the job costs, and unknown where that is.
package diagnose

import (
	"cmp"
	"slices"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/profile"
)

// Enough is for how many seconds a machine is measured before a cause is named.
const Enough = 30

// Input is what is known of a job.
type Input struct {
	Job       string
	Live      bool
	Nodes     []Node
	Lines     []Line             // of its output, in order of time
	Metrics   map[string]float64 // newest that the program has reported
	Account   Account
	Framework Framework
	Profiles  []profile.Profile
}

// Node is a machine of the attempt that is looked at.
type Node struct {
	Rank    int
	Head    telemetry.Head
	Buckets []telemetry.Bucket // in order of time
}

// Line is a line of the program's output.
type Line struct {
	At   int64 // seconds of Unix' time; 0: unknown
	Text string
}

// Account is what receipt and job file say.
type Account struct {
	HourlyUSD   *float64 // of the job while it holds its machines; nil: unknown
	Step, Total int64    // 0: unknown
	Checkpoints int
	SaveSeconds *float64 // mean of a save, on the wall; nil: unknown
	Requested   int64    // bytes of memory that the job file asks for on each machine; 0: it does not
}

// Report is what was found.
type Report struct {
	Job      string  `json:"job"`
	Measured float64 `json:"measured_s"` // of the machine that was measured longest
	// HourlyUSD is what an hour of the job costs; null: unknown.
	HourlyUSD *float64 `json:"cost_usd_per_hour"`
	// Use is what was in use while the program worked, by name of the metric: averages.
	Use map[string]float64 `json:"use"`
	// Phases are seconds before the program's first work, of its work, and after its last.
	Phases Phases  `json:"phases"`
	Causes []Cause `json:"causes"` // the one that wastes most first
	// Note says why there is no cause, where that is no praise.
	Note      string             `json:"note,omitempty"`
	Operators []profile.Operator `json:"operators,omitempty"` // the costliest, of the profiles
}

// Phases are how the measured time of a machine divides.
type Phases struct {
	SetUp float64 `json:"set_up_s"`
	Work  float64 `json:"work_s"`
	After float64 `json:"after_s"`
}

// Cause is one reason for which machines are used badly.
type Cause struct {
	Class    Class  `json:"class"`
	Group    string `json:"group"` // data, model, code or resources
	Evidence string `json:"evidence"`
	// SavingUSD is what an hour of the same work would cost less, with its range; null: unknown.
	SavingUSD *float64 `json:"saving_usd_per_hour"`
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	// Share is the same as a share of the job's cost; null: unknown.
	Share  *Range `json:"saving_share"`
	Change string `json:"change"`
	Effort string `json:"effort"` // low, medium or high
	Risk   string `json:"risk"`   // to the result of the training: none, low or medium
	// AB is the scrimp ab command that tries the change; null: the change is in the program's code, or the figures that
	// the command needs are unknown.
	AB *string `json:"ab_command"`
}

// Range is an estimate with its bounds.
type Range struct {
	Low   float64 `json:"low"`
	Value float64 `json:"value"`
	High  float64 `json:"high"`
}

// finding is a cause before it is worded.
type finding struct {
	class    Class
	evidence string
	waste    Range
	unpriced bool // it wastes nothing that can be said in dollars
}

// Diagnose names the causes.
func Diagnose(in Input) Report {
	f := featuresOf(in)
	r := Report{Job: in.Job, Measured: f.seconds, HourlyUSD: in.Account.HourlyUSD, Use: f.use(), Causes: []Cause{},
		Phases: Phases{f.setUp, f.work, f.after}}
	for _, p := range in.Profiles {
		r.Operators = append(r.Operators, p.Operators...)
	}
	list := ofProfiles(in.Profiles)
	switch {
	case f.seconds == 0 && len(list) == 0:
		r.Note = "Nothing was measured: agents measure while the program runs, and figures of an old job go with its output."
	case f.seconds < Enough && len(list) == 0:
		r.Note = "Too little was measured: causes are named after 30 seconds."
	case f.seconds >= Enough:
		list = merge(list, ofTelemetry(&f))
	}
	for _, one := range list {
		r.Causes = append(r.Causes, cause(one, &in))
	}
	if len(list) == 0 && r.Note == "" && !f.known() {
		r.Note = "Neither processors nor GPUs were measured, so nothing can be said of them."
	}
	return r
}

// merge puts findings together: one of each class, the largest waste first. What a profile shows goes before what
// figures suggest, since it names the code.
func merge(seen, measured []finding) []finding {
	out := slices.Clone(seen)
	for _, m := range measured {
		at := slices.IndexFunc(out, func(s finding) bool { return s.class == m.class })
		if at < 0 {
			out = append(out, m)
			continue
		}
		out[at].evidence += "; " + m.evidence
	}
	slices.SortStableFunc(out, func(a, b finding) int { return cmp.Compare(b.waste.Value, a.waste.Value) })
	return out
}

// cause words a finding.
func cause(f finding, in *Input) Cause {
	k := classes[f.class]
	c := Cause{Class: f.class, Group: k.group, Evidence: f.evidence, Change: k.change(in.Framework), Effort: k.effort,
		Risk: k.risk}
	if k.try != nil {
		c.AB = k.try(in)
	}
	if f.unpriced {
		return c
	}
	share := f.waste
	c.Share = &share
	if usd := in.Account.HourlyUSD; usd != nil {
		saving, low, high := share.Value**usd, share.Low**usd, share.High**usd
		c.SavingUSD, c.Low, c.High = &saving, &low, &high
	}
	return c
}
