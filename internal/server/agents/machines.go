package agents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// Register stores a machine's public key; it works once.
func (d *Service) Register(w http.ResponseWriter, r *http.Request) {
	allocation, ok := d.Gate.Tickets.Shown(r, auth.BootstrapTicket)
	if !ok {
		reply.Problem(w, http.StatusUnauthorized, "no valid token", "only an agent that the server launched may register",
			nil)
		return
	}
	reg, ok := reply.FromAgent[api.Registration](w, r)
	if !ok {
		return
	}
	if _, err := httpsig.Parse(reg.Key); err != nil {
		reply.FieldProblem(w, http.StatusBadRequest, "key", err.Error(),
			"start the agent that the server gives to its machines", nil)
		return
	}
	err := d.Control.Register(r.Context(), core.MachineRegistered{
		Instance: reg.Instance, Allocation: allocation, Key: reg.Key, Version: reg.Version, Wire: wireOf(r),
		Boot: reg.Boot.UTC(), Address: reg.Address,
		CPUs: reg.CPUs, Memory: reg.Memory, Root: reg.Root, Isolated: reg.Isolated,
	})
	switch {
	case errors.Is(err, control.ErrTaken): // status 410, on which agents of every release give up
		d.Errors.Warn("a machine registered twice, with another key", "allocation", allocation, "from", auth.From(r))
		reply.Problem(w, http.StatusGone, "another agent has registered with this token",
			"the token works once: switch the machine off; if it is the right one, cancel the job of "+allocation+
				", which returns the other machine", err)
	case errors.Is(err, control.ErrFenced):
		reply.Problem(w, http.StatusGone, "the machine is no longer registered: it took too long, or was given back",
			"switch the machine off", err)
	case err != nil:
		reply.Problem(w, http.StatusServiceUnavailable, "the log does not have the registration yet", "try again", err)
	default:
		reply.JSON(w, api.Registered{Wire: api.Wire, Build: d.Build})
	}
}

// Pull blocks until there is something for the machine to do.
func (d *Service) Pull(w http.ResponseWriter, r *http.Request) {
	instance := auth.MachineOf(r)
	p, ok := reply.FromAgent[api.Pull](w, r)
	if !ok {
		return
	}
	out := api.Pulled{Wire: api.Wire, Build: d.Build}
	if wireOf(r) < api.Wire { // what it runs may finish; it gets nothing new
		reply.JSON(w, out)
		return
	}
	patience := api.PullWait
	if p.Build != "" && p.Build != d.Build && len(p.Running) == 0 { // it can be updated between tasks
		patience = time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	tasks, off, err := d.Control.Pull(ctx, instance, p.Running, p.Clean && len(p.Running) == 0)
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the log does not have the tasks yet", "try again", err)
		return
	}
	out.Off = off
	for _, t := range tasks {
		a, err := d.assign(r.Context(), t.Job, t.Attempt, t.Node)
		if err != nil {
			reply.Problem(w, http.StatusServiceUnavailable, "cannot read the log", "try again", fmt.Errorf("%s: %w",
				t.Job.ID(), err))
			return
		}
		out.Tasks = append(out.Tasks, a)
	}
	reply.JSON(w, out)
}

// wireOf returns the protocol version of the agent; checkVersion has validated it.
func wireOf(r *http.Request) int {
	version, err := strconv.Atoi(r.Header.Get(api.WireHeader))
	if err != nil {
		return 1
	}
	return version
}

// Binary sends this executable to an agent of another build. Its hash starts with the build in the response to a
// pull.
func (d *Service) Binary(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("os") != runtime.GOOS || q.Get("arch") != runtime.GOARCH {
		reply.Problem(w, http.StatusNotFound, "the server has no program for this system",
			"go on with the one that is there; it is for "+runtime.GOOS+"/"+runtime.GOARCH, nil)
		return
	}
	reply.Program(w, d.Exe, d.Errors)
}
