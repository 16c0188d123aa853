package server

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/api"
)

// Limits of what an agent may send at once.
const (
	maxReport = 4 << 20
	maxChunk  = 4 << 20
)

// attempt returns the attempt whose agent asks, or answers that it may not.
func (s *Server) attempt(w http.ResponseWriter, r *http.Request) (string, bool) {
	attempt, ok := s.bearer(r, "attempt")
	switch {
	case !ok:
		problem(w, http.StatusUnauthorized, "no valid token", "register the machine and pull its tasks first", nil)
		return "", false
	case !s.control.Live(attempt):
		problem(w, http.StatusGone, "the attempt is over, and its token with it", "switch the machine off", nil)
		return "", false
	}
	return attempt, true
}

func (s *Server) agentReport(w http.ResponseWriter, r *http.Request) {
	attempt, ok := s.attempt(w, r)
	if !ok {
		return
	}
	report, ok := read[api.Report](w, r, maxReport)
	if !ok {
		return
	}
	if report.Attempt != attempt {
		fieldProblem(w, http.StatusForbidden, "attempt", "the token is for another attempt",
			"report the attempt that it was given with", nil)
		return
	}
	o, err := s.control.Report(r.Context(), report)
	if err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "send it again", err)
		return
	}
	o.LogEnd = s.logged(r.Context(), attempt, report.LogEnd)
	o.Exec = s.execsFor(attempt)
	answer(w, o)
}

func (s *Server) agentLogs(w http.ResponseWriter, r *http.Request) {
	attempt, ok := s.attempt(w, r)
	if !ok {
		return
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 {
		fieldProblem(w, http.StatusBadRequest, "offset", "offset is not a count of bytes",
			"ask GET /v1/agent/logs how much is kept", err)
		return
	}
	chunk, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChunk))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, "chunk not read", "send smaller ones", err)
		return
	}
	if s.tooMuch(w, attempt, len(chunk)) {
		return
	}
	if end := s.logged(r.Context(), attempt, offset+int64(len(chunk))); end >= s.logLimit() {
		answer(w, api.LogEnd{Offset: end})
		return
	}
	s.metrics.output.Add(float64(len(chunk)))
	end, err := s.store.AppendLog(r.Context(), attempt, offset, chunk)
	if err != nil && end == 0 {
		problem(w, http.StatusServiceUnavailable, "log not written", "send it again", err)
		return
	}
	answer(w, api.LogEnd{Offset: end})
}

// tooMuch answers an agent whose program prints faster than its output is kept,
// or where the server has no room for it. The program goes on; its output waits
// on its machine, or is cut there.
func (s *Server) tooMuch(w http.ResponseWriter, attempt string, n int) bool {
	now := time.Now()
	if free, ok := s.disk.room(s.opts.Dir, now); ok && free < logReserve {
		w.Header().Set("Retry-After", "5")
		problem(w, http.StatusInsufficientStorage, "the server's disk is nearly full",
			"make room on it: jobs go on, and their output is sent again later",
			fmt.Errorf("%d MiB are free, and %d MiB are kept for the log of events", free>>20, logReserve>>20))
		return true
	}
	ok, wait := s.logPace.takeMany(attempt, float64(n), now)
	if ok {
		ok, wait = s.allPace.takeMany("all", float64(n), now)
	}
	if !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		problem(w, http.StatusTooManyRequests, "too much output",
			fmt.Sprintf("print less: %d MB a second are kept of one attempt and %d MB a second of all; the rest waits on "+
				"its machine, and is left out where it gets too long", logRate>>20, allLogRate>>20), nil)
	}
	return !ok
}

func (s *Server) agentLogEnd(w http.ResponseWriter, r *http.Request) {
	attempt, ok := s.attempt(w, r)
	if !ok {
		return
	}
	answer(w, api.LogEnd{Offset: s.logged(r.Context(), attempt, 0)})
}

// What is kept of a program's output. A program that prints without end fills no
// disk and keeps nobody waiting.
const (
	standardLogLimit = 1 << 30 // bytes of an attempt
	logRate          = 8 << 20 // bytes a second of an attempt, on average
)

func (s *Server) logLimit() int64 {
	if s.opts.LogLimit > 0 {
		return s.opts.LogLimit
	}
	return standardLogLimit
}

// logged returns up to where the attempt's agent need not send its output: what
// is kept, and once that is as much as is kept at all, everything it has.
func (s *Server) logged(ctx context.Context, attempt string, has int64) int64 {
	end, err := s.store.LogEnd(ctx, attempt)
	limit := s.logLimit()
	if err != nil || end < limit {
		return end
	}
	s.mu.Lock()
	before, known := s.skipped[attempt]
	end = max(end, before, has)
	s.skipped[attempt] = end
	s.mu.Unlock()
	if kept, _ := s.store.LogEnd(ctx, attempt); !known && kept < limit+int64(maxChunk) {
		word := fmt.Sprintf("\nscrimp: the output is longer than %d MiB; the rest is not kept\n", limit>>20)
		if _, err := s.store.AppendLog(ctx, attempt, kept, []byte(word)); err != nil {
			s.opts.Log.Warn("end of a log not marked", "attempt", attempt, "error", err)
		}
	}
	return end
}

// execution is a command that a user wants run beside the program.
type execution struct {
	attempt string
	exec    api.Exec
	given   bool
	done    chan api.ExecResult
}

// execLimit is how long a user waits for a command.
const execLimit = 5 * time.Minute

func (s *Server) execsFor(attempt string) []api.Exec {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []api.Exec
	for _, e := range s.execs {
		if e.attempt == attempt && !e.given {
			e.given = true
			list = append(list, e.exec)
		}
	}
	return list
}

func (s *Server) agentExec(w http.ResponseWriter, r *http.Request) {
	attempt, ok := s.attempt(w, r)
	if !ok {
		return
	}
	result, ok := read[api.ExecResult](w, r, 64<<20)
	if !ok {
		return
	}
	s.mu.Lock()
	e := s.execs[r.PathValue("id")]
	if e != nil && e.attempt == attempt {
		delete(s.execs, e.exec.ID)
		e.done <- result
	}
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// exec runs a command on the job's machine and returns what it printed.
func (s *Server) exec(ctx context.Context, attempt string, command []string) (api.ExecResult, error) {
	e := &execution{attempt: attempt, done: make(chan api.ExecResult, 1)}
	s.mu.Lock()
	e.exec = api.Exec{ID: fmt.Sprintf("%d-%d", time.Now().UnixNano(), len(s.execs)), Command: command}
	s.execs[e.exec.ID] = e
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	select {
	case result := <-e.done:
		return result, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.execs, e.exec.ID)
		s.mu.Unlock()
		return api.ExecResult{}, fmt.Errorf("run %s on %s: no answer", strings.Join(command, " "), attempt)
	}
}
