package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/draw"
	"scrimp/internal/market"
)

// used returns the mean utilization, 0 to 1, of the newest runs with a known one.
func (c *Case) used() (float64, bool) {
	if s := c.Facts["utilisation"]; s != "" {
		text, percent := strings.CutSuffix(s, "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if percent {
			v /= 100
		}
		return v, err == nil
	}
	sum, n := 0.0, 0
	for _, r := range c.Runs {
		if r.Utilisation.OK && n < 5 {
			sum += r.Utilisation.V
			n++
		}
	}
	return sum / float64(max(1, n)), n > 0
}

func utilisation(c *Case) (Verdict, string, string) {
	u, ok := c.used()
	if !ok {
		return Unknown, "no earlier run was measured for a minute", "let scrimp profile run a few minutes of it, or " +
			fact.Supply("utilisation")
	}
	text := fmt.Sprintf("%.0f %% in earlier runs", u*100)
	switch {
	case u < 0.5:
		fix := "size down: fewer or smaller accelerators do as much"
		if c.Job.Resources.Accelerator == "" {
			fix = "size down: a machine with fewer processors does as much"
		}
		if f := c.wanted(); f.Least > 1 {
			f.Least, f.Most = max(1, f.Least/2), max(1, f.Least/2)
			if l, ok := c.cheapest(f, 0); ok {
				fix += ", such as " + hourly(l)
			}
		}
		return Fail, text + ", under 50 %", fix
	case u <= 0.7:
		return Warn, text, "more workers that load data, larger batches, or a smaller machine"
	}
	return Pass, text, ""
}

func convergence(c *Case) (Verdict, string, string) {
	if !c.trains() {
		return Pass, "the job does not train", ""
	}
	m, p := c.Job.Metric, c.Job.Progress
	seen := p.Pattern != "" || p.File != ""
	switch {
	case m.Name != "" && m.Patience > 0:
		return Pass, fmt.Sprintf("%s: a plateau of %d steps ends it, and so does a value that is not a number", m.Name,
			m.Patience), ""
	case m.Name != "":
		return Warn, m.Name + ": only a value that is not a number ends it", "give metric.patience"
	case seen:
		return Warn, "its progress is seen, and no metric is named by which to judge it",
			"name metric.name and metric.patience"
	}
	return Warn, "nothing is seen of its loss",
		"give progress.pattern with the loss as a group, metric.name and metric.patience"
}

