package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/control/replay"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market/marketfile"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/forecast"
	"scrimp/internal/wire/api"
)

// openEngines opens the engines that the data folder names.
func (s *Server) openEngines(ctx context.Context) (err error) {
	listens := s.listens
	if strings.HasSuffix(s.opts.Listen, ":0") { // the next server gets another port, and agents would not find it
		listens = ""
	}
	s.engines, s.clock, err = engine.OpenAll(ctx, s.opts.Kinds, engine.Host{
		Dir: s.opts.Dir, Socket: s.socketURL(), Listen: listens, Market: s.opts.Market, Exe: s.opts.Exe,
		Log: s.opts.Log, After: s.marketTime, Umask: s.opts.umask, Deaf: s.listens == "", Ends: s.opts.Ends,
	})
	if err == nil && s.opts.Market != "" {
		err = s.checkMarket(s.opts.Market)
	}
	return err
}

// checkMarket returns an error if no engine has the given market file: an engine keeps the market that it started
// with.
func (s *Server) checkMarket(file string) error {
	wanted, err := marketfile.Load(file)
	if err != nil {
		return err
	}
	var have []string
	for _, e := range s.engines {
		if e.Clock.Name == wanted.Name {
			return nil
		}
		if e.Clock.Name != "" {
			have = append(have, e.Clock.Name)
		}
	}
	return OtherMarket(file, have...)
}

// OtherMarket returns the error for a --market file that differs from the markets of the folder's engines.
func OtherMarket(file string, have ...string) error {
	return fmt.Errorf("--market %s: this data folder has the market %s, and keeps it: take another folder (--data), or "+
		"leave --market out", file, cmp.Or(strings.Join(have, ", "), "of its engines"))
}

// socketURL returns the URL of the data folder's socket.
func (s *Server) socketURL() string { return "unix://" + filepath.Join(s.opts.Dir, SocketName) }

// keepEvery is the interval between checks that an engine's process is alive.
const keepEvery = 5 * time.Second

// keepEngines restarts the processes of engines that died. Each engine has a goroutine of its own.
func (s *Server) keepEngines(ctx context.Context) {
	var owned sync.WaitGroup
	for _, e := range s.engines {
		if k, ok := e.Driver.(engine.Keeper); ok {
			owned.Go(func() { isolate.Retry(ctx, s.opts.Log, "engine "+e.Name, func() { s.keepEngine(ctx, e.Name, k) }) })
		}
	}
	owned.Wait()
}

func (s *Server) keepEngine(ctx context.Context, name string, k engine.Keeper) {
	for wait.For(ctx, keepEvery) == nil {
		if !s.store.Leads() {
			continue
		}
		started, err := k.Keep(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.opts.Log.Error("the engine does not answer and cannot be restarted", "engine", name, "error", err)
		case started:
			s.opts.Log.Warn("the engine did not answer; its process was restarted", "engine", name)
		}
	}
}

// marketTime returns the market time that the log has reached. A newly opened market starts there: after a
// restore from a backup, the log can be days ahead of the wall clock, and jobs would stand still until a fresh
// clock caught up.
func (s *Server) marketTime(ctx context.Context) (time.Time, error) {
	end, err := s.store.End(ctx)
	if err != nil || end == 0 {
		return time.Time{}, err
	}
	records, err := s.store.Records(ctx, end-1, 1)
	if err != nil || len(records) == 0 {
		return time.Time{}, err
	}
	e, _, err := replay.Decode(records[0])
	return e.At, err
}

// How long a stopping server takes at most. GivesBack is longer, because the server also terminates its
// machines and some of them may not answer.
const (
	Leaves    = 15 * time.Second
	GivesBack = 30 * time.Second
)

// closeEngines terminates every machine that this server owns, and stops the engines that end with it.
func (s *Server) closeEngines(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, GivesBack-10*time.Second)
	defer cancel()
	var owned sync.WaitGroup
	for _, e := range s.engines {
		owned.Go(func() { isolate.Retry(ctx, s.opts.Log, "end of engine "+e.Name, func() { s.closeEngine(ctx, &e) }) })
	}
	owned.Wait()
}

