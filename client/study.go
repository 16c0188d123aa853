package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Study is a search for the best configuration of a job, of POST /v1/groups: each trial is the job with other
// parameters. The budget of the job file is that of the whole search.
type Study struct {
	Metric    string         `json:"metric"` // that is searched for, as the job's program reports it
	Maximize  bool           `json:"maximize,omitempty"`
	Params    []StudyParam   `json:"params"`
	Fidelity  *StudyFidelity `json:"fidelity,omitempty"` // null: a trial is one run to its end
	Searcher  string         `json:"searcher,omitempty"` // as scrimp tune simulate names them; "": default
	Grid      bool           `json:"grid,omitempty"`     // every combination of values, instead of a sample
	Seed      int64          `json:"seed,omitempty"`
	Trials    int            `json:"trials,omitempty"` // at most; 0: no limit
	AtOnce    int            `json:"at_once"`          // trials that train at once, at most
	WallClock time.Duration  `json:"wall_clock_ns,omitempty"`
	Final     bool           `json:"final,omitempty"` // train the best configuration in full at the end
}

// StudyParam is a hyper-parameter: a list of values, or a range of numbers.
type StudyParam struct {
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"` // as JSON writes them; none: it is a range
	Min    float64  `json:"min,omitempty"`
	Max    float64  `json:"max,omitempty"`
	Int    bool     `json:"int,omitempty"`
	Log    bool     `json:"log,omitempty"`   // it is drawn by its logarithm
	Q      float64  `json:"q,omitempty"`     // values are multiples of it; 0: any
	Mu     float64  `json:"mu,omitempty"`    // of a normal distribution
	Sigma  float64  `json:"sigma,omitempty"` // of it; 0: the distribution is uniform
}

// StudyFidelity is what training is measured in: the searcher decides after each Min, and Max is a full training.
type StudyFidelity struct {
	Name string  `json:"name"` // epoch or step
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// StudyState is how a search stands.
type StudyState struct {
	Metric   string         `json:"metric"`
	Maximize bool           `json:"maximize,omitempty"`
	Searcher string         `json:"searcher"`
	Fidelity *StudyFidelity `json:"fidelity"`
	Best     *Trial         `json:"best"`    // so far; null: none has reported a value
	Full     int            `json:"full"`    // trials that are trained in full
	Paused   int            `json:"paused"`  // trials that the searcher may come back to
	Ignored  int            `json:"ignored"` // values of no whole unit, or that came twice, late or beyond what is kept
}

// Trial is a configuration that a search has trained. Amounts are of so far.
type Trial struct {
	ID     string            `json:"id"` // of its job
	Number int               `json:"number"`
	State  string            `json:"state"` // of its job
	Why    string            `json:"why,omitempty"`
	Params map[string]string `json:"params"`
	Unit   float64           `json:"unit"`    // of the fidelity, that it has trained
	Values int               `json:"values"`  // how many values it has reported
	Last   *float64          `json:"last"`    // the newest; null: none
	Best   *float64          `json:"best"`    // the best; null: none
	BestAt float64           `json:"best_at"` // the unit of the best
	Cost   money.Amount      `json:"cost"`
}

// StudyReceipt is what a search has found, and what its cost was for.
type StudyReceipt struct {
	Best        *Trial       `json:"best"` // null: no trial has reported a value
	Trials      int          `json:"trials"`
	Full        int          `json:"full"`        // trained in full
	Pruned      money.Amount `json:"pruned"`      // cost of trials that were left before they were trained in full
	Failed      money.Amount `json:"failed"`      // of trials that failed, or whose metric was no number
	Interrupted money.Amount `json:"interrupted"` // of trials that lost a machine at least once
	PerTrial    *float64     `json:"per_trial_usd"`
	PerFull     *float64     `json:"per_full_usd"` // of all trials, by those that are trained in full; null: none is
	// AllFull is what training every trial that has cost anything in full would have cost: each at its own mean cost of a
	// unit, those without one at the mean of all. Null: nobody knows.
	AllFull *float64 `json:"all_full_usd"`
}

// Trials lists the trials of a search, in the order in which they began.
func (c *Client) Trials(ctx context.Context, id string) ([]Trial, error) {
	return ask[[]Trial](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id)+"/trials", nil)
}
