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
	// Hidden counts the incidents that are left out, by state.
	Hidden map[string]int `json:"hidden"`
	// Thresholds lists those that people's answers have changed.
	Thresholds []AnomalyThreshold `json:"thresholds"`
}

// The states of incidents. Lists leave out those that are planned, dismissed or snoozed, unless they are asked for all.
const (
	AnomalyPlanned   = "planned"
	AnomalyDismissed = "dismissed"
	AnomalySnoozed   = "snoozed"
	AnomalyConfirmed = "confirmed"
)

// Anomaly is an incident in spending.
type Anomaly struct {
	Name    string     `json:"name"`  // such as a-0123456789
	State   string     `json:"state"` // planned, dismissed, snoozed or confirmed; "": no answer yet
	Kind    string     `json:"kind"`  // such as "idle machine"
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
	// Threshold is the condition that the incident met, and Factor what answers had made of the standard one, 1.
	Threshold string  `json:"threshold"`
	Factor    float64 `json:"factor"`
	// Answer is the newest one; null: none.
	Answer       *AnomalyAnswer `json:"answer"`
	SnoozedUntil *time.Time     `json:"snoozed_until"` // null: it is not snoozed
}

// AnomalyAnswer is a user's verdict on an incident.
type AnomalyAnswer struct {
	Confirmed bool      `json:"confirmed"` // it was a problem; else it was dismissed
	Why       string    `json:"why,omitempty"`
	By        string    `json:"by"`
	At        time.Time `json:"at"` // market time
}

// AnomalyThreshold is a threshold that answers have changed. Factor is 1.25 to the power of the dismissed incidents
// less the confirmed ones, from 0.64 to 2.44.
type AnomalyThreshold struct {
	Team      string        `json:"team"`
	Kind      string        `json:"kind"`
	Factor    float64       `json:"factor"`
	Threshold string        `json:"threshold"` // now in use
	Standard  string        `json:"standard"`
	Dismissed int           `json:"dismissed"`
	Confirmed int           `json:"confirmed"`
	Last      AnomalyAnswer `json:"last"`
}

// SnoozeAnomaly hides an incident, and later ones of its kind about the same, for a time.
type SnoozeAnomaly struct {
	Until string `json:"until"` // a span such as 3d, a time or a day in UTC, or now, which ends it
}

// AnswerAnomaly confirms an incident as a problem, or dismisses it.
type AnswerAnomaly struct {
	Why string `json:"why,omitempty"` // at most 1000 bytes; of a dismissed incident it is required
}

// PlanAnomalies expects unusual spending in a span: nothing in its scope is an incident.
type PlanAnomalies struct {
	Since   string `json:"since,omitempty"` // a time or a day in UTC, a span from now, or now, which is the default
	Until   string `json:"until"`           // a time or a day in UTC, or a span from Since
	Team    string `json:"team,omitempty"`  // "": that of the job, else all teams
	Project string `json:"project,omitempty"`
	Job     string `json:"job,omitempty"` // a job, a group, or the name that the runs of a recurring job share
	Why     string `json:"why"`           // at most 1000 bytes
}

// PlannedAnomalies is a span in which unusual spending is expected.
type PlannedAnomalies struct {
	Name    string    `json:"name"` // such as p-0123456789
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Team    string    `json:"team,omitempty"` // "": all teams
	Project string    `json:"project,omitempty"`
	Job     string    `json:"job,omitempty"`
	Why     string    `json:"why"`
	By      string    `json:"by"`
	At      time.Time `json:"at"` // market time
}

// Anomalies lists the incidents of the last span, such as 7d. An empty team selects all teams that the caller may
// see.
func (c *Client) Anomalies(ctx context.Context, team, since string) (Anomalies, error) {
	q := url.Values{"team": {team}, "since": {since}}
	return ask[Anomalies](ctx, c, http.MethodGet, Path("/v1/anomalies", q), nil)
}

// AllAnomalies is Anomalies with those that are planned, dismissed or snoozed.
func (c *Client) AllAnomalies(ctx context.Context, team, since string) (Anomalies, error) {
	q := url.Values{"team": {team}, "since": {since}, "all": {"1"}}
	return ask[Anomalies](ctx, c, http.MethodGet, Path("/v1/anomalies", q), nil)
}

// SnoozeAnomaly hides an incident, and later ones of its kind about the same, until a time.
func (c *Client) SnoozeAnomaly(ctx context.Context, name, until string) (Anomaly, error) {
	return c.aboutAnomaly(ctx, name, "snooze", SnoozeAnomaly{Until: until})
}

