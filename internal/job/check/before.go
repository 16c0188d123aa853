package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
)

// price returns the run's expected cost in dollars and the source.
func (c *Case) price() (low, high float64, how string, ok bool) {
	if e := c.Estimate; e != nil && e.CostHigh > 0 {
		return e.CostLow, e.CostHigh, cmp.Or(e.Source, "the estimate"), true
	}
	if cost, how, ok := c.spent(); ok {
		return cost, cost, how, true
	}
	hours, known := c.length()
	if !known || c.Job.Work.Time == 0 {
		return 0, 0, "", false
	}
	f := c.wanted()
	cheap, ok := c.here(f)
	if !ok {
		return 0, 0, "", false
	}
	low = c.paid(cheap, hours)
	high = low
	how = fmt.Sprintf("%s on %s", draw.Span(hours), hourly(cheap))
	if c.WorkFrom != "" {
		how = fmt.Sprintf("%s (%s) on %s", draw.Span(hours), c.WorkFrom, hourly(cheap))
	}
	switch start := cheap.Offer.Boot; {
	case hours+start < cheap.Offer.Billing.Minimum:
		how += fmt.Sprintf(", billed for %s at least", draw.Span(cheap.Offer.Billing.Minimum))
	case start > 0:
		how += fmt.Sprintf(", and %s to start", draw.Span(start))
	}
	f.Capacity = []market.Capacity{market.OnDemand}
	if onDemand, ok := c.here(f); ok && onDemand.Quote.Rate > cheap.Quote.Rate && c.onSpot() {
		high = max(low, c.paid(onDemand, hours))
		how += ", or on " + hourly(onDemand)
	}
	if at := cheap.Quote.At; cheap.Stale(c.Now, cheap.Fresh()) {
		how += ", a price of unknown age"
		if !at.IsZero() {
			how = strings.TrimSuffix(how, "unknown age") + at.Format(time.DateOnly)
		}
	}
	return low, high, how, true
}

// paid returns the cost of the work on an offer in dollars, including the machine's start and a minimum charge.
func (c *Case) paid(l catalog.Listing, work time.Duration) float64 {
	span := max(work+l.Offer.Boot, l.Offer.Billing.Minimum)
	return l.Quote.Rate.Float() * span.Hours() * float64(c.Job.MostNodes())
}

// spent returns the cost of the newest successful run, scaled to this job's steps.
func (c *Case) spent() (cost float64, how string, ok bool) {
	for _, r := range c.Runs {
		if r.State != "succeeded" || !r.CostUSD.OK {
			continue
		}
		scale, more := 1.0, ""
		if r.Steps > 0 && c.Job.Work.Steps > 0 && r.Steps != c.Job.Work.Steps {
			scale = float64(c.Job.Work.Steps) / float64(r.Steps)
			more = fmt.Sprintf(", for %d steps instead of %d", c.Job.Work.Steps, r.Steps)
		}
		return r.CostUSD.V * scale, "what " + r.Job + " has cost" + more, true
	}
	return 0, "", false
}

func gigabytes(b size.Bytes) string { return fmt.Sprintf("%.1f GB", float64(b)/float64(size.GB)) }

func dollars(low, high float64) string {
	a, b := usd(low), usd(high)
	if a == b {
		return a
	}
	return a + " to " + b
}

// usd formats an estimate.
func usd(v float64) string { return money.ShortFloat(v, money.USD) }

func cost(c *Case) (Verdict, string, string) {
	low, high, how, ok := c.price()
	if !ok {
		return Unknown, "neither work.time, an estimate nor an earlier run says how much there is to do, or nothing " +
			"of that kind has a price", "give work.time, or let scrimp profile measure it"
	}
	return Pass, "about " + dollars(low, high) + ": " + how, ""
}

