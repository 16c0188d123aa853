package server

import (
	"bytes"
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
// it is after an event of the log has changed it, whose number is the id of what
// is sent, and once a second while its progress changes without an event.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	var after uint64
	if text == "" {
		s.control.Read(func(m *core.Machine) { after = m.Seq() })
	} else {
		var err error
		if after, err = strconv.ParseUint(text, 10, 63); err != nil {
			fieldProblem(w, http.StatusBadRequest, "after", "after is not the number of an event", "give the id of the last event that came", nil)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	send := func(id, kind string, v any) bool {
		b, err := json.Marshal(v)
		if err != nil {
			return false
		}
		_, err = fmt.Fprintf(w, "%sevent: %s\ndata: %s\n\n", id, kind, b)
		return err == nil
	}
	caller, last := callerOf(r), map[string][]byte{}
	flush := http.NewResponseController(w)
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for {
		changed := s.control.Changed()
		for {
			records, err := s.store.WholeRecords(r.Context(), after, 500)
			if err != nil {
				return
			}
			jobs := touched(records)
			for i, id := range jobs {
				if j, ok := s.visible(caller, id); ok {
					mark := ""
					if i == len(jobs)-1 { // the id counts what was sent whole
						mark = fmt.Sprintf("id: %d\n", records[len(records)-1].Seq)
					}
					if !send(mark, "job", j) {
						return
					}
				}
			}
			if len(records) == 0 {
				break
			}
			after = records[len(records)-1].Seq
		}
		if flush.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
			wait(r.Context(), 100*time.Millisecond) // a burst of changes is sent at once
		case <-beat.C:
			if _, err := fmt.Fprint(w, ": \n\n"); err != nil || !s.beats(caller, last, send) {
				return
			}
		}
	}
}

// beats sends the jobs whose progress has changed without an event.
func (s *Server) beats(caller identity.Caller, last map[string][]byte, send func(id, kind string, v any) bool) bool {
	var jobs []string
	s.control.Read(func(m *core.Machine) {
		for _, a := range m.Live() {
			jobs = append(jobs, a.Job)
		}
	})
	now := map[string]bool{}
	for _, id := range jobs {
		now[id] = true
		j, ok := s.visible(caller, id)
		if !ok {
			continue
		}
		mark, _ := json.Marshal(struct {
			S int64
			M map[string]float64
		}{j.Step, j.Metrics})
		if before, known := last[id]; known && !bytes.Equal(before, mark) && !send("", "job", j) {
			return false
		}
		last[id] = mark
	}
	for id := range last {
		if !now[id] {
			delete(last, id)
		}
	}
	return true
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
