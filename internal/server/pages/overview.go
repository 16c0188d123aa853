package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// sums holds a sum in each currency.
type sums map[money.Currency]money.Amount

// Lines returns the sums in the order of their currencies.
func (s sums) Lines() (list []sumLine) {
	for _, c := range slices.Sorted(maps.Keys(s)) {
		list = append(list, sumLine{c, s[c]})
	}
	return list
}

type sumLine struct {
	Currency money.Currency
	Amount   money.Amount
}

func (s sums) add(c money.Currency, a money.Amount) { s[c] = s[c].Add(a) }

// overviewPage shows what was spent, the present rate, the forecast, and what needs attention.
type overviewPage struct {
	Now              time.Time
	Market           time.Time // market time
	Day, Month       time.Time // market time from which each is counted
	Today, ThisMonth sums
	TodayPostings    string // address of what Today sums
	MonthPostings    string
	Saved            sums
	OnDemand         sums
	Compared         int // number of jobs that Saved covers
	Burning          map[money.Currency]money.Rate
	Machines         int
	Ahead            ahead
	Budgets          client.Budgets
	Attention        []attention
	More             int // entries of attention that are not listed
	Live             []client.Job
	Jobs, LiveAll    int
	Currency         money.Currency
	Uses             map[client.Use]money.Amount
}

// ahead is what unfinished jobs still cost: by the forecasts of those that have one, and at most by the budgets of
// the others.
type ahead struct {
	Low, High map[money.Currency]float64 // sums of the 10 % and the 90 % of the forecasts
	Running   int                        // running jobs with a forecast
	Waiting   int                        // waiting jobs with an estimate
	Most      sums
	Bounded   int // other jobs, with a budget
	Unknown   int // other jobs without a budget
}

// Foreseen is the number of jobs with a forecast.
func (a ahead) Foreseen() int { return a.Running + a.Waiting }

// stillCosts returns the 10 %, the median and the 90 % of what a job still costs; false if it is unknown.
func stillCosts(j client.Job) (q [3]float64, known bool) {
	switch {
	case j.Finished != nil:
	case j.Outlook != nil:
		return j.Outlook.Cost, true
	case j.Estimate != nil:
		return j.Estimate.Cost, true
	}
	return q, false
}

// willCost formats what a job still costs: its range, with the exact ends in the attributes.
func willCost(j client.Job) template.HTML {
	q, known := stillCosts(j)
	if !known {
		if j.Finished != nil {
			return `<span class="none dash">–</span>`
		}
		return unknown
	}
	text := between(func(f float64) string { return money.ShortFloat(f, j.Currency) }, &q)
	exact := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return element("data", text, "class", "money", "value", exact(q[0])+" "+exact(q[2]), "title",
		"10 % to 90 % of simulated runs, median "+money.ShortFloat(q[1], j.Currency))
}

// startsIn formats when a waiting job starts, in wall time; "": it does not wait, or the time is unknown.
func startsIn(j client.Job) string {
	if j.Finished != nil || j.Estimate == nil || j.Estimate.StartS == nil || j.Speed <= 0 {
		return ""
	}
	var wall [3]float64
	for i, s := range j.Estimate.StartS {
		wall[i] = s / j.Speed
	}
	return "starts " + draw.Starts(wall)
}

// Postings returns the address of what is spent of a limit in its window.
func (p *overviewPage) Postings(l client.Limit) string { return budgetPostings(p.Market, l) }

func (overviewPage) twin() string { return "/v1/costs" }

// mostAttention bounds the entries of attention on the overview.
const mostAttention = 12

// mostWaiting bounds the jobs that the overview reads for attention: the newest. mostLive bounds those that it lists.
const (
	mostWaiting = 1000
	mostLive    = 8
)