func machine(c *Case) (Verdict, string, string) {
	r, f := c.Job.Resources, c.wanted()
	if r.Accelerator == "" && f.CPUs == 0 && f.RAM == 0 {
		return Pass, "it asks for nothing in particular: the cheapest machine is taken", ""
	}
	take, ok := c.cheapest(f, 0)
	if !ok {
		return Unknown, "the catalogue has no machine like that with a price in dollars",
			"scrimp catalog update fetches more; scrimp offers shows what there is"
	}
	if peak := c.peak(); peak > 0 && f.Accelerator != "" {
		return c.holds(peak, take, f)
	}
	if u, ok := c.used(); ok && u >= 0.7 {
		return Pass, fmt.Sprintf("earlier runs used %.0f %% of it", u*100), ""
	}
	if len(c.Job.AnyOf) > len(c.Job.Places()) || alternatives(r.Accelerator, f) {
		return Pass, "it names alternatives, and the cheapest that does is taken", ""
	}
	below, all := c.rank(take)
	if all >= 5 && below*10 >= all*9 {
		return Warn, fmt.Sprintf("%s is dearer than %d of %d machine types of its kind, and nothing says that less "+
			"would not do", hourly(take), below, all), "give model and work for an estimate, or alternatives under any_of"
	}
	return Pass, fmt.Sprintf("%s; %d of %d machine types of its kind cost more", hourly(take), all-below, all), ""
}

// alternatives reports whether an accelerator request allows several counts.
func alternatives(accelerator string, f catalog.Filter) bool {
	return f.Most == 0 && f.Least > 0 && strings.Contains(accelerator, "+") || f.Most > f.Least
}

// peak returns the estimated memory per accelerator; 0 if unknown.
func (c *Case) peak() size.Bytes {
	if c.Estimate == nil {
		return 0
	}
	return c.Estimate.PeakMemory
}

// holds judges the machine by the estimated memory per accelerator.
func (c *Case) holds(peak size.Bytes, take catalog.Listing, f catalog.Filter) (Verdict, string, string) {
	name := hourly(take)
	if peak > take.AcceleratorMemory && take.AcceleratorMemory > 0 {
		return Fail, fmt.Sprintf("it needs %s on each accelerator, %s has %s", gigabytes(peak), name,
				gigabytes(take.Sold())),
			"ask for a larger one, or use accumulation, activation checkpointing or sharding"
	}
	free := f
	free.Accelerator = ""
	if small, ok := c.cheapest(free, peak); ok && small.Quote.Rate.Float() < 0.95*take.Quote.Rate.Float() &&
		f.Least <= small.Offer.Accelerators {
		return Warn, fmt.Sprintf("it needs %s on each accelerator; %s has that, and it asks for %s", gigabytes(peak),
			hourly(small), name), "compare both with scrimp plan: the slower machine may cost less in all"
	}
	return Pass, fmt.Sprintf("it needs %s on each accelerator, and nothing that has that is cheaper than %s",
		gigabytes(peak), name), ""
}

// listPriced reports whether an offer has an on-demand list price in dollars.
func listPriced(l *catalog.Listing) bool {
	return l.Offer.Capacity == market.OnDemand && l.Plain() && l.Quote.Priced && l.Offer.Currency == money.USD
}

// rank returns how many machine types, with or without accelerators like l, are cheaper than l, and how many there are.
func (c *Case) rank(l catalog.Listing) (below, all int) {
	price := l.Quote.Rate
	for _, o := range c.Offers { // on-demand prices are compared with each other
		if o.Offer.Machine == l.Offer.Machine && o.Offer.Provider == l.Offer.Provider && listPriced(&o) {
			price = max(price, o.Quote.Rate)
		}
	}
	seen := map[string]bool{}
	for _, o := range c.Offers {
		name := o.Offer.Provider + "/" + o.Offer.Machine
		if !listPriced(&o) ||
			(o.Offer.Accelerators > 0) != (l.Offer.Accelerators > 0) || seen[name] || o.Offer.Machine == l.Offer.Machine {
			continue
		}
		seen[name] = true
		all++
		if o.Quote.Rate < price {
			below++
		}
	}
	return below, all
}

