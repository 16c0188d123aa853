package client

import (
	"context"
	"net/http"
	"net/url"
)

// Diagnosis names the causes of a job's poor machine use. Null is unknown.
type Diagnosis struct {
	Job       string   `json:"job"`
	Measured  float64  `json:"measured_s"` // of the machine that was measured longest
	HourlyUSD *float64 `json:"cost_usd_per_hour"`
	// Use holds average utilization while the program worked, by metric name.
	Use    map[string]float64 `json:"use"`
	Phases DiagnosisPhases    `json:"phases"`
	Causes []DiagnosisCause   `json:"causes"` // the largest waste first
	// Note explains why there is no cause, if that does not mean that all is well, or why the causes are less certain.
	Note      string            `json:"note,omitempty"`
	Busy      bool              `json:"machine_busy,omitempty"` // other programs had the processors most of the time
	Operators []ProfileOperator `json:"operators,omitempty"`    // the most expensive ones of the profiles
}

// DiagnosisPhases splits the measured time of a machine.
type DiagnosisPhases struct {
	SetUp float64 `json:"set_up_s"` // before the program's first work
	Work  float64 `json:"work_s"`
	After float64 `json:"after_s"` // after its last work
}

// DiagnosisCause is one reason for poor machine use. Its saving is per hour of the same work.
type DiagnosisCause struct {
	Class     string       `json:"class"`
	Group     string       `json:"group"` // data, model, code or resources
	Evidence  string       `json:"evidence"`
	SavingUSD *float64     `json:"saving_usd_per_hour"`
	Low       *float64     `json:"low"`
	High      *float64     `json:"high"`
	Share     *SavingShare `json:"saving_share"` // of the job's cost
	Change    string       `json:"change"`
	Effort    string       `json:"effort"`     // low, medium or high
	Risk      string       `json:"risk"`       // to the result of the training: none, low or medium
	AB        *string      `json:"ab_command"` // null: the change is in the program's code, or its figures are unknown
}

// SavingShare is a saving as a share of a cost, with its range.
type SavingShare struct {
	Low   float64 `json:"low"`
	Value float64 `json:"value"`
	High  float64 `json:"high"`
}

// ProfileOperator is a function or a kernel of a profile, without its callees.
type ProfileOperator struct {
	Name    string  `json:"name"`
	Share   float64 `json:"share"` // of the time of all operators
	Seconds float64 `json:"seconds,omitempty"`
	Count   int64   `json:"count,omitempty"`
	Part    string  `json:"part"` // its purpose, such as "data loading"
}

// Profile is the summary of a profiler's file. Null is unknown.
type Profile struct {
	Tool      string             `json:"tool"`
	Seconds   float64            `json:"seconds,omitempty"`
	Operators []ProfileOperator  `json:"operators,omitempty"` // the most expensive first
	Shares    map[string]float64 `json:"shares,omitempty"`    // of the time, by purpose
	OnGPU     bool               `json:"on_gpu,omitempty"`    // the shares are of the GPU's time
	OfBusy    bool               `json:"of_busy,omitempty"`   // the shares are of the time in which GPUs worked
	GPUBusy   *float64           `json:"gpu_busy,omitempty"`
	Memory    *float64           `json:"gpu_memory,omitempty"`
	Tensor    *float64           `json:"tensor_active,omitempty"`
}

// DiagnoseWith asks for a diagnosis that also uses profiles.
type DiagnoseWith struct {
	Profiles []Profile `json:"profiles"` // at most 32
}

// Diagnose names the causes of a job's poor machine use.
func (c *Client) Diagnose(ctx context.Context, job string, profiles ...Profile) (Diagnosis, error) {
	path := "/v1/jobs/" + url.PathEscape(job) + "/diagnosis"
	if len(profiles) == 0 {
		return ask[Diagnosis](ctx, c, http.MethodGet, path, nil)
	}
	return ask[Diagnosis](ctx, c, http.MethodPost, path, DiagnoseWith{Profiles: profiles})
}

// Diagnoses diagnoses the newest 200 jobs of a team that were submitted in the last span, such as 7d. An empty team
// selects all teams that the caller may see.
func (c *Client) Diagnoses(ctx context.Context, team, since string) ([]Diagnosis, error) {
	q := url.Values{"team": {team}, "since": {since}}
	return ask[[]Diagnosis](ctx, c, http.MethodGet, Path("/v1/diagnoses", q), nil)
}
