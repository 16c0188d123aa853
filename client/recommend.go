package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// SavingsPlan ranks what would lower the spending of the last 30 days in one currency.
type SavingsPlan struct {
	Currency        money.Currency   `json:"currency"`
	Since           time.Time        `json:"since"`
	Until           time.Time        `json:"until"`
	Spent           money.Amount     `json:"spent"`
	Target          money.Amount     `json:"target"`  // to save
	Reached         money.Amount     `json:"reached"` // with all recommendations whose saving is known
	Share           float64          `json:"share"`   // Reached of Spent
	Enough          bool             `json:"enough"`  // Reached is at least Target
	Recommendations []Recommendation `json:"recommendations"`
}

// Recommendation is something to do, and what it would have saved.
type Recommendation struct {
	Name       string        `json:"name"`
	Alone      *money.Amount `json:"alone"`      // saved by this one alone; null: unknown
	Saving     *money.Amount `json:"saving"`     // saved after those above it; null: unknown
	Sum        money.Amount  `json:"sum"`        // saved by it and those above it
	Needed     bool          `json:"needed"`     // the target is not reached without it
	Method     string        `json:"method"`     // costs, comparison, estimate, formula or simulation; "": unknown saving
	Confidence string        `json:"confidence"` // high, medium or low
	Effort     string        `json:"effort"`
	Risk       string        `json:"risk"`
	Evidence   string        `json:"evidence"`
	Command    string        `json:"command"`
}

// Recommend ranks what would lower spending, for each currency. Target is a share such as 25%.
func (c *Client) Recommend(ctx context.Context, team, target string) ([]SavingsPlan, error) {
	q := url.Values{"team": {team}, "target": {target}}
	return ask[[]SavingsPlan](ctx, c, http.MethodGet, Path("/v1/recommend", q), nil)
}

// TakeRecommendation says that a team follows a recommendation from now on.
type TakeRecommendation struct {
	Name     string         `json:"name"`               // such as "spot share"
	Team     string         `json:"team,omitempty"`     // "": all teams
	Currency money.Currency `json:"currency,omitempty"` // "": the only one of the costs
}

// TakenRecommendation compares what a recommendation was expected to save with what it has saved in the month since.
// Null is unknown. Times are market time.
type TakenRecommendation struct {
	Name     string         `json:"name"`
	Team     string         `json:"team,omitempty"`
	Currency money.Currency `json:"currency"`
	At       time.Time      `json:"at"` // the hour in which it was taken
	Who      string         `json:"who"`
	Days     float64        `json:"days"`             // measured, at most 30
	Over     bool           `json:"over"`             // the month has passed
	Monthly  *money.Amount  `json:"expected_a_month"` // by it alone, when it was taken
	Expected *money.Amount  `json:"expected"`         // within the measured days
	Unit     string         `json:"unit"`             // that costs are compared by, such as "a run"
	Before   money.Amount   `json:"before"`           // cost that it concerns, up to 30 days before
	Cost     money.Amount   `json:"cost"`             // the same within the measured days
	Saved    *money.Amount  `json:"saved"`            // Cost at the earlier cost of a unit, less Cost
}

// TakeRecommendation records that a team follows a recommendation, with its expected saving.
func (c *Client) TakeRecommendation(ctx context.Context, t TakeRecommendation) (TakenRecommendation, error) {
	return ask[TakenRecommendation](ctx, c, http.MethodPost, "/v1/recommend/take", t)
}

// TakenRecommendations lists the recommendations that were taken, newest first. An empty team selects all teams that
// the caller may see.
func (c *Client) TakenRecommendations(ctx context.Context, team string) ([]TakenRecommendation, error) {
	q := url.Values{"team": {team}}
	return ask[[]TakenRecommendation](ctx, c, http.MethodGet, Path("/v1/recommend/taken", q), nil)
}
