package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/durable"
)

// lateAtEnd reports that a job ended after its deadline, if nobody has reported that it is late: no look at the jobs
// fell between the deadline and the end. It returns false if ctx ends before.
func (o *Outbox) lateAtEnd(ctx context.Context, n spec.Notify, end core.Notify) bool {
	var key string
	var w word
	o.Control.Job(end.Job, func(_ *core.Machine, j *core.Job) {
		t := j.Terms()
		if j.Reopened() != end.Life || t.Deadline.IsZero() || !j.Finished().After(t.Deadline) {
			return
		}
		about := fmt.Sprint(t.Deadline.Unix())
		told := core.ToldOf(j.ID(), j.Reopened())
		deadline := o.Control.Clock().ToWall(t.Deadline)
		key = lateKey(told, about)
		w = word{ID: lateID(told, about), Job: j.ID(), Event: spec.Late, State: string(end.State), Why: end.Why,
			Forecast: &expected{Deadline: &deadline, Passed: true, Detail: "it ended after its deadline, " + stamp(deadline),
				Fix: "scrimp explain " + j.ID()}}
	})
	if key == "" {
		return true
	}
	path := filepath.Join(o.Dir, foreseenFolder, key)
	if _, err := os.Stat(path); err == nil { // a look has decided on it, and makes the report
		return true
	} else if !errors.Is(err, os.ErrNotExist) {
		o.Log.Warn("cannot look whether a job was reported as late", "job", end.Job, "error", err)
	}
	b, err := json.Marshal(w)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = durable.Replace(path, b)
	}
	if err != nil {
		o.Log.Warn("cannot record that a job is late; the next start may repeat the report", "job", end.Job, "error", err)
	}
	return o.finish(ctx, n, path, w)
}

// finish makes a report that stands in a file, and empties the file. It returns false if ctx ends before.
func (o *Outbox) finish(ctx context.Context, n spec.Notify, path string, w word) bool {
	switch o.send(ctx, n, w) {
	case interrupted:
		return false
	case open:
	case made:
		if err := durable.Replace(path, nil); err != nil {
			o.Log.Warn("cannot record a report; the next start repeats it", "job", w.Job, "error", err)
		}
	}
	return true
}

// lateKey and lateID name the report that a job is late for one deadline: its file, and the key of its calls.
func lateKey(told, about string) string { return spec.Late + "." + told + "." + about }
func lateID(told, about string) string  { return spec.Late + "/" + told + "/" + about }
