// Package check judges a job by the usual checklists, from planning to production.
// Each item gets pass, warn, fail or unknown, with its evidence and a fix. An item that neither the job, its history,
// the catalogue nor the user settles is unknown, and never passes.
package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/job/check/phase"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// Verdict is the result of an item. Only Fail makes a report fail.
type Verdict = phase.Verdict

// The verdicts.
const (
	Pass    = phase.Pass
	Warn    = phase.Warn
	Fail    = phase.Fail
	Unknown = phase.Unknown
)

// Stage is a checklist.
type Stage = phase.Stage

// The checklists of this package's items.
const (
	Before     = phase.Before
	During     = phase.During
	Deployment = phase.Deployment
	Production = phase.Production
)

// Stages lists all checklists.
var Stages = phase.Stages

// Finding is a judged item.
type Finding struct {
	ID       string  `json:"id"`
	Stage    Stage   `json:"stage"`
	Title    string  `json:"title"`
	Verdict  Verdict `json:"verdict"`
	Evidence string  `json:"evidence"`
	Fix      string  `json:"fix"`
}

// Report holds all judged items. It is OK if none fails.
type Report struct {
	Job      string          `json:"job"`
	OK       bool            `json:"ok"`
	Counts   map[Verdict]int `json:"counts"`
	Findings []Finding       `json:"findings"`
}

// Run is an earlier run of the job.
type Run = phase.Run

// Estimate is the prediction of the run, in dollars and hours.
type Estimate struct {
	CostLow, Cost, CostHigh float64
	Time                    time.Duration
	// PeakMemory is per accelerator; 0 if unknown.
	PeakMemory size.Bytes
	Source     string
}

// Text is a file of the job's work folder.
type Text struct{ Name, Body string }

// Case holds everything known about a job. Only Job and Now are required.
type Case struct {
	Job      spec.Job
	Now      time.Time
	Runs     []Run // newest first
	Offers   []catalog.Listing
	Here     []catalog.Listing      // the offers on which the job would run; all of them if none is known
	Charges  []catalog.TransferRate // the user's own prices of transferring data, which replace the built-in ones
	Estimate *Estimate
	Texts    []Text
	Facts    map[string]string // the user's statements, by the names of fact.All
	Force    bool              // allows a long run on spot without proven checkpoints
	WorkFrom string            // source of the job's duration; empty for its file
	Found    *Found            // what the program finds where it runs; nil if not checked

	places []place // all texts by line, set by Check
}

type item struct {
	id    string
	stage Stage
	title string
	judge func(*Case) (v Verdict, evidence, fix string)
}

// items lists the items of all checklists, in order. Their names are an interface and never change.
var items = func() (list []item) {
	for _, s := range Stages {
		for _, i := range phase.Items {
			if i.Stage == s {
				list = append(list, item{i.ID, s, i.Title, func(c *Case) (Verdict, string, string) { return i.Judge(c.subject()) }})
			}
		}
		for _, i := range own {
			if i.stage == s {
				list = append(list, i)
			}
		}
	}
	return list
}()

// subject returns what the items of package phase examine.
func (c *Case) subject() *phase.Subject {
	length, _ := c.length()
	return &phase.Subject{Length: length, Job: &c.Job, Now: c.Now, Runs: c.Runs, Facts: c.Facts,
		Trains: c.trains(), Serves: c.serves(),
		OnSpot: c.onSpot(), HasPrograms: slices.ContainsFunc(c.places, func(p place) bool { return p.file }),
		Find: func(re *regexp.Regexp) (phase.Mention, bool) {
			m, ok := c.find(re)
			return phase.Mention{Where: m.where, Off: m.off, Only: m.only}, ok
		}}
}

// own lists the items that need more than a phase.Subject.
var own = []item{
	{"cost", Before, "cost estimated", cost},
	{"machine", Before, "machine not simply the largest", machine},
	{"precision", Before, "mixed precision", precision},
	{"accumulation", Before, "gradient accumulation", accumulation},
	{"checkpoints", Before, "checkpoints fit for spot", checkpoints},
	{"resume", Before, "resumes in under 5 minutes", resume},
	{"spot", Before, "a candidate for spot", candidate},
	{"early-stopping", Before, "early stopping", earlyStopping},
	{"data-region", Before, "data in the same region", dataRegion},
	{"data-cached", Before, "data cached", dataCached},
	{"tags", Before, "tags", tags},
	{"budget", Before, "budget", budget},
	{"subset", Before, "a subset of the data first", subset},
	{"price-cap", Before, "a price cap on spot", priceCap},
	{"choice", Before, "several offers fit", choice},
	{"python", Before, "programs and Python are found", python},
	{"utilisation", During, "utilisation over 70 %", utilisation},
	{"convergence", During, "what does not converge is stopped", convergence},
	{"spot-proven", During, "checkpoints proven before a long run on spot", spotProven},
	{"quantised", Deployment, "quantised", quantised},
	{"pruning", Deployment, "pruning weighed", pruning},
	{"distillation", Deployment, "distillation weighed", distillation},
	{"onnx", Deployment, "ONNX or a compiled form", onnx},
	{"prediction-cost", Deployment, "cost per prediction", predictionCost},
	{"peak-planned", Deployment, "machines for the peak", peakPlanned},
	{"scaling", Production, "auto-scaling, down to zero", scaling},
	{"batching", Production, "dynamic batching", batching},
	{"right-sizing", Production, "utilisation and size reviewed monthly", rightSizing},
	{"alerts", Production, "alerts and budgets", alerts},
	{"production-tags", Production, "tags in production", productionTags},
}

