package client

import (
	"encoding/hex"
	"fmt"
	"time"

	"scrimp/money"
)

// Receipt is the account of one job. Amounts are exact; fields named _usd are
// estimates. Unknown is null.
type Receipt struct {
	Job      string         `json:"job"`
	Name     string         `json:"name"`
	State    string         `json:"state"`
	Reason   string         `json:"reason"`
	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`
	// the same work, as it was done, on the cheapest on-demand offer that could have done it, start-up
	// included; null: the job did not succeed, or none was for sale
	OnDemandCost     *money.Amount `json:"on_demand_cost"`
	OnDemandOffer    string        `json:"on_demand_offer"`
	Saved            *money.Amount `json:"saved"`
	SavedShare       *float64      `json:"saved_share"`
	CostWithoutRules money.Amount  `json:"cost_without_rules"` // plain seconds only
	AlreadyPaid      *money.Amount `json:"already_paid"`       // what of the cost was on reserved machines; null: none
	// IdleAfter is what its machines cost after it, while they waited for the next job: its team's,
	// and not in the cost; null: none waited.
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
	Interrupted   int                  `json:"interrupted"` // attempts that interruptions ended
	Interruptions []Interruption       `json:"interruptions"`
	Tries         []Try                `json:"tries"`
	Uses          map[Use]money.Amount `json:"uses"`
	// Categories is the cost by what was bought: compute, storage, address, …
	Categories      map[string]money.Amount `json:"categories"`
	Step            int64                   `json:"step"`
	Total           *int64                  `json:"total"`
	CostPer1000     *float64                `json:"cost_per_1000_steps_usd"`
	CostPerEpoch    *float64                `json:"cost_per_epoch_usd"`
	LostSeconds     float64                 `json:"lost_seconds"` // market time of work that was paid and lost
	Checkpoints     int                     `json:"checkpoints"`
	CheckpointBytes int64                   `json:"checkpoint_bytes_uploaded"`
	// SaveTrouble is why the newest save could not be copied, or what its copy lacks; "": it is whole.
	SaveTrouble     string             `json:"save_trouble,omitempty"`
	SaveSeconds     *float64           `json:"save_seconds"`     // mean, wall
	IntervalSeconds *float64           `json:"interval_seconds"` // in force at the end, wall
	Metrics         map[string]float64 `json:"metrics,omitempty"`
	Decisions       []ReceiptDecision  `json:"decisions"`
	Tips            []Tip              `json:"tips"`
	Ledger          Ledger             `json:"ledger"`
	Loss            []Sample           `json:"loss,omitempty"`
	LossName        string             `json:"loss_name,omitempty"`
	Spend           []Spent            `json:"spend,omitempty"`
	Outputs         string             `json:"outputs,omitempty"`
	// Telemetry is what its machines were measured to do; null: nothing is known.
	Telemetry *ReceiptTelemetry `json:"telemetry"`
}

// Interruption is a machine that the provider took.
type Interruption struct {
	Instance string    `json:"instance"`
	Node     int       `json:"node"` // its rank, where the attempt had several machines
	At       time.Time `json:"at"`   // wall
	MarketAt time.Time `json:"market_at"`
	Notice   float64   `json:"notice"`   // wall seconds given; 0 for none
	Restored *string   `json:"restored"` // manifest that the next attempt began from
}

// Try is one attempt.
type Try struct {
	Attempt  string               `json:"attempt"`
	Instance string               `json:"instance"`
	Offer    string               `json:"offer"`
	Capacity string               `json:"capacity"`
	From     time.Time            `json:"from"`  // market
	Begun    *time.Time           `json:"begun"` // market: the program ran
	Until    time.Time            `json:"until"` // market
	Rate     money.Rate           `json:"rate"`  // of an hour, at launch
	Cost     money.Amount         `json:"cost"`
	Uses     map[Use]money.Amount `json:"uses"`
	First    int64                `json:"first_step"`
	Last     int64                `json:"last_step"`
	Restored string               `json:"restored,omitempty"`
	End      string               `json:"end"`
	Rules    []Rule               `json:"rules,omitempty"`
	Nodes    []Node               `json:"nodes,omitempty"` // where the attempt had several machines, by rank
}

// Node is a machine of an attempt that has several.
type Node struct {
	Node     int                  `json:"node"` // its rank
	Instance string               `json:"instance"`
	From     time.Time            `json:"from"`  // market
	Until    time.Time            `json:"until"` // market
	Cost     money.Amount         `json:"cost"`
	Uses     map[Use]money.Amount `json:"uses"`
	End      string               `json:"end"`
}

// Rule is a line of a bill that is not plain seconds.
type Rule struct {
	Rule   string       `json:"rule"`
	Amount money.Amount `json:"amount"`
}

// ReceiptDecision is what was decided, and why.
type ReceiptDecision struct {
	MarketAt time.Time `json:"market_at"`
	Take     string    `json:"take"` // "" for waiting
	Why      string    `json:"why"`
	Mode     string    `json:"mode"`
	Rejected []string  `json:"rejected,omitempty"`
	// Refused is why a launch was refused before: no_capacity, quota, price, throttled, not_for_sale; "": none was
	Refused string `json:"refused,omitempty"`
}

// Tip is what would make the next run cheaper.
type Tip struct {
	Text  string   `json:"text"`
	Saves *float64 `json:"saves_usd"` // null: not computed
}

// Ledger says whether the ledger is balanced.
type Ledger struct {
	Postings int  `json:"postings"`
	Head     Hash `json:"head"`
	Agrees   bool `json:"agrees"`
}

// Sample is the metric at a step.
type Sample struct {
	Step  int64     `json:"step"`
	At    time.Time `json:"market_at"`
	Value float64   `json:"value"`
}

// Spent is the spend at a time.
type Spent struct {
	At     time.Time    `json:"market_at"`
	Amount money.Amount `json:"amount"`
}

// Hash is that of a ledger's last posting, which holds those of all before it. Its text is hexadecimal.
type Hash [32]byte

// MarshalText writes the hash.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(b []byte) error {
	v, err := hex.DecodeString(string(b))
	if err != nil || len(v) != len(h) {
		return fmt.Errorf("%.80q is not a hash of %d bytes in hexadecimal", b, len(h))
	}
	copy(h[:], v)
	return nil
}

// ReceiptTelemetry is what all machines of a job were measured to do. Times and spans are of the wall.
type ReceiptTelemetry struct {
	Machines  int     `json:"machines"`   // that were measured, of all attempts
	Seconds   float64 `json:"seconds"`    // that they were measured for, summed
	Cores     int     `json:"cores"`      // of the largest of them; 0: unknown
	GPUs      int     `json:"gpus"`       // likewise, of the task
	GPUName   string  `json:"gpu_name"`   // of one of them
	GPUMemory int64   `json:"gpu_memory"` // bytes; 0: unknown
	// Figures are what each metric came to over all machines, cores and GPUs, by name; what is not known is not there.
	Figures map[string]ReceiptFigure `json:"figures"`
	Hint    string                   `json:"hint"`   // what they mean for the next run; "": nothing stands out
	Points  []UsePoint               `json:"points"` // in order of time
}

// ReceiptFigure is what a metric came to.
type ReceiptFigure struct {
	Average float64  `json:"average"`
	Peak    float64  `json:"peak"`  // highest mean of ten seconds
	Total   *float64 `json:"total"` // of an amount a second: the amount; null: it is none
}

// UsePoint is what share of GPUs and processors was in use at a time; null: unknown.
type UsePoint struct {
	At     time.Time `json:"at"` // wall
	GPU    *float64  `json:"gpu"`
	CPU    *float64  `json:"cpu"`
	IOWait *float64  `json:"iowait"`
}
