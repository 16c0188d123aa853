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
	// the useful work on the cheapest on-demand offer, start-up included
	OnDemandCost     *money.Amount `json:"on_demand_cost"`
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

	Attempts        int                  `json:"attempts"`
	Interruptions   []Interruption       `json:"interruptions"`
	Tries           []Try                `json:"tries"`
	Uses            map[Use]money.Amount `json:"uses"`
	Step            int64                `json:"step"`
	Total           *int64               `json:"total"`
	CostPer1000     *float64             `json:"cost_per_1000_steps_usd"`
	CostPerEpoch    *float64             `json:"cost_per_epoch_usd"`
	LostSeconds     float64              `json:"lost_seconds"` // market time of work that was paid and lost
	Checkpoints     int                  `json:"checkpoints"`
	CheckpointBytes int64                `json:"checkpoint_bytes_uploaded"`
	SaveSeconds     *float64             `json:"save_seconds"`     // mean, wall
	IntervalSeconds *float64             `json:"interval_seconds"` // in force at the end, wall
	Metrics         map[string]float64   `json:"metrics,omitempty"`
	Decisions       []ReceiptDecision    `json:"decisions"`
	Tips            []Tip                `json:"tips"`
	Ledger          Ledger               `json:"ledger"`
	Loss            []Sample             `json:"loss,omitempty"`
	LossName        string               `json:"loss_name,omitempty"`
	Spend           []Spent              `json:"spend,omitempty"`
	Outputs         string               `json:"outputs,omitempty"`
}

// Interruption is a machine that the provider took.
type Interruption struct {
	Instance string    `json:"instance"`
	At       time.Time `json:"at"` // wall
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
}

// Tip is what would make the next run cheaper.
type Tip struct {
	Text  string   `json:"text"`
	Saves *float64 `json:"saves_usd"` // null: not computed
}

// Ledger says that the sums agree.
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
