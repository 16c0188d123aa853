package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs/watchers"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// Events streams the jobs that the caller sees as server-sent events: each job after an event of the log has changed
// it, and about once a second while its progress changes without an event. The id is the number of the last event
// that the stream covers.
func (d *Service) Events(w http.ResponseWriter, r *http.Request) {
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
			err = d.watching.Pay(r.Context(), self.caller.User, watchers.WakeCost+len(out))
		} else {
			err = d.watching.Next(r, changed, beatEvery, len(out))
		}
		if err != nil {
			return
		}
	}
}

// watcherOf returns the watcher for a request and the event up to which it must read the log first. If the request
// is wrong, it answers it.
func (d *Service) watcherOf(w http.ResponseWriter, r *http.Request) (self *watcher, end uint64, ok bool) {
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
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read the log", "try again", err)
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
func (d *Service) newsFor(w http.ResponseWriter, r *http.Request, self *watcher, end uint64,
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
func (d *Service) sendLog(w http.ResponseWriter, r *http.Request, self *watcher, end uint64) error {
	pay := func(cost int) error { return d.watching.Pay(r.Context(), self.caller.User, cost) }
	for self.seq < end {
		jobs, last, err := d.View.Touched(r.Context(), self.seq, end)
		if err == nil {
			err = pay(watchers.PageCost)
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
			if err := pay(watchers.WakeCost + len(out)); err != nil {
				return err
			}
		}
		self.seq = last
	}
	return nil
}

// Visible returns a job if the caller may see it.
func (d *Service) Visible(caller identity.Caller, id string) (api.Job, bool) {
	ok := false
	d.Control.Job(id, func(_ *core.Machine, j *core.Job) { ok = auth.Sees(caller, j) })
	if !ok {
		return api.Job{}, false
	}
	return d.find(id)
}
