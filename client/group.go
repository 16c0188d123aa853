package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"scrimp/money"
)

// Group is a set of jobs with one budget: the members of an array, the trials of a study, or the stages of a
// pipeline. Times are wall time.
type Group struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`             // array, study, pipeline or schedule
	State     string            `json:"state"`            // awaits_approval, open, ending or over
	Why       string            `json:"why,omitempty"`    // machine-readable
	Detail    string            `json:"detail,omitempty"` // a sentence
	Closed    bool              `json:"closed"`           // it has ended and can no longer cost anything
	Array     *Indexes          `json:"array,omitempty"`
	Study     *StudyState       `json:"study,omitempty"`
	Pipeline  *PipelineState    `json:"pipeline,omitempty"`
	Schedule  *ScheduleState    `json:"schedule,omitempty"`
	Of        string            `json:"of,omitempty"` // the schedule of a run
	Members   int               `json:"members"`
	Began     int               `json:"began"` // members that have started
	Open      int               `json:"open"`  // started members that have not ended
	AtOnce    int               `json:"at_once"`
	Succeeded int               `json:"succeeded"`
	Failed    int               `json:"failed"`
	Stopped   int               `json:"stopped"`
	Cancelled int               `json:"cancelled"`
	Waits     []string          `json:"waits,omitempty"` // jobs and groups that must end before a member starts
	Submitted time.Time         `json:"submitted"`
	Finished  *time.Time        `json:"finished"`
	Deadline  *time.Time        `json:"deadline"`     // of every member; null: none
	Speed     float64           `json:"market_speed"` // market time per real time
	Currency  money.Currency    `json:"currency"`
	Spent     money.Amount      `json:"spent"`
	Budget    *money.Amount     `json:"budget"` // for all members together; null: none
	Rate      *money.Rate       `json:"rate"`   // per hour for the machines held now; null: none
	Tags      map[string]string `json:"tags,omitempty"`
	Team      string            `json:"team,omitempty"`
	Project   string            `json:"project,omitempty"`
	User      string            `json:"user,omitempty"`
	Approval  *Approval         `json:"approval,omitempty"`
}

// GroupLimits are limits of all members together that are no money.
type GroupLimits struct {
	// GPUHours is what the members have used so far, and GPULimit its limit. Null: no limit.
	GPUHours  float64        `json:"gpu_hours"`
	GPULimit  *float64       `json:"gpu_hours_limit"`
	WallClock *time.Duration `json:"wall_clock_ns"` // limit; null: none
}

// Indexes are the indexes of an array: From, From+Step and so on, one per member.
type Indexes struct {
	From int `json:"from"`
	Step int `json:"step"`
}

// GroupReceipt is the cost of a group by member, in the order of their start. The sums are those of the lines.
type GroupReceipt struct {
	Group   Group         `json:"group"`
	Members []GroupMember `json:"members"`
	Cost    money.Amount  `json:"cost"`
	Useful  money.Amount  `json:"useful"`
	Lost    money.Amount  `json:"lost"`
	StartUp money.Amount  `json:"start_up"`
	Idle    money.Amount  `json:"idle"`
	// OnDemand is what the same work would have cost on-demand; null: unknown for a member.
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
	Lost          money.Amount  `json:"lost"` // of the cost: work that an interruption or a failure destroyed
	OnDemand      *money.Amount `json:"on_demand"`
	Exit          int           `json:"exit"`
}

// SubmitGroup submits a job as an array or a study, or a pipeline. It retries as Submit does.
func (c *Client) SubmitGroup(ctx context.Context, s Submission) (Group, error) {
	return submitted[Group](ctx, c, "/v1/groups", s)
}

// Group returns a group.
func (c *Client) Group(ctx context.Context, id string) (Group, error) {
	return ask[Group](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id), nil)
}

// Groups lists the groups that the token's user sees, by name. It reads them page by page.
func (c *Client) Groups(ctx context.Context) (all []Group, err error) {
	for q := (url.Values{"limit": {strconv.Itoa(page)}}); ; {
		list, next, err := c.GroupsPage(ctx, q)
		if all = append(all, list...); err != nil || next == "" {
			return all, err
		}
		q.Set("after", next)
	}
}

// GroupsPage returns a page of the groups that the user sees, by the parameters of GET /v1/groups. next is the value of
// after for the next page; "": no more.
func (c *Client) GroupsPage(ctx context.Context, q url.Values) (list []Group, next string, err error) {
	return paged[Group](ctx, c, "/v1/groups", q)
}

// EndGroup ends a group and its members; with save, each saves a checkpoint first.
func (c *Client) EndGroup(ctx context.Context, id string, save bool) (Group, error) {
	return ask[Group](ctx, c, http.MethodPost, "/v1/groups/"+url.PathEscape(id)+"/end", End{Save: save})
}

// GroupReceipt returns the cost of a group.
func (c *Client) GroupReceipt(ctx context.Context, id string) (GroupReceipt, error) {
	return ask[GroupReceipt](ctx, c, http.MethodGet, "/v1/groups/"+url.PathEscape(id)+"/receipt", nil)
}

// Dependency is a job or a group that must end before another job starts.
type Dependency struct {
	On  string `json:"on"`
	Any bool   `json:"any,omitempty"` // accept any outcome; otherwise it must succeed, a group with all its members
}
