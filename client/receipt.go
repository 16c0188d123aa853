package client

import (
	"encoding/hex"
	"fmt"
	"time"

	"scrimp/money"
)

// Receipt is the account of one job. Amounts are exact; fields named _usd are estimates. Null is unknown.
type Receipt struct {
	Job      string         `json:"job"`
	Name     string         `json:"name"`
	State    string         `json:"state"`
	Reason   string         `json:"reason"`
	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`
	// cost of the same work, as it was done, on the cheapest suitable on-demand offer, including start-up; null: the
	// job did not succeed, or no such offer was for sale
	OnDemandCost  *money.Amount `json:"on_demand_cost"`
	OnDemandOffer string        `json:"on_demand_offer"`
	Saved         *money.Amount `json:"saved"`
	SavedShare    *float64      `json:"saved_share"`
	// BillExtras is the tax, the credits and the commitments that a bill added, and the cost of reading inputs
	// (data), by kind: part of the cost, but not of what is compared with OnDemandCost. Null if none.
	BillExtras       map[string]money.Amount `json:"bill_extras"`
	CostWithoutRules money.Amount            `json:"cost_without_rules"` // plain seconds only
	AlreadyPaid      *money.Amount           `json:"already_paid"`       // part of Cost on reserved machines; null: none
	// IdleAfter is the cost of its machines after it, while they waited for the next job. The team pays it; it is
	// not in the cost. Null: none waited.
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

	Attempts      int                  `json:"attempts"`
	Interrupted   int                  `json:"interrupted"` // attempts ended by interruptions
	Interruptions []Interruption       `json:"interruptions"`
	Preempted     int                  `json:"preempted,omitempty"` // attempts that a critical job preempted
	Tries         []Try                `json:"tries"`
	Uses          map[Use]money.Amount `json:"uses"`
	// Categories divides the cost by category: compute, storage, address, and so on.
	Categories      map[string]money.Amount `json:"categories"`
	Step            int64                   `json:"step"`
	Total           *int64                  `json:"total"`
	CostPer1000     *float64                `json:"cost_per_1000_steps_usd"`
	CostPerEpoch    *float64                `json:"cost_per_epoch_usd"`
	LostSeconds     float64                 `json:"lost_seconds"` // market time of paid work that was lost
	Checkpoints     int                     `json:"checkpoints"`
	CheckpointBytes int64                   `json:"checkpoint_bytes_uploaded"`
	// SaveTrouble is why the newest checkpoint could not be copied, or what its copy lacks; "": it is complete.
	SaveTrouble     string             `json:"save_trouble,omitempty"`
	SaveSeconds     *float64           `json:"save_seconds"`     // mean, wall time
	IntervalSeconds *float64           `json:"interval_seconds"` // at the end, wall time
	Metrics         map[string]float64 `json:"metrics,omitempty"`
	Decisions       []ReceiptDecision  `json:"decisions"`
	Tips            []Tip              `json:"tips"`
	Ledger          Ledger             `json:"ledger"`
	Loss            []Sample           `json:"loss,omitempty"`
	LossName        string             `json:"loss_name,omitempty"`
	Spend           []Spent            `json:"spend,omitempty"`
	Outputs         string             `json:"outputs,omitempty"`
	OutputsDigest   string             `json:"outputs_digest,omitempty"`
	// Telemetry is the telemetry of its machines; null: none.
	Telemetry *ReceiptTelemetry `json:"telemetry"`
	// Data sums up the inputs that agents brought to its machines; null if scrimp brought none.
	Data *DataUse `json:"data,omitempty"`
}

// Interruption is a machine that the provider reclaimed.
type Interruption struct {
	Instance string    `json:"instance"`
	Node     int       `json:"node"` // its rank, if the attempt had several machines
	At       time.Time `json:"at"`   // wall time
	MarketAt time.Time `json:"market_at"`
	Notice   float64   `json:"notice"`   // wall seconds of notice; 0: none
	Restored *string   `json:"restored"` // manifest that the next attempt restored
}

// Try is an attempt.
type Try struct {
	Attempt  string               `json:"attempt"`
	Instance string               `json:"instance"`
	Offer    string               `json:"offer"`
	Capacity string               `json:"capacity"`
	From     time.Time            `json:"from"`  // market time
	Begun    *time.Time           `json:"begun"` // market time: start of the program
	Until    time.Time            `json:"until"` // market time
	Rate     money.Rate           `json:"rate"`  // per hour, at launch
	Cost     money.Amount         `json:"cost"`
	Uses     map[Use]money.Amount `json:"uses"`
	First    int64                `json:"first_step"`
	Last     int64                `json:"last_step"`
	Restored string               `json:"restored,omitempty"`
	End      string               `json:"end"`
	Rules    []Rule               `json:"rules,omitempty"`
	Nodes    []Node               `json:"nodes,omitempty"` // by rank, if the attempt had several machines
	// Preemption is null unless a critical job preempted the attempt.
	Preemption *Preemption `json:"preemption,omitempty"`
}

// Preemption is why an attempt left its seat to a critical job, and what that cost. The cost is part of the attempts'.
type Preemption struct {
	By       string        `json:"by"` // the critical job, or that it is of another team
	At       time.Time     `json:"at"` // market time at which scrimp asked the program to save
	Expected money.Amount  `json:"expected"`
	Lost     money.Amount  `json:"lost"`     // of this attempt
	StartUp  *money.Amount `json:"start_up"` // of the next attempt; null: it has not started yet
}

// Node is one machine of an attempt that has several.
type Node struct {
	Node     int                  `json:"node"` // its rank
	Instance string               `json:"instance"`
	From     time.Time            `json:"from"`  // market time
	Until    time.Time            `json:"until"` // market time
	Cost     money.Amount         `json:"cost"`
	Uses     map[Use]money.Amount `json:"uses"`
	End      string               `json:"end"`
}

// Rule is a line of a bill beyond plain seconds.
type Rule struct {
	Rule   string       `json:"rule"`
	Amount money.Amount `json:"amount"`
}

// ReceiptDecision is a decision with its reason.
type ReceiptDecision struct {
	MarketAt time.Time `json:"market_at"`
	Take     string    `json:"take"` // "": wait
	Why      string    `json:"why"`
	Mode     string    `json:"mode"`
	Rejected []string  `json:"rejected,omitempty"`
	// Refused is why an earlier launch was refused: no_capacity, quota, price, throttled, not_for_sale; "": none
	// was.
	Refused string `json:"refused,omitempty"`
}

// Tip is advice to make the next run cheaper.
type Tip struct {
	Text  string   `json:"text"`
	Saves *float64 `json:"saves_usd"` // null: not computed
}

// Ledger reports whether the ledger is balanced.
type Ledger struct {
	Postings int  `json:"postings"`
	Head     Hash `json:"head"`
	Agrees   bool `json:"agrees"`
}

// Sample is the value of the metric at a step.
type Sample struct {
	Step  int64     `json:"step"`
	At    time.Time `json:"market_at"`
	Value float64   `json:"value"`
}

// Spent is the cumulative spending at a time.
type Spent struct {
	At     time.Time    `json:"market_at"`
	Amount money.Amount `json:"amount"`
}

// Hash is the hash of a ledger's last posting, which covers all earlier ones. Its text is hexadecimal.
type Hash [32]byte

// MarshalText formats the hash.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText parses the output of MarshalText.
func (h *Hash) UnmarshalText(b []byte) error {
	v, err := hex.DecodeString(string(b))
	if err != nil || len(v) != len(h) {
		return fmt.Errorf("%.80q is not a hash of %d bytes in hexadecimal", b, len(h))
	}
	copy(h[:], v)
	return nil
}

// ReceiptTelemetry is the telemetry of all machines of a job. Times and durations are wall time.
type ReceiptTelemetry struct {
	Machines  int     `json:"machines"`   // machines with telemetry, over all attempts
	Seconds   float64 `json:"seconds"`    // time with telemetry, summed over machines
	Cores     int     `json:"cores"`      // of the largest machine; 0: unknown
	GPUs      int     `json:"gpus"`       // of the largest task; 0: unknown
	GPUName   string  `json:"gpu_name"`   // of one of the GPUs
	GPUMemory int64   `json:"gpu_memory"` // bytes; 0: unknown
	// Figures holds each metric over all machines, cores and GPUs, by name; unknown ones are missing.
	Figures map[string]ReceiptFigure `json:"figures"`
	Hint    string                   `json:"hint"`   // advice for the next run; "": nothing stands out
	Points  []UsePoint               `json:"points"` // in order of time
}

// ReceiptFigure summarizes a metric.
type ReceiptFigure struct {
	Average float64  `json:"average"`
	Peak    float64  `json:"peak"`  // highest mean of ten seconds
	Total   *float64 `json:"total"` // for a rate: the total amount; null: not a rate
}

// UsePoint is the used share of GPUs and processors at a time; null: unknown.
type UsePoint struct {
	At     time.Time `json:"at"` // wall time
	GPU    *float64  `json:"gpu"`
	CPU    *float64  `json:"cpu"`
	IOWait *float64  `json:"iowait"`
}
