package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Anomalies lists the incidents of a span, newest first.
type Anomalies struct {
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Anomalies []Anomaly `json:"anomalies"`
}

// Anomaly is an incident in spending.
type Anomaly struct {
	Kind    string     `json:"kind"` // such as "idle machine"
	Team    string     `json:"team"`
	Project string     `json:"project,omitempty"`
	About   string     `json:"about"` // the job, machine, group, volume or SKU; else the team
	Since   time.Time  `json:"since"`
	Found   time.Time  `json:"found"`
	Until   *time.Time `json:"until"` // null: not ended yet
	// AtStake estimates the excess cost so far; AtFound is the estimate at the time of the alert.
	AtStake  money.Amount   `json:"at_stake"`
	AtFound  money.Amount   `json:"at_found"`
	Currency money.Currency `json:"currency"`
	Why      string         `json:"why"`
	Jobs     []string       `json:"jobs"` // up to five
}

// Anomalies lists the incidents of the last span, such as 7d. An empty team selects all teams that the caller may
// see.
func (c *Client) Anomalies(ctx context.Context, team, since string) (Anomalies, error) {
	q := url.Values{"team": {team}, "since": {since}}
	return ask[Anomalies](ctx, c, http.MethodGet, "/v1/anomalies?"+q.Encode(), nil)
}
