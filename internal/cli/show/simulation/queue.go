package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/pack/scheduler"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/queue"
)

// QueueReplay is the output of scrimp simulate queue.
type QueueReplay struct {
	Jobs     int           `json:"jobs"`
	Policies []QueuePolicy `json:"policies"`
	History  *PastQueue    `json:"history,omitempty"`
	Factor   float64       `json:"-"` // deadline factor of the misses that the text shows, if they were counted
}

// PastQueue is what a replay of the server's log was made of.
type PastQueue struct {
	Paid      float64       `json:"paid_usd"` // for the jobs that are replayed
	PaidExact money.Amount  `json:"-"`
	Types     []string      `json:"types"` // machine types, with their accelerators and vCPUs
	Omitted   queue.LeftOut `json:"left_out"`
	Earlier   int           `json:"earlier"` // submitted before --since
	Failed    int           `json:"not_succeeded"`
}

// Omitted says which jobs of the log a replay leaves out.
func Omitted(left queue.LeftOut, earlier, failed int) (list []string) {
	for _, n := range []struct {
		n    int
		what string
	}{{left.Unknown, "whose work was not measured"}, {left.Gangs, "on several machines"},
		{left.Large, "that no machine type for sale fits"}, {failed, "that did not succeed"},
		{earlier, "from before --since"}} {
		if n.n > 0 {
			list = append(list, draw.Count(n.n, "job")+" "+n.what)
		}
	}
	return list
}

// QueuePolicy is the result of one policy: its cost and the durations of jobs.
type QueuePolicy struct {
	Name   string             `json:"name"`
	Cost   float64            `json:"cost_usd"`
	Exact  money.Amount       `json:"-"`
	Mean   float64            `json:"mean_completion_hours"`
	P99    float64            `json:"p99_completion_hours"`
	Misses map[string]float64 `json:"misses"` // share of the jobs, by deadline factor
	Moves  float64            `json:"moves_per_job"`
	Round  QueueRound         `json:"round_ms"`
}

// QueueRound holds the durations of the scheduler's rounds in milliseconds.
type QueueRound struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// QueuePolicyOf returns the figures of a run.
func QueuePolicyOf(r queue.Result) QueuePolicy {
	p := QueuePolicy{Name: r.Policy, Cost: r.Cost.Float(), Exact: r.Cost, Mean: r.Mean / 3600, P99: r.P99 / 3600,
		Moves: r.Moves, Misses: map[string]float64{}}
	for i, f := range queue.Factors {
		p.Misses[strconv.FormatFloat(f, 'f', -1, 64)] = r.Misses[i]
	}
	p.Round = QueueRound{P50: milliseconds(r, 0.5), P99: milliseconds(r, 0.99), Max: milliseconds(r, 1)}
	return p
}

func milliseconds(r queue.Result, share float64) float64 {
	d, _ := r.Round(share) // zero without rounds
	return float64(d.Microseconds()) / 1000
}

// Text formats the result for people.
func (r QueueReplay) Text(p show.Place) string {
	whole := 0.0
	for _, q := range r.Policies {
		if q.Name == scheduler.NoPacking {
			whole = q.Cost
		}
	}
	factor := strconv.FormatFloat(r.Factor, 'f', -1, 64)
	if len(r.Policies) > 0 {
		if _, counted := r.Policies[0].Misses[factor]; !counted {
			factor = "1.25"
		}
	}
	var rows [][]string
	for _, q := range r.Policies {
		share := "-"
		if whole > 0 {
			share = fmt.Sprintf("%.2f %%", 100*q.Cost/whole)
		}
		rows = append(rows, []string{q.Name, money.Format(q.Exact, money.USD, 2), share, fmt.Sprintf("%.2f h", q.Mean),
			fmt.Sprintf("%.1f h", q.P99), fmt.Sprintf("%.2f %%", 100*q.Misses[factor]), fmt.Sprintf("%.2f", q.Moves),
			fmt.Sprintf("%.1f ms", q.Round.P99)})
	}
	var b strings.Builder
	if r.History != nil {
		b.WriteString(draw.Wrap("", draw.Count(r.Jobs, "job")+" of the log, for which "+
			money.Short(r.History.PaidExact, money.USD)+" was paid", p.Columns()) + "\n")
	}
	b.WriteString(draw.Grid([]draw.Column{{Name: "POLICY", Key: true}, {Name: "COST", Right: true},
		{Name: "SHARE", Right: true}, {Name: "MEAN", Right: true}, {Name: "P99", Right: true}, {Name: "LATE", Right: true},
		{Name: "MOVES", Right: true}, {Name: "ROUND", Right: true}}, rows, p.Columns()))
	b.WriteString("\n" + draw.Wrap("", draw.Count(r.Jobs, "job")+". SHARE is of the cost of no-packing. LATE "+
		"counts jobs that ended after "+factor+" times their work and 900 s; MOVES is per job, ROUND the computing "+
		"time that 99 % of the scheduler's rounds stayed below.", p.Columns()))
	if r.History != nil {
		b.WriteString(draw.Wrap("note: ", "machines come at once, on demand, at their last price and equally fast; the "+
			"scheduler decides every 300 s.", p.Columns()))
		for _, text := range Omitted(r.History.Omitted, r.History.Earlier, r.History.Failed) {
			b.WriteString(draw.Wrap("note: ", "left out: "+text, p.Columns()))
		}
	}
	return b.String()
}

// PackResults is the output of scrimp simulate pack.
type PackResults struct {
	Results []PackResult `json:"results"`
}

// PackResult is one packing.
type PackResult struct {
	Tasks    int          `json:"tasks"`
	Policy   string       `json:"policy"`
	Machines int          `json:"machines"`
	Cost     float64      `json:"cost_usd_per_hour"`
	Exact    money.Amount `json:"-"`
	Bound    float64      `json:"lp_bound_usd_per_hour"`
	Seconds  float64      `json:"seconds"`
}

// Text formats the result for people.
func (r PackResults) Text(p show.Place) string {
	var rows [][]string
	for _, q := range r.Results {
		above := "-"
		if q.Bound > 0 {
			above = fmt.Sprintf("%.3f %%", 100*(q.Cost/q.Bound-1))
		}
		rows = append(rows, []string{strconv.Itoa(q.Tasks), strconv.Itoa(q.Machines),
			money.Format(q.Exact, money.USD, 2) + "/h", money.ShortFloat(q.Bound, money.USD) + "/h", above,
			fmt.Sprintf("%.3f s", q.Seconds)})
	}
	return draw.Grid([]draw.Column{{Name: "TASKS", Right: true, Key: true}, {Name: "MACHINES", Right: true},
		{Name: "COST", Right: true}, {Name: "BOUND", Right: true}, {Name: "ABOVE", Right: true}, {Name: "TIME", Right: true}},
		rows, p.Columns())
}
