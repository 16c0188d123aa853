// Package command runs commands beside a program for users, and connects users to the program.
package command

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"scrimp/internal/agent/interactive"
	"scrimp/internal/agent/logship"
	"scrimp/internal/agent/session"
	"scrimp/internal/agent/wire"
	"scrimp/internal/wire/api"
)

// Config describes the program beside which commands run.
type Config struct {
	Server wire.Server
	Seat   *interactive.Seat // nil: the task is not a session
	Mask   logship.Masker
	HangUp time.Duration // how long the command of a session may run once nobody follows it
	Dir    string        // the work folder
	User   int           // user id of the program; 0: the agent's own
	Log    *slog.Logger
}

// Runner runs the commands of one attempt.
type Runner struct {
	Config
	running  sync.WaitGroup
	slots    chan struct{} // holds a value for each running command
	sessions chan struct{} // holds a value for each open session

	mu  sync.Mutex
	env []string // environment of the program; nil until it starts
	ran map[string]bool
}

// New returns a runner, which runs no command before Allow.
func New(c Config) *Runner {
	return &Runner{Config: c, slots: make(chan struct{}, session.AtOnce), sessions: make(chan struct{}, session.AtOnce),
		ran: map[string]bool{}}
}

// Allow lets commands run from now on, with the environment of the program.
func (r *Runner) Allow(env []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.env = env
}

// Wait waits for the end of all commands.
func (r *Runner) Wait() { r.running.Wait() }

// Start runs a command once, even if the server sends it again, and reports its result.
func (r *Runner) Start(ctx context.Context, e api.Exec) {
	r.mu.Lock()
	again, env := r.ran[e.ID], r.env
	r.ran[e.ID] = true
	r.mu.Unlock()
	if again {
		return
	}
	r.running.Go(func() {
		slots := r.slots
		if isSession(e) { // it is long: it must not block commands
			slots = r.sessions
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
			defer func() { <-slots }()
		}
		result := r.run(ctx, e, env)
		result.Error = string(r.Mask.Mask([]byte(result.Error)))
		if err := wire.Retry(ctx, func(ctx context.Context) error { return r.Server.Exec(ctx, e.ID, result) }); err != nil {
			r.Log.Warn("report the result of a command", "id", e.ID, "error", err)
		}
	})
}

// isSession reports whether a user sends input to the command and follows its output.
func isSession(e api.Exec) bool { return e.Input || e.Terminal != nil }

// run runs a command beside the program, or connects the user to the program's terminal or to ports.
func (r *Runner) run(ctx context.Context, e api.Exec, env []string) api.ExecResult {
	if env == nil {
		return api.ExecResult{Exit: 1, Error: "the program has not started yet: try again in a moment"}
	}
	ctx, cancel := r.Seat.Within(ctx)
	defer cancel()
	s := session.Session{Server: r.Server, ID: e.ID, Mask: r.Mask, HangUp: r.HangUp, Typed: r.Seat.Typed}
	switch c := r.Seat.Console(); {
	case e.Attach && c == nil:
		return api.ExecResult{Exit: 1, Error: "this job is not a session with a terminal: run a shell beside its program " +
			"with scrimp exec -it"}
	case e.Attach:
		return s.Attach(ctx, e, c, r.Seat.Typed)
	case e.Forward:
		return s.Forward(ctx, r.Seat.Connected)
	case isSession(e):
		return s.Run(ctx, e, r.Dir, env, r.User)
	}
	return session.Execute(ctx, e.Command, r.Dir, env, r.User, r.Mask, session.Limit)
}
