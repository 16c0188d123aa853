// Package agent is the daemon on every rented machine: it registers the machine's key, pulls tasks
// from the server, runs each in a folder of its own, keeps what the programs save, ships their
// output, saves the work before the machine is terminated, and cleans up between tasks.
//
// The agent calls the server and never the reverse. The program writes its output to a file and its
// checkpoints to a folder of this machine, so neither the agent nor an unreachable server can block
// the program.
package agent

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"scrimp/internal/agent/attempt"
	"scrimp/internal/agent/datacache"
	"scrimp/internal/agent/host"
	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/setup"
	"scrimp/internal/agent/wire"
)

// Config configures an agent.
type Config struct {
	Server     string           // unix:///path, http://host:port or https://host:port
	Token      string           // bootstrap token of the instance; empty: the one that KeepToken stored
	Instance   string           // the provider's id of this machine
	Address    string           // address for other machines; empty: the agent detects it
	MachineDir string           // the machine's own folder, on its disk
	Metadata   notice.Endpoints // where to watch for notices
	Roots      *x509.CertPool   // for the server's certificate; nil: the system's
	Environ    []string         // the machine's environment, NAME=value; the program gets it without SCRIMP_*
	// Borrowed reports that Environ belongs to whoever started the server. The program then gets
	// only the variables that describe the machine and its user.
	Borrowed bool
	Version  string
	Build    string // the first 16 or more hexadecimal digits of the program's SHA-256; empty: unknown
	// Restart replaces this process by another program; nil: the agent never updates itself.
	Restart  func(path string) error
	TaskUser string // UserAuto or UserSame; empty means UserSame
	// FreeDisk is the share of the disk, from 0 to 1, that kept set-ups leave free; empty means 0.1.
	FreeDisk string
	// Cache is the bound of the cache of inputs, a size or a share of the disk from 0 to 1; empty means half the disk.
	// CacheDir is its folder; empty means one in MachineDir, which the agent removes at its end.
	Cache, CacheDir string
	// Sole reports that nothing else in this process starts programs. Then all its descendants
	// belong to tasks, and the agent ends them between tasks. Otherwise the agent recognises them
	// by their environment alone.
	Sole       bool
	Background bool            // lower the agent's own priority once the program runs
	Hard       <-chan struct{} // close to end at once: the agent kills the program and saves nothing more
	// Notice is how long the machine stays once the agent receives SIGTERM; 0: the job's grace.
	Notice time.Duration
	// Quiet is how long an unmodified program's checkpoint folder must stay unchanged before it is
	// captured; 0 means 1 s.
	Quiet       time.Duration
	RegisterFor time.Duration // how long to try to register; 0 is 10 minutes
	Now         func() time.Time
	Log         *slog.Logger

	open   func(context.Context, keeper.Options) (keeper.Keeper, error)
	setups *setup.Cache     // results of set-ups on this machine; nil: keep none
	inputs *datacache.Cache // files of inputs on this machine; nil: it could not be opened
	keep   bool             // for tests: do not clean up after a task
	pace   attempt.Pace     // the zero value means attempt.UsualPace
}

// CheckDisk returns an error if no agent can read SCRIMP_FREE_DISK or SCRIMP_CACHE.
func CheckDisk(free, cache string) error {
	if _, err := setup.Leaving(free); err != nil {
		return err
	}
	_, err := datacache.ReadLimits(cache, 0)
	return err
}

