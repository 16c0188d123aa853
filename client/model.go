package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"scrimp/money"
)

// ModelVersion is a version of the model that a pipeline makes: one of its runs, if a stage of it deploys.
type ModelVersion struct {
	Pipeline string         `json:"pipeline"`
	Version  int            `json:"version"` // from 1; no version of a pipeline is given twice
	Run      string         `json:"run"`     // the group
	Team     string         `json:"team,omitempty"`
	Project  string         `json:"project,omitempty"`
	User     string         `json:"user"`
	Currency money.Currency `json:"currency"`
	// State is running, deployed (in place now), unknown (the last that a deploy stage put in place, and a later deploy
	// stage failed), replaced (by a later version), unchanged (the run reused the deploy stage because its model was in
	// place), skipped, failed or ended.
	State string `json:"state"`
	// Verdict is passed, not_passed, failed (a gate had nothing to compare), open (a gate has not been judged yet) or none
	// (the run has no gates).
	Verdict  string `json:"verdict"`
	Deployed bool   `json:"deployed"` // it is in place now; of a pipeline at most one is
	Why      string `json:"why,omitempty"`
	// UnknownSince is the run whose deploy stage failed after it had begun, so that nobody knows which version is in
	// place. Two versions have this field: that of this run, and the last one whose deploy stage succeeded.
	UnknownSince string `json:"unknown_since,omitempty"`

	Stage      string       `json:"stage"` // that deploys
	Job        string       `json:"job,omitempty"`
	Submitted  time.Time    `json:"submitted"`
	Finished   *time.Time   `json:"finished"`
	DeployedAt *time.Time   `json:"deployed_at"` // when its deploy job ended; null: it was never deployed, or nobody knows
	Cost       money.Amount `json:"cost"`        // of the run so far, as in its receipt
	// Metrics are the figures that the stages reported, as STAGE.NAME, decimals.
	Metrics map[string]string `json:"metrics,omitempty"`
	Gates   []GateVerdict     `json:"gates,omitempty"` // of all stages, in their order
	// Lineage lists the inputs and outputs of the version's stages, one line a stage; GET /v1/models leaves it out.
	Lineage []ModelStage `json:"lineage,omitempty"`
}

// ID is the version as people write it, such as retrain@3.
func (m *ModelVersion) ID() string { return m.Pipeline + "@" + strconv.Itoa(m.Version) }

// ModelStage is a stage of the run, with its inputs and outputs.
type ModelStage struct {
	Stage   string            `json:"stage"`
	State   string            `json:"state"`
	Job     string            `json:"job,omitempty"` // that made its outputs, of this or of an earlier run
	Key     string            `json:"key,omitempty"` // identifies everything that its outputs depend on
	Inputs  []StageContent    `json:"inputs,omitempty"`
	Params  map[string]string `json:"params,omitempty"`
	Program string            `json:"program,omitempty"`
	Outs    []StageContent    `json:"outs,omitempty"`
	// WarmStart is what the stage began with instead of the input of that path; null: it has no warm_start, or was
	// reused.
	WarmStart *WarmStart `json:"warm_start,omitempty"`
}

// ModelVersions lists the versions of all pipelines that the caller sees, or of one pipeline or project; "": any.
func (c *Client) ModelVersions(ctx context.Context, pipeline, project string) ([]ModelVersion, error) {
	q := url.Values{"pipeline": {pipeline}, "project": {project}}
	return ask[[]ModelVersion](ctx, c, http.MethodGet, Path("/v1/models", q), nil)
}

// ModelVersion shows the version that a run has made, with its lineage.
func (c *Client) ModelVersion(ctx context.Context, run string) (ModelVersion, error) {
	return ask[ModelVersion](ctx, c, http.MethodGet, "/v1/models/"+url.PathEscape(run), nil)
}
