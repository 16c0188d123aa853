package artifacts

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
)

// Seed copies a checkpoint of another job to a new job, which starts from it.
func (k *Kept) Seed(ctx context.Context, id, user string, j spec.Job, from string) (*core.Source, *reply.Refusal) {
	other, name, _ := strings.Cut(from, "@")
	if name == latest {
		name = ""
	}
	if j.Checkpoint.Dir == "" {
		return nil, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "checkpoint.dir",
			Title: "a job that keeps no checkpoints cannot begin from one", Fix: "write checkpoint.dir in its job file"}
	}
	m, err := k.copyCheckpoint(ctx, id, user, j, other, name)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		return nil, noSource(other, name)
	case errors.Is(err, errStore):
		return nil, &reply.Refusal{Status: http.StatusForbidden, Field: "from", Title: "the server does not open the store " +
			"of job " + other, Fix: k.Stores.Fix()}
	case err != nil:
		return nil, &reply.Refusal{Status: http.StatusBadGateway, Field: "from", Title: "the checkpoint was not copied",
			Fix: "submit it again with the same key", Err: err}
	}
	return &core.Source{Job: other, Checkpoint: m.Name, Step: m.Step}, nil
}

// noSource refuses a job whose checkpoint to start from does not exist.
func noSource(job, checkpoint string) *reply.Refusal {
	no := &reply.Refusal{Status: http.StatusNotFound, Field: "from",
		Title: "job " + job + " has no complete checkpoint, and so the new job was not submitted",
		Fix:   "submit it without --from, and it starts from the beginning"}
	if checkpoint != "" {
		no.Title = "job " + job + " has no checkpoint " + checkpoint + ", and so the new job was not submitted"
		no.Fix = "scrimp checkpoints " + job + " lists those it has; --from " + job + " takes the newest"
	}
	return no
}

// copyCheckpoint copies the checkpoint and returns its manifest at the other job.
func (k *Kept) copyCheckpoint(ctx context.Context, id, user string, j spec.Job, other, name string) (
	format.Manifest, error) {
	var none format.Manifest
	raw, _, err := k.Control.Spec(ctx, other)
	if err != nil {
		return none, err
	}
	file, err := spec.Decode(raw)
	if err != nil {
		return none, err
	}
	job, found := k.copyOf(other)
	if !found {
		return none, checkpoint.ErrNone
	}
	b, from, err := k.storeOf(ctx, other, job.User(), file, false)
	if err != nil {
		return none, err
	}
	defer func() { _ = b.Close() }()
	from = withoutForeignSeeds(from, job)
	m, err := from.Find(ctx, name)
	if err != nil {
		return none, err
	}
	c, to, err := k.storeOf(ctx, id, user, j, true)
	if err != nil {
		return none, err
	}
	defer func() { _ = c.Close() }()
	writer, err := to.Claim(ctx, 0, id+".0")
	if err != nil {
		return none, err
	}
	_, err = writer.CopyFrom(ctx, from, m, format.Meta{Job: id, Attempt: id + ".0", Step: m.Step})
	return m, err
}
