package receipts

import (
	"context"
	"net/http"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/convert"
)

// Data reports what bringing inputs to the machines of a job took.
func (b *Desk) Data(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	var paths map[string]string
	if j, err := b.inputs(r.Context(), id); err == nil { // without its job file, the reads have no path
		paths = j
	}
	var u *receipt.DataUse
	if !b.Control.Job(id, func(_ *core.Machine, j *core.Job) { u = b.dataOf(j, paths) }) {
		reply.UnknownJob(w, "", id)
		return
	}
	if u == nil {
		u = &receipt.DataUse{Currency: money.USD, Reads: []receipt.DataRead{}}
	}
	reply.JSON(w, convert.To[client.DataUse](*u))
}

// inputs returns the paths of a job's inputs by name.
func (b *Desk) inputs(ctx context.Context, id string) (map[string]string, error) {
	raw, _, err := b.Control.Spec(ctx, id)
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

// dataOf sums up what bringing the inputs of a job took; nil if there were none. It prices the bytes by the charges in
// force when the job was submitted, as the decisions about it do.
func (b *Desk) dataOf(j *core.Job, paths map[string]string) *receipt.DataUse {
	var list []receipt.DataRead
	for _, a := range j.Attempts() {
		for _, k := range a.Tasks() {
			for _, d := range k.Data() {
				r := receipt.DataRead{Attempt: a.ID(), Node: k.Rank(), Instance: k.Instance(), Provider: k.Machine().Provider,
					Region: k.Machine().Region, Name: d.Name, Path: paths[d.Name], Files: d.Files, Bytes: d.Bytes, Hits: d.Hits,
					HitBytes: d.HitBytes, Fetched: d.Fetched, Requests: d.Requests, Seconds: d.Took.Seconds()}
				if fare, ok := j.Terms().Need.Fare(r.Path, r.Provider, r.Region); ok {
					r.Price(&fare)
				}
				list = append(list, r)
			}
		}
	}
	return receipt.SumData(list)
}