func precision(c *Case) (Verdict, string, string) {
	if !c.trains() {
		return Pass, "the job does not train", ""
	}
	if said := c.Facts["precision"]; said != "" {
		return c.fits(said, "you say "+said)
	}
	if full, ok := c.find(fullForm); ok && !full.only {
		if m, mixed := c.find(precisionForm); !mixed || m.only || m.off {
			return Warn, "full precision: " + full.where,
				"train in bf16 or fp16: about twice the speed for half the activations' memory"
		}
	}
	m, ok := c.find(precisionForm)
	switch {
	case ok && m.only:
		return Warn, "the program knows " + m.where + ", and nothing passes it", "pass the flag"
	case ok && m.off:
		return Warn, "switched off: " + m.where, "switch it on"
	case ok:
		return c.fits(m.value, m.where)
	case c.Job.Resources.Accelerator == "":
		return Pass, "it asks for no accelerator: mixed precision gains nothing", ""
	}
	return Unknown, "neither command nor program names a precision", fact.Supply("precision")
}

// fits judges a precision on the requested accelerator.
func (c *Case) fits(format, evidence string) (Verdict, string, string) {
	format = strings.ToLower(format)
	switch {
	case format == "32" || format == "fp32" || format == "no" || format == "float32":
		return Warn, evidence, "train in bf16 or fp16: about twice the speed for half the activations' memory"
	case !strings.Contains(format, "bf16") && !strings.Contains(format, "bfloat16") && !strings.Contains(format, "fp8"):
		return Pass, evidence, ""
	}
	want := accelerator.BF16
	if strings.Contains(format, "fp8") {
		want = accelerator.FP8
	}
	for _, a := range accelerator.Accelerators() {
		kind, _, _ := strings.Cut(c.Job.Resources.Accelerator, ":")
		if !accelerator.Matches(kind, a.Name) {
			continue
		}
		if _, has := a.Dense(want); !has {
			return Warn, fmt.Sprintf("%s, and %s has no %s", evidence, a.Name, want), "take fp16, or a newer accelerator"
		}
	}
	return Pass, evidence, ""
}

func accumulation(c *Case) (Verdict, string, string) {
	if !c.trains() {
		return Pass, "the job does not train", ""
	}
	m, ok := c.find(accumForm)
	value, where := m.value, m.where
	if said := c.Facts["accumulation"]; said != "" {
		value, where, ok, m.only = said, "you say "+said, true, false
	}
	switch {
	case ok && m.only:
		return Warn, "the program knows " + where + ", and nothing passes it", "pass it where a smaller machine would do"
	case ok && (value == "1" || value == "0" || value == ""):
		return Warn, where + ": each batch goes through in one piece",
			"with more and smaller pieces a machine with less memory does the same work"
	case ok:
		return Pass, where, ""
	case c.Job.Resources.Accelerator == "":
		return Pass, "it asks for no accelerator into whose memory a batch must fit", ""
	}
	return Unknown, "neither the command nor the program says into how many pieces a batch is cut",
		fact.Supply("accumulation")
}

