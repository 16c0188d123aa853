package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// NewSearch defines a search whose trials the user's own program trains. The search rents nothing. A second request
// with the same name and definition returns the search as it is.
type NewSearch struct {
	Name string `json:"name"`
	Team string `json:"team,omitempty"` // that owns it; "": the only one possible
	// Study defines the space, the metric and the searcher; at_once is the number of workers. A search of this kind has
	// no wall_clock_ns, gpu_hours and final.
	Study  Study         `json:"study"`
	Budget *money.Amount `json:"budget"` // in dollars; null: the number of trials is the only limit
	// PerHour is the price of an hour of a worker: told seconds become dollars by it. Null: a program tells dollars.
	PerHour *money.Rate `json:"per_hour,omitempty"`
}

// Search is a search whose trials the user's own program trains.
type Search struct {
	NewSearch
	User    string        `json:"user"`
	Opened  time.Time     `json:"opened"`
	Over    string        `json:"over"`    // why it is over: budget_spent, search_done or plateau; "": it is not
	Spent   *money.Amount `json:"spent"`   // in dollars; null: the cost of a value is unknown
	Seconds *float64      `json:"seconds"` // null: the time of a value is unknown
	Trials  int           `json:"trials"`  // chosen so far
	Values  int           `json:"values"`  // told so far
	Best    *SearchTrial  `json:"best"`    // null: no value yet
}

// SearchTrial is a configuration of a search.
type SearchTrial struct {
	Number int            `json:"number"`
	Worker int            `json:"worker"`      // the last that has had it
	State  string         `json:"state"`       // chosen, training, paused, stopped, trained or failed
	Params map[string]Raw `json:"params"`      // numbers, texts and truth values
	JSON   string         `json:"params_json"` // the same as the text of a JSON object, in the study's order
	At     float64        `json:"at"`          // trained so far, in the fidelity
	Until  float64        `json:"until"`       // end of the next unit, after which the searcher decides; 0: no fidelity
	Max    float64        `json:"max"`         // a full training; 0: no fidelity
	Last   *float64       `json:"last"`        // latest value; null: none, or not a number
	Best   *float64       `json:"best"`        // best value; null: none
	BestAt float64        `json:"best_at"`     // how long it had trained by then
	Cost   *money.Amount  `json:"cost"`        // in dollars; null: that of a value, or of all, is unknown
	// Seconds is the time of training; null: that of a value, or of all, is unknown.
	Seconds *float64 `json:"seconds"`
}

// AskTrial asks what a worker trains next. A worker that asks again gets its trial again until that is over.
type AskTrial struct {
	Worker int `json:"worker,omitempty"` // from 0 to the study's at_once - 1
	// Program names the running program, another name for each start. The last program that asks as a worker has it: the
	// server then refuses the values of the one before, and the questions of others while a job that is not over has the
	// worker. Empty: the server does not check.
	Program string `json:"program,omitempty"`
}

// TellTrial tells the value of a trial's metric. The cost is that since the trial's value before; a program that runs
// as a job may leave it out, and the job's own cost counts.
type TellTrial struct {
	Trial    int           `json:"trial"`
	At       float64       `json:"at,omitempty"`       // epochs or steps of training; left out without a fidelity
	Value    *float64      `json:"value"`              // null with diverged
	Diverged bool          `json:"diverged,omitempty"` // the value is not a number, or the trial has failed
	Cost     *money.Amount `json:"cost,omitempty"`     // in dollars
	Seconds  *float64      `json:"seconds,omitempty"`  // of training
	Program  string        `json:"program,omitempty"`  // as in AskTrial
}

// SearchAnswer says what the program does next. To a question: train, wait (ask again a little later) or end. To a
// value: continue, pause (save the trial and ask: the searcher may return to it) or stop (leave the trial, and ask).
type SearchAnswer struct {
	Do     string       `json:"do"`
	Trial  *SearchTrial `json:"trial"`
	Search Search       `json:"search"`
	Note   string       `json:"note,omitempty"` // for people: another program was this worker
}

// SearchCall is one call of a program that runs as a job: exactly one of Open, Ask and Told is set, or none to show
// the search.
type SearchCall struct {
	Name string     `json:"name"`
	Open *NewSearch `json:"open,omitempty"`
	Ask  *AskTrial  `json:"ask,omitempty"`
	Told *TellTrial `json:"tell,omitempty"`
}

func searchPath(name string) string { return "/v1/searches/" + url.PathEscape(name) }

// OpenSearch opens a search, or returns the one of that name if its definition is the same.
func (c *Client) OpenSearch(ctx context.Context, s NewSearch) (Search, error) {
	return ask[Search](ctx, c, http.MethodPost, "/v1/searches", s)
}

// Searches lists the searches that the caller sees, by name.
func (c *Client) Searches(ctx context.Context) ([]Search, error) {
	return ask[[]Search](ctx, c, http.MethodGet, "/v1/searches", nil)
}

// Search returns a search.
func (c *Client) Search(ctx context.Context, name string) (Search, error) {
	return ask[Search](ctx, c, http.MethodGet, searchPath(name), nil)
}

// SearchTrials lists the trials of a search in the order in which they were chosen.
func (c *Client) SearchTrials(ctx context.Context, name string) ([]SearchTrial, error) {
	return ask[[]SearchTrial](ctx, c, http.MethodGet, searchPath(name)+"/trials", nil)
}

// AskSearch asks what a worker trains next.
func (c *Client) AskSearch(ctx context.Context, name string, a AskTrial) (SearchAnswer, error) {
	return ask[SearchAnswer](ctx, c, http.MethodPost, searchPath(name)+"/ask", a)
}

// TellSearch tells the value of a trial's metric. A repeated value changes nothing.
func (c *Client) TellSearch(ctx context.Context, name string, v TellTrial) (SearchAnswer, error) {
	return ask[SearchAnswer](ctx, c, http.MethodPost, searchPath(name)+"/tell", v)
}

// RemoveSearch removes a search with its trials.
func (c *Client) RemoveSearch(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, searchPath(name), nil, nil)
}
