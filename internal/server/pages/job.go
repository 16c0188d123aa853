package pages

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// jobPage shows one job.
type jobPage struct {
	client.Job
	Now        time.Time
	Path       string // address of the page
	Data       string // address of its JSON
	Receipt    *client.Receipt
	Timeline   template.HTML
	Spend      template.HTML
	Curves     []curve // of the metrics
	MoreCurves []curve // folded
	NoCurves   int     // metrics without a curve on the page
	Use        []useChart
	Telemetry  *client.Telemetry
	Facts      []fact
	Reason     string            // a sentence about the job's state
	Decisions  []client.Decision // newest first
	MoreWhy    int               // decisions not listed
	Outputs    []client.Outputs
	Saved      []client.Checkpoint
	Log        string
	Actions    []action
	CanChange  bool
	CanSubmit  bool    // the reader may run it again
	Done       float64 // share of the steps
	HasDone    bool
	SpentOf    float64 // share of the budget
	HasBudget  bool
	// TimeUsed is the elapsed share of the time until the deadline.
	TimeUsed    float64
	HasTimeUsed bool
	More        string        // what it still costs by its forecast; "": unknown
	Ends        string        // in how much time it ends by its forecast, in wall time
	Schedule    template.HTML // of the time until the deadline: what is over, and when it ends by its forecast
	Tips        []client.Tip
}

// fact is the average and peak of a telemetry metric.
type fact struct{ Name, Average, Peak string }

const (
	mostDecisions = 10
	logLines      = 200
	mostLog       = 128 << 10 // bytes of output on a page
	mostLine      = 2000      // characters of a line of output
)

func job(v *visit) (any, error) {
	id := v.r.PathValue("id")
	at := "/v1/jobs/" + url.PathEscape(id)
	p := &jobPage{Now: v.now, Path: "/jobs/" + url.PathEscape(id), Data: "/data/jobs/" + url.PathEscape(id)}
	if err := v.get(at, &p.Job); err != nil {
		return nil, err
	}
	p.Reason = reasonOf(p.Job)
	p.shares(v)
	p.foresee(v)
	var r client.Receipt
	if err := v.get(at+"/receipt", &r); err == nil { // on an error, the page goes without a receipt
		p.Receipt, p.Tips = &r, r.Tips
		p.Timeline, p.Spend = template.HTML(timeline(r)), template.HTML(spendChart(r))
	}
	var t client.Telemetry
	if v.get(at+"/telemetry?last=6h", &t) == nil && len(t.Nodes) > 0 {
		p.Telemetry, p.Use = &t, useCharts(t)
		p.Facts = figures(t)
	}
	var curves client.Curves
	if v.get(at+"/curves", &curves) == nil {
		p.draw(curves)
	}
	if err := v.get(at+"/explain", &p.Decisions); err != nil {
		return nil, err
	}
	slices.Reverse(p.Decisions)
	if n := len(p.Decisions); n > mostDecisions {
		p.Decisions, p.MoreWhy = p.Decisions[:mostDecisions], n-mostDecisions
	}
	_ = v.get(at+"/kept", &p.Outputs) // on an error, the page lists no outputs
	_ = v.get(at+"/checkpoints", &p.Saved)
	p.Log, p.CanSubmit = v.output(at), atLeast(v.me.Best, client.Submitter)
	for _, a := range actions {
		if a.Name == "change" {
			p.CanChange = v.may(a.Name, p.Job)
		} else if a.do == nil && v.may(a.Name, p.Job) {
			p.Actions = append(p.Actions, a)
		}
	}
	return p, nil
}

// Postings returns the address of the job's charges, as a file.
func (p *jobPage) Postings() string { return postingsOf("job", p.ID) }

// reasonOf returns why a job is in its state; "": the state explains itself.
func reasonOf(j client.Job) string {
	switch {
	case j.Why == "cancelled_by_user" || j.Why == "stopped_by_user": // the detail is of what it did before
	case j.Detail != "":
		return j.Detail
	case j.State == "failed" && j.Exit != 0:
		return fmt.Sprintf("The program ended with exit code %d.", j.Exit)
	case j.State == "running" || j.State == "succeeded":
		return ""
	}
	return cmp.Or(plan.Reason(j.Why).Text(), readable(j.Why))
}

