// Package retrain decides whether a due run of a schedule begins: by new data, by the price of its machine, and by what
// the run is worth against what it costs. It only compares figures that the server has read.
package retrain

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/pipeline"
)

// Conditions must all hold before a due run of a schedule begins.
type Conditions struct {
	Data  *Data  `json:"on_data,omitempty"`
	Price *Price `json:"not_before,omitempty"`
	Pays  *Pays  `json:"when_it_pays,omitempty"`
}

// Data asks for new objects below a path. An object is new if it is newer than what the last run that began has seen.
type Data struct {
	Path    string `json:"path"` // a folder of the server, or the address of a bucket
	AtLeast int    `json:"at_least"`
}

// Price asks for an hour's price of at most Most. The run begins at any price once it has waited for By.
type Price struct {
	Most money.Rate    `json:"most"`
	By   time.Duration `json:"by_ns"`
}

// Pays asks that the expected gain of a metric is worth at least the expected cost of the run.
type Pays struct {
	Value   money.Amount `json:"value_of_point"`
	Metric  string       `json:"metric"`           // STAGE.NAME
	Point   string       `json:"point,omitempty"`  // how much of the metric a point is, a decimal; "": 0.01
	Goal    string       `json:"goal,omitempty"`   // maximize or minimize; "": maximize
	AtLeast int          `json:"runs,omitempty"`   // earlier gains that an estimate needs; 0: LeastGains
	Latest  int          `json:"latest,omitempty"` // days after the last run at which the next begins anyway; 0: never
	Stage   string       `json:"stage,omitempty"`  // the part of Metric that names the stage, set by Check
	Figure  string       `json:"figure,omitempty"` // the other part
}

// Bounds of conditions.
const (
	LeastGains = 3 // default of Pays.AtLeast
	lineFrom   = 5 // gains from which a line is fitted; fewer give an average
	// Again is how often the server looks again while a run waits for a price.
	Again    = 10 * time.Minute
	leastBy  = time.Minute
	mostBy   = 7 * 24 * time.Hour
	mostPath = 4096
	MostDays = 3650
	MostNew  = 1_000_000_000
	MostRuns = 100
	// Every is the schedule of a pipeline that gives on_data and no cron.
	Every = "*/15 * * * *"
)

// Names of the conditions, as a pipeline file writes them.
const (
	OnData     = "on_data"
	NotBefore  = "not_before"
	WhenItPays = "when_it_pays"
)

// Any reports whether there is a condition.
func (c Conditions) Any() bool { return c.Data != nil || c.Price != nil || c.Pays != nil }

// Problem is an error in a condition with its field.
type Problem struct {
	Field string
	Err   error
}

func (p *Problem) Error() string { return p.Field + ": " + p.Err.Error() }

func (p *Problem) Unwrap() error { return p.Err }

func wrong(field, format string, a ...any) error { return &Problem{field, fmt.Errorf(format, a...)} }

// Check completes the conditions of a pipeline, or returns the first *Problem.
func (c *Conditions) Check(p *pipeline.Spec) error {
	if d := c.Data; d != nil {
		if err := d.check(); err != nil {
			return err
		}
	}
	if x := c.Price; x != nil {
		switch {
		case x.Most <= 0:
			return wrong(NotBefore, "the price must be above zero: write not_before: price <= $1.20")
		case x.By < leastBy || x.By > mostBy:
			return wrong("by", "%s: write how long a run waits for the price at most, 1m to 7d, such as by: 6h", x.By)
		}
	}
	if c.Pays == nil {
		return nil
	}
	return c.Pays.check(p)
}

func (d *Data) check() error {
	switch {
	case d.Path == "" || len(d.Path) > mostPath || strings.ContainsAny(d.Path, "\x00\n\r"):
		return wrong(OnData, "write a folder or a bucket of at most %d bytes, such as s3://bucket/new", mostPath)
	case d.AtLeast < 1 || d.AtLeast > MostNew:
		return wrong("at_least", "%d: write how many new objects a run needs, 1 to %d", d.AtLeast, MostNew)
	}
	return nil
}

