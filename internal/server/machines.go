package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/api/signed"
	"scrimp/internal/control"
	"scrimp/internal/core"
)

// maxPull is how much a machine may send at once.
const maxPull = 1 << 20

type machineKey struct{}

// machineOf is the machine that has signed the request.
func machineOf(r *http.Request) string {
	name, _ := r.Context().Value(machineKey{}).(string)
	return name
}

// signedBy returns the request with the name of the machine whose key signed it, or
// answers why it is not taken. What nobody has signed shares the pace of where it comes
// from, so that strangers keep no machine waiting.
func (s *Server) signedBy(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	instance := r.Header.Get(signed.Instance)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPull))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, "request not read", "send less", err)
		return nil, false
	}
	agent, known := s.control.AgentOf(instance)
	err = signed.ErrNone
	if key, wrong := signed.Parse(agent.Key); known && wrong == nil {
		err = s.seen.Check(r, key, time.Now(), body)
	}
	name := "from " + from(r)
	if err == nil {
		name = "machine " + instance
	}
	if ok, wait := s.pace.take(name, time.Now()); !ok {
		slower(w, wait)
		return nil, false
	}
	switch {
	case !known && instance != "":
		problem(w, http.StatusGone, "the machine is not known, or its time is over", "switch it off", nil)
		return nil, false
	case errors.Is(err, signed.ErrClock), errors.Is(err, signed.ErrBefore), errors.Is(err, signed.ErrReplay):
		problem(w, http.StatusConflict, "the signature is not taken", "sign anew, by the time of the header Scrimp-Time", err)
		return nil, false
	case err != nil:
		problem(w, http.StatusUnauthorized, "no valid signature", "only the machine's own agent may ask", err)
		return nil, false
	}
	r = r.WithContext(context.WithValue(r.Context(), machineKey{}, instance))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, true
}

func (s *Server) agentRegister(w http.ResponseWriter, r *http.Request) {
	allocation, ok := s.bearer(r, "bootstrap")
	if !ok {
		problem(w, http.StatusUnauthorized, "no valid token", "only an agent that the server launched may register", nil)
		return
	}
	reg, ok := read[api.Registration](w, r, maxReport)
	if !ok {
		return
	}
	if _, err := signed.Parse(reg.Key); err != nil {
		fieldProblem(w, http.StatusBadRequest, "key", err.Error(),
			"start the agent that the server gives to its machines", nil)
		return
	}
	err := s.control.Register(r.Context(), core.MachineRegistered{
		Instance: reg.Instance, Allocation: allocation, Key: reg.Key, Version: reg.Version, Wire: wireOf(r),
		Boot: reg.Boot.UTC(), CPUs: reg.CPUs, Memory: reg.Memory, Root: reg.Root, Isolated: reg.Isolated,
	})
	switch {
	case errors.Is(err, control.ErrTaken): // 410, on which an agent of any release gives up
		s.opts.Log.Warn("a machine registered twice, with another key", "allocation", allocation, "from", from(r))
		problem(w, http.StatusGone, "another agent has registered with this token",
			"the token was good once: switch the machine off; where it is the right one, cancel the job of "+allocation+
				", which gives the other's machine back", err)
	case errors.Is(err, control.ErrFenced):
		problem(w, http.StatusGone, "the machine is registered no more: it took too long, or is given back",
			"switch the machine off", err)
	case err != nil:
		problem(w, http.StatusServiceUnavailable, "not yet", "ask again", err)
	default:
		answer(w, api.Registered{Wire: api.Wire, Build: s.opts.Build})
	}
}

// agentPull keeps the machine waiting until there is something to do.
func (s *Server) agentPull(w http.ResponseWriter, r *http.Request) {
	instance := machineOf(r)
	p, ok := read[api.Pull](w, r, maxPull)
	if !ok {
		return
	}
	out := api.Pulled{Wire: api.Wire, Build: s.opts.Build}
	if wireOf(r) < api.Wire { // what it runs may end; it gets nothing new
		answer(w, out)
		return
	}
	patience := api.PullWait
	if p.Build != "" && p.Build != s.opts.Build && len(p.Running) == 0 { // it may be updated between tasks
		patience = time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	tasks, off, err := s.control.Pull(ctx, instance, p.Running, p.Clean && len(p.Running) == 0)
	if err != nil {
		problem(w, http.StatusServiceUnavailable, "not yet", "ask again", err)
		return
	}
	out.Off = off
	for _, t := range tasks {
		a, err := s.assign(r.Context(), t.Job, t.Attempt)
		if err != nil {
			problem(w, http.StatusServiceUnavailable, "the log was not read", "ask again", fmt.Errorf("%s: %w", t.Job.ID(), err))
			return
		}
		out.Tasks = append(out.Tasks, a)
	}
	answer(w, out)
}

// wireOf is the version of the protocol that the agent speaks; speaks has read it.
func wireOf(r *http.Request) int {
	version, err := strconv.Atoi(r.Header.Get(api.WireHeader))
	if err != nil {
		return 1
	}
	return version
}

// agentBinary sends this program, for an agent of another build. Its hash begins with the
// build that a pull is answered with.
func (s *Server) agentBinary(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("os") != runtime.GOOS || q.Get("arch") != runtime.GOARCH {
		problem(w, http.StatusNotFound, "the server has no program for this system",
			"go on with the one that is there; it is for "+runtime.GOOS+"/"+runtime.GOARCH, nil)
		return
	}
	path, err := s.opts.Exe, error(nil)
	if path == "" {
		path, err = os.Executable()
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		problem(w, http.StatusServiceUnavailable, "the program was not read", "ask again later", nil)
		s.opts.Log.Error("send the program to a machine", "error", err)
		return
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	if _, err := io.Copy(w, f); err != nil {
		panic(http.ErrAbortHandler) // a part that looked whole would be worse
	}
}
