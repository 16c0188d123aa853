package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/store"
)

// getEvents sends the jobs that the caller sees as server-sent events: each as
// it is after an event of the log has changed it, and about once a second while
// its progress changes without an event; the id is the number of the event up to
// which everything was sent.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	self := watcher{caller: callerOf(r)}
	if text != "" {
		var err error
		if self.seq, err = strconv.ParseUint(text, 10, 63); err != nil {
			fieldProblem(w, http.StatusBadRequest, "after", "after is not the number of an event",
				"give the id of the last event that came", nil)
			return
		}
	}
	end, err := s.feed.join(r.Context(), &self)
	if err != nil {
		problem(w, http.StatusServiceUnavailable, "the log was not read", "ask again", err)
		return
	}
	if text == "" {
		self.seq = end
	}
	if self.seq > end { // of another log: what it has gone through says nothing of this one
		fieldProblem(w, http.StatusBadRequest, "after", fmt.Sprintf("the log ends at event %d", end),
			"begin without it: the server was restored from a backup, or it is another one", nil)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	var out []byte
	for behind := self.seq < end; ; {
		changed := s.control.Changed()
		if behind {
			if s.sendLog(w, r, &self, end) != nil {
				return
			}
		}
		if out, behind, err = s.feed.next(r.Context(), &self, out[:0]); err != nil {
			return
		}
		if behind {
			if end, err = s.feed.join(r.Context(), &self); err != nil {
				return
			}
			continue
		}
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
			wait(r.Context(), 100*time.Millisecond) // a burst of changes is sent at once
		case <-beat.C:
		}
	}
}

// sendLog sends the jobs that events up to end have changed, as they are now.
func (s *Server) sendLog(w http.ResponseWriter, r *http.Request, self *watcher, end uint64) error {
	for self.seq < end {
		records, err := s.store.WholeRecords(r.Context(), self.seq, 500)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return nil
		}
		self.seq = records[len(records)-1].Seq
		jobs := touched(records)
		for i, id := range jobs {
			j, ok := s.visible(self.caller, id)
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

// visible returns a job that the caller may see.
func (s *Server) visible(caller identity.Caller, id string) (api.Job, bool) {
	ok := false
	s.control.Job(id, func(_ *core.Machine, j *core.Job) { ok = sees(caller, j) })
	if !ok {
		return api.Job{}, false
	}
	return s.find(id)
}

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
		var e core.Event
		if json.Unmarshal(r.Event, &e) != nil {
			continue
		}
		var about struct{ Job, Attempt, Launch string }
		if b, err := json.Marshal(e.Body); err == nil {
			_ = json.Unmarshal(b, &about) // a body without them is about no job
		}
		for _, attempt := range []string{about.Attempt, about.Launch} {
			if dot := strings.LastIndexByte(attempt, '.'); dot > 0 {
				add(attempt[:dot])
			}
		}
		if about.Job != "" {
			add(about.Job)
		}
		for _, p := range r.Postings {
			if p.Owner.Job != "" {
				add(p.Owner.Job)
			}
		}
	}
	return jobs
}
