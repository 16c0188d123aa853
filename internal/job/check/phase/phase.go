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
	DeadlineMet *bool         // nil if it had none
	Saved       figure.Figure // share of the on-demand cost that it saved; negative if it cost more
	Waited      figure.Figure // share of machine time in which the program waited for its inputs
	Lost        figure.Figure // share of the program's time that was lost and repeated
	StartUp     figure.Figure // share of machine time before the program started
	Held        figure.Figure // share of the accelerators' memory in use at the peak
	Save        time.Duration // mean time of a save, wall time; 0 if unknown
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
	Length                 time.Duration // longest expected duration; 0 if unknown
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
	{"deadline", Planning, "ends by its deadline", deadline},
	{"deadline-kept", Planning, "earlier deadlines met", deadlineKept},
	{"saved", Planning, "earlier runs cost less than on-demand", saved},
	{"cost-trend", Planning, "cost of a step not rising", costTrend},
	{"data-versioned", Data, "version of the data recorded", dataVersioned},
	{"data-checked", Data, "labels, duplicates and leaks checked", answered("data_checked",
		"nothing says whether the data was checked", "check labels, duplicates, and samples that training and test share")},
	{"data-size", Data, "size of the data given", dataSize},
	{"data-format", Data, "data in a format that loads fast", dataFormat},
	{"loader-workers", Data, "other processes load the data", loaderWorkers},
	{"data-rights", Data, "right to use the data recorded", answered("data_rights",
		"nothing says under which license or consent the data may be used", "record license, source and consent")},
	{"personal-data", Data, "personal data removed or allowed", answered("personal_data",
		"nothing says whether the data holds personal data", "remove it, or record why you may use it")},
	{"prefetch", Data, "batches copied ahead", prefetch},
	{"disk", Data, "disk holds the data", disk},
	{"input-wait", Data, "machines do not wait for inputs", atMost(mostWaited,
		func(r Run) figure.Figure { return r.Waited },
		"%s waited %.0f %% of its machines' time for inputs", "no earlier run has brought inputs to its machines",
		"keep the data in the machines' region, or stream it: data.stream")},
	{"seed", Before, "a seed is set", seeded},
	{"pinned", Before, "packages and image pinned", pinned},
	{"code-version", Before, "version of the code recorded", codeVersioned},
	{"loss-scaling", Before, "fp16 with loss scaling", lossScaling},
	{"optimizer-saved", Before, "checkpoints hold the optimizer", optimizerSaved},
	{"saves-on-stop", Before, "saves when asked to stop", savesOnStop},
	{"store-region", Before, "checkpoints in the same region", storeRegion},
	{"distributed", Before, "a process for each accelerator", processes},
	{"interrupted", During, "rarely interrupted", interrupted},
	{"save-rate", During, "checkpoints not too often", saveRate},
	{"idle-stop", During, "ends when it does nothing", idleStop},
	{"memory-used", During, "accelerator memory used", memoryUsed},
	{"save-fits", During, "a save fits the grace", saveFits},
	{"lost-work", During, "little work repeated", atMost(mostLost, func(r Run) figure.Figure { return r.Lost },
		"%s repeated %.0f %% of its work", "no earlier run has measured lost work",
		"checkpoint.interval: auto, and save when asked to stop")},
	{"start-up", During, "short start-up", atMost(mostStart, func(r Run) figure.Figure { return r.StartUp },
		"%s spent %.0f %% of its machines' time before the program started", "no earlier run has started its program",
		"an image with everything in it, or bundle short runs into one job")},
	{"outputs-kept", After, "results kept", outputs},
	{"versions-kept", After, "old checkpoints deleted", kept},
	{"held-out", After, "quality on unseen data", heldOut},
	{"seeds", After, "quality over several seeds", severalSeeds},
	{"model-version", After, "version of the model named", modelNamed},
	{"best-kept", After, "the best checkpoint kept", bestKept},
	{"model-card", After, "purpose and limits of the model written down", answered("model_card",
		"nothing describes the model's purpose, data and limits", "write a model card, and keep it beside the model")},
	{"latency", Deployment, "latency measured under load", latency},
	{"rollback", Deployment, "the previous model can be put back", answered("rollback",
		"unknown whether the previous model can be put back", "keep the previous model ready, and try the way back")},
	{"parity", Deployment, "deployed model answers as the trained one", answered("parity",
		"unknown whether the exported model gives the same answers",
		"compare both on held-out data: scrimp compress --eval")},
	{"drift", Production, "drift watched", answered("drift", "unknown whether drift is watched",
		"watch inputs and quality; a pipeline's drift gate retrains")},
	{"cold-start", Production, "cold start short or hidden", coldStart},
	{"health", Production, "replicas that hang are restarted", probed},
	{"commitment", Production, "steady use committed", committed},
}
