package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Why explains the difference in cost between two periods.
type Why struct {
	By     string    `json:"by"` // as in Costs
	Before WhySpan   `json:"before"`
	After  WhySpan   `json:"after"`
	Causes []string  `json:"causes"` // all causes, in display order
	Totals []WhyLine `json:"totals"` // of all costs, whatever By is; one per currency
	Lines  []WhyLine `json:"lines"`  // each split separately; largest change first
	// Between holds, per currency, the parts of the totals that the lines do not explain: work that moves from one
	// line to another is volume in both lines and not in the totals. The parts add up to zero.
	Between []WhyLine `json:"between"`
	Jobs    []WhyJob  `json:"jobs"` // up to ten per currency whose cost changed the most
}

// WhySpan is a period that ends before Until.
type WhySpan struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// WhyLine is the change of one name in one currency. Its parts add up to the change exactly.
type WhyLine struct {
	Name     string                  `json:"name"` // "": no name
	Currency money.Currency          `json:"currency"`
	Before   money.Amount            `json:"before"`
	After    money.Amount            `json:"after"`
	Change   money.Amount            `json:"change"`
	Parts    map[string]money.Amount `json:"parts"` // by cause
}

// WhyJob is a job whose cost changed.
type WhyJob struct {
	Job      string         `json:"job"`
	Currency money.Currency `json:"currency"`
	Before   money.Amount   `json:"before"`
	After    money.Amount   `json:"after"`
	Change   money.Amount   `json:"change"`
}

// Why explains the difference in cost between two periods, grouped as in Costs. A period is a month, a day or a
// span: 2026-10, 2026-10-15 or 2026-10-01..2026-10-15.
func (c *Client) Why(ctx context.Context, before, after, by string) (Why, error) {
	q := url.Values{"before": {before}, "after": {after}, "by": {by}}
	return ask[Why](ctx, c, http.MethodGet, Path("/v1/why", q), nil)
}
