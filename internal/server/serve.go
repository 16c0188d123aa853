package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// unread returns a parameter that the route does not read, such as dry_run in the address instead of in the body: the
// answer or the change would not be the one that was meant. What probes and scrapers add is ignored, and what agents
// send, which may be newer than the server.
func (t route) unread(r *http.Request) (name string, found bool) {
	if r.URL.RawQuery == "" || t.Scope == auth.Open || t.Scope > auth.OfOwnJob {
		return "", false
	}
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if !slices.ContainsFunc(t.Query, func(q string) bool { return strings.HasPrefix(q, name+":") }) {
			return name, true
		}
	}
	return "", false
}

// serve wraps the handler of a route with access control, metrics and the refusal on a full disk.
func (s *Server) serve(t route) http.HandlerFunc {
	return s.gate.Serve(t.access(), func(w http.ResponseWriter, r *http.Request) {
		if err := s.control.Full(); err != nil && needsRoom(t.Path) {
			reply.Problem(w, http.StatusInsufficientStorage, "the server's disk is full, and it can write nothing",
				"make room on it: the jobs go on, and so does the server, by itself", err)
			return
		}
		if name, found := t.unread(r); found {
			reply.FieldProblem(w, http.StatusBadRequest, name, "this address takes no such parameter",
				"leave it out of the address, or send it in the body; GET /v1/openapi.json describes both", nil)
			return
		}
		t.do(s, w, r)
	},
		func(code int, took time.Duration) { s.metrics.Served(t.Method+" "+t.Path, t.Stream != "", code, took) })
}
