package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Why says why the cost of one period differs from that of another.
type Why struct {
	By     string    `json:"by"` // as of Costs
	Before WhySpan   `json:"before"`
	After  WhySpan   `json:"after"`
	Causes []string  `json:"causes"` // all that a line may have, in the order in which they are shown
	Totals []WhyLine `json:"totals"` // of all costs together, whatever By is; one for each currency
	Lines  []WhyLine `json:"lines"`  // each split by itself; the largest change first
	// Between is what the parts of the totals are more than those of the lines, in each currency that has such a
	// difference: work that moves from one line to another is volume in both lines and not in the totals. Its parts add
	// up to zero.
	Between []WhyLine `json:"between"`
	Jobs    []WhyJob  `json:"jobs"` // the ten whose cost changed the most, in each currency
}

// WhySpan is a period; Until is not in it.
type WhySpan struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// WhyLine is the change of one name in one currency. The parts add up to it exactly.
type WhyLine struct {
	Name     string                  `json:"name"` // "": belongs to none
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

// Why says why the cost of one period differs from that of another, in lines as Costs has them. A period is a month, a
// day or a span: 2026-10, 2026-10-15 or 2026-10-01..2026-10-15.
func (c *Client) Why(ctx context.Context, before, after, by string) (Why, error) {
	q := url.Values{"before": {before}, "after": {after}, "by": {by}}
	return ask[Why](ctx, c, http.MethodGet, "/v1/why?"+q.Encode(), nil)
}