func spotProven(c *Case) (Verdict, string, string) {
	fix := "run a short one, interrupt it and see it go on"
	if c.Job.Checkpoint.Dir == "" {
		fix = "name the folder that it saves to under checkpoint.dir, or let it run on on-demand machines only"
	}
	if !c.onSpot() {
		return Pass, "it never runs on spot", ""
	}
	d, known := c.length()
	if known && d <= LongRun {
		return Pass, fmt.Sprintf("it takes %s: not long", draw.Span(d)), ""
	}
	long := "its duration is unknown"
	if known {
		long = "it takes " + draw.Span(d)
	}
	for _, r := range c.Runs {
		if len(r.Resumes) > 0 {
			return Pass, fmt.Sprintf("%s went on from its checkpoint %s", r.Job, times(len(r.Resumes))), ""
		}
	}
	text := long + ", it may run on spot, and no earlier run was seen to go on from a checkpoint"
	if c.Force {
		return Warn, text + " (forced)", fix
	}
	return Fail, text, fix + "; or give --force"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// stated judges an item that only the user can know.
func stated(c *Case, name, fix string) (Verdict, string, string, bool) {
	yes, ok := c.said(name)
	switch {
	case !ok:
		return Unknown, "", "", false
	case yes && strings.EqualFold(c.Facts[name], "yes"), yes && strings.EqualFold(c.Facts[name], "true"):
		return Pass, "you say so", "", true
	case yes:
		return Pass, "you say " + c.Facts[name], "", true
	}
	return Warn, "you say no", fix, true
}

// deployed judges an item of deployment by the user's statement, or else by what the serving program mentions.
func deployed(c *Case, name, nothing, fix string, find func() (mention, bool)) (Verdict, string, string) {
	if v, evidence, fix, ok := stated(c, name, fix); ok {
		return v, evidence, fix
	}
	if !c.trains() && find != nil {
		if m, ok := find(); ok && !m.only && !m.off {
			return Pass, m.where, ""
		}
	}
	if c.trains() && find != nil {
		nothing = "the job trains; nothing is said of what will be deployed"
	}
	return Unknown, nothing, fact.Supply(name)
}

func quantised(c *Case) (Verdict, string, string) {
	const fix = "8 bit weights need half the memory of 16 bit ones, often a smaller machine"
	if f := c.Facts["quantised"]; fact.Wide(f) {
		return Warn, "you say " + f, fix
	}
	return deployed(c, "quantised", "the number format in which it is served is unknown", fix, func() (mention, bool) {
		return c.find(quantForm)
	})
}

func pruning(c *Case) (Verdict, string, string) {
	return deployed(c, "pruning", "unknown whether it was considered", "consider it: pruned weights need not be served",
		nil)
}

func distillation(c *Case) (Verdict, string, string) {
	return deployed(c, "distillation", "unknown whether it was considered",
		"consider it: a smaller student of this model may suffice", nil)
}

func onnx(c *Case) (Verdict, string, string) {
	return deployed(c, "onnx", "the form in which it is served is unknown",
		"export it to ONNX, or compile it, and measure", func() (mention, bool) {
			return c.find(onnxForm)
		})
}

func predictionCost(c *Case) (Verdict, string, string) {
	rate, err := strconv.ParseFloat(c.Facts["predictions_per_second"], 64)
	if err != nil || !(rate > 0) {
		return Unknown, "the predictions per second of a machine are unknown", fact.Supply("predictions_per_second")
	}
	f := c.wanted()
	f.Capacity = []market.Capacity{market.OnDemand}
	l, ok := c.cheapest(f, 0)
	if !ok {
		return Unknown, "the catalogue has no machine like that with a price in dollars",
			"scrimp catalog update fetches more; scrimp offers shows what there is"
	}
	return Pass, fmt.Sprintf("%s for a million, at %g a second on %s when it is never idle",
		usd(l.Quote.Rate.Float()/3600/rate*1e6), rate, hourly(l)), ""
}

// live qualifies the evidence of a production item if the job is not in production.
func (c *Case) live(text string) string {
	if c.serves() {
		return text
	}
	return "this job is not in production, and " + text
}

func scaling(c *Case) (Verdict, string, string) {
	const fix = "let it scale with its load, down to none where seconds of start-up may pass: idle machines cost " +
		"as much as busy ones"
	if v, evidence, fix, ok := stated(c, "scale_to_zero", fix); ok {
		if v == Warn && c.serves() {
			v = Fail
		}
		return v, evidence, fix
	}
	if m, ok := c.find(scaleForm); ok && c.serves() && !m.only && m.value == "0" {
		return Pass, m.where, ""
	} else if ok && c.serves() && !m.only && m.value != "" {
		return Warn, m.where + ": so many run when nobody asks", fix
	}
	return Unknown, c.live("unknown whether it scales"), fact.Supply("scale_to_zero")
}

func batching(c *Case) (Verdict, string, string) {
	if v, evidence, fix, ok := stated(c, "dynamic_batching",
		"batch requests that come within milliseconds of each other: an accelerator serves several for little "+
			"more than one"); ok {
		return v, evidence, fix
	}
	if m, ok := c.find(batchingForm); ok && c.serves() && !m.only && !m.off {
		return Pass, m.where + " batches requests by itself", ""
	}
	return Unknown, c.live("unknown whether requests are batched"), fact.Supply("dynamic_batching")
}

func rightSizing(c *Case) (Verdict, string, string) {
	const month = 31 * 24 * time.Hour
	if s := c.Facts["reviewed"]; s != "" {
		at, err := time.Parse(time.DateOnly, s)
		age := c.Now.Sub(at)
		switch {
		case err != nil || age < -24*time.Hour:
			return Unknown, "you say that it was reviewed on " + s + ", which is no day that has been", fact.Supply("reviewed")
		case age > month:
			return Warn, fmt.Sprintf("you say that it was reviewed on %s, %d days ago", s, age/(24*time.Hour)),
				"review it every month: scrimp offers shows what a smaller machine costs"
		}
		return Pass, "you say that it was reviewed on " + s, ""
	}
	for _, r := range c.Runs {
		if r.Utilisation.OK && !r.Finished.IsZero() && c.Now.Sub(r.Finished) <= month {
			return Pass, fmt.Sprintf("%s used %.0f %% within the month", r.Job, r.Utilisation.V*100), ""
		}
	}
	return Unknown, c.live("no run within a month was measured"), fact.Supply("reviewed")
}

func alerts(c *Case) (Verdict, string, string) {
	j := c.Job
	limit := j.Budget.Dollars != nil || j.Budget.GPUHours > 0 || j.Budget.WallClock > 0
	if yes, ok := c.said("alerts"); ok && yes {
		if limit || !c.serves() {
			return Pass, "you say so", ""
		}
		return Warn, "you say that alerts are there; the cost has no limit", "give budget"
	}
	switch {
	case !j.Notify.IsZero() && limit:
		return Pass, "notify and budget are set", ""
	case !c.serves():
		return Unknown, c.live("unknown whether cost and failures raise alerts"), fact.Supply("alerts")
	case !j.Notify.IsZero():
		return Warn, "notify is set, and the cost has no limit", "give budget"
	case limit:
		return Warn, "a budget is set, and nobody hears when it is reached",
			"set notify: a webhook or e-mail addresses that hear of it"
	}
	return Fail, "neither notify nor a budget is set", "give both in the job file"
}

func productionTags(c *Case) (Verdict, string, string) {
	_, missing := c.owners()
	if yes, ok := c.said("production_tags"); ok {
		if yes {
			return Pass, "you say so", ""
		}
		return Fail, "you say no", "tag every resource with team, project and environment"
	}
	switch {
	case !c.serves():
		return Unknown, c.live("unknown whether its serving resources are tagged"), fact.Supply("production_tags")
	case len(missing) > 0:
		return Fail, "no " + strings.Join(missing, ", no "), "name them in the job file: they stand on every cost"
	case c.Job.ModelVersion == "" && c.Job.Tags["model_version"] == "":
		return Warn, "no model_version: nobody can say which model a cost is of", "name model_version in the job file"
	}
	return Pass, "team, project, environment and model version are named", ""
}
