// Package diagnose names the causes of a training job's poor machine use, from the telemetry of its machines, its
// program's reports and output, its receipt, and profiles. It never guesses money: a saving is a share of the job's
// hourly cost, and unknown if that is unknown.
package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/profile"
	"scrimp/internal/work/diagnose/series"
	"scrimp/internal/work/diagnose/trial"
)

// Enough is the number of seconds of telemetry needed before a cause is named.
const Enough = 30

// Input holds what is known about a job.
type Input struct {
	Job       string
	Live      bool
	Nodes     []Node
	Lines     []Line             // of its output, in time order
	Metrics   map[string]float64 // the program's latest reports
	Account   Account
	Framework class.Framework
	Profiles  []profile.Profile
}

// Node is a machine of the examined attempt.
type Node = series.Node

// Line is a line of the program's output.
type Line struct {
	At   int64 // Unix time in seconds; 0 if unknown
	Text string
}

// Account holds the facts from the receipt and the job file.
type Account struct {
	HourlyUSD   *float64 // of the job while it holds its machines; nil if unknown
	Step, Total int64    // 0 if unknown
	Checkpoints int
	SaveSeconds *float64 // mean duration of a save in wall time; nil if unknown
	Requested   int64    // requested memory per machine in bytes; 0 for none
	Reports     bool     // the job file says that the program reports its steps
	// NotBegun is how long the present attempt has had its machines without the program beginning, in seconds of wall
	// time; 0 once it has begun.
	NotBegun float64
}

// Report holds the findings.
type Report struct {
	Job      string  `json:"job"`
	Measured float64 `json:"measured_s"` // of the machine that was measured longest
	// HourlyUSD is the hourly cost of the job; null if unknown.
	HourlyUSD *float64 `json:"cost_usd_per_hour"`
	// Use holds average utilization while the program worked, by metric name.
	Use map[string]float64 `json:"use"`
	// Phases holds the seconds before the program's first work, of its work, and after its last work.
	Phases Phases  `json:"phases"`
	Causes []Cause `json:"causes"` // the largest waste first
	// Note explains why there is no cause, if that does not mean that all is well, or why the causes are less certain.
	Note      string             `json:"note,omitempty"`
	Busy      bool               `json:"machine_busy,omitempty"` // other programs had the processors most of the time
	Operators []profile.Operator `json:"operators,omitempty"`    // the most expensive ones of the profiles
}

// Phases splits the measured time of a machine.
type Phases struct {
	SetUp float64 `json:"set_up_s"`
	Work  float64 `json:"work_s"`
	After float64 `json:"after_s"`
}

// Cause is one reason for poor machine use.
type Cause struct {
	Class    class.Class `json:"class"`
	Group    string      `json:"group"` // data, model, code or resources
	Evidence string      `json:"evidence"`
	// SavingUSD is the saving per hour of the same work, with its range; null if unknown.
	SavingUSD *float64 `json:"saving_usd_per_hour"`
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	// Share is the saving as a share of the job's cost; null if unknown.
	Share  *Range `json:"saving_share"`
	Change string `json:"change"`
	Effort string `json:"effort"` // low, medium or high
	Risk   string `json:"risk"`   // to the result of the training: none, low or medium
	// AB is the scrimp ab command that tries the change; null if the change is in the program's code, or if the
	// command's figures are unknown.
	AB *string `json:"ab_command"`
}

// Range is an estimate with its bounds.
type Range struct {
	Low   float64 `json:"low"`
	Value float64 `json:"value"`
	High  float64 `json:"high"`
}

// finding is a cause without its texts.
type finding struct {
	class    class.Class
	evidence string
	waste    Range
	unpriced bool // its waste cannot be expressed in dollars
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
	if late, ok := notBegun(&in); ok {
		list = append(list, late)
	}
	switch {
	case f.seconds >= Enough:
		list = merge(list, ofTelemetry(&f, list))
	case len(list) == 0:
		r.Note = f.unmeasured()
	}
	for _, one := range list {
		r.Causes = append(r.Causes, cause(one, &in))
	}
	if r.Note == "" {
		r.Note, r.Busy = f.caution(len(list))
	}
	return r
}

// unmeasured says why too little was measured to name a cause.
func (f *features) unmeasured() string {
	switch {
	case f.seconds > 0:
		return "Too little was measured: causes are named after 30 seconds."
	case f.in.Live:
		return "Nothing was measured yet: agents measure while the program runs, and causes are named after 30 seconds."
	}
	return "Nothing was measured: agents measure while the program runs, and figures of an old job go with its output."
}

// caution says why the given number of causes may mislead; empty if it does not. Busy reports that other programs have
// the processors.
func (f *features) caution(causes int) (note string, busy bool) {
	switch {
	case causes == 0 && f.in.Live && f.setUp > 0 && f.work == 0:
		return "The program has not reached its first step yet, " + span(f.setUp) + " after it began: causes are named " +
			"once it works, or if this goes on.", false
	case causes == 0 && !f.known():
		return "Neither processors nor GPUs were measured, so nothing can be said of them.", false
	case f.crowded():
		return fmt.Sprintf("Other programs have the processors most of the time: %.0f threads want %.0f cores, and this "+
			"program gets %.1f. Measure again without them to be certain.", f.get(telemetry.RunQueue), f.cores,
			f.get(telemetry.TaskCPU)), true
	}
	return "", false
}

// merge combines findings: one per class, the largest waste first. Findings from a profile precede those from
// telemetry, because they name the code.
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

// cause adds the texts to a finding.
func cause(f finding, in *Input) Cause {
	c := Cause{Class: f.class, Group: class.Group(f.class), Evidence: f.evidence}
	c.Change, c.Effort, c.Risk = class.Words(f.class, in.Framework)
	c.AB = trial.Of(f.class, &trial.Facts{Job: in.Job, Nodes: in.Nodes, Requested: in.Account.Requested})
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
