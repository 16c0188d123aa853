package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Anomalies are the incidents of a span, the newest first.
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
	About   string     `json:"about"` // the job, machine, group, volume or SKU; the team where it is about all of it
	Since   time.Time  `json:"since"`
	Found   time.Time  `json:"found"`
	Until   *time.Time `json:"until"` // null: it goes on
	// AtStake estimates the excess cost until now; AtFound is that estimate at the time of the alert.
	AtStake  money.Amount   `json:"at_stake"`
	AtFound  money.Amount   `json:"at_found"`
	Currency money.Currency `json:"currency"`
	Why      string         `json:"why"`
	Jobs     []string       `json:"jobs"` // at most five
}

// Anomalies lists the incidents of the last span, such as 7d. The empty team is all that you may see.
func (c *Client) Anomalies(ctx context.Context, team, since string) (Anomalies, error) {
	q := url.Values{"team": {team}, "since": {since}}
	return ask[Anomalies](ctx, c, http.MethodGet, "/v1/anomalies?"+q.Encode(), nil)
}
