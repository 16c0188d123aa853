package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
	"scrimp/internal/wire/api"
)

// Events streams the jobs that the caller sees as server-sent events: each job after an event of the log has changed
// it, and about once a second while its progress changes without an event. The id is the number of the last event
// that the stream covers.
func (d *Desk) Events(w http.ResponseWriter, r *http.Request) {
	self, end, ok := d.watcherOf(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	var out []byte
	for {
		changed := d.Control.Changed()
		var err error
		if out, err = d.newsFor(w, r, self, end, out[:0]); err != nil {
			return
		}
		end = 0 // the log part is done
		if len(out) == 0 {
			out = append(out, ": \n\n"...) // heartbeat
		}
		if _, err := w.Write(out); err != nil || flush.Flush() != nil {
			return
		}
		if self.more {
			err = d.watching.pay(r.Context(), self.caller.User, wakeCost+len(out))
		} else {
			err = d.watching.next(r, changed, beatEvery, len(out))
		}
		if err != nil {
			return
		}
	}
}

// watcherOf returns the watcher for a request and the event up to which it must read the log first. If the request
// is wrong, it answers it.
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
		reply.Problem(w, http.StatusServiceUnavailable, "the log was not read", "try again", err)
		return nil, 0, false
	}
	if text == "" {
		self.seq = end
	}
	if self.seq > end { // a position from another log means nothing here
		reply.FieldProblem(w, http.StatusBadRequest, "after", fmt.Sprintf("the log ends at event %d", end),
			"begin without it: the server was restored from a backup, or it is another one", nil)
		return nil, 0, false
	}
	return self, end, true
}

// newsFor sends the watcher the log up to the event end, if it has not had it, and returns the news from the feed.
func (d *Desk) newsFor(w http.ResponseWriter, r *http.Request, self *watcher, end uint64,
	out []byte) ([]byte, error) {
	for {
		if self.seq < end {
			if err := d.sendLog(w, r, self, end); err != nil {
				return nil, err
			}
		}
		out, err := d.feed.next(r.Context(), self, out)
		if !errors.Is(err, errBehind) {
			return out, err
		}
		if end, err = d.feed.join(r.Context(), self); err != nil {
			return nil, err
		}
	}
}

// sendLog sends the present state of the jobs that changed in the events up to end.
func (d *Desk) sendLog(w http.ResponseWriter, r *http.Request, self *watcher, end uint64) error {
	pay := func(cost int) error { return d.watching.pay(r.Context(), self.caller.User, cost) }
	for self.seq < end {
		jobs, last, read, err := d.past.page(r.Context(), d.Log, self.seq)
		if err == nil {
			err = pay(read * eventCost)
		}
		if err != nil {
			return err
		}
		if last == self.seq {
			return nil
		}
		var out []byte
		for len(jobs) > 0 {
			begun := 0
			if out, jobs, begun = d.feed.drawJobs(self, jobs, out[:0]); len(jobs) == 0 {
				out = withEventID(out, begun, last)
			}
			if _, err := w.Write(out); err != nil {
				return err
			}
			if err := pay(wakeCost + len(out)); err != nil {
				return err
			}
		}
		self.seq = last
	}
	return nil
}

// Visible returns a job if the caller may see it.
func (d *Desk) Visible(caller identity.Caller, id string) (api.Job, bool) {
	ok := false
	d.Control.Job(id, func(_ *core.Machine, j *core.Job) { ok = auth.Sees(caller, j) })
	if !ok {
		return api.Job{}, false
	}
	return d.find(id)
}

// silent are the facts that change nothing visible in a job.
var silent = [][]byte{[]byte(`"` + state.JobArchived{}.Fact() + `"`), []byte(`"` + state.JobRehydrated{}.Fact() + `"`)}

// touchedJobs lists the jobs that the records concern, each once, in the order of their last record.
func touchedJobs(records []store.Record) []string {
	last, n := map[string]int{}, 0
	add := func(id string) {
		if n++; id != "" {
			last[id] = n
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
			_ = json.Unmarshal(r.Facts, &facts) // a record that cannot be read concerns no job
		}
		for i := 1; i < len(facts); i += 2 { // facts alternate between name and value
			if !slices.ContainsFunc(silent, func(name []byte) bool { return bytes.Equal(name, facts[i-1]) }) {
				about(facts[i], add)
			}
		}
		for _, p := range r.Postings {
			add(p.Owner.Job)
		}
	}
	return slices.SortedFunc(maps.Keys(last), func(a, b string) int { return last[a] - last[b] })
}

// about adds the jobs that an event's body or a fact names.
func about(text json.RawMessage, add func(job string)) {
	var of struct{ Job, Attempt, Launch, Allocation string }
	_ = json.Unmarshal(text, &of) // text without these fields concerns no job
	for _, attempt := range []string{of.Attempt, of.Launch, of.Allocation} {
		if dot := strings.LastIndexByte(attempt, '.'); dot > 0 {
			add(attempt[:dot])
		}
	}
	add(of.Job)
}
