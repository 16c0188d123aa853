package server

import (
	"encoding/json"
	"testing"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/secret"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// A job uses the folder and the secrets that its event names, never those that an interrupted submission left under
// its name. A job from a log of an older release uses what lies under its name.
func TestSubmit_IgnoresWhatAnInterruptedSubmissionLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var sent api.Work
	w.must("POST", "/v1/work", folderOf(t, map[string]string{"a": "b"}), &sent)
	with := func(name string) json.RawMessage {
		return json.RawMessage(`{"work":"` + sent.Work + `","secrets":{"KEY":"hers"},` + aJob(name, "")[1:])
	}
	w.must("POST", "/v1/jobs", with("first"), nil)
	first := w.stored("first")
	if first == nil || len(first.Work) != 64 || first.Vault == "" || w.secrets("first")["KEY"] != "hers" {
		t.Fatalf("the event names %+v", first)
	}
	for _, name := range []string{"one", "batch", "old"} { // as after a kill before the event, by any release
		must.Do(t, w.folders.Again(name, "first"))
		must.Do(t, w.vault().Keep(name, secret.Values{Secrets: map[string]string{"KEY": "hers"}}))
		_, err := w.vault().Add(name, secret.Values{Secrets: map[string]string{"KEY": "hers"}})
		must.Do(t, err)
	}
	w.must("POST", "/v1/jobs", aJob("one", ""), nil)
	w.must("POST", "/v1/jobs/batch", "["+aJob("batch", "")+"]", nil)
	for _, name := range []string{"one", "batch"} {
		if is := w.stored(name); is == nil || *is != (state.Stored{}) || len(w.secrets(name)) > 0 {
			t.Errorf("%s has %+v and the secrets %v", name, is, w.secrets(name))
		}
	}
	must.Do(t, w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default",
		Body: core.JobSubmitted{Job: "old", Terms: core.Terms{Name: "old"}}}))
	if is := w.stored("old"); is != nil || w.entry("old") != "old" || w.secrets("old")["KEY"] != "hers" {
		t.Errorf("a job of an older release has %+v and the secrets %v", is, w.secrets("old"))
	}
	var again api.Job
	w.must("POST", "/v1/jobs", `{"rerun":"batch",`+aJob("again", "")[1:], &again)
	if is := w.stored(again.ID); is == nil || is.Work != "" {
		t.Errorf("a rerun took over %+v", is)
	}
	_, err := w.outbox.Unsent() // at the next start
	must.Do(t, err)
	if w.secrets("first")["KEY"] != "hers" {
		t.Error("a start forgets the secrets of a live job")
	}
	w.must("POST", "/v1/jobs/first/end", api.End{}, nil)
	w.outbox.Forget("first")
	if v, err := w.vault().Open(first.Vault); err != nil || len(v.Secrets) > 0 {
		t.Errorf("after its end the vault has %d of its secrets, %v", len(v.Secrets), err)
	}
}

// stored returns what the event of a job's submission names.
func (w *world) stored(job string) (is *state.Stored) {
	w.control.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job(job); ok {
			is = j.Stored()
		}
	})
	return is
}
