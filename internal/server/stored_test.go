package server

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/secret"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
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

// The members of a group use the folder and the secrets that its event names, never those that an interrupted submission
// left under its name. Members of a group from a log of an older release use what lies under its name.
func TestSubmit_GroupsIgnoreWhatAnInterruptedSubmissionLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var sent api.Work
	w.must("POST", "/v1/work", folderOf(t, map[string]string{"a": "b"}), &sent)
	content := `{"work":"` + sent.Work + `","secrets":{"KEY":"hers"},`
	w.must("POST", "/v1/groups", json.RawMessage(content+inArray("first", "", "0-1", "")[1:]), nil)
	w.began("first", 2)
	first := w.stored("first.0")
	if first == nil || len(first.Work) != 64 || first.Vault == "" || w.secrets("first.1")["KEY"] != "hers" {
		t.Fatalf("the event names %+v, and the secrets are %v", first, w.secrets("first.1"))
	}
	for _, name := range []string{"one", "line", "old"} { // as after a kill before the event, by any release
		must.Do(t, w.folders.Again(name, "first"))
		must.Do(t, w.vault().Keep(name, secret.Values{Secrets: map[string]string{"KEY": "hers"}}))
		_, err := w.vault().Add(name, secret.Values{Secrets: map[string]string{"KEY": "hers"}})
		must.Do(t, err)
	}
	w.must("POST", "/v1/groups", inArray("one", "", "0-1", ""), nil)
	w.began("one", 2)
	if is := w.stored("one.1"); is == nil || *is != (state.Stored{}) || len(w.secrets("one.1")) > 0 {
		t.Errorf("a member has %+v and the secrets %v", is, w.secrets("one.1"))
	}
	w.must("POST", "/v1/groups", `{"spec":{"name":"line","budget":{"dollars":"9"}},"pipeline":{"at_once":1,"stages":[
		{"name":"only","job":{"command":"true"}}]}}`, nil)
	w.until(func(m *core.Machine) bool { _, there := m.Job("line.only"); return there })
	if items, err := w.folders.Items("line.only"); err != nil || len(items) > 0 || len(w.secrets("line.only")) > 0 {
		t.Errorf("a stage begins with %+v (%v) and the secrets %v", items, err, w.secrets("line.only"))
	}
	terms := core.Terms{Name: "old", Owner: ledger.Owner{Team: "default", Project: "default"}}
	must.Do(t, w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default",
		Body: core.GroupOpened{Group: "old", Terms: core.GroupTerms{Kind: groups.Array, Owner: terms.Owner, AtOnce: 1,
			Array: groups.Indexes{Members: 1, Step: 1}, Member: &terms}}}))
	w.began("old", 1)
	if is := w.stored("old.0"); is != nil || w.entry("old.0") != "old" || w.secrets("old.0")["KEY"] != "hers" {
		t.Errorf("a member of an older release's group has %+v and the secrets %v", is, w.secrets("old.0"))
	}
	_, err := w.outbox.Unsent() // at the next start
	must.Do(t, err)
	if w.secrets("first.0")["KEY"] != "hers" {
		t.Error("a start forgets the secrets of an open group")
	}
}

// stored returns what the event of a job's submission names.
func (w *world) stored(job string) (is *state.Stored) {
	w.control.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job(job); ok {
			_, is = m.State().Work(j)
		}
	})
	return is
}

// A job whose stored work folder was removed from the data folder by hand is refused its folder with an error that names
// it and the fix. The job then ends, and no second machine is rented.
func TestWork_MissingFolderEndsTheJob(t *testing.T) {
	t.Parallel()
	firm := &firm{}
	w := newWorldOf(t, firm, nil)
	var sent api.Work
	w.must("POST", "/v1/work", folderOf(t, map[string]string{"a": "b", "c": "d"}), &sent)
	for name, remove := range map[string]func(is *state.Stored) string{
		"whole":   func(*state.Stored) string { return w.folders.Dir },
		"name":    func(*state.Stored) string { return filepath.Join(w.folders.Dir, "jobs", "name") },
		"list":    func(is *state.Stored) string { return filepath.Join(w.folders.Dir, "objects", is.Work[:2], is.Work) },
		"content": func(*state.Stored) string { return filepath.Join(w.folders.Dir, "objects", "3e") }, // SHA-256 of b
	} {
		w.must("POST", "/v1/jobs", json.RawMessage(`{"work":"`+sent.Work+`",`+costing(name, "", "")[1:]), nil)
		attempt := w.live(name)
		get := func() (int, api.Problem) {
			rec, p := w.ask("GET", "/v1/agent/work", w.gate.Tickets.For(auth.AttemptTicket, attempt), nil)
			return rec.Code, p
		}
		if code, p := get(); code != http.StatusOK {
			t.Fatalf("%s: before the loss: %d %+v", name, code, p)
		}
		path := remove(w.stored(name))
		must.Do(t, os.Rename(path, path+".away"))
		code, p := get()
		must.Do(t, os.Rename(path+".away", path))
		if code != http.StatusNotFound || !strings.Contains(p.Detail, name) || !strings.Contains(p.Detail, "scrimp run") {
			t.Errorf("%s: %d %+v", name, code, p)
		}
		before, _ := firm.List(t.Context())
		w.event(core.AttemptEnded{Attempt: attempt, Message: 1, Reason: string(api.EndFailed), Exit: 1, Error: p.Detail}, time.Minute)
		w.until(func(m *core.Machine) bool { j, _ := m.Job(name); return j.State() == core.Failed })
		if after, _ := firm.List(t.Context()); len(after) != len(before) {
			t.Errorf("%s: %d machines were rented, and %d before its end", name, len(after), len(before))
		}
	}
}

// live returns the attempt of a job that has a machine.
func (w *world) live(job string) (attempt string) {
	w.t.Helper()
	w.until(func(m *core.Machine) bool {
		j, ok := m.Job(job)
		if ok && j.Live() != nil && j.Live().Instance() != "" {
			attempt = j.Live().ID()
		}
		return attempt != ""
	})
	return attempt
}
