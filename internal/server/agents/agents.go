package agents

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
	"scrimp/internal/server/disk"
	"scrimp/internal/server/reply"
)

// Limits of what an agent may send at once.
const (
	maxReport = 4 << 20
	maxChunk  = 4 << 20
)

// Report takes what happened, and answers with orders.
func (d *Desk) Report(w http.ResponseWriter, r *http.Request) {
	attempt, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	report, ok := reply.Body[api.Report](w, r, maxReport)
	if !ok {
		return
	}
	if report.Attempt != attempt {
		reply.FieldProblem(w, http.StatusForbidden, "attempt", "the token is for another attempt",
			"report the attempt that it was given with", nil)
		return
	}
	o, err := d.Control.Report(r.Context(), report)
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "send it again", err)
		return
	}
	o.LogEnd = d.logged(r.Context(), attempt, report.LogEnd)
	o.Exec = d.execsFor(attempt)
	reply.JSON(w, o)
}

// Logs appends output.
func (d *Desk) Logs(w http.ResponseWriter, r *http.Request) {
	attempt, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 {
		reply.FieldProblem(w, http.StatusBadRequest, "offset", "offset is not a count of bytes",
			"ask GET /v1/agent/logs how much is kept", err)
		return
	}
	chunk, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChunk))
	if err != nil {
		reply.Problem(w, http.StatusRequestEntityTooLarge, "chunk not read", "send smaller ones", err)
		return
	}
	if d.tooMuch(w, attempt, len(chunk)) {
		return
	}
	if end := d.logged(r.Context(), attempt, offset+int64(len(chunk))); end >= d.logLimit() {
		reply.JSON(w, api.LogEnd{Offset: end})
		return
	}
	d.Printed(len(chunk))
	end, err := d.Log.AppendLog(r.Context(), attempt, offset, chunk)
	if err != nil && end == 0 {
		reply.Problem(w, http.StatusServiceUnavailable, "log not written", "send it again", err)
		return
	}
	reply.JSON(w, api.LogEnd{Offset: end})
}

// tooMuch answers an agent whose program prints faster than its output is kept,
// or where the server has no room for it. The program goes on; its output waits
// on its machine, or is cut there.
func (d *Desk) tooMuch(w http.ResponseWriter, attempt string, n int) bool {
	now := time.Now()
	if free, full := d.Room.Full(0); full {
		w.Header().Set("Retry-After", "5")
		reply.Problem(w, http.StatusInsufficientStorage, "the server's disk is nearly full",
			"make room on it: jobs go on, and their output is sent again later",
			fmt.Errorf("%d MiB are free, and %d MiB are kept for the log of events", free>>20, disk.LogReserve>>20))
		return true
	}
	ok, wait := d.Pace.TakeMany(attempt, float64(n), now)
	if ok {
		ok, wait = d.AllPace.TakeMany("all", float64(n), now)
	}
	if !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		reply.Problem(w, http.StatusTooManyRequests, "too much output",
			fmt.Sprintf("print less: %d MB a second are kept of one attempt and %d MB a second of all; the rest waits on "+
				"its machine, and is left out where it gets too long", LogRate>>20, AllLogRate>>20), nil)
	}
	return !ok
}

// LogEnd says how much of the output is kept.
func (d *Desk) LogEnd(w http.ResponseWriter, r *http.Request) {
	attempt, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	reply.JSON(w, api.LogEnd{Offset: d.logged(r.Context(), attempt, 0)})
}

// What is kept of a program's output. A program that prints without end fills no
// disk and keeps nobody waiting.
const (
	standardLogLimit = 1 << 30  // bytes of an attempt
	LogRate          = 8 << 20  // bytes a second of an attempt, on average
	AllLogRate       = 64 << 20 // bytes a second of all attempts together
)

func (d *Desk) logLimit() int64 {
	if d.LogLimit > 0 {
		return d.LogLimit
	}
	return standardLogLimit
}

// logged returns up to where the attempt's agent need not send its output: what
// is kept, and once that is as much as is kept at all, everything it has.
func (d *Desk) logged(ctx context.Context, attempt string, has int64) int64 {
	end, err := d.Log.LogEnd(ctx, attempt)
	limit := d.logLimit()
	if err != nil || end < limit {
		return end
	}
	d.mu.Lock()
	before, known := d.skipped[attempt]
	end = max(end, before, has)
	if d.skipped == nil {
		d.skipped = map[string]int64{}
	}
	d.skipped[attempt] = end
	d.mu.Unlock()
	if kept, _ := d.Log.LogEnd(ctx, attempt); !known && kept < limit+int64(maxChunk) {
		word := fmt.Sprintf("\nscrimp: the output is longer than %d MiB; the rest is not kept\n", limit>>20)
		if _, err := d.Log.AppendLog(ctx, attempt, kept, []byte(word)); err != nil {
			d.Errors.Warn("end of a log not marked", "attempt", attempt, "error", err)
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

func (d *Desk) execsFor(attempt string) []api.Exec {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []api.Exec
	for _, e := range d.execs {
		if e.attempt == attempt && !e.given {
			e.given = true
			list = append(list, e.exec)
		}
	}
	return list
}

// Executed takes what a command has printed.
func (d *Desk) Executed(w http.ResponseWriter, r *http.Request) {
	attempt, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	result, ok := reply.Body[api.ExecResult](w, r, 64<<20)
	if !ok {
		return
	}
	d.mu.Lock()
	e := d.execs[r.PathValue("id")]
	if e != nil && e.attempt == attempt {
		delete(d.execs, e.exec.ID)
		e.done <- result
	}
	d.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// Exec runs a command on the job's machine and returns what it printed.
func (d *Desk) Exec(ctx context.Context, attempt string, command []string) (api.ExecResult, error) {
	e := &execution{attempt: attempt, done: make(chan api.ExecResult, 1)}
	d.mu.Lock()
	e.exec = api.Exec{ID: fmt.Sprintf("%d-%d", time.Now().UnixNano(), len(d.execs)), Command: command}
	if d.execs == nil {
		d.execs = map[string]*execution{}
	}
	d.execs[e.exec.ID] = e
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	select {
	case result := <-e.done:
		return result, nil
	case <-ctx.Done():
		d.mu.Lock()
		delete(d.execs, e.exec.ID)
		d.mu.Unlock()
		return api.ExecResult{}, fmt.Errorf("run %s on %s: no answer", strings.Join(command, " "), attempt)
	}
}