func overview(v *visit) (any, error) {
	at := v.server.Market.Now.UTC()
	p := &overviewPage{Now: v.now, Market: at, Day: time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC),
		Month: time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC), Jobs: v.server.Jobs, LiveAll: v.server.Live}
	var err error
	var today, month client.Costs
	if p.Today, today, err = v.spentSince(at, p.Day); err != nil {
		return nil, err
	}
	if p.ThisMonth, month, err = v.spentSince(at, p.Month); err != nil {
		return nil, err
	}
	p.TodayPostings = postingsOf("booked", bookedSince(today.Since))
	p.MonthPostings = postingsOf("booked", bookedSince(month.Since))
	p.Saved, p.OnDemand, p.Uses = sums{}, sums{}, map[client.Use]money.Amount{}
	for _, l := range month.Lines {
		if l.Saved != nil {
			p.Saved.add(l.Currency, *l.Saved)
			p.Compared += l.Compared
		}
		if l.OnDemand != nil {
			p.OnDemand.add(l.Currency, *l.OnDemand)
		}
	}
	var rented []client.Machine
	if err := v.get("/v1/machines", &rented); err != nil {
		return nil, err
	}
	p.Burning, p.Machines = map[money.Currency]money.Rate{}, len(rented)
	for _, m := range rented {
		p.Burning[m.Currency] += m.Rate
	}
	if err := v.get("/v1/budgets", &p.Budgets); err != nil {
		return nil, err
	}
	p.Currency = p.Budgets.Currency
	var open client.JobTotals
	if err := v.get("/v1/totals?live=1&by=state", &open); err != nil {
		return nil, err
	}
	p.Ahead = aheadOf(open.Lines)
	waiting, err := v.newest("attention=1", mostWaiting)
	if err != nil {
		return nil, err
	}
	if p.Live, err = v.newest("state=running,queued", mostLive); err != nil {
		return nil, err
	}
	failed, err := v.newest("state=failed&since="+url.QueryEscape(v.now.Add(-24*time.Hour).UTC().Format(time.RFC3339)), 20)
	if err != nil {
		return nil, err
	}
	p.Attention = attentions(v, waiting, failed, rented, p.Budgets)
	if n := len(p.Attention); n > mostAttention {
		p.Attention, p.More = p.Attention[:mostAttention], n-mostAttention
	}
	return p, nil
}

// newest returns the newest jobs that match a query, newest first.
func (v *visit) newest(match string, most int) (list []client.Job, err error) {
	err = v.get(fmt.Sprintf("/v1/jobs?%s&before=&limit=%d", match, most), &list)
	slices.Reverse(list)
	return list, err
}

// spentSince sums what was spent since a market time.
func (v *visit) spentSince(now, since time.Time) (sums, client.Costs, error) {
	of, costs := sums{}, client.Costs{}
	span := now.Sub(since).Round(time.Second)
	if err := v.get("/v1/costs?by=team&since="+max(span, time.Second).String(), &costs); err != nil {
		return nil, costs, err
	}
	for _, l := range costs.Lines {
		of.add(l.Currency, l.Spent)
	}
	return of, costs, nil
}

// Ranges lists the sums of the forecasts in the order of their currencies.
func (a ahead) Ranges() (list []string) {
	for _, c := range slices.Sorted(maps.Keys(a.High)) {
		low, high := money.ShortFloat(a.Low[c], c), money.ShortFloat(a.High[c], c)
		if low != high {
			low += " to " + high
		}
		list = append(list, low)
	}
	return list
}

// aheadOf adds up the sums of unfinished jobs by state.
func aheadOf(lines []client.JobTotal) ahead {
	a := ahead{Most: sums{}, Low: map[money.Currency]float64{}, High: map[money.Currency]float64{}}
	for _, l := range lines {
		if l.WillCost != nil {
			a.Low[l.Currency] += l.WillCost[0]
			a.High[l.Currency] += l.WillCost[1]
		}
		if l.Name == "running" {
			a.Running += l.Foreseen
		} else {
			a.Waiting += l.Foreseen
		}
		if l.AtMost != nil {
			a.Most.add(l.Currency, *l.AtMost)
		}
		a.Bounded, a.Unknown = a.Bounded+l.Bounded, a.Unknown+l.Unknown-l.Bounded
	}
	return a
}

// attention is an entry that needs a user's action, with that action.
type attention struct {
	Level   string // bad or wait
	What    string // short: the kind of entry
	Subject string
	Path    string // address of its page; "": none
	Text    string
	Since   time.Time
	Act     string // action that resolves it; "": a command does
	Job     string
	Label   string
	Command string
}

