// Package exec runs commands of users beside the programs of jobs.
package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/jobs/output"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// Machines runs commands beside the programs of jobs.
type Machines interface {
	// Exec runs a command on the machine of a rank and returns its output.
	Exec(ctx context.Context, rank string, command []string) (api.ExecResult, error)
	// BeginSession starts a session there. Only the given user can follow it and type into it.
	BeginSession(rank, user string, e api.Exec) (id string, err error)
	FollowSession(ctx context.Context, id, user string, send func(api.ExecOutput) error) error
	// TypeSession queues input, and reports whether there was room for it.
	TypeSession(ctx context.Context, id, user string, in api.ExecInput) (room bool, err error)
}

// Service answers requests to run commands.
type Service struct {
	Gate     *auth.Gate
	Jobs     *jobs.Service
	Machines Machines
	pace     *auth.Pace
}

// New returns a service. A user may begin a command a second, and 60 at once: the log keeps each for ever.
func New(of *jobs.Service, machines Machines) *Service {
	return &Service{Gate: of.Gate, Jobs: of, Machines: machines, pace: auth.NewBurst(1, 60)}
}

// Execute runs a command on a machine of the job, or starts a session there.
func (d *Service) Execute(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Exec](w, r)
	if !ok {
		return
	}
	if no := d.Jobs.Undecided(r.PathValue("id")); no != nil {
		no.Answer(w)
		return
	}
	rank, ok := d.rankFor(w, r.PathValue("id"), b.Node)
	if !ok {
		return
	}
	if !auth.Allowed(w, r, d.pace, "run several commands with one: scrimp exec JOB -- sh -c '…', or begin a session") {
		return
	}
	if err := d.Gate.Propose(r, r.PathValue("id")); err != nil { // record the act before it has any effect
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	if b.Input || b.Terminal != nil {
		id, err := d.Machines.BeginSession(rank, auth.CallerOf(r).User, b)
		if err != nil {
			reply.Problem(w, http.StatusTooManyRequests, "too many sessions", "end one of them", err)
			return
		}
		reply.JSON(w, api.ExecResult{Session: id})
		return
	}
	result, err := d.Machines.Exec(r.Context(), rank, b.Command)
	if err != nil {
		reply.Problem(w, http.StatusGatewayTimeout, "no answer from the machine", "try again", err)
		return
	}
	reply.JSON(w, result)
}

// rankFor returns the rank of a job's node if its program runs; otherwise it answers that none does.
func (d *Service) rankFor(w http.ResponseWriter, job string, node int) (rank string, ok bool) {
	nodes := 0
	d.Jobs.Control.Read(func(m *core.Machine) {
		j, known := m.Job(job)
		if !known || j.Attempt() == nil {
			return
		}
		a := j.Attempt()
		if nodes = control.Nodes(a); node >= 0 && node < nodes && a.Tasks()[node].Phase() == core.TaskRunning {
			rank = api.Rank(a.ID(), node)
		}
	})
	switch {
	case rank != "":
		return rank, true
	case nodes > 0 && (node < 0 || node >= nodes):
		reply.FieldProblem(w, http.StatusNotFound, "node", output.NoNode(fmt.Sprint(node), nodes),
			"leave it out for node 0", nil)
	default:
		reply.Problem(w, http.StatusConflict, "the job holds no working machine now", "scrimp status says when it does", nil)
	}
	return "", false
}

// Follow streams the caller's own session.
func (d *Service) Follow(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	e, sent := json.NewEncoder(w), false
	flush, _ := w.(http.Flusher)
	user := auth.CallerOf(r).User
	err := d.Machines.FollowSession(r.Context(), r.PathValue("session"), user, func(o api.ExecOutput) error {
		sent = true
		err := e.Encode(o)
		if flush != nil {
			flush.Flush()
		}
		return err
	})
	if err != nil && !sent {
		noSession(w, err)
	}
}

// Type sends the caller's input to their own session.
func (d *Service) Type(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.ExecInput](w, r)
	if !ok {
		return
	}
	room, err := d.Machines.TypeSession(r.Context(), r.PathValue("session"), auth.CallerOf(r).User, b)
	switch {
	case err != nil:
		noSession(w, err)
		return
	case !room:
		w.Header().Set("Retry-After", "1")
		reply.Problem(w, http.StatusTooManyRequests, "the command is not reading its input", "send it again", nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func noSession(w http.ResponseWriter, err error) {
	reply.Problem(w, http.StatusConflict, "there is no such open session", "begin another", err)
}