func (x *Pays) check(p *pipeline.Spec) error {
	if x.Point == "" {
		x.Point = "0.01"
	}
	point, err := pipeline.Decimal(x.Point)
	switch {
	case x.Value.Sign() <= 0:
		return wrong(WhenItPays+".value_of_point", "write what a point of the metric is worth, above zero, such as $50")
	case err != nil || point.Sign() <= 0 || len(x.Point) > 40:
		return wrong(WhenItPays+".point", "%.40q: write how much of the metric a point is, such as 0.01", x.Point)
	case x.Goal != "" && x.Goal != pipeline.Maximize && x.Goal != pipeline.Minimize:
		return wrong(WhenItPays+".goal", "%.40q: write maximize or minimize", x.Goal)
	case x.AtLeast < 0 || x.AtLeast > MostRuns:
		return wrong(WhenItPays+".runs", "%d: write how many earlier gains an estimate needs, 1 to %d", x.AtLeast, MostRuns)
	case x.Latest < 0 || x.Latest > MostDays:
		return wrong(WhenItPays+".latest", "%d days: write 1d to %dd", x.Latest, MostDays)
	}
	if x.AtLeast == 0 {
		x.AtLeast = LeastGains
	}
	n, figure, err := p.Reported(x.Metric)
	if err != nil {
		return &Problem{WhenItPays + ".metric", err}
	}
	x.Stage, x.Figure = p.Stages[n].Name, figure
	return nil
}

// Mark is what a run has seen of the objects below a path: the time of the newest, and how many have that time. Objects
// with a later time are new, and so are further objects with exactly that time.
type Mark struct {
	Newest time.Time `json:"newest,omitzero"`
	Count  int       `json:"count,omitempty"`
	Ahead  int       `json:"ahead,omitempty"` // objects that a wrong clock has dated later than their listing
}

// Seen is a listing of a path, or why it failed.
type Seen struct {
	Mark
	New int    // objects that are newer than the mark of the last run
	Err string // a sentence; "": the listing is complete
}

// Counter counts the objects of a listing.
type Counter struct {
	since Mark
	now   time.Time
	same  int // objects of exactly the time of since
	seen  Seen
}

// NewCounter returns a counter of the objects that are newer than a mark. now is the time of the listing.
func NewCounter(since Mark, now time.Time) *Counter {
	return &Counter{since: since, now: now, seen: Seen{Mark: Mark{Newest: since.Newest}}}
}

// Add counts an object that was last written at t.
func (c *Counter) Add(t time.Time) {
	x := &c.seen
	switch {
	case t.After(c.now):
		x.Ahead++
		return
	case t.Equal(x.Newest):
		x.Count++
	case t.After(x.Newest):
		x.Newest, x.Count = t, 1
	}
	switch {
	case t.After(c.since.Newest):
		x.New++
	case t.Equal(c.since.Newest):
		c.same++
	}
}

// Seen returns the listing.
func (c *Counter) Seen() Seen {
	x := c.seen
	x.New += max(0, c.same-c.since.Count) + max(0, x.Ahead-c.since.Ahead)
	return x
}

// Check is what a condition compared, and whether it lets the run begin.
type Check struct {
	Condition string `json:"condition"` // on_data, not_before or when_it_pays
	Pass      bool   `json:"pass"`
	Why       string `json:"why"` // a sentence with the figures
	// Data, Price or Pays has the figures.
	Data  *DataCheck  `json:"data,omitempty"`
	Price *PriceCheck `json:"price,omitempty"`
	Pays  *PaysCheck  `json:"pays,omitempty"`
}

// DataCheck has the figures of on_data.
type DataCheck struct {
	New     int  `json:"new_objects"`
	AtLeast int  `json:"at_least"`
	Mark    Mark `json:"mark,omitzero"` // of the listing; the next run counts from it if this one begins
}

// PriceCheck has the figures of not_before.
type PriceCheck struct {
	Price *money.Rate `json:"price,omitempty"` // nil: nothing for sale fits
	Most  money.Rate  `json:"most_price"`
	Offer string      `json:"offer,omitempty"`
	Until time.Time   `json:"until"` // when the run begins at any price
}

// PaysCheck has the figures of when_it_pays.
type PaysCheck struct {
	Gains     int           `json:"gains"`               // of earlier runs
	Estimator string        `json:"estimator,omitempty"` // "": too few runs for an estimate
	Gain      string        `json:"expected_gain,omitempty"`
	Low       string        `json:"lowest_gain,omitempty"` // of the earlier runs
	High      string        `json:"highest_gain,omitempty"`
	Worth     *money.Amount `json:"worth,omitempty"` // of the expected gain
	Cost      *money.Amount `json:"expected_cost,omitempty"`
	LeastCost *money.Amount `json:"lowest_cost,omitempty"` // of the earlier runs
	MostCost  *money.Amount `json:"highest_cost,omitempty"`
}

