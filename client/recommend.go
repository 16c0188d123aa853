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
	Confidence string        `json:"confidence"` // high, medium or low
	Effort     string        `json:"effort"`
	Risk       string        `json:"risk"`
	Evidence   string        `json:"evidence"`
	Command    string        `json:"command"`
}

// Recommend ranks what would lower spending, for each currency. Target is a share such as 25%.
func (c *Client) Recommend(ctx context.Context, team, target string) ([]SavingsPlan, error) {
	q := url.Values{"team": {team}, "target": {target}}
	return ask[[]SavingsPlan](ctx, c, http.MethodGet, "/v1/recommend?"+q.Encode(), nil)
}
