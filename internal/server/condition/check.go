package condition

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/retrain"
)

// Of reads the conditions of a request.
func Of(b api.ScheduleConditions) (c retrain.Conditions) {
	if d := b.OnData; d != nil {
		c.Data = &retrain.Data{Path: d.Path, AtLeast: d.AtLeast}
	}
	if p := b.NotBefore; p != nil {
		c.Price = &retrain.Price{Most: p.Most, By: p.By}
	}
	if p := b.WhenItPays; p != nil {
		c.Pays = &retrain.Pays{Value: p.Value, Metric: p.Metric, Point: p.Point, Goal: p.Goal, AtLeast: p.Runs,
			Latest: p.Latest}
	}
	return c
}

// Check completes the conditions of a schedule. It refuses those that can never be compared: a folder that is none, a
// bucket that does not answer, a store that the user may not read, a metric of no stage.
func Check(ctx context.Context, k *artifacts.Kept, user string, p *pipeline.Spec,
	when *retrain.Conditions) *reply.Refusal {
	refused := func(field string, err error, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule." + field, Err: err,
			Title: "the condition " + strings.Split(field, ".")[0] + " of the schedule is not valid", Fix: fix}
	}
	if err := when.Check(p); err != nil {
		field := "when"
		if wrong, ok := errors.AsType[*retrain.Problem](err); ok {
			field, err = wrong.Field, wrong.Err
		}
		return refused(field, err, "correct it")
	}
	if when.Data == nil {
		return nil
	}
	address, err := Address(when.Data.Path)
	if err != nil {
		return refused(retrain.OnData, err, "correct the path")
	}
	if !k.Stores.OfJob(user, address) {
		return refused(retrain.OnData, fmt.Errorf("schedules of this server may not read %s (they may read: %s)",
			when.Data.Path, k.Stores.Shown()), "name one of these; an admin allows others with scrimp serve --stores")
	}
	seen, err := List(ctx, address, retrain.Mark{})
	if err == nil && seen.Err != "" {
		err = errors.New(seen.Err)
	}
	if err != nil {
		return refused(retrain.OnData, k.Plain(err), "correct the path, or make the folder or bucket first")
	}
	return nil
}
