package agents

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/server/reply"
	"scrimp/internal/store/logfile"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// maxChunk bounds the output of one request, in bytes.
const maxChunk = 4 << 20

// Report records the events that an agent reports, and returns its orders.
func (d *Service) Report(w http.ResponseWriter, r *http.Request) {
	attempt, node, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	report, ok := reply.FromAgent[api.Report](w, r)
	if !ok {
		return
	}
	if report.Attempt != attempt {
		reply.FieldProblem(w, http.StatusForbidden, "attempt", "the token is for another attempt",
			"report the attempt that it was given with", nil)
		return
	}
	if report.Node != node {
		otherRank(w, node)
		return
	}
	if out := limits.ClipNumbers(&report, time.Now()); len(out) > 0 && report.Trouble == "" {
		report.Trouble = "the agent sent numbers that are out of bounds, and the server left them out: " + out[0]
	}
	if ok, wait := d.Reports.TakeMany(api.Rank(attempt, node), float64(1+len(report.Messages)), time.Now()); !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		reply.Problem(w, http.StatusTooManyRequests, "too many messages", "report again when Retry-After says", nil)
		return
	}
	measured := int64(0)
	if job, live := d.jobOfAttempt(attempt); live {
		measured = d.Measured(r.Context(), job, report)
	}
	o, err := d.Control.Report(r.Context(), report)
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the report was not saved", "send it again", err)
		return
	}
	o.Telemetry = measured
	o.LogEnd = d.resumeOffset(r.Context(), logfile.Name(attempt, node), report.LogEnd)
	o.Exec = append(d.execsFor(api.Rank(attempt, node)), d.sessions.next(api.Rank(attempt, node))...)
	reply.JSON(w, o)
}

func otherRank(w http.ResponseWriter, node int) {
	reply.FieldProblem(w, http.StatusForbidden, "node", "the token is for another machine of the gang",
		"speak for node "+strconv.Itoa(node)+", which it was given with", nil)
}

// logOf returns the name of the output log of the rank that sends the request. The rank in the request must match
// the token.
func (d *Service) logOf(w http.ResponseWriter, r *http.Request) (name string, ok bool) {
	attempt, node, ok := d.Gate.Attempt(w, r)
	if !ok {
		return "", false
	}
	if text := cmp.Or(r.URL.Query().Get("node"), "0"); text != strconv.Itoa(node) {
		otherRank(w, node)
		return "", false
	}
	return logfile.Name(attempt, node), true
}

// Logs appends output to the log of a rank.
func (d *Service) Logs(w http.ResponseWriter, r *http.Request) {
	name, ok := d.logOf(w, r)
	if !ok {
		return
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 {
		reply.FieldProblem(w, http.StatusBadRequest, "offset", "offset is not a count of bytes",
			"GET /v1/agent/logs says how much the server has", err)
		return
	}
	chunk, ok := reply.Bytes(w, r, maxChunk)
	if !ok || d.refuseTooMuch(w, r, name, len(chunk)) {
		return
	}
	if end := d.resumeOffset(r.Context(), name, offset+int64(len(chunk))); end >= d.logLimit() {
		reply.JSON(w, api.LogEnd{Offset: end})
		return
	}
	d.Printed(len(chunk))
	end, err := d.Log.AppendLog(r.Context(), name, offset, chunk)
	if err != nil && end == 0 {
		reply.Problem(w, http.StatusServiceUnavailable, "log not written", "send it again", err)
		return
	}
	reply.JSON(w, api.LogEnd{Offset: end})
}

// refuseTooMuch refuses output and returns true if the program prints faster than the server keeps it, or if the server
// has no room. The program goes on; its output waits on its machine or is truncated there.
func (d *Service) refuseTooMuch(w http.ResponseWriter, r *http.Request, log string, n int) bool {
	now := time.Now()
	if err := d.Room.Full(0); err != nil {
		w.Header().Set("Retry-After", "5")
		reply.Problem(w, http.StatusInsufficientStorage, "the server's disk is nearly full",
			"make room on it: jobs go on, and their output is sent again later", err)
		return true
	}
	if d.refuseOverQuota(w, r, log, n) {
		return true
	}
	ok, wait := d.Pace.TakeMany(log, float64(n), now)
	if ok {
		ok, wait = d.AllPace.TakeMany("all", float64(n), now)
	}
	if !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		reply.Problem(w, http.StatusTooManyRequests, "too much output",
			fmt.Sprintf("print less: %d MB a second are kept of one machine and %d MB a second of all; the rest waits on "+
				"its machine, and is left out where it gets too long", LogRate>>20, AllLogRate>>20), nil)
	}
	return !ok
}

// refuseOverQuota refuses output and returns true if the job's team has used up its disk limit.
func (d *Service) refuseOverQuota(w http.ResponseWriter, r *http.Request, log string, n int) bool {
	attempt, _, _ := strings.Cut(log, "~")
	job, live := d.jobOfAttempt(attempt)
	if !live {
		return false
	}
	err := d.Quota(r.Context(), job, int64(n))
	if err != nil {
		w.Header().Set("Retry-After", "5")
		reply.Problem(w, http.StatusInsufficientStorage, "the team has used its disk",
			"make room, as with scrimp gc: jobs go on, and their output is sent again later", err)
	}
	return err != nil
}

// LogEnd returns how much of the output the server has, in bytes.
func (d *Service) LogEnd(w http.ResponseWriter, r *http.Request) {
	name, ok := d.logOf(w, r)
	if !ok {
		return
	}
	reply.JSON(w, api.LogEnd{Offset: d.resumeOffset(r.Context(), name, 0)})
}

// Limits on the output of programs. A program that prints without end must neither fill the disk nor delay others.
const (
	standardLogLimit = 1 << 30  // bytes per rank of an attempt
	LogRate          = 8 << 20  // bytes per second of a rank, on average
	AllLogRate       = 64 << 20 // bytes per second of all ranks together
)

func (d *Service) logLimit() int64 { return cmp.Or(d.LogLimit, standardLogLimit) }

// resumeOffset returns the offset from which an agent must send the named output: the end of what the server has,
// or, once that has reached the limit, all that the agent has. It looks nothing up for an agent that has less than the
// limit, and returns what that has.
func (d *Service) resumeOffset(ctx context.Context, name string, has int64) int64 {
	limit := d.logLimit()
	if 0 < has && has < limit {
		return has
	}
	end, err := d.Log.LogEnd(ctx, name)
	if err != nil || end < limit {
		return end
	}
	d.mu.Lock()
	before, known := d.skipped[name]
	end = max(end, before, has)
	if d.skipped == nil {
		d.skipped = map[string]int64{}
	}
	d.skipped[name] = end
	d.mu.Unlock()
	if kept, _ := d.Log.LogEnd(ctx, name); !known && kept < limit+int64(maxChunk) {
		word := fmt.Sprintf("\nscrimp: the output is longer than %d MiB; the rest is not kept\n", limit>>20)
		if _, err := d.Log.AppendLog(ctx, name, kept, []byte(word)); err != nil {
			d.Errors.Warn("cannot mark the end of a log", "log", name, "error", err)
		}
	}
	return end
}
