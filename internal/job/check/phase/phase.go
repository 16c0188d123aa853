// Package phase has the checklist items that the job file, earlier runs, the programs' text or the user settle. Package
// check adds those that need prices, estimates or machines.
package phase

import (
	"regexp"
	"strings"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/figure"
)

// Verdict is the result of an item.
type Verdict string

// The verdicts. Only Fail makes a report fail.
const (
	Pass    Verdict = "pass"
	Warn    Verdict = "warn"
	Fail    Verdict = "fail"
	Unknown Verdict = "unknown" // cannot be judged: the fix names the missing input
)

// Stage is a checklist.
type Stage string

// The checklists, in order.
const (
	Planning   Stage = "planning"
	Data       Stage = "data"
	Before     Stage = "before training"
	During     Stage = "during training"
	After      Stage = "after training"
	Deployment Stage = "before deployment"
	Production Stage = "in production"
)

// Stages lists all checklists.
var Stages = []Stage{Planning, Data, Before, During, After, Deployment, Production}

// Run is an earlier run of the job, as far as its receipt is known.
type Run struct {
	Job           string
	State         string // succeeded, failed, stopped, cancelled
	Steps         int64
	CostUSD       figure.Figure
	Worked        time.Duration // market time in which the program ran
	Checkpoints   int
	Interruptions int
	// Resumes holds the times from a machine to a program that continued from a checkpoint.
	Resumes []time.Duration
	// Utilisation of the accelerators, or of the processors of a machine without accelerators, 0 to 1.
	Utilisation figure.Figure
	Profile     bool // a short run that ended on purpose
	Finished    time.Time
}

// Mention is a match of a pattern in the job or its programs.
type Mention struct {
	Where string
	Off   bool // it is disabled there
	Only  bool // a program has such a flag, but the command does not pass it
}

// Subject holds what the items examine.
type Subject struct {
	Job                    *spec.Job
	Now                    time.Time
	Runs                   []Run // newest first
	Facts                  map[string]string
	Trains, Serves, OnSpot bool
	HasPrograms            bool
	Find                   func(*regexp.Regexp) (Mention, bool)
}

// said returns the user's answer to a yes-or-no fact.
func (c *Subject) said(name string) (yes, ok bool) {
	switch strings.ToLower(c.Facts[name]) {
	case "":
		return false, false
	case "no", "false", "none":
		return false, true
	}
	return true, true
}

// live adds that a job which trains is not in production.
func (c *Subject) live(text string) string {
	if c.Serves {
		return text
	}
	return "this job is not in production, and " + text
}

// Item is an item of a checklist.
type Item struct {
	ID    string
	Stage Stage
	Title string
	Judge func(*Subject) (v Verdict, evidence, fix string)
}

// Items lists the items. Their names are an interface and never change.
var Items = []Item{
	{"repeated", Planning, "not done before", repeated},
	{"failing", Planning, "earlier runs did not fail", failing},
	{"time-limit", Planning, "a limit of time", timeLimit},
	{"secrets", Planning, "no secrets in the job file", secrets},
	{"notified", Planning, "somebody hears of its end", notified},
	{"baseline", Planning, "a simple baseline measured", answered("baseline", "nothing says what a simple model reaches",
		"measure a small model first: it may be enough")},
	{"data-versioned", Data, "version of the data recorded", dataVersioned},
	{"data-checked", Data, "labels, duplicates and leaks checked", answered("data_checked",
		"nothing says whether the data was checked", "check labels, duplicates, and samples that training and test share")},
	{"data-size", Data, "size of the data given", dataSize},
	{"data-format", Data, "data in a format that loads fast", dataFormat},
	{"loader-workers", Data, "other processes load the data", loaderWorkers},
	{"seed", Before, "a seed is set", seeded},
	{"pinned", Before, "packages and image pinned", pinned},
	{"interrupted", During, "rarely interrupted", interrupted},
	{"save-rate", During, "checkpoints not too often", saveRate},
	{"idle-stop", During, "ends when it does nothing", idleStop},
	{"outputs-kept", After, "results kept", outputs},
	{"versions-kept", After, "old checkpoints deleted", kept},
	{"held-out", After, "quality on unseen data", heldOut},
	{"seeds", After, "quality over several seeds", severalSeeds},
	{"model-version", After, "version of the model named", modelNamed},
	{"latency", Deployment, "latency measured under load", latency},
	{"rollback", Deployment, "the previous model can be put back", answered("rollback",
		"unknown whether the previous model can be put back", "keep the previous model ready, and try the way back")},
	{"drift", Production, "drift watched", answered("drift", "unknown whether drift is watched",
		"watch inputs and quality; a pipeline's drift gate retrains")},
	{"cold-start", Production, "cold start short or hidden", coldStart},
}