// Validate fills in defaults and returns an error if a field is missing or wrong.
func (c *Config) Validate() error {
	switch {
	case c.Server == "":
		return errors.New("agent: SCRIMP_SERVER is not set: the provider gives the server's address to the machine")
	case c.MachineDir == "" || !filepath.IsAbs(c.MachineDir):
		return fmt.Errorf("agent: SCRIMP_MACHINE_DIR is %q, want the absolute path of a folder for this machine",
			c.MachineDir)
	}
	if c.TaskUser != "" && c.TaskUser != UserAuto && c.TaskUser != UserSame {
		return fmt.Errorf("agent: SCRIMP_TASK_USER is %q, want auto or same", c.TaskUser)
	}
	if err := CheckDisk(c.FreeDisk, c.Cache); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if c.CacheDir != "" && !filepath.IsAbs(c.CacheDir) {
		return fmt.Errorf("agent: SCRIMP_CACHE_DIR is %q, want an absolute path", c.CacheDir)
	}
	if c.Quiet == 0 {
		c.Quiet = defaultQuiet
	}
	if c.RegisterFor == 0 {
		c.RegisterFor = defaultRegisterFor
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.open == nil {
		c.open = keeper.Open
	}
	if c.pace == (attempt.Pace{}) {
		c.pace = attempt.UsualPace
	}
	return nil
}

// errHard is the cause of the end after Hard is closed.
var errHard = errors.New("ordered to end at once")

// Default values of Config.
const (
	defaultQuiet       = time.Second
	defaultRegisterFor = 10 * time.Minute
	collectEvery       = time.Minute
)

// ErrFenced reports that another attempt has the task.
var ErrFenced = wire.ErrFenced

// Run registers this machine, runs the tasks that the server assigns, and returns once the server
// orders the machine off; the caller then switches it off. Cancelling ctx asks for a save and an
// end, as SIGTERM does; closing Config.Hard ends everything at once. Run returns wire.ErrFenced if
// another attempt has the last task or the server does not want the machine, and nil if the agent
// reported everything.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(place.OwnFolder(c.MachineDir), 0o700); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	id, err := c.identify()
	if err != nil {
		return err
	}
	limits, _ := setup.Leaving(c.FreeDisk) // Validate has checked it
	if c.setups, err = setup.Open(filepath.Join(c.MachineDir, "setups"), host.BootID(), limits); err != nil {
		c.Log.Warn("set-ups are not kept on this machine", "error", err)
	}
	defer func() { // the machine's folder may be on a disk that outlives it
		if err := place.RemoveAll(filepath.Join(c.MachineDir, "setups")); err != nil {
			c.Log.Warn("remove the kept set-ups", "error", err)
		}
	}()
	defer c.openInputs(limits.Reserve)()
	machine, err := wire.DialMachine(c.Server, c.Instance, id.key, c.Token)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	machine.Trust(c.Roots)
	defer machine.Close()
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end(attempt.ErrOver)
	wg.Go(func() {
		select {
		case <-c.Hard:
			end(errHard)
		case <-life.Done():
		}
	})
	c.ownMachine()
	seen := filepath.Join(place.OwnFolder(c.MachineDir), "accelerators.json")
	d := &daemon{Config: c, accelerators: host.Accelerators{Path: seen}, id: id, machine: machine,
		ended: make(chan struct{}, 1), running: map[string]string{},
		dropped: map[string]bool{}, answered: wire.Wall(c.Now()), silence: wire.DefaultSilence}
	wg.Go(d.accelerators.Before)
	wg.Go(func() { d.gpus.Run(life) })
	wg.Go(func() { d.collect(life) })
	if err := d.register(ctx, life); err != nil {
		return err
	}
	return d.serve(ctx, life)
}

// openInputs opens the cache of inputs and returns what closes it.
func (c *Config) openInputs(reserve float64) (closes func()) {
	limits, _ := datacache.ReadLimits(c.Cache, reserve) // Validate has checked it
	own := filepath.Join(c.MachineDir, "cache")
	dir := cmp.Or(c.CacheDir, own)
	var err error
	c.inputs, err = datacache.Open(dir, host.BootID(), limits, c.Now)
	if errors.Is(err, datacache.ErrBusy) && dir != own {
		c.Log.Info("another agent uses this input cache folder; this agent uses its own", "error", err)
		dir = own
		c.inputs, err = datacache.Open(dir, host.BootID(), limits, c.Now)
	}
	if err != nil {
		c.Log.Warn("this machine cannot bring inputs", "error", err)
	}
	return func() {
		if c.inputs != nil {
			if err := c.inputs.Close(); err != nil {
				c.Log.Warn("close the cache of inputs", "error", err)
			}
		}
		if dir == own { // the machine's folder may be on a disk that outlives it
			if err := place.RemoveAll(own); err != nil {
				c.Log.Warn("remove the cache of inputs", "error", err)
			}
		}
	}
}

// identify returns this machine's identity, and reads the stored token if the configuration has none.
func (c *Config) identify() (*identity, error) {
	id, err := openIdentity(c.MachineDir)
	if err == nil {
		err = id.checkSeparation(c)
	}
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	if c.Token == "" {
		if c.Token, err = keptToken(c.MachineDir); err != nil {
			return nil, fmt.Errorf("agent: read the machine's token: %w", err)
		}
	}
	if c.Token == "" && !id.Registered {
		return nil, errors.New("agent: SCRIMP_TOKEN is not set: the provider gives the instance's token to the machine")
	}
	return id, nil
}

// ownMachine limits users' processes and adopts orphans, if nothing else in this process starts programs.
func (c *Config) ownMachine() {
	if !c.Sole {
		return
	}
	if ok, _ := c.separate(); ok {
		if err := program.BoundUsers(); err != nil {
			c.Log.Warn("programs can use all processes of the machine", "error", err)
		}
	}
	if err := program.Adopt(); err != nil {
		c.Log.Warn("cannot show that the machine is clean between tasks", "error", err)
	}
}
