package phase

import (
	"fmt"
	"time"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/figure"
)

// Limits of the items that judge earlier runs, as shares of 1.
const (
	dearer     = 1.2 // cost of a step over that of the run before
	mostWaited = 0.1 // machine time in which programs wait for inputs
	mostLost   = 0.1 // paid work that interruptions and failures repeat
	mostStart  = 0.2 // machine time before the program starts
	leastHeld  = 0.5 // memory of accelerators in use at the peak
	mostHeld   = 0.95
)

// measured judges the newest run with a known figure.
func measured(c *Subject, of func(Run) figure.Figure, unknown string,
	judge func(r Run, v float64) (Verdict, string, string)) (Verdict, string, string) {
	for _, r := range c.Runs {
		if f := of(r); f.OK {
			return judge(r, f.V)
		}
	}
	return Unknown, unknown, "run it once: its receipt has the figure"
}

// atMost judges a share of the newest run with a known one. text has verbs for the job and the percentage.
func atMost(limit float64, of func(Run) figure.Figure, text, unknown, fix string) func(*Subject) (Verdict, string,
	string) {
	return func(c *Subject) (Verdict, string, string) {
		whole := func(r Run) figure.Figure {
			if r.Profile { // a few minutes say nothing about shares of a run
				return figure.Figure{}
			}
			return of(r)
		}
		return measured(c, whole, unknown, func(r Run, v float64) (Verdict, string, string) {
			evidence := fmt.Sprintf(text, r.Job, v*100)
			if v > limit {
				return Warn, evidence, fix
			}
			return Pass, evidence, ""
		})
	}
}

func saved(c *Subject) (Verdict, string, string) {
	return measured(c, func(r Run) figure.Figure { return r.Saved }, "no earlier run has a price to compare with",
		func(r Run, v float64) (Verdict, string, string) {
			if v < 0 {
				return Warn, fmt.Sprintf("%s cost %.0f %% more than on-demand", r.Job, -v*100),
					"scrimp plan compares on-demand with spot, lost work included"
			}
			return Pass, fmt.Sprintf("%s cost %.0f %% less than on-demand", r.Job, v*100), ""
		})
}

func deadlineKept(c *Subject) (Verdict, string, string) {
	for _, r := range c.Runs {
		switch {
		case r.DeadlineMet == nil:
		case *r.DeadlineMet:
			return Pass, r.Job + " met its deadline", ""
		default:
			return Warn, r.Job + " missed its deadline", "give it more time, or a faster machine: scrimp plan shows the odds"
		}
	}
	return Unknown, "no earlier run had a deadline", "give deadline: receipts then say whether it was met"
}

// costTrend compares the cost of a step in the two newest successful runs.
func costTrend(c *Subject) (Verdict, string, string) {
	var list []Run
	for _, r := range c.Runs {
		if r.State == "succeeded" && !r.Profile && r.CostUSD.OK && r.CostUSD.V > 0 && r.Steps > 0 {
			list = append(list, r)
		}
	}
	if len(list) < 2 {
		return Unknown, "fewer than two earlier runs have a cost and steps", "report steps: scrimp compares the next runs"
	}
	last, before := list[0], list[1]
	ratio := last.CostUSD.V / float64(last.Steps) / (before.CostUSD.V / float64(before.Steps))
	text := fmt.Sprintf("a step of %s cost %.2f times one of %s", last.Job, ratio, before.Job)
	if ratio > dearer {
		return Warn, text, "compare both: scrimp diagnose " + last.Job
	}
	return Pass, text, ""
}

func memoryUsed(c *Subject) (Verdict, string, string) {
	return measured(c, func(r Run) figure.Figure { return r.Held }, "no earlier run has measured its accelerators' memory",
		func(r Run, v float64) (Verdict, string, string) {
			text := fmt.Sprintf("%s used %.0f %% at its peak", r.Job, v*100)
			switch {
			case v < leastHeld:
				return Warn, text, "a larger batch, or an accelerator with less memory: scrimp plan"
			case v > mostHeld:
				return Warn, text + ": little more runs out of memory", "gradient accumulation or activation checkpointing"
			}
			return Pass, text, ""
		})
}

// standardGrace is the grace of a job that names none.
const standardGrace = 20 * time.Second

func saveFits(c *Subject) (Verdict, string, string) {
	grace := time.Duration(c.Job.Grace)
	if grace == 0 {
		grace = standardGrace
	}
	for _, r := range c.Runs {
		if r.Save <= 0 {
			continue
		}
		text := fmt.Sprintf("a save of %s took %s, and grace is %s", r.Job, draw.Span(r.Save), draw.Span(grace))
		if r.Save > grace {
			return Warn, text, "raise grace up to the provider's notice, or save less"
		}
		return Pass, text, ""
	}
	return Unknown, "no earlier run has measured a save", "let one run save: its receipt has the time"
}

// deadline judges whether the work ends in time.
func deadline(c *Subject) (Verdict, string, string) {
	d := c.Job.Deadline
	if d.IsZero() {
		if c.Job.Window != "" {
			return Pass, "it waits for its window, " + c.Job.Window, ""
		}
		return Warn, "nothing says by when it must end",
			"give deadline, such as in 24h: the time left over buys cheaper machines"
	}
	left := d.Resolve(c.Now).Sub(c.Now)
	switch {
	case left <= 0:
		return Fail, "the deadline has passed", "give a later deadline"
	case c.Length == 0:
		return Unknown, fmt.Sprintf("%s are left, and its duration is unknown", draw.Span(left)), "give work.time"
	case c.Length > left:
		return Fail, fmt.Sprintf("%s of work, and %s are left", draw.Span(c.Length), draw.Span(left)),
			"give a later deadline, or more and faster machines"
	}
	return Pass, fmt.Sprintf("%s of work, and %s are left", draw.Span(c.Length), draw.Span(left)), ""
}

// codeVersioned judges whether a tag names the version of the program.
func codeVersioned(c *Subject) (Verdict, string, string) {
	for _, tag := range []string{"commit", "git_commit", "code_version"} {
		if v := c.Job.Tags[tag]; v != "" {
			return Pass, "the tag " + tag + " is " + v, ""
		}
	}
	v, evidence, fix := answered("code_versioned", "no tag names the version of the program", "tag the job: commit")(c)
	if v == Unknown {
		fix = "tag the job with commit, or " + fact.Supply("code_versioned")
	}
	return v, evidence, fix
}
