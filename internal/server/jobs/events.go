package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/state"
	"scrimp/internal/store"
	"scrimp/internal/wait"
)

// Events sends the jobs that the caller sees as server-sent events: each as
// it is after an event of the log has changed it, and about once a second while
// its progress changes without an event; the id is the number of the event up to
// which everything was sent.
func (d *Desk) Events(w http.ResponseWriter, r *http.Request) {
	self, end, ok := d.watcherOf(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	var out []byte
	for {
		changed := d.Control.Changed()
		var err error
		if out, err = d.newsFor(w, r, self, end, out[:0]); err != nil {
			return
		}
		end = 0 // the log was sent
		if len(out) == 0 {
			out = append(out, ": \n\n"...) // that it goes on
		}
		if _, err := w.Write(out); err != nil || flush.Flush() != nil {
			return
		}
		if cap(out) > 1<<20 {
			out = nil
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
			_ = wait.For(r.Context(), 100*time.Millisecond) // a burst of changes is sent at once
		case <-beat.C:
		}
	}
}

// watcherOf is who asks for events, and up to which event the log has to be sent first;
// or it answers what is wrong.
func (d *Desk) watcherOf(w http.ResponseWriter, r *http.Request) (self *watcher, end uint64, ok bool) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	self = &watcher{caller: auth.CallerOf(r)}
	var err error
	if text != "" {
		if self.seq, err = strconv.ParseUint(text, 10, 63); err != nil {
			reply.FieldProblem(w, http.StatusBadRequest, "after", "after is not the number of an event",
				"give the id of the last event that came", nil)
			return nil, 0, false
		}
	}
	if end, err = d.feed.join(r.Context(), self); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the log was not read", "ask again", err)
		return nil, 0, false
	}
	if text == "" {
		self.seq = end
	}
	if self.seq > end { // of another log: what it has gone through says nothing of this one
		reply.FieldProblem(w, http.StatusBadRequest, "after", fmt.Sprintf("the log ends at event %d", end),
			"begin without it: the server was restored from a backup, or it is another one", nil)
		return nil, 0, false
	}
	return self, end, true
}

// newsFor sends the log up to an event, where the watcher is before it, and returns what
// the feed has for them besides.
func (d *Desk) newsFor(w http.ResponseWriter, r *http.Request, self *watcher, end uint64,
	out []byte) ([]byte, error) {
	for {
		if self.seq < end {
			if err := d.sendLog(w, r, self, end); err != nil {
				return nil, err
			}
		}
		out, behind, err := d.feed.next(r.Context(), self, out)
		if err != nil || !behind {
			return out, err
		}
		if end, err = d.feed.join(r.Context(), self); err != nil {
			return nil, err
		}
	}
}

// sendLog sends the jobs that events up to end have changed, as they are now.
func (d *Desk) sendLog(w http.ResponseWriter, r *http.Request, self *watcher, end uint64) error {
	for self.seq < end {
		records, err := d.Log.WholeRecords(r.Context(), self.seq, 500)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return nil
		}
		self.seq = records[len(records)-1].Seq
		jobs := touched(records)
		for i, id := range jobs {
			j, ok := d.Visible(self.caller, id)
			if !ok {
				continue
			}
			b, err := json.Marshal(j)
			if err != nil {
				return err
			}
			mark := ""
			if i == len(jobs)-1 { // the id counts what was sent whole
				mark = fmt.Sprintf("id: %d\n", self.seq)
			}
			if _, err := fmt.Fprintf(w, "%sevent: job\ndata: %s\n\n", mark, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Visible returns a job that the caller may see.
func (d *Desk) Visible(caller identity.Caller, id string) (api.Job, bool) {
	ok := false
	d.Control.Job(id, func(_ *core.Machine, j *core.Job) { ok = auth.Sees(caller, j) })
	if !ok {
		return api.Job{}, false
	}
	return d.find(id)
}

// unseen are the facts that change nothing of a job that is shown.
var unseen = [][]byte{[]byte(`"` + state.JobArchived{}.Fact() + `"`), []byte(`"` + state.JobRehydrated{}.Fact() + `"`)}

// touched names the jobs that records are about, each once, in the order of
// their last record.
func touched(records []store.Record) []string {
	var jobs []string
	add := func(id string) {
		for i, j := range jobs {
			if j == id {
				jobs = append(jobs[:i], jobs[i+1:]...)
				break
			}
		}
		if id != "" {
			jobs = append(jobs, id)
		}
	}
	for _, r := range records {
		var e struct{ Body json.RawMessage }
		if json.Unmarshal(r.Event, &e) != nil {
			continue
		}
		about(e.Body, add)
		var facts []json.RawMessage
		if len(r.Facts) > 0 {
			_ = json.Unmarshal(r.Facts, &facts) // what cannot be read is about no job
		}
		for i := 1; i < len(facts); i += 2 { // pairs of a name and a fact
			if !slices.ContainsFunc(unseen, func(name []byte) bool { return bytes.Equal(name, facts[i-1]) }) {
				about(facts[i], add)
			}
		}
		for _, p := range r.Postings {
			add(p.Owner.Job)
		}
	}
	return jobs
}

// about adds the jobs that an event's body or a fact names.
func about(text json.RawMessage, add func(job string)) {
	var of struct{ Job, Attempt, Launch, Allocation string }
	_ = json.Unmarshal(text, &of) // one without them is about no job
	for _, attempt := range []string{of.Attempt, of.Launch, of.Allocation} {
		if dot := strings.LastIndexByte(attempt, '.'); dot > 0 {
			add(attempt[:dot])
		}
	}
	add(of.Job)
}