// attentions lists what needs a user's action, most urgent first.
func attentions(v *visit, waiting, failed []client.Job, rented []client.Machine, b client.Budgets) (list []attention) {
	if n := v.server.Undecided; n > 0 {
		list = append(list, attention{Level: "bad", What: "Machines", Subject: fmt.Sprint(n, " undecided"),
			Text: "An earlier server rented them. Each may still cost something.", Command: "scrimp adopt"})
	}
	for _, e := range v.server.Engines {
		if e.State == "away" || e.State == "not_configured" {
			list = append(list, attention{Level: "bad", What: "Engine", Subject: e.Name,
				Text: cmp.Or(e.Error, "It does not answer, or is not configured any more."), Since: e.Heard,
				Command: "scrimp doctor " + e.Name})
		}
	}
	for _, l := range b.Limits {
		if o := l.Outlook; o != nil && l.Limit.Dollars != nil && o.Breach != nil {
			list = append(list, attention{Level: "bad", What: "Budget", Subject: l.Limit.Name(),
				Text: fmt.Sprintf("It is expected to be reached on %s UTC, market time.",
					o.Breach.UTC().Format("2006-01-02 15:04")), Command: "scrimp budgets"})
		}
	}
	for _, j := range waiting {
		if a := attentionOf(v, j); a != nil {
			list = append(list, *a)
		}
	}
	for _, m := range rented {
		if m.State == client.MachineMissing {
			list = append(list, attention{Level: "bad", What: "Machine", Subject: m.Instance,
				Text: "Its engine does not list it any more. It may still cost something.", Command: "scrimp machines"})
		}
	}
	list = append(list, wasteful(v)...)
	for _, j := range failed {
		list = append(list, ofFailed(v, j))
	}
	list = together(list)
	slices.SortStableFunc(list, func(x, y attention) int {
		return cmp.Or(cmp.Compare(x.Level, y.Level), cmp.Compare(rank(x), rank(y)))
	})
	return list
}

// rank sorts jobs that only wait behind entries that a user answers.
func rank(a attention) int {
	if a.What == waits {
		return 1
	}
	return 0
}

// waits is the kind of the entries of jobs that wait for a machine.
const waits = "Waits"

// together makes one entry of the jobs that wait for the same reason.
func together(list []attention) (all []attention) {
	at, jobs := map[string]int{}, map[string]int{}
	for _, a := range list {
		if a.What != waits {
			all = append(all, a)
			continue
		}
		if jobs[a.Text]++; jobs[a.Text] == 1 {
			at[a.Text] = len(all)
			all = append(all, a)
			continue
		}
		one := &all[at[a.Text]]
		one.Subject, one.Path, one.Command = fmt.Sprint(jobs[a.Text], " jobs"), "/jobs?state=queued", "scrimp queue"
		one.Text = strings.Replace(a.Text, "waits", "wait", 1)
		if a.Since.Before(one.Since) {
			one.Since = a.Since
		}
	}
	return all
}

// ofFailed is the attention for a job that failed.
func ofFailed(v *visit, j client.Job) attention {
	a := attention{Level: "bad", What: "Failed", Subject: j.ID, Path: "/jobs/" + url.PathEscape(j.ID), Job: j.ID,
		Text: reasonOf(j), Command: "scrimp resume " + j.ID}
	if j.Finished != nil {
		a.Since = *j.Finished
	}
	if v.may("resume", j) {
		a.Act, a.Label = "resume", "Resume"
	}
	return a
}

// attentionOf returns what an unfinished job needs from a user; nil: nothing.
func attentionOf(v *visit, j client.Job) *attention {
	a := attention{Level: "wait", Subject: j.ID, Path: "/jobs/" + url.PathEscape(j.ID), Job: j.ID, Since: j.Submitted}
	switch {
	case j.State == "held":
		a.What, a.Text, a.Command = "Approval", "It waits for approval.", "scrimp approve "+j.ID
		if j.Approval != nil && j.Approval.Most != nil {
			a.Text = "It waits for approval. It can cost up to " + money.Short(*j.Approval.Most, j.Currency) + "."
		}
		if v.may("approve", j) {
			a.Act, a.Label = "approve", "Approve"
		}
	case j.Odds != nil && *j.Odds < 0.9 && j.Finished == nil:
		a.Level, a.What, a.Command = "bad", "Deadline", "scrimp explain "+j.ID
		a.Text = fmt.Sprintf("It ends in time with a chance of %.0f %%.", *j.Odds*100)
	case j.TimeLeft != nil && *j.TimeLeft < 0 && j.Finished == nil:
		a.Level, a.What, a.Text, a.Command = "bad", "Deadline", "It is late.", "scrimp explain "+j.ID
	case j.State == "queued" && j.Detail != "":
		a.What, a.Text, a.Command = waits, j.Detail, "scrimp explain "+j.ID
	default:
		return nil
	}
	return &a
}
