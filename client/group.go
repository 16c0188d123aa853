package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Group is jobs that belong together and have one budget: the members of an array, the trials of a study, or the
// stages of a pipeline. Times are wall time.
type Group struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`             // array, study, pipeline or schedule
	State     string            `json:"state"`            // awaits_approval, open, ending or over
	Why       string            `json:"why,omitempty"`    // machine-readable
	Detail    string            `json:"detail,omitempty"` // a sentence
	Closed    bool              `json:"closed"`           // over, and nothing of it costs anything any more
	Array     *Indexes          `json:"array,omitempty"`
	Study     *StudyState       `json:"study,omitempty"`
	Pipeline  *PipelineState    `json:"pipeline,omitempty"`
	Schedule  *ScheduleState    `json:"schedule,omitempty"`
	Of        string            `json:"of,omitempty"` // the schedule that it is a run of
	Members   int               `json:"members"`
	Began     int               `json:"began"` // how many of them have begun
	Open      int               `json:"open"`  // how many of those are not over
	AtOnce    int               `json:"at_once"`
	Succeeded int               `json:"succeeded"`
	Failed    int               `json:"failed"`
	Stopped   int               `json:"stopped"`
	Cancelled int               `json:"cancelled"`
	Waits     []string          `json:"waits,omitempty"` // jobs and groups that must be over before a member begins
	Submitted time.Time         `json:"submitted"`
	Finished  *time.Time        `json:"finished"`
	Currency  money.Currency    `json:"currency"`
	Spent     money.Amount      `json:"spent"`
	Budget    *money.Amount     `json:"budget"` // of all members together; null: none
	Rate      *money.Rate       `json:"rate"`   // of an hour of what its members hold now; null: nothing
	Tags      map[string]string `json:"tags,omitempty"`
	Team      string            `json:"team,omitempty"`
	Project   string            `json:"project,omitempty"`
	User      string            `json:"user,omitempty"`
	Approval  *Approval         `json:"approval,omitempty"`
}

// Indexes are those of an array: From, From+Step and so on, as many as it has members.
type Indexes struct {
	From int `json:"from"`
	Step int `json:"step"`
}

// GroupReceipt is what a group has cost, by member, in the order in which they began. The sums are those of the lines.
type GroupReceipt struct {
	Group   Group         `json:"group"`
	Members []GroupMember `json:"members"`
	Cost    money.Amount  `json:"cost"`
	Useful  money.Amount  `json:"useful"`
	Lost    money.Amount  `json:"lost"`
	StartUp money.Amount  `json:"start_up"`
	Idle    money.Amount  `json:"idle"`
	// OnDemand is what the same work would have cost on-demand; null: of a member nobody can say.
	OnDemand      *money.Amount `json:"on_demand"`
	Interruptions int           `json:"interruptions"`
	Study         *StudyReceipt `json:"study,omitempty"`
}

// GroupMember is a line of a group's receipt.
type GroupMember struct {
	ID            string        `json:"id"`
	Index         int           `json:"index"`
	State         string        `json:"state"`
	Why           string        `json:"why,omitempty"`
	Started       *time.Time    `json:"started"`
	Finished      *time.Time    `json:"finished"`
	Attempts      int           `json:"attempts"`
	Interruptions int           `json:"interruptions"`
	Cost          money.Amount  `json:"cost"`
	OnDemand      *money.Amount `json:"on_demand"`
	Exit          int           `json:"exit"`
}

// SubmitGroup submits a job as an array or a study, and repeats itself as Submit does.
func (c *Client) SubmitGroup(ctx context.Context, s Submission) (Group, error) {
	return submitted[Group](ctx, c, "/v1/groups", s)
}

// Group shows a group.
func (c *Client) Group(ctx context.Context, id string) (Group, error) {
	return ask[Group](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id), nil)
}

// Groups lists the groups that the token's user sees, by name.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	return ask[[]Group](ctx, c, http.MethodGet, "/v1/groups", nil)
}

// EndGroup ends a group with its members; save keeps a checkpoint of each first.
func (c *Client) EndGroup(ctx context.Context, id string, save bool) (Group, error) {
	return ask[Group](ctx, c, http.MethodPost, "/v1/groups/"+url.PathEscape(id)+"/end", End{Save: save})
}

// GroupReceipt is what a group has cost.
func (c *Client) GroupReceipt(ctx context.Context, id string) (GroupReceipt, error) {
	return ask[GroupReceipt](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id)+"/receipt", nil)
}

// Dependency is a job or a group that must be over before another begins.
type Dependency struct {
	On  string `json:"on"`
	Any bool   `json:"any,omitempty"` // however it ends; otherwise it must succeed, a group with all of its members
}