// DismissAnomaly marks an incident as no problem. It raises the threshold of its kind in its team.
func (c *Client) DismissAnomaly(ctx context.Context, name, why string) (Anomaly, error) {
	return c.aboutAnomaly(ctx, name, "dismiss", AnswerAnomaly{Why: why})
}

// ConfirmAnomaly marks an incident as a problem. It lowers the threshold of its kind in its team.
func (c *Client) ConfirmAnomaly(ctx context.Context, name, why string) (Anomaly, error) {
	return c.aboutAnomaly(ctx, name, "confirm", AnswerAnomaly{Why: why})
}

func (c *Client) aboutAnomaly(ctx context.Context, name, what string, body any) (Anomaly, error) {
	return ask[Anomaly](ctx, c, http.MethodPost, "/v1/anomalies/"+url.PathEscape(name)+"/"+what, body)
}

// PlannedAnomalies lists the spans in which unusual spending is expected, those that end last first.
func (c *Client) PlannedAnomalies(ctx context.Context) ([]PlannedAnomalies, error) {
	return ask[[]PlannedAnomalies](ctx, c, http.MethodGet, "/v1/anomalies/planned", nil)
}

// PlanAnomalies expects unusual spending in a span.
func (c *Client) PlanAnomalies(ctx context.Context, p PlanAnomalies) (PlannedAnomalies, error) {
	return ask[PlannedAnomalies](ctx, c, http.MethodPost, "/v1/anomalies/planned", p)
}

// RemovePlannedAnomalies removes such a span, as if nobody had planned it.
func (c *Client) RemovePlannedAnomalies(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/anomalies/planned/"+url.PathEscape(name), nil, nil)
}

// AnomalyAlert reports new anomalies to a receiver.
type AnomalyAlert struct {
	Name string `json:"name"` // such as al-0123456789
	Team string `json:"team"` // "": all teams
	By   string `json:"by"`   // webhook, slack, pagerduty or email
	To   string `json:"to"`   // an e-mail address, or the host of the receiver; the rest is a secret
	// Kinds limits the alert to anomalies of these kinds; empty: all.
	Kinds []string `json:"kinds"`
	// Above limits the alert to anomalies with more at stake, in the anomaly's currency; null: all.
	Above *money.Amount `json:"above"`
	User  string        `json:"user"` // who added it
	At    time.Time     `json:"at"`   // when
	// Error says why the alert reports nothing; "": it reports.
	Error string `json:"error,omitempty"`
	// Notices holds the newest reports, oldest first.
	Notices []Notice `json:"notices"`
}

// AddAnomalyAlert adds an alert.
type AddAnomalyAlert struct {
	Team string `json:"team,omitempty"` // "": all teams
	// To is the receiver: https://…, slack:https://…, mailto:ann@example.org, pagerduty:KEY or pagerduty:KEY@URL.
	To    string        `json:"to"`
	Kinds []string      `json:"kinds,omitempty"` // such as "idle machine" or "idle-machine"; empty: all
	Above *money.Amount `json:"above,omitempty"` // in the anomaly's currency; null: any
}

// AnomalyAlerts lists the alerts that concern the caller, with the newest reports of each.
func (c *Client) AnomalyAlerts(ctx context.Context) ([]AnomalyAlert, error) {
	return ask[[]AnomalyAlert](ctx, c, http.MethodGet, "/v1/anomalies/alerts", nil)
}

// AddAnomalyAlert adds an alert. Adding the same alert again changes nothing.
func (c *Client) AddAnomalyAlert(ctx context.Context, a AddAnomalyAlert) (AnomalyAlert, error) {
	return ask[AnomalyAlert](ctx, c, http.MethodPost, "/v1/anomalies/alerts", a)
}

// RemoveAnomalyAlert removes an alert, with the record of its reports.
func (c *Client) RemoveAnomalyAlert(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/anomalies/alerts/"+url.PathEscape(name), nil, nil)
}

// TestAnomalyAlert sends a marked report to the receiver of an alert once, and returns the outcome.
func (c *Client) TestAnomalyAlert(ctx context.Context, name string) (Notice, error) {
	return ask[Notice](ctx, c, http.MethodPost, "/v1/anomalies/alerts/"+url.PathEscape(name)+"/test", nil)
}

// OpenAnomalies counts the anomalies of a team and a kind that go on, without those that lists leave out.
type OpenAnomalies struct {
	Team     string         `json:"team"`
	Kind     string         `json:"kind"`
	Currency money.Currency `json:"currency"`
	Count    int            `json:"count"`
	AtStake  money.Amount   `json:"at_stake"`
}
