// Package receipt reports the cost of a job, its reasons, and the cost of the alternatives, as a value, as text and
// as one HTML page.
package receipt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Receipt is the account of one job. Amounts are exact; fields whose JSON name contains _usd are estimates. Null
// means unknown.
type Receipt struct {
	Job      string         `json:"job"`
	Name     string         `json:"name"`
	State    string         `json:"state"`
	Reason   string         `json:"reason"`
	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`
	// the same work on the cheapest on-demand offer that fits, start-up included; null if the job did not succeed
	// or no such offer existed
	OnDemandCost  *money.Amount `json:"on_demand_cost"`
	OnDemandOffer string        `json:"on_demand_offer"`
	Saved         *money.Amount `json:"saved"`
	SavedShare    *float64      `json:"saved_share"`
	// BillExtras is the tax, the credits and the commitments that a bill added, and the cost of reading inputs
	// (data), by kind: part of the cost, but not of what is compared with OnDemandCost. Null if none.
	BillExtras       map[string]money.Amount `json:"bill_extras"`
	CostWithoutRules money.Amount            `json:"cost_without_rules"` // without the provider's billing rules
	// the part of the cost on reserved machines; null if none
	AlreadyPaid *money.Amount `json:"already_paid"`
	// IdleAfter is the cost of its machines while they waited for the next job. The team pays it; the cost above
	// excludes it. Null if none waited.
	IdleAfter       *money.Amount `json:"idle_after"`
	Budget          *money.Amount `json:"budget"`
	DeadlineMet     *bool         `json:"deadline_met"`
	Deadline        *time.Time    `json:"deadline"`
	DeadlineMarket  *time.Time    `json:"deadline_market"`
	Submitted       time.Time     `json:"submitted"`
	SubmittedMarket time.Time     `json:"submitted_market"`
	Finished        *time.Time    `json:"finished"`
	FinishedMarket  *time.Time    `json:"finished_market"`
	MarketSpeed     float64       `json:"market_speed"`
	Market          string        `json:"market"`

	Attempts      int                         `json:"attempts"`
	Interrupted   int                         `json:"interrupted"`         // attempts ended by interruptions
	Interruptions []Interruption              `json:"interruptions"`       // per machine
	Preempted     int                         `json:"preempted,omitempty"` // attempts that a critical job preempted
	Tries         []Try                       `json:"tries"`
	Uses          map[ledger.Use]money.Amount `json:"uses"`
	// Categories is the cost by category: compute, storage, address and so on.
	Categories      map[ledger.Category]money.Amount `json:"categories"`
	Step            int64                            `json:"step"`
	Total           *int64                           `json:"total"`
	CostPer1000     *float64                         `json:"cost_per_1000_steps_usd"`
	CostPerEpoch    *float64                         `json:"cost_per_epoch_usd"`
	LostSeconds     float64                          `json:"lost_seconds"` // market time of paid work that was lost
	Checkpoints     int                              `json:"checkpoints"`
	CheckpointBytes int64                            `json:"checkpoint_bytes_uploaded"`
	// SaveTrouble is why the newest checkpoint could not be copied, or what its copy lacks; empty: it is complete.
	SaveTrouble     string             `json:"save_trouble,omitempty"`
	SaveSeconds     *float64           `json:"save_seconds"`     // mean, wall time
	IntervalSeconds *float64           `json:"interval_seconds"` // in force at the end, wall time
	Metrics         map[string]float64 `json:"metrics,omitempty"`
	Decisions       []Decision         `json:"decisions"`
	Tips            []Tip              `json:"tips"`
	Ledger          Ledger             `json:"ledger"`
	Loss            []Sample           `json:"loss,omitempty"`
	LossName        string             `json:"loss_name,omitempty"`
	Spend           []Spent            `json:"spend,omitempty"`
	Outputs         string             `json:"outputs,omitempty"`
	OutputsDigest   string             `json:"outputs_digest,omitempty"` // identifies what they hold: SHA-256
	// Telemetry summarizes the measurements of its machines; null if there are none.
	Telemetry *Telemetry `json:"telemetry"`
	// Data is what bringing inputs to its machines took; null if scrimp brought none.
	Data *DataUse `json:"data,omitempty"`
}

// Interruption is the interruption of one machine by its provider.
type Interruption struct {
	Instance string    `json:"instance"`
	Node     int       `json:"node"` // its rank, if the attempt had several machines
	At       time.Time `json:"at"`   // wall
	MarketAt time.Time `json:"market_at"`
	Notice   float64   `json:"notice"`   // wall seconds; 0 for none
	Restored *string   `json:"restored"` // manifest that the next attempt restored
}

// Try is one attempt.
type Try struct {
	Attempt  string                      `json:"attempt"`
	Instance string                      `json:"instance"`
	Offer    string                      `json:"offer"`
	Capacity string                      `json:"capacity"`
	From     time.Time                   `json:"from"`  // market
	Begun    *time.Time                  `json:"begun"` // when the program started, market time
	Until    time.Time                   `json:"until"` // market
	Rate     money.Rate                  `json:"rate"`  // per hour, at launch
	Cost     money.Amount                `json:"cost"`
	Uses     map[ledger.Use]money.Amount `json:"uses"`
	First    int64                       `json:"first_step"`
	Last     int64                       `json:"last_step"`
	Restored string                      `json:"restored,omitempty"`
	End      string                      `json:"end"`
	Rules    []Rule                      `json:"rules,omitempty"`
	Nodes    []Node                      `json:"nodes,omitempty"` // by rank, if the attempt had several machines
	// Preemption is null unless a critical job preempted the attempt.
	Preemption *Preemption `json:"preemption,omitempty"`
}

// Node is one machine of an attempt on several.
type Node struct {
	Node     int                         `json:"node"` // its rank
	Instance string                      `json:"instance"`
	From     time.Time                   `json:"from"`  // market
	Until    time.Time                   `json:"until"` // market
	Cost     money.Amount                `json:"cost"`
	Uses     map[ledger.Use]money.Amount `json:"uses"`
	End      string                      `json:"end"`
}

// Rule is a line of a bill beyond plain seconds.
type Rule struct {
	Rule   string       `json:"rule"`
	Amount money.Amount `json:"amount"`
}

// Decision is one decision and its reason.
type Decision struct {
	MarketAt time.Time `json:"market_at"`
	Take     string    `json:"take"` // offer; empty for waiting
	Why      string    `json:"why"`
	Mode     string    `json:"mode"`
	Rejected []string  `json:"rejected,omitempty"`
	// Refused is why the provider refused an earlier launch: no_capacity, quota, price, throttled, not_for_sale;
	// empty: none
	Refused string `json:"refused,omitempty"`
}

// Tip is advice that would make the next run cheaper.
type Tip struct {
	Text  string   `json:"text"`
	Saves *float64 `json:"saves_usd"` // null: not computed
}

// Ledger reports whether the ledger balances.
type Ledger struct {
	Postings int         `json:"postings"`
	Head     ledger.Hash `json:"head"`
	Agrees   bool        `json:"agrees"`
}

// Sample is the value of the loss metric at a step.
type Sample struct {
	Step  int64     `json:"step"`
	At    time.Time `json:"market_at"`
	Value float64   `json:"value"`
}

// Spent is the amount spent up to a time.
type Spent struct {
	At     time.Time    `json:"market_at"`
	Amount money.Amount `json:"amount"`
}

// Check verifies the sums: attempts, uses and categories each add up to the cost exactly.
func (r Receipt) Check() error {
	tries, uses, rules := money.Amount{}, money.Amount{}, money.Amount{}
	for _, t := range r.Tries {
		tries = tries.Add(t.Cost)
		for _, l := range t.Rules {
			rules = rules.Add(l.Amount)
		}
		nodes := money.Amount{}
		for _, n := range t.Nodes {
			nodes = nodes.Add(n.Cost)
		}
		if len(t.Nodes) > 0 && nodes != t.Cost {
			return fmt.Errorf("the machines of %s cost %v, the attempt %v", t.Attempt, nodes, t.Cost)
		}
	}
	for _, u := range r.Uses {
		uses = uses.Add(u)
	}
	bought := money.Amount{}
	for _, c := range r.Categories {
		bought = bought.Add(c)
	}
	switch {
	case tries != r.Cost:
		return fmt.Errorf("the attempts cost %v, the job %v", tries, r.Cost)
	case bought != r.Cost:
		return fmt.Errorf("the categories cost %v, the job %v", bought, r.Cost)
	case uses != r.Cost:
		return fmt.Errorf("the uses cost %v, the job %v", uses, r.Cost)
	case r.Saved != nil && r.OnDemandCost.Sub(r.Comparable()) != *r.Saved:
		return fmt.Errorf("%v is saved, not %v", r.OnDemandCost.Sub(r.Comparable()), *r.Saved)
	case r.Cost.Sub(rules) != r.CostWithoutRules:
		return fmt.Errorf("the cost without rules is %v, not %v", r.Cost.Sub(rules), r.CostWithoutRules)
	}
	return nil
}

// Comparable returns the cost without the tax, credits and commitments of bills, which no price of a machine contains.
func (r Receipt) Comparable() money.Amount {
	cost := r.Cost
	for _, a := range r.BillExtras {
		cost = cost.Sub(a)
	}
	return cost
}

// interrupted counts the interrupted attempts, and the interrupted machines if they differ.
func (r Receipt) interrupted() string {
	text := draw.Count(r.Interrupted, "interruption")
	if n := len(r.Interruptions); n != r.Interrupted {
		text += " of " + draw.Count(n, "machine")
	}
	return text
}

// verdict returns the outcome in a few words.
func (r Receipt) verdict() string {
	words := []string{r.State + " (" + strings.ReplaceAll(r.Reason, "_", " ") + ")"}
	if r.DeadlineMet != nil {
		if *r.DeadlineMet {
			words = append(words, "deadline met, "+draw.Span(r.DeadlineMarket.Sub(*r.FinishedMarket))+" early")
		} else {
			words = append(words, "DEADLINE MISSED")
		}
	}
	return strings.Join(words, ", ")
}

// Text renders the receipt for a terminal of width columns. 0 means a file, at 80 columns.
func (r Receipt) Text(width int) string {
	if width == 0 {
		width = 80
	}
	width = max(60, min(width, 140))
	var b strings.Builder
	rule := strings.Repeat("─", width) + "\n"
	b.WriteString(rule + draw.Wrap("", "Receipt for "+r.Job+": "+r.verdict(), width) + rule)
	row := func(name, value, note string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-13s %14s  %s", name, value, draw.Cut(note, width-31)), " ") + "\n")
	}
	r.costs(row)
	b.WriteString("\n" + r.attempts(width))
	fmt.Fprintf(&b, "\n%s, %s", draw.Count(r.Attempts, "attempt"), r.interrupted())
	silent := 0
	for _, i := range r.Interruptions {
		if i.Notice == 0 {
			silent++
		}
	}
	fmt.Fprintf(&b, " (%d without notice)", silent)
	if r.Preempted > 0 {
		b.WriteString(", " + draw.Count(r.Preempted, "preemption"))
	}
	fmt.Fprintf(&b, "\n%s, %s\n", r.lost(), draw.Count(r.Checkpoints, "checkpoint"))
	b.WriteString(r.preemptions(width))
	if r.SaveTrouble != "" {
		b.WriteString(draw.Wrap("not saved: ", r.SaveTrouble, width))
	}
	if len(r.Loss) > 1 {
		values := make([]float64, len(r.Loss))
		for i, s := range r.Loss {
			values[i] = s.Value
		}
		fmt.Fprintf(&b, "%s %s %.4g to %.4g\n", r.LossName, draw.Spark(values, min(40, width-40)), values[0],
			values[len(values)-1])
	}
	if r.Telemetry != nil {
		b.WriteString(r.Telemetry.text(width))
	}
	if r.Data != nil {
		b.WriteString(draw.Wrap("data: ", r.Data.Text(), width))
	}
	if r.MarketSpeed != 1 {
		fmt.Fprintf(&b, "%s\n", draw.SimulatedClock(r.MarketSpeed))
	}
	fmt.Fprintf(&b, "ledger %s, %s\n", map[bool]string{true: "balanced", false: "NOT BALANCED"}[r.Ledger.Agrees],
		draw.Count(r.Ledger.Postings, "posting"))
	for _, t := range r.Tips {
		b.WriteString(draw.Wrap("tip: ", t.Text+saves(t), width))
	}
	return strings.Map(func(c rune) rune { // parts of the text come from the program
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
			return unicode.ReplacementChar
		}
		return c
	}, b.String())
}

// unsaved says what made the job cost more than on-demand, if it did: time without useful work, where that is enough.
func (r Receipt) unsaved() string {
	rest := r.Comparable().Sub(r.Uses[ledger.Useful])
	if r.Saved.Sign() >= 0 || rest.Add(*r.Saved).Sign() < 0 {
		return ""
	}
	most := ledger.Idle
	for _, u := range uses[1:] {
		if r.Uses[u].Cmp(r.Uses[most]) > 0 {
			most = u
		}
	}
	return ", mostly for " + map[ledger.Use]string{ledger.Idle: "idle time", ledger.StartUp: "start-up",
		ledger.Lost: "lost work", ledger.Open: "time in use now"}[most]
}

// costs writes the rows of the cost and of its uses.
func (r Receipt) costs(row func(name, value, note string)) {
	note := ""
	if r.Budget != nil {
		note = "of " + money.Short(*r.Budget, r.Currency) + " budget"
	}
	row("cost", r.money(r.Cost), note)
	if r.OnDemandCost != nil {
		row("on-demand", r.money(*r.OnDemandCost), "same work on "+cmp.Or(r.OnDemandOffer, "the cheapest on-demand machine"))
		row("saved", r.money(*r.Saved), fmt.Sprintf("%.1f %%%s", *r.SavedShare*100, r.unsaved()))
	} else if r.State == "succeeded" {
		row("on-demand", "unknown", "no on-demand machine on offer could have done this work")
	}
	for _, u := range uses {
		if v := r.Uses[u]; !v.IsZero() {
			share := v.Float() / max(r.Cost.Float(), 1e-12)
			row("  "+string(u), r.money(v), fmt.Sprintf("%s %.1f %%", draw.Bar(share, 16), share*100))
		}
	}
	if len(r.Categories) > 1 {
		for _, c := range slices.Sorted(maps.Keys(r.Categories)) {
			row("  for "+string(c), r.money(r.Categories[c]), "")
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.BillExtras)) {
		what := "  billed " + kind
		if kind == Reading {
			what = "  reading inputs"
		}
		row(what, r.money(r.BillExtras[kind]), "in the cost, not in the comparison")
	}
	if r.AlreadyPaid != nil {
		row("already paid", r.money(*r.AlreadyPaid), "of the cost, on reserved machines: no new money")
	}
	if r.IdleAfter != nil {
		row("idle after", r.money(*r.IdleAfter), "paid by its team, not in the cost: the machine waited for a job")
	}
	if r.CostWithoutRules != r.Cost {
		row("plain seconds", r.money(r.CostWithoutRules), "the time of its machines alone")
	}
}

// attempts renders the table of attempts, numbered from 1. Launches that the provider refused are not in it.
func (r Receipt) attempts(width int) string {
	var rows [][]string
	for n, t := range r.Tries {
		name, offer := strconv.Itoa(n+1), t.Offer
		if len(t.Nodes) > 0 {
			offer = fmt.Sprintf("%d × %s", len(t.Nodes), t.Offer)
		}
		rows = append(rows, []string{name, offer, draw.Span(t.Until.Sub(t.From)),
			draw.Short(t.First) + "-" + draw.Short(t.Last), r.money(t.Cost), EndText(t.End)})
		for _, k := range t.Nodes {
			rows = append(rows, []string{fmt.Sprintf("%s/%d", name, k.Node), k.Instance, draw.Span(k.Until.Sub(k.From)), "",
				r.money(k.Cost), EndText(k.End)})
		}
	}
	return draw.Grid([]draw.Column{
		{Name: "ATTEMPT", Right: true, Key: true}, {Name: "OFFER", Key: true}, {Name: "RAN", Right: true},
		{Name: "STEPS", Right: true, Leaves: 1}, {Name: "COST", Right: true}, {Name: "END", Least: 8},
	}, rows, width)
}

// lost describes how much market time of paid work was lost.
func (r Receipt) lost() string {
	if r.LostSeconds <= 0 {
		return "no paid work was lost"
	}
	return draw.Span(time.Duration(r.LostSeconds*float64(time.Second))) + " of paid work lost"
}

func saves(t Tip) string {
	if t.Saves == nil {
		return ""
	}
	return fmt.Sprintf(" (about %s)", money.ShortFloat(*t.Saves, money.USD))
}

// uses lists the uses in display order.
var uses = []ledger.Use{ledger.Useful, ledger.StartUp, ledger.Lost, ledger.Idle, ledger.Open}