// Items returns the name, checklist and title of every item.
func Items() []Finding {
	var list []Finding
	for _, i := range items {
		list = append(list, Finding{ID: i.id, Stage: i.stage, Title: i.title})
	}
	return list
}

// Check judges every item.
func Check(c Case) Report {
	c.places = c.lines()
	r := Report{Job: c.Job.Name, OK: true, Counts: map[Verdict]int{Pass: 0, Warn: 0, Fail: 0, Unknown: 0}}
	for _, i := range items {
		v, evidence, fix := i.judge(&c)
		r.Counts[v]++
		r.OK = r.OK && v != Fail
		r.Findings = append(r.Findings, Finding{i.id, i.stage, i.title, v, evidence, fix})
	}
	return r
}

// said returns the user's answer to a yes-or-no fact.
func (c *Case) said(name string) (yes, ok bool) {
	switch strings.ToLower(c.Facts[name]) {
	case "":
		return false, false
	case "no", "false", "none":
		return false, true
	}
	return true, true
}

// trains reports whether the job trains something.
func (c *Case) trains() bool { return c.Job.Kind != "inference" && c.Job.Kind != "data" }

// serves reports whether the job is in production itself.
func (c *Case) serves() bool { return c.Job.Kind == "inference" || c.Job.Kind == "production" }

// onSpot reports whether the job may run on spot.
func (c *Case) onSpot() bool {
	if c.Job.Priority == "critical" {
		return false
	}
	kinds := c.Job.Resources.Capacity
	return len(kinds) == 0 || slices.Contains(kinds, spec.AnyCapacity) || slices.Contains(kinds, string(market.Spot))
}

// LongRun is the length from which a run counts as long: repeating it costs more than proving its checkpoints.
const LongRun = 2 * time.Hour

// length returns the longest expected duration of the run, if known.
func (c *Case) length() (time.Duration, bool) {
	switch {
	case c.Job.Work.Time > 0:
		return time.Duration(c.Job.Work.Time), true
	case c.Estimate != nil && c.Estimate.Time > 0:
		return c.Estimate.Time, true
	case c.Job.Budget.WallClock > 0:
		return time.Duration(c.Job.Budget.WallClock), true
	}
	for _, r := range c.Runs {
		if r.Worked > 0 && r.Steps > 0 && c.Job.Work.Steps > 0 {
			return time.Duration(float64(r.Worked) * float64(c.Job.Work.Steps) / float64(r.Steps)), true
		}
	}
	return 0, false
}

// wanted returns the job's requirements on a machine.
func (c *Case) wanted() catalog.Filter {
	r := c.Job.Resources
	f := catalog.Filter{CPUs: r.CPUs.Min, RAM: r.Memory.Min, Regions: r.Zones, MaxRate: c.Job.MaxPrice,
		Trains: c.trains()}
	if r.Accelerator != "" {
		if f.ParseAccelerator(r.Accelerator) != nil {
			f.Accelerator = r.Accelerator
		}
	}
	if len(r.Capacity) > 0 && !slices.Contains(r.Capacity, spec.AnyCapacity) {
		for _, k := range r.Capacity {
			f.Capacity = append(f.Capacity, market.Capacity(k))
		}
	}
	return f
}

// hourly formats an offer with its price.
func hourly(l catalog.Listing) string { return fmt.Sprintf("%s at $%s/h", l.Offer.ID, l.Quote.Rate) }

// cheapest returns the cheapest offer in dollars that f accepts. With memory above 0, its accelerators have at least
// that much.
func (c *Case) cheapest(f catalog.Filter, memory size.Bytes) (catalog.Listing, bool) {
	f.Memory = max(f.Memory, memory)
	return (catalog.Catalog{Listings: c.Offers}).Cheapest(f, money.USD)
}

// here is cheapest among the offers on which the job would run, if they are known and one fits.
func (c *Case) here(f catalog.Filter) (catalog.Listing, bool) {
	if l, ok := (catalog.Catalog{Listings: c.Here}).Cheapest(f, money.USD); ok {
		return l, true
	}
	return c.cheapest(f, 0)
}