func checkpoints(c *Case) (Verdict, string, string) {
	j := c.Job
	long, known := c.length()
	if j.Checkpoint.Dir == "" {
		const fix = "name checkpoint.dir, and let the program save there and begin from what it finds"
		switch {
		case known && long <= shortRun:
			return Warn, fmt.Sprintf("it keeps no checkpoints; an interruption repeats up to %s", draw.Span(long)), fix
		case !c.onSpot():
			return Warn, "it keeps no checkpoints, and never runs on spot; a failure still repeats all", fix
		}
		return Fail, "it keeps no checkpoints and may run on spot: every interruption repeats all of it", fix
	}
	if v, evidence, fix, ok := c.unread(); ok {
		return v, evidence, fix
	}
	if at, err := time.ParseDuration(j.Checkpoint.Interval); err == nil && at > 30*time.Minute {
		return Warn, fmt.Sprintf("it saves every %s: so much is lost where there is no notice", draw.Span(at)),
			"checkpoint.interval: auto follows what a save costs and how often machines are interrupted"
	}
	if l, ok := c.shortNotice(); ok {
		return Warn, fmt.Sprintf("grace is %s, %s gives %s of notice", draw.Span(time.Duration(j.Grace)), l.Offer.Provider,
			draw.Span(l.Offer.Notice)), "a save must end within the notice: save less, or more often"
	}
	for _, r := range c.Runs {
		if r.Checkpoints > 0 {
			return Pass, fmt.Sprintf("%s, every %s; %s has kept %d", j.Checkpoint.Dir,
				cmp.Or(j.Checkpoint.Interval, "auto"), r.Job, r.Checkpoints), ""
		}
	}
	return Pass, fmt.Sprintf("%s, every %s; not seen to work yet", j.Checkpoint.Dir,
		cmp.Or(j.Checkpoint.Interval, "auto")), ""
}

// shortNotice is the first spot offer of the job that gives less notice than the grace that the job wants.
func (c *Case) shortNotice() (catalog.Listing, bool) {
	grace := time.Duration(c.Job.Grace)
	if grace <= 0 || !c.onSpot() {
		return catalog.Listing{}, false
	}
	f := c.wanted()
	f.Capacity = []market.Capacity{market.Spot}
	for _, l := range (catalog.Catalog{Listings: c.Offers}).Match(f) {
		if l.RuleSource != "" && l.Offer.Notice > 0 && grace > l.Offer.Notice {
			return l, true
		}
	}
	return catalog.Listing{}, false
}

// mostResume is the longest acceptable time until a program continues.
const mostResume = 5 * time.Minute

func resume(c *Case) (Verdict, string, string) {
	judge := func(d time.Duration, where string) (Verdict, string, string) {
		text := fmt.Sprintf("%s took %s from a machine to the next step", where, draw.Span(d))
		if d >= mostResume {
			return Fail, text, "shorten setup (an image with everything in it), and make the checkpoint smaller"
		}
		return Pass, text, ""
	}
	if d, err := time.ParseDuration(c.Facts["resume"]); err == nil {
		return judge(d, "you say that it")
	}
	for _, r := range c.Runs {
		if len(r.Resumes) > 0 {
			return judge(slices.Max(r.Resumes), r.Job)
		}
	}
	if c.Job.Checkpoint.Dir == "" && c.trains() {
		return Unknown, "it keeps no checkpoints to go on from", "name checkpoint.dir"
	}
	return Unknown, "no earlier run was seen to go on from a checkpoint",
		"interrupt a short run once on the local market, or " + fact.Supply("resume")
}

func earlyStopping(c *Case) (Verdict, string, string) {
	const fix = "name metric.name with metric.patience or metric.target: a plateau then ends the run, and the rest " +
		"of the money comes back"
	if !c.trains() {
		return Pass, "the job does not train", ""
	}
	m := c.Job.Metric
	switch {
	case m.Name != "" && m.Patience > 0:
		return Pass, fmt.Sprintf("%s: %d steps without improvement end it", m.Name, m.Patience), ""
	case m.Name != "" && m.Target != nil:
		return Pass, fmt.Sprintf("%s: reaching %g ends it", m.Name, *m.Target), ""
	}
	if yes, ok := c.said("early_stopping"); ok {
		if yes {
			return Pass, "you say that the program stops itself", ""
		}
		return Warn, "you say that it does not", fix
	}
	if found, ok := c.find(earlyForm); ok && !found.only && !found.off {
		return Pass, found.where, ""
	}
	if m.Name != "" {
		return Warn, fmt.Sprintf("%s is watched, and no plateau ends the run", m.Name), fix
	}
	return Warn, "no early stopping: the run goes to its last step", fix
}
