package server

import (
	"bytes"
	"io"
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
//
// It also returns an empty parameter, such as ?month=$UNSET, which would count as left out. A parameter whose
// description says what empty means may be empty.
func (t route) unread(r *http.Request) (name string, empty, found bool) {
	if r.URL.RawQuery == "" || !t.forUsers() {
		return "", false, false
	}
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		i := slices.IndexFunc(t.Query, func(q string) bool { return strings.HasPrefix(q, name+":") })
		if i < 0 {
			return name, false, true
		}
		if slices.Contains(query[name], "") && !strings.Contains(t.Query[i], "empty") {
			return name, true, true
		}
	}
	return "", false, false
}

// forUsers reports whether users call the route, not probes, scrapers or agents.
func (t route) forUsers() bool { return t.Scope != auth.Open && t.Scope <= auth.OfOwnJob }

// ignored reports whether a request has a body that its route does not read. An empty object leaves nothing out.
func (t route) ignored(r *http.Request) bool {
	if t.In != nil || t.Method == http.MethodGet || !t.forUsers() || r.ContentLength == 0 {
		return false
	}
	var start [8]byte
	n, _ := io.ReadFull(r.Body, start[:])
	text := string(bytes.TrimSpace(start[:n]))
	return text != "" && text != "{}"
}

// serve wraps the handler of a route with access control, metrics and the refusal on a full disk.
func (s *Server) serve(t route) http.HandlerFunc {
	return s.gate.Serve(t.access(), func(w http.ResponseWriter, r *http.Request) {
		if err := s.control.Full(); err != nil && needsRoom(t.Path) {
			reply.Problem(w, http.StatusInsufficientStorage, "the server's disk is full, and it can write nothing",
				"make room on it: the jobs go on, and so does the server, by itself", err)
			return
		}
		name, empty, found := t.unread(r)
		switch {
		case empty:
			reply.FieldProblem(w, http.StatusBadRequest, name, "this parameter is empty",
				"give it a value, or leave it out", nil)
			return
		case found:
			reply.FieldProblem(w, http.StatusBadRequest, name, "this address takes no such parameter",
				"leave it out of the address, or send it in the body; GET /v1/openapi.json describes both", nil)
			return
		}
		if t.ignored(r) {
			reply.Problem(w, http.StatusBadRequest, "this address takes no body", "send none, or an empty object", nil)
			return
		}
		t.do(s, w, r)
	},
		func(code int, took time.Duration) { s.metrics.Served(t.Method+" "+t.Path, t.Stream != "", code, took) })
}
