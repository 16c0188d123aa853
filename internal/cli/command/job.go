package command

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	api "scrimp/client"
	"scrimp/internal/job/spec"
)

// Connect returns a client of the server, which it starts where none runs, and what the server says about itself.
func (a *App) Connect(ctx context.Context, market string) (*Client, api.Server, error) {
	c, err := a.Ensure(ctx, market)
	if err != nil {
		return nil, api.Server{}, err
	}
	v, err := c.Server(ctx)
	return c, v, err
}

// Spec returns the validated file of a job.
func (c *Client) Spec(ctx context.Context, job string) (spec.Job, error) {
	var raw json.RawMessage
	if err := c.Do(ctx, http.MethodGet, OfJob(job, "/spec"), nil, &raw); err != nil {
		return spec.Job{}, err
	}
	return spec.Decode(raw)
}

// Telemetry returns what the machines of a job measured in the last span of an attempt. A span of 0 is all of it, and
// attempt 0 is the newest one that was measured.
func (c *Client) Telemetry(ctx context.Context, job string, last time.Duration, attempt int) (t api.Telemetry,
	err error) {
	q := url.Values{}
	if last > 0 {
		q.Set("last", last.String())
	}
	if attempt > 0 {
		q.Set("attempt", strconv.Itoa(attempt))
	}
	err = c.Do(ctx, http.MethodGet, OfJob(job, "/telemetry?"+q.Encode()), nil, &t)
	return t, err
}
