// Package datause answers what bringing inputs to the machines of jobs took.
package datause

import (
	"context"
	"net/http"
	"slices"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/convert"
)

// Service answers requests about the inputs of jobs.
type Service struct {
	Control *control.Control
	// Telemetry returns the telemetry of a job's machines; nil: not known.
	Telemetry func(ctx context.Context, j *core.Job) (*receipt.Telemetry, error)
}

// Data reports what bringing inputs to the machines of a job took.
func (d *Service) Data(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	var paths map[string]string
	if j, err := d.inputs(r.Context(), id); err == nil { // without its job file, the reads have no path
		paths = j
	}
	var u *receipt.DataUse
	if !d.Control.Job(id, func(_ *core.Machine, j *core.Job) { u = of(j, paths) }) {
		reply.UnknownJob(w, "", id)
		return
	}
	if u == nil {
		u = &receipt.DataUse{Currency: money.USD, Reads: []receipt.DataRead{}}
	}
	reply.JSON(w, convert.To[client.DataUse](*u))
}

// Receipt returns what a receipt contains of a job's machines: their telemetry, and what bringing inputs to them took;
// nil if there is none.
func (d *Service) Receipt(ctx context.Context, j *core.Job) (t *receipt.Telemetry, u *receipt.DataUse, err error) {
	if t, err = d.Telemetry(ctx, j); err != nil {
		return nil, nil, err
	}
	if of(j, nil) == nil && unreported(j) == 0 {
		return t, nil, nil
	}
	paths, err := d.inputs(ctx, j.ID())
	return t, of(j, paths), err
}

// inputs returns the paths of a job's inputs by name.
func (d *Service) inputs(ctx context.Context, id string) (map[string]string, error) {
	raw, _, err := d.Control.Spec(ctx, id)
	if err != nil {
		return nil, err
	}
	j, err := spec.Decode(raw)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, d := range j.Data {
		if d.Name != "" {
			paths[d.Name] = d.Path
		}
	}
	return paths, nil
}

// of sums up what bringing the inputs of a job took; nil if there were none. It prices the bytes by the charges in
// force when the job was submitted, as the decisions about it do.
func of(j *core.Job, paths map[string]string) *receipt.DataUse {
	var list []receipt.DataRead
	for _, a := range j.Attempts() {
		for _, k := range a.Tasks() {
			for _, d := range k.Data() {
				r := receipt.DataRead{Attempt: a.ID(), Node: k.Rank(), Instance: k.Instance(), Provider: k.Machine().Provider,
					Region: k.Machine().Region, Name: d.Name, Path: paths[d.Name], Digest: d.Digest,
					Files: d.Files, Bytes: d.Bytes, Hits: d.Hits,
					HitBytes: d.HitBytes, Fetched: d.Fetched, Requests: d.Requests, Seconds: d.Took.Seconds()}
				if fare, ok := j.Terms().Need.Fare(r.Path, r.Provider, r.Region); ok {
					r.Price(&fare)
				}
				list = append(list, r)
			}
		}
	}
	u := receipt.SumData(list)
	if n := unreported(j); n > 0 && len(paths) > 0 {
		if u == nil {
			u = &receipt.DataUse{Currency: money.USD, Reads: []receipt.DataRead{}}
		}
		u.Unreported = n
	}
	return u
}

// unreported counts the machines that took a task and ended before their agents reported what they had brought or
// streamed, for example because they were interrupted. What they read is unknown, and not zero.
func unreported(j *core.Job) (n int64) {
	for _, a := range j.Attempts() {
		for _, k := range a.Tasks() {
			switch list := k.Data(); {
			case k.Live() || k.Claimed().IsZero():
			case k.Started().IsZero():
				if len(list) == 0 {
					n++
				}
			case slices.ContainsFunc(j.Terms().Streams, func(name string) bool {
				return !slices.ContainsFunc(list, func(d core.DataRead) bool { return d.Name == name })
			}):
				n++
			}
		}
	}
	return n
}
