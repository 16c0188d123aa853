package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Study is a search for the best configuration of a job, for POST /v1/groups: each trial is the job with other
// parameters. The budget of the job file is for the whole search.
type Study struct {
	Metric    string         `json:"metric"` // metric to optimize, as the job's program reports it
	Maximize  bool           `json:"maximize,omitempty"`
	Params    []StudyParam   `json:"params"`
	Fidelity  *StudyFidelity `json:"fidelity,omitempty"` // null: a trial is one run to its end
	Searcher  string         `json:"searcher,omitempty"` // a name from scrimp tune simulate; "": default
	Grid      bool           `json:"grid,omitempty"`     // every combination of values instead of a sample
	Seed      int64          `json:"seed,omitempty"`
	Trials    int            `json:"trials,omitempty"` // highest number; 0: no limit
	AtOnce    int            `json:"at_once"`          // trials that train at once, at most
	WallClock time.Duration  `json:"wall_clock_ns,omitempty"`
	Final     bool           `json:"final,omitempty"` // train the best configuration in full at the end
}

// StudyParam is a hyper-parameter: a list of values, or a range of numbers.
type StudyParam struct {
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"` // as JSON text; none: a range
	Min    float64  `json:"min,omitempty"`
	Max    float64  `json:"max,omitempty"`
	Int    bool     `json:"int,omitempty"`
	Log    bool     `json:"log,omitempty"`   // sample on a logarithmic scale
	Q      float64  `json:"q,omitempty"`     // values are multiples of it; 0: any
	Mu     float64  `json:"mu,omitempty"`    // mean of a normal distribution
	Sigma  float64  `json:"sigma,omitempty"` // its standard deviation; 0: uniform distribution
}

// StudyFidelity is the unit of training: the searcher decides after each Min units, and Max is a full training.
type StudyFidelity struct {
	Name string  `json:"name"` // epoch or step
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// StudyState is the state of a search.
type StudyState struct {
	Metric   string         `json:"metric"`
	Maximize bool           `json:"maximize,omitempty"`
	Searcher string         `json:"searcher"`
	Fidelity *StudyFidelity `json:"fidelity"`
	Best     *Trial         `json:"best"`    // so far; null: no value yet
	Full     int            `json:"full"`    // trials trained in full
	Paused   int            `json:"paused"`  // trials that the searcher may continue
	Ignored  int            `json:"ignored"` // values not at a whole unit, repeated, late, or too many to keep
}

// Trial is a configuration that a search trains, with amounts so far.
type Trial struct {
	ID     string            `json:"id"` // of its job
	Number int               `json:"number"`
	State  string            `json:"state"` // of its job
	Why    string            `json:"why,omitempty"`
	Params map[string]string `json:"params"`
	Unit   float64           `json:"unit"`    // trained units of the fidelity
	Values int               `json:"values"`  // number of reported values
	Last   *float64          `json:"last"`    // latest value; null: none
	Best   *float64          `json:"best"`    // best value; null: none
	BestAt float64           `json:"best_at"` // unit of the best value
	Cost   money.Amount      `json:"cost"`
}

// StudyReceipt is the result of a search, and its cost by purpose.
type StudyReceipt struct {
	Best        *Trial       `json:"best"` // null: no value was reported
	Trials      int          `json:"trials"`
	Full        int          `json:"full"`        // trained in full
	Pruned      money.Amount `json:"pruned"`      // cost of trials that were stopped before full training
	Failed      money.Amount `json:"failed"`      // cost of trials that failed or whose metric was not a number
	Interrupted money.Amount `json:"interrupted"` // cost of trials that lost a machine at least once
	PerTrial    *float64     `json:"per_trial_usd"`
	PerFull     *float64     `json:"per_full_usd"` // cost of all trials per fully trained one; null: none
	// AllFull is the estimated cost of training every trial with a cost in full: each at its own mean cost per unit,
	// others at the overall mean. Null: unknown.
	AllFull *float64 `json:"all_full_usd"`
}

// Trials lists the trials of a search in the order of their start.
func (c *Client) Trials(ctx context.Context, id string) ([]Trial, error) {
	return ask[[]Trial](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id)+"/trials", nil)
}