// shares computes the used shares of the steps, the budget and the time.
func (p *jobPage) shares(v *visit) {
	if p.Total != nil && *p.Total > 0 {
		p.Done, p.HasDone = float64(p.Step)/float64(*p.Total), true
	}
	if p.Budget != nil && p.Budget.Sign() > 0 {
		p.SpentOf, p.HasBudget = p.Spent.Float()/p.Budget.Float(), true
	}
	if p.Deadline != nil && p.Deadline.After(p.Submitted) {
		at := v.now
		if p.Finished != nil {
			at = *p.Finished
		}
		p.TimeUsed, p.HasTimeUsed = at.Sub(p.Submitted).Seconds()/p.Deadline.Sub(p.Submitted).Seconds(), true
	}
}

// foresee formats the forecast of a running job, and what a waiting one is expected to cost.
func (p *jobPage) foresee(v *visit) {
	if q, known := stillCosts(p.Job); known {
		p.More = between(func(f float64) string { return money.ShortFloat(f, p.Currency) }, &q)
	}
	o := p.Outlook
	if o == nil || p.Finished != nil || p.Speed <= 0 {
		return
	}
	var ends [3]float64 // wall time
	for i, s := range o.FinishS {
		ends[i] = s / p.Speed
	}
	p.Ends = between(lasting, &ends)
	if p.Deadline == nil || !p.Deadline.After(p.Submitted) {
		return
	}
	gone, whole := v.now.Sub(p.Submitted).Seconds(), p.Deadline.Sub(p.Submitted).Seconds()
	until := [3]float64{gone + ends[0], gone + ends[1], gone + ends[2]}
	p.Schedule = scheduleBar(gone, until, whole)
}