// Facts are what the server has read for the conditions of a run. Times are market time.
type Facts struct {
	Now      time.Time
	Since    time.Time   // when the run was due first: it may have waited for a price since then
	Data     *Seen       // nil without on_data
	Price    *money.Rate // of an hour of Offer; nil: nothing for sale fits
	Offer    string
	Past     []Past         // earlier runs that have the metric, in the order of their start
	Last     time.Time      // the start of the last run; zero: none
	Currency money.Currency // of all amounts and prices; "": US dollars
}

func (f *Facts) currency() money.Currency { return cmp.Or(f.Currency, money.USD) }

// Verdict is what comes of a due run.
type Verdict struct {
	Begin  bool
	Wait   time.Time // when the server looks again; zero: the run begins or is skipped
	Why    string    // a sentence
	Checks []Check
}

// Decide returns what comes of a due run. It skips the run at the first condition that does not hold. A price that is
// too high makes the run wait instead.
func (c Conditions) Decide(f Facts) (v Verdict) {
	if c.Data != nil {
		if v.add(c.Data.decide(f)); v.Why != "" {
			return v
		}
	}
	if c.Pays != nil {
		if v.add(c.Pays.decide(f, c.Data != nil)); v.Why != "" {
			return v
		}
	}
	if c.Price != nil {
		check := c.Price.decide(f)
		if v.add(check); !check.Pass {
			v.Wait = f.Now.Add(Again)
			if until := check.Price.Until; v.Wait.After(until) {
				v.Wait = until
			}
			return v
		}
	}
	v.Begin = true
	return v
}

// add adds a check. Why becomes the reason of one that does not hold.
func (v *Verdict) add(c Check) {
	v.Checks = append(v.Checks, c)
	if !c.Pass {
		v.Why = c.Why
	}
}

func (d *Data) decide(f Facts) Check {
	c := &DataCheck{AtLeast: d.AtLeast}
	x := Check{Condition: OnData, Data: c}
	if f.Data.Err != "" {
		x.Why = fmt.Sprintf("the new data was not counted: %s", f.Data.Err)
		return x
	}
	c.New, c.Mark, x.Pass = f.Data.New, f.Data.Mark, f.Data.New >= d.AtLeast
	x.Why = fmt.Sprintf("%s, and a run needs %d", plural(c.New, "new object"), d.AtLeast)
	return x
}

func (p *Price) decide(f Facts) Check {
	until := f.Since.Add(p.By)
	x := Check{Condition: NotBefore,
		Price: &PriceCheck{Price: f.Price, Most: p.Most, Offer: f.Offer, Until: until}}
	most := money.Short(p.Most.Until(time.Hour), f.currency())
	at := "nothing for sale fits"
	if f.Price != nil {
		at = fmt.Sprintf("%s costs %s an hour", f.Offer, money.Short(f.Price.Until(time.Hour), f.currency()))
	}
	switch {
	case f.Price != nil && *f.Price <= p.Most:
		x.Pass, x.Why = true, fmt.Sprintf("%s, at most %s", at, most)
		if waited := f.Now.Sub(f.Since).Truncate(time.Minute); waited > 0 {
			x.Why += ": the run has waited " + span(waited)
		}
	case !f.Now.Before(until):
		x.Pass, x.Why = true, fmt.Sprintf("%s, and the limit is %s: the run has waited %s and begins at any price", at, most,
			span(p.By))
	default:
		x.Why = fmt.Sprintf("%s, and the limit is %s: the run waits until %s UTC at most", at, most,
			until.UTC().Format("2006-01-02 15:04"))
	}
	return x
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// span formats a duration without trailing zeros, such as 6h or 1h30m.
func span(d time.Duration) string {
	text := d.String()
	text = strings.TrimSuffix(text, "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// decimal parses a metric; nil: it has no number, or one out of bounds.
func decimal(text string) *big.Rat {
	v, err := pipeline.Decimal(text)
	if err != nil || v.Num().BitLen()-v.Denom().BitLen() > mostBits {
		return nil
	}
	return v
}

// mostBits bounds the size of a metric: larger values are no figures to average.
const mostBits = 60
