package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Waste lists spending that buys nothing. Each dollar of the ledger is in at most one finding, so the totals are the
// sums of the findings. Times are market time.
type Waste struct {
	Since     time.Time      `json:"since"` // of the ledger that was read
	Until     time.Time      `json:"until"`
	Short     bool           `json:"short"`             // the ledger begins after the requested start
	Empty     bool           `json:"empty"`             // there are no costs in the span
	Measured  int            `json:"runs_measured"`     // runs of recurring jobs with telemetry
	Recurring int            `json:"runs_of_recurring"` // runs of recurring jobs that were read
	Findings  []WasteFinding `json:"findings"`          // the largest saving first
	Totals    []WasteTotal   `json:"totals"`
}

// WasteFinding is one thing that costs money for nothing, and what to do about it. Null is unknown.
type WasteFinding struct {
	ID       string         `json:"id"`
	Kind     string         `json:"kind"` // such as "unused machine"
	Team     string         `json:"team"`
	About    string         `json:"about"` // the machine, volume, job, schedule or reservation
	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`           // within the span, of all that the finding concerns
	Waste    *money.Amount  `json:"wasted"`         // the part of cost that bought nothing
	Monthly  *money.Amount  `json:"cost_a_month"`   // at its pace since it was first seen; null too if it does not recur
	Saving   *money.Amount  `json:"saving_a_month"` // by the action, in the coming month
	Evidence string         `json:"evidence"`
	Action   string         `json:"action"`  // keep, shrink, schedule, stop or delete
	Command  string         `json:"command"` // what does it
	Effect   string         `json:"effect"`  // of scrimp waste apply; "": it can do nothing
	Jobs     []string       `json:"jobs"`    // up to five
}

// WasteTotal is the sum of the findings of one currency. Null is unknown.
type WasteTotal struct {
	Currency money.Currency `json:"currency"`
	Findings int            `json:"findings"`
	Cost     money.Amount   `json:"cost"`
	Waste    *money.Amount  `json:"wasted"`         // of the findings where it is known
	Monthly  *money.Amount  `json:"cost_a_month"`   // of the findings where it is known
	Saving   *money.Amount  `json:"saving_a_month"` // of the findings whose saving is known
	Unknown  int            `json:"savings_unknown"`
}

// Survey lists resources that the engines see in their accounts, whoever made them: those that lack a tag, volumes of
// stopped machines, and volumes without a machine. No total of Waste contains them.
type Survey struct {
	Required  []string         `json:"required_tags"` // of the admin's rules; none: one tag is enough
	Resources []SurveyResource `json:"resources"`     // the dearest first; those with an unknown price last
	Engines   []SurveyEngine   `json:"engines"`
}

// SurveyResource is a machine or a volume.
type SurveyResource struct {
	Engine   string         `json:"engine"`
	ID       string         `json:"id"`
	Kind     string         `json:"kind"` // machine or volume
	Type     string         `json:"type"`
	Region   string         `json:"region"`
	Made     *time.Time     `json:"made"` // null: unknown
	Currency money.Currency `json:"currency"`
	Monthly  *money.Amount  `json:"cost_a_month"` // of 30 days at the present price; null: unknown
	Lacks    []string       `json:"lacks"`        // required tags, or "any tag"
	Evidence string         `json:"evidence"`
	Action   string         `json:"action"`  // keep or delete
	Try      string         `json:"try"`     // a command that changes nothing; "": none is known
	Command  string         `json:"command"` // the command that does it
}

// SurveyEngine is an engine that was asked.
type SurveyEngine struct {
	Name  string `json:"name"`
	Seen  int    `json:"seen"`  // machines and volumes in its account
	Lists bool   `json:"lists"` // false: engines of its kind know no account
	Error string `json:"error"` // why it was not read; "": it was
}

// SurveyWaste asks the engines for what they see.
func (c *Client) SurveyWaste(ctx context.Context) (Survey, error) {
	return ask[Survey](ctx, c, http.MethodGet, "/v1/waste/survey", nil)
}

// ApplyWaste asks for the action of a finding.
type ApplyWaste struct {
	Since string `json:"since,omitempty"` // span of the list that has the finding; "": 30d
}

// WasteDecision is an applied finding: the promised saving, and the one measured from the ledger. Null is unknown.
type WasteDecision struct {
	ID       string         `json:"id"`
	At       time.Time      `json:"at"` // market time
	Who      string         `json:"who"`
	Kind     string         `json:"kind"`
	Team     string         `json:"team"`
	About    string         `json:"about"`
	Action   string         `json:"action"`
	Currency money.Currency `json:"currency"`
	Promised *money.Amount  `json:"promised_a_month"`
	Days     float64        `json:"days"`     // measured, at most 30
	Over     bool           `json:"over"`     // the month has passed
	Due      *money.Amount  `json:"promised"` // within the measured days
	Cost     money.Amount   `json:"cost"`     // of the same thing within these days
	Saved    *money.Amount  `json:"saved"`    // what it would have cost at its earlier pace, less Cost
}

// NoTeam as the team selects the findings that belong to no team.
const NoTeam = "(none)"

// Waste lists the waste of the last span, such as 30d. An empty team selects all teams that the caller may see.
func (c *Client) Waste(ctx context.Context, team, since string) (Waste, error) {
	q := url.Values{"team": {team}, "since": {since}}
	return ask[Waste](ctx, c, http.MethodGet, Path("/v1/waste", q), nil)
}

// ApplyWaste carries out the action of a finding and records it.
func (c *Client) ApplyWaste(ctx context.Context, id, since string) (WasteFinding, error) {
	return ask[WasteFinding](ctx, c, http.MethodPost, "/v1/waste/"+url.PathEscape(id)+"/apply", ApplyWaste{Since: since})
}

// WasteHistory lists the applied findings, oldest first.
func (c *Client) WasteHistory(ctx context.Context) ([]WasteDecision, error) {
	return ask[[]WasteDecision](ctx, c, http.MethodGet, "/v1/waste/history", nil)
}
