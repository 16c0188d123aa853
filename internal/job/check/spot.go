package check

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/draw"
)

// restoreForm is what programs call going on from what they saved.
var restoreForm = regexp.MustCompile(`(?i)(load_state_dict|torch\.load\(|load_checkpoint|` +
	`load_from_checkpoint|resume|restor(e|ed|ing)\b|ckpt_path|latest_checkpoint|get_last_checkpoint|load_weights|` +
	`dcp\.load|init_model|xgb_model|scrimp\.(huggingface|lightning)|ScrimpCallback|\bnewest\(|--load\b|` +
	`--init[-_]from\b|warm[-_]start|` +
	`(open|load|load_file|read|read_text|exists|isfile|is_file|glob|listdir|iterdir|cat|-f|-e|-s|-r)\b.*` +
	`(ckpt|check_?point|saved?[-_.]|state)|` +
	`(ckpt|check_?point|SCRIMP_CHECKPOINT_DIR|state)\w*["')\]}]*.*` +
	`\b(load|read|read_text|exists|isfile|is_file|glob|listdir|iterdir)\b)`)

// restores reports whether a line of the job or its programs reads a checkpoint. known is false without a program to
// examine.
func (c *Case) restores() (where string, yes, known bool) {
	if found, ok := c.find(restoreForm); ok && !found.only && !found.off {
		return found.where, true, true
	}
	return "", false, slices.ContainsFunc(c.places, func(p place) bool { return p.file })
}

// unread judges whether any program reads the saved checkpoints, for a job with a checkpoint folder that has never
// resumed. ok is false if there is nothing to report.
func (c *Case) unread() (v Verdict, evidence, fix string, ok bool) {
	if _, said := c.Facts["resume"]; said {
		return v, "", "", false
	}
	for _, r := range c.Runs {
		if len(r.Resumes) > 0 {
			return v, "", "", false
		}
	}
	if _, yes, known := c.restores(); yes || !known {
		return v, "", "", false
	}
	evidence = fmt.Sprintf("%s is saved, and nothing in the programs was found that reads it", c.Job.Checkpoint.Dir)
	return Warn, evidence + ": an interruption would repeat all of it", "begin from what lies in checkpoint.dir " +
		"(SCRIMP_CHECKPOINT_DIR, docs/programs.md), or " + fact.Supply("resume") + " where the program does", true
}

// Limits of candidates for spot: an interruption of short work repeats nearly all of it at little cost, and frequent
// starts are expensive if each takes a large part of the run.
const (
	shortRun   = 30 * time.Minute
	dearStart  = 0.1 // share of the run that one start takes
	startLimit = 10 * time.Minute
)

func candidate(c *Case) (Verdict, string, string) {
	const firm = "resources.capacity: on-demand, or bundle several such runs into one job"
	if !c.onSpot() {
		return Pass, "it never runs on spot", ""
	}
	long, known := c.length()
	start, where := c.start()
	switch {
	case c.Job.Kind == "inference", c.Job.Kind == "interactive":
		return Warn, "kind is " + c.Job.Kind + ": somebody waits for its answers, and an interruption stops them",
			"resources.capacity: on-demand"
	case start >= startLimit, known && start > 0 && start.Seconds() > dearStart*long.Seconds():
		text := fmt.Sprintf("%s took %s to start", where, draw.Span(start))
		if known {
			text += fmt.Sprintf(" for %s of work", draw.Span(long))
		}
		return Warn, fmt.Sprintf("%s, and spot pays below %s and %.0f %% of the work: each interruption costs another start",
				text, draw.Span(startLimit), 100*dearStart),
			"shorten setup and what precedes the first step, or resources.capacity: on-demand"
	case known && long <= shortRun:
		loses := "another start"
		if c.Job.Checkpoint.Dir == "" {
			loses += " and all work since the first, as no checkpoint is kept"
		}
		return Warn, fmt.Sprintf("%s of work, and spot pays above %s: it saves little on less, and an interruption costs %s",
			draw.Span(long), draw.Span(shortRun), loses), firm
	case known:
		return Pass, fmt.Sprintf("%s of work", draw.Span(long)), ""
	}
	return Unknown, "its duration is unknown", "give work.time, or let scrimp profile measure it"
}

// PoorSpot returns why spot is a poor choice for a job, with the limits, and a fix. poor is false if it is not, or if
// too little is known. Plans say the same as a check.
func PoorSpot(c *Case) (why, fix string, poor bool) {
	v, why, fix := candidate(c)
	if poor = v == Warn; !poor && c.Job.Checkpoint.Dir == "" {
		v, why, fix = checkpoints(c)
		poor = v == Fail
	}
	return why, fix, poor
}

// start returns the longest observed or stated time from a machine to the next step; 0 if unknown.
func (c *Case) start() (longest time.Duration, where string) {
	if d, err := time.ParseDuration(c.Facts["resume"]); err == nil {
		return d, "you say that it"
	}
	for _, r := range c.Runs {
		for _, d := range r.Resumes {
			if d > longest {
				longest, where = d, r.Job
			}
		}
	}
	return longest, where
}
