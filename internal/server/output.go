package server

import (
	"net/http"
	"strconv"
	"time"

	"scrimp/internal/core"
)

// getLog streams the output of all attempts, one after the other.
func (s *Server) getLog(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.job(w, r); !ok {
		return
	}
	id := r.PathValue("id")
	follow := r.URL.Query().Get("follow") != ""
	skip := int64(0)
	if text := r.URL.Query().Get("offset"); text != "" {
		var err error
		if skip, err = strconv.ParseInt(text, 10, 64); err != nil || skip < 0 {
			fieldProblem(w, http.StatusBadRequest, "offset", "offset is not a count of bytes",
				"give how many bytes you have already, or leave it out for all", nil)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	flush, _ := w.(http.Flusher)
	for n, at := 0, int64(0); ; {
		changed := s.control.Changed()
		var attempts []string
		over := false
		s.control.Job(id, func(_ *core.Machine, j *core.Job) {
			for _, a := range j.Attempts() {
				if a.Instance() != "" {
					attempts = append(attempts, a.ID())
				}
			}
			over = closed(j)
		})
		for n < len(attempts) {
			b, err := s.store.ReadLog(r.Context(), attempts[n], at, 1<<20)
			if err != nil {
				return
			}
			at += int64(len(b))
			if cut := min(skip, int64(len(b))); cut > 0 {
				skip -= cut
				b = b[cut:]
			}
			if len(b) > 0 {
				if _, err := w.Write(b); err != nil {
					return
				}
				if flush != nil {
					flush.Flush()
				}
				continue
			}
			if n == len(attempts)-1 {
				break // it may grow
			}
			n, at = n+1, 0
		}
		if !follow || over {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-time.After(300 * time.Millisecond):
		}
	}
}
