package agents

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// execution is a command that a user runs beside the program of a job.
type execution struct {
	rank  string // the rank on whose machine it runs
	exec  api.Exec
	given bool
	done  chan api.ExecResult
}

// execLimit bounds the wait for a command's output.
const execLimit = 5 * time.Minute

func (d *Service) execsFor(rank string) []api.Exec {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []api.Exec
	for _, e := range d.execs {
		if e.rank == rank && !e.given {
			e.given = true
			list = append(list, e.exec)
		}
	}
	return list
}

// hasWaiter reports whether somebody waits for the output of that command on that rank.
func (d *Service) hasWaiter(id, rank string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.execs[id]
	return e != nil && e.rank == rank
}

// Executed takes the output of a command.
func (d *Service) Executed(w http.ResponseWriter, r *http.Request) {
	attempt, node, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	if rank := api.Rank(attempt, node); !d.hasWaiter(r.PathValue("id"), rank) && !d.sessions.has(r.PathValue("id"), rank) {
		w.WriteHeader(http.StatusNoContent) // nobody waits for the output: leave the body unread
		return
	}
	result, ok := reply.FromAgent[api.ExecResult](w, r)
	if !ok {
		return
	}
	d.sessions.end(r.PathValue("id"), api.Rank(attempt, node), result)
	d.mu.Lock()
	e := d.execs[r.PathValue("id")]
	if e != nil && e.rank == api.Rank(attempt, node) {
		delete(d.execs, e.exec.ID)
		e.done <- result
	}
	d.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// Exec runs a command on the machine of a rank and returns what it printed.
func (d *Service) Exec(ctx context.Context, rank string, command []string) (api.ExecResult, error) {
	e := &execution{rank: rank, done: make(chan api.ExecResult, 1)}
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
		return api.ExecResult{}, fmt.Errorf("run %s on %s: no answer", strings.Join(command, " "), rank)
	}
}