// output returns the end of the job's output.
func (v *visit) output(at string) string {
	ctx, stop := context.WithCancel(v.r.Context())
	defer stop()
	got := &answer{header: http.Header{}, most: mostLog, done: stop}
	r, err := v.request(ctx, http.MethodGet, fmt.Sprintf("%s/log?tail=%d", at, logLines), http.NoBody)
	if err != nil {
		return ""
	}
	func() {
		defer func() { _ = recover() }() // show a truncated response as far as it came
		v.site.API.ServeHTTP(got, r)
	}()
	if got.status >= http.StatusBadRequest {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(strings.ToValidUTF8(got.body.String(), "\uFFFD")) {
		line = strings.TrimRight(line, "\r\n")
		if at := strings.LastIndexByte(line, '\r'); at >= 0 { // progress bars overwrite their line
			line = line[at+1:]
		}
		if len(line) > mostLine {
			line = strings.ToValidUTF8(line[:mostLine], "") + " … (cut)"
		}
		b.WriteString(line + "\n")
	}
	if got.over {
		b.WriteString("… (cut: scrimp logs has all of it)\n")
	}
	return b.String()
}

// timeline draws the attempts by offer, with the interruptions of their machines.
func timeline(r client.Receipt) string {
	var blocks []draw.Block
	var marks []draw.Mark
	for _, t := range r.Tries {
		// The price comes first: the drawing cuts a long lane at its end.
		lane := rateText(t.Rate, r.Currency) + " " + t.Offer
		begun := t.Until
		if t.Begun != nil {
			begun = *t.Begun
			blocks = append(blocks, draw.Block{Lane: lane, From: begun, To: t.Until, Use: string(client.Useful),
				Title: fmt.Sprintf("%s on %s: steps %d to %d, %s, %s", t.Attempt, t.Capacity, t.First, t.Last,
					money.Short(t.Cost, r.Currency), receipt.EndText(t.End))})
		}
		blocks = append(blocks, draw.Block{Lane: lane, From: t.From, To: begun, Use: string(client.StartUp),
			Title: t.Attempt + " starts"})
		if x := t.Preemption; x != nil {
			marks = append(marks, draw.Mark{Lane: lane, At: t.Until, Class: "notice", Title: "preempted by " + x.By})
		}
		for _, i := range r.Interruptions {
			if i.Instance == t.Instance || slices.ContainsFunc(t.Nodes, func(n client.Node) bool {
				return n.Instance == i.Instance
			}) {
				class, text := "kill", "interrupted without notice"
				if i.Notice > 0 {
					class, text = "notice", fmt.Sprintf("interrupted after %.0f s of notice", i.Notice)
				}
				marks = append(marks, draw.Mark{Lane: lane, At: i.MarketAt, Class: class, Title: text})
			}
		}
	}
	g := draw.Gantt{Title: "Attempts over time, by offer", Blocks: blocks, Marks: marks,
		Keys: []draw.Key{{Use: "start-up", Says: "start-up"}, {Use: "useful", Says: "the program runs"}}}
	if len(marks) > 0 {
		says := "interrupted"
		if r.Preempted > 0 {
			says = "interrupted or preempted"
		}
		g.Keys = append(g.Keys, draw.Key{Use: "mark", Says: says})
	}
	if r.DeadlineMarket != nil && len(blocks) > 0 {
		first, last := blocks[0].From, blocks[len(blocks)-1].To
		if d := *r.DeadlineMarket; d.Sub(first) < 4*max(last.Sub(first), time.Minute) { // else attempts shrink to dots
			g.Until, g.Line = d, "deadline"
			g.Keys = append(g.Keys, draw.Key{Use: "until", Says: "deadline"})
		}
	}
	return g.SVG()
}

// spendChart draws the spending over time and the budget.
func spendChart(r client.Receipt) string {
	if n := len(r.Spend); n < 2 || r.Spend[n-1].At.Sub(r.Spend[0].At) < time.Second { // an axis needs a span
		return ""
	}
	line := draw.Series{Name: "spent", Class: "one"}
	for _, s := range r.Spend {
		line.Points = append(line.Points, draw.Point{X: s.At.Sub(r.SubmittedMarket).Seconds(), Y: s.Amount.Float()})
	}
	all := []draw.Series{line}
	flat := func(name, class string, a *money.Amount) {
		if a != nil && a.Float() < 5*r.Cost.Float() { // a line far above would flatten the other
			all = append(all, draw.Series{Name: name, Class: class, Points: []draw.Point{
				{X: line.Points[0].X, Y: a.Float()}, {X: line.Points[len(line.Points)-1].X, Y: a.Float()}}})
		}
	}
	flat("budget", "limit", r.Budget)
	flat("on-demand", "two", r.OnDemandCost)
	return draw.Lines("Spend over time", all, draw.Moment,
		func(v float64) string { return money.ShortFloat(v, r.Currency) })
}

// curve is the drawing of a metric.
type curve struct {
	Name    string
	Judges  bool // the job is judged by it
	Drawing template.HTML
}

// Metrics whose curves a page shows, and those that it folds.
const (
	openCurves   = 6
	foldedCurves = 24
)

// draw draws the metrics that the job reports, up to a number of them.
func (p *jobPage) draw(of client.Curves) {
	p.NoCurves = of.More
	for _, c := range of.Curves {
		drawing := curveOf(c)
		switch one := (curve{draw.Cut(c.Metric, 60), c.Judges, drawing}); {
		case drawing == "": // a point is no curve; the terms list its value
		case len(p.Curves) < openCurves:
			p.Curves = append(p.Curves, one)
		case len(p.MoreCurves) < foldedCurves:
			p.MoreCurves = append(p.MoreCurves, one)
		default:
			p.NoCurves++
		}
	}
}

// curveOf draws a metric over time; "" if there are fewer than two points.
func curveOf(c client.Curve) template.HTML {
	if len(c.Points) < 2 {
		return ""
	}
	name := draw.Cut(c.Metric, 60)
	line := draw.Series{Name: "", Class: "one"}
	for _, p := range c.Points {
		line.Points = append(line.Points, draw.Point{X: p.MarketAt.Sub(c.Points[0].MarketAt).Seconds(), Y: p.Value})
	}
	return template.HTML(draw.Lines(name+" over time", []draw.Series{line}, draw.Moment, draw.Tick))
}

// figures lists the average and peak of each metric of the machines.
func figures(t client.Telemetry) (list []fact) {
	for _, name := range slices.Sorted(maps.Keys(t.Figures)) {
		f := t.Figures[name]
		list = append(list, fact{metricName(name), measured(name, f.Average), measured(name, f.Peak)})
	}
	return list
}

// metricName returns the readable name of a metric, without its unit.
func metricName(name string) string {
	for _, unit := range []string{"_utilization_ratio", "_ratio", "_bytes_per_second", "_bytes", "_watts", "_celsius"} {
		if short, ok := strings.CutSuffix(name, unit); ok {
			name = short
			break
		}
	}
	return strings.NewReplacer("_", " ", "cpu", "CPU", "gpu", "GPU", "iowait", "I/O wait").Replace(name)
}

// measured formats the value of a metric with its unit, which is the suffix of the name.
func measured(name string, v float64) string {
	switch {
	case strings.HasSuffix(name, "_ratio"):
		return fmt.Sprintf("%.0f %%", v*100)
	case strings.HasSuffix(name, "_bytes"):
		return size.About(v)
	case strings.HasSuffix(name, "_bytes_per_second"):
		return size.About(v) + "/s"
	case strings.HasSuffix(name, "_watts"):
		return fmt.Sprintf("%.0f W", v)
	case strings.HasSuffix(name, "_celsius"):
		return fmt.Sprintf("%.0f °C", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// readable formats a machine-readable reason for people.
func readable(reason string) string { return strings.ReplaceAll(reason, "_", " ") }
