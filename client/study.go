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
	GPUHours  float64        `json:"gpu_hours,omitempty"` // of all trials together; 0: no limit
	Final     bool           `json:"final,omitempty"`     // train the best configuration in full at the end
	Plateau   *StudyPlateau  `json:"plateau,omitempty"`   // when the search ends by itself; null: never
	Past      []StudyPast    `json:"past,omitempty"`      // what earlier searches have found, for the default searcher
	Proxy     *StudyProxy    `json:"proxy,omitempty"`     // the cheaper training to search on; null: the full one
}

// StudyProxy is a cheaper training on which a study searches. The best configurations are promoted: trained anew
// without its settings, from the reserved part of the budget.
type StudyProxy struct {
	Set     map[string]string `json:"set,omitempty"`     // values of parameters, as JSON text
	Env     map[string]string `json:"env,omitempty"`     // environment variables
	Max     float64           `json:"max,omitempty"`     // of the fidelity; 0: that of a full training
	Promote int               `json:"promote"`           // highest number of promoted configurations
	Reserve float64           `json:"reserve,omitempty"` // part of each limit kept for them, 0.05 to 0.95; 0: a half
}

// StudyPlateau ends a search once the expected gain of another dollar stays too small. Exactly one of MinGain and
// PointValue is set.
type StudyPlateau struct {
	Patience   int     `json:"patience,omitempty"`         // consecutive reports; 0: those of 15 % of the spend
	MinGain    float64 `json:"min_gain_per_usd,omitempty"` // gain of the metric per dollar that pays
	PointValue float64 `json:"point_value_usd,omitempty"`  // worth of an improvement of the metric by 1, in dollars
}

// StudyPast is a configuration that an earlier search has trained.
type StudyPast struct {
	Params map[string]string `json:"params"` // all parameters of the space, as the program got them
	Points []StudyPoint      `json:"points"`
}

// StudyPoint is a value of the metric.
type StudyPoint struct {
	Unit  float64 `json:"unit"` // of the fidelity, in epochs or steps
	Value float64 `json:"value"`
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
	Params   []StudyParam   `json:"params"`  // the space
	Best     *Trial         `json:"best"`    // so far; null: no value yet. With a proxy it is a promoted trial
	Full     int            `json:"full"`    // trials trained in full
	Paused   int            `json:"paused"`  // trials that the searcher may continue
	Ignored  int            `json:"ignored"` // values not at a whole unit, repeated, late, or too many to keep
	GroupLimits
	Plateau *StudyPlateau `json:"plateau"` // when the search ends by itself; null: never
	// StoppedGain is the expected gain of the metric per dollar at which the search ended by itself; null: it has not.
	StoppedGain *float64 `json:"stopped_gain_per_usd"`
	Past        int      `json:"past,omitempty"` // configurations of earlier searches that the searcher knows
	// Proxy is the cheaper training on which it searches, and what that has found; null: none.
	Proxy *StudyProxyState `json:"proxy,omitempty"`
	// Warnings says in sentences what is probably wrong with the values that the trials report.
	Warnings []string `json:"warnings,omitempty"`
}

// StudyProxyState is a proxy with what it has found. Its values do not compare with those of full trainings.
type StudyProxyState struct {
	StudyProxy
	Promoted int    `json:"promoted"` // promoted trials that have started
	Best     *Trial `json:"best"`     // on the proxy; null: no value yet
	// Compared is the number of trials that were trained in full, and RankCorrelation that of their best values with
	// those on the proxy, from -1 to 1 (Spearman's); null: fewer than three, or all are equal.
	Compared        int      `json:"compared"`
	RankCorrelation *float64 `json:"rank_correlation"`
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
	// Curve has the stored values in order, with ?curves=1.
	Curve []TrialPoint `json:"curve,omitempty"`
	// Proxy: it trains on the proxy of its study, and its values do not compare with those of full trainings. PromotedFrom
	// is the number of the trial whose configuration a promoted one trains in full.
	Proxy        bool `json:"proxy,omitempty"`
	PromotedFrom *int `json:"promoted_from,omitempty"`
}

// TrialPoint is a value of a trial's metric, with what the trial had used by then.
type TrialPoint struct {
	Unit     float64    `json:"unit"` // of the fidelity, in epochs or steps; 1 without a fidelity
	Value    float64    `json:"value"`
	At       *time.Time `json:"at"` // wall time; null: unknown
	CostUSD  float64    `json:"cost_usd"`
	GPUHours float64    `json:"gpu_hours"`
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
	// AllFull is the estimated cost if no trial had been left early: one that was, at its mean cost per unit; all others
	// at what they cost. With a proxy, it is the mean cost of the trials trained in full for each configuration. Null:
	// unknown, as where a trial was left before its first unit.
	AllFull *float64 `json:"all_full_usd"`
	// BestBySpend is the best value against the cost of all trials, as reported with their values: a mark where it
	// improved, and one at the end.
	BestBySpend []StudyMark `json:"best_by_spend,omitempty"`
	// ProxyBySpend is the same for the trials of a proxy, and BestBySpend that of the promoted ones.
	ProxyBySpend []StudyMark `json:"proxy_by_spend,omitempty"`
	// OnProxy is the part of the cost for the trials of a proxy; null: the study has none.
	OnProxy *money.Amount `json:"on_proxy,omitempty"`
	Rungs   []StudyRung   `json:"rungs,omitempty"` // of a search with a fidelity, as far as a trial has reached them
	// Importance says how much each parameter matters; null: too few trials have values that can be compared.
	Importance *StudyImportance `json:"importance"`
}

// StudyMark is the best value of a search once its trials had cost an amount together.
type StudyMark struct {
	SpentUSD float64 `json:"spent_usd"`
	Best     float64 `json:"best"`
}

// StudyRung is how many trials of a search were trained to a unit of the fidelity, and how many of them further.
type StudyRung struct {
	Unit      float64 `json:"unit"`
	Reached   int     `json:"reached"`
	Continued int     `json:"continued"`
	Best      float64 `json:"best"` // value up to this unit
}

// StudyImportance compares the ranks of the trials' values at one unit of the fidelity. The share of a parameter is how
// much of their spread it explains alone, corrected for chance, from 0 to 1.
type StudyImportance struct {
	Unit   float64            `json:"unit"`
	Trials int                `json:"trials"` // compared ones
	Shares map[string]float64 `json:"shares"` // by parameter
}

// Trials lists the trials of a search in the order of their start.
func (c *Client) Trials(ctx context.Context, id string) ([]Trial, error) {
	return ask[[]Trial](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id)+"/trials", nil)
}

// TrialCurves lists the trials of a search in the order of their start, with the values of their metric.
func (c *Client) TrialCurves(ctx context.Context, id string) ([]Trial, error) {
	return ask[[]Trial](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id)+"/trials?curves=1", nil)
}
