package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Proposing says why a job is worth its cost. A job that is submitted with it waits until somebody approves it.
type Proposing struct {
	Why string `json:"why"` // at most 1000 bytes
	// Value is what the result is expected to be worth, in the job's currency; null: it is in words only.
	Value     *money.Amount `json:"value"`
	ValueText string        `json:"value_text,omitempty"` // the value in words, at most 200 bytes; "": in dollars only
}

// ProposalOutcome is the result of a proposal. One of Text and Value may be empty.
type ProposalOutcome struct {
	Text  string        `json:"text,omitempty"` // at most 1000 bytes
	Value *money.Amount `json:"value"`          // in the job's currency; null: unknown
}

// Proposal is a proposed job with its expected value and its result. Null is unknown.
type Proposal struct {
	ID    string    `json:"id"` // of the job too
	State string    `json:"state"`
	Over  bool      `json:"over"` // the job has ended and can no longer cost anything
	Team  string    `json:"team,omitempty"`
	User  string    `json:"user,omitempty"` // who proposed it
	At    time.Time `json:"at"`             // wall time
	Proposing
	Currency money.Currency `json:"currency"`
	// Cost is the planned cost when it was proposed: 10 %, median and 90 % of the simulated runs.
	Cost *[3]money.Amount `json:"cost"`
	// Rank counts from 1 among the proposals that wait, by value per dollar of the median cost; null: it waits no
	// more, its value or its cost is unknown, or it is shown alone.
	Rank      *int      `json:"rank"`
	PerDollar *float64  `json:"value_per_dollar"` // null too at no cost
	Fits      *bool     `json:"fits"`             // it is in the best set within the budget; null: no budget, or no rank
	Approval  *Approval `json:"approval"`
	// Spent is what the job has cost so far; CostError is that over the median, less 1, once it is over.
	Spent     money.Amount     `json:"spent"`
	CostError *float64         `json:"cost_error"`
	Outcome   *ProposalOutcome `json:"outcome"` // the newest
	OutcomeBy string           `json:"outcome_by,omitempty"`
	OutcomeAt *time.Time       `json:"outcome_at"` // wall time
}

// Proposals lists proposals: those that wait by rank, then those without a rank, then the others, newest first.
type Proposals struct {
	Budget *money.Amount `json:"budget"` // null: none was given
	// Exact is false if there are too many sets of proposals within the budget to try all.
	Exact     bool         `json:"exact"`
	Cost      money.Amount `json:"cost"`  // median, of those that fit
	Value     money.Amount `json:"value"` // of those that fit
	Proposals []Proposal   `json:"proposals"`
	// Currency is that of Budget, Cost and Value: only proposals in it have a rank.
	Currency money.Currency `json:"currency"`
}

// Proposals lists the proposals of a team, or of all teams that the caller may see. With a budget, such as 500, it
// says which of those that wait fit into it.
func (c *Client) Proposals(ctx context.Context, team, budget string) (Proposals, error) {
	q := url.Values{"team": {team}, "budget": {budget}}
	return ask[Proposals](ctx, c, http.MethodGet, Path("/v1/proposals", q), nil)
}

// Proposal returns a proposal.
func (c *Client) Proposal(ctx context.Context, id string) (Proposal, error) {
	return ask[Proposal](ctx, c, http.MethodGet, "/v1/proposals/"+url.PathEscape(id), nil)
}

// SetOutcome records the result of a proposal.
func (c *Client) SetOutcome(ctx context.Context, id string, o ProposalOutcome) (Proposal, error) {
	return ask[Proposal](ctx, c, http.MethodPost, "/v1/proposals/"+url.PathEscape(id)+"/outcome", o)
}