// A provider may grant a pending launch just after the server stops. While launches are pending, closeEngine
// lists the machines up to lastLooks times, lastWait apart.
const (
	lastLooks = 10
	lastWait  = 100 * time.Millisecond
)

func (s *Server) closeEngine(ctx context.Context, e *engine.Engine) {
	log := s.opts.Log.With("engine", e.Name)
	asked := s.control.Asked(e.Name)
	for _, key := range asked { // otherwise the provider could grant a pending launch after the server is gone
		if d, ok := e.Driver.(engine.Canceller); ok {
			if err := d.Cancel(ctx, key); err != nil && !errors.Is(err, engine.ErrNotFound) {
				log.Warn("cannot cancel a launch", "key", key, "error", err)
			}
		}
	}
	for range lastLooks {
		list, err := e.Driver.List(ctx)
		if err != nil {
			log.Error("cannot list the machines; they continue to run", "error", err)
			return
		}
		for _, i := range list {
			asked = slices.DeleteFunc(asked, func(key string) bool { return key == i.Key })
			if i.State == engine.Ended || !s.control.Mine(&i) { // another server owns it, or its owner is undecided
				continue
			}
			if err := e.Driver.Terminate(ctx, i.ID); err != nil {
				log.Debug("the machine has ended already", "instance", i.ID)
			}
		}
		if len(asked) == 0 || wait.For(ctx, lastWait) != nil {
			break
		}
	}
	if c, ok := e.Driver.(engine.Closer); ok {
		if err := c.Close(ctx); err != nil {
			log.Error("cannot close the engine", "error", err)
		}
	}
}

// here reports whether the named engine's machine is this host.
func (s *Server) here(name string) bool {
	return slices.ContainsFunc(s.engines, func(e engine.Engine) bool { return e.Name == name && e.Here })
}

// engineList returns the status of the engines as the API shows it.
func (s *Server) engineList() []api.Engine {
	var list []api.Engine
	for _, e := range s.control.Engines() {
		v := api.Engine{Name: e.Name, Kind: e.Kind, Speed: e.Clock.Speed, Agents: e.AgentURL, Machines: e.Machines,
			State: "answers", Seats: e.Seats, Heard: e.Heard.UTC(), Timing: api.EngineTiming{
				Poll: e.Timing.Poll.Seconds(), Sweep: e.Timing.Sweep.Seconds(), Detect: e.Timing.Detection().Seconds(),
				Boot: e.Timing.Boot.Seconds(), Start: e.Timing.Start.Seconds(),
				Consistency: e.Timing.Consistency.Seconds(), GrantWait: e.Timing.GrantWait.Seconds(),
				Idle: e.Timing.Idle.Seconds(),
			}}
		switch {
		case !e.Configured:
			v.State = forecast.NotConfigured
		case e.Err != nil:
			v.State, v.Error = "away", e.Err.Error()
		case e.Heard.IsZero():
			v.State = forecast.NotAsked
		}
		if v.Speed == 0 {
			v.Speed = 1
		}
		v.Joined, v.Away = s.joining.Joined(e.Name), s.awayMachines(e.Name)
		list = append(list, v)
	}
	return list
}

// awayMachines returns the machines of an engine that do not answer, as far as its driver knows them by name.
func (s *Server) awayMachines(name string) (list []client.AwayEngine) {
	for _, e := range s.engines {
		if d, ok := e.Driver.(engine.Absence); ok && e.Name == name {
			for _, m := range d.Away() {
				list = append(list, client.AwayEngine{Name: name, Machine: m.Name, Error: m.Err.Error()})
			}
		}
	}
	return list
}

// agentEnv returns the environment for the agent of an attempt: the address of the server, the agent's token,
// and the user of the programs.
func (s *Server) agentEnv(e *engine.Engine, attempt string) map[string]string {
	return map[string]string{
		"SCRIMP_TASK_USER": cmp.Or(e.Users, engine.UsersAuto),

		"SCRIMP_SERVER": e.AgentURL,
		"SCRIMP_TOKEN":  s.gate.Tickets.For(auth.BootstrapTicket, attempt),
	}
}
