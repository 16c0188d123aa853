// Package agent is the daemon of every rented machine: it registers the machine's key,
// pulls tasks from the server, runs each in a folder of its own, keeps what the programs
// save, ships their output, gets the work to safety before the machine goes away, and
// cleans up between tasks.
//
// The agent calls the server and never the reverse. The program's output goes
// straight to a file and its checkpoints to a folder of this machine, so that nothing the
// agent does, and no server that is away, can hold the program up.
package agent

import (
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
	"scrimp/internal/agent/host"
	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/setup"
	"scrimp/internal/agent/wire"
)

// Config is what an agent needs to know to begin.
type Config struct {
	Server     string           // unix:///path, http://host:port or https://host:port
	Token      string           // bootstrap token of the instance; "": as KeepToken kept it
	Instance   string           // the provider's id of this machine
	Address    string           // by which other machines reach this one; "": it finds out
	MachineDir string           // the machine's own folder, its disk
	Metadata   notice.Endpoints // to watch for notices
	Roots      *x509.CertPool   // that the server's certificate is held against; nil: the system's
	Environ    []string         // the machine's environment, NAME=value; the program gets it without SCRIMP_*
	// Borrowed says that the environment is that of whoever started the server: the program gets
	// of it what belongs to the machine and its user.
	Borrowed bool
	Version  string
	Build    string // the first 16 or more hexadecimal digits of the program's SHA-256; "": unknown
	// Restart starts another program in this one's place; nil: the agent updates itself never.
	Restart  func(path string) error
	TaskUser string // UserAuto or UserSame, which "" is
	// Sole says that nothing else in this process starts programs: what descends from it is of
	// its tasks, and is ended between them. Without it only their environment tells.
	Sole       bool
	Background bool            // lower the agent's own priority once the program runs
	Hard       <-chan struct{} // closed to end at once: the program is killed, nothing more is saved
	// Notice is how long the machine stays once the agent is told to end; 0: as long as the job's grace.
	Notice time.Duration
	// how long an unmodified program's checkpoint folder must rest before it is captured; 0 is 1 s
	Quiet       time.Duration
	RegisterFor time.Duration // how long to try to register; 0 is 10 minutes
	Now         func() time.Time
	Log         *slog.Logger

	open   func(context.Context, keeper.Options) (keeper.Keeper, error)
	setups *setup.Cache // what set-ups made here; nil: none is kept
	keep   bool         // for tests: leave what a task had on the machine
	pace   attempt.Pace // the zero value is usualPace
}

// Validate fills in defaults and says what is missing.
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

// errHard is why the agent's own life ends before all is said.
var errHard = errors.New("told to end at once")

// Default values of Config.
const (
	defaultQuiet       = time.Second
	defaultRegisterFor = 10 * time.Minute
	collectEvery       = time.Minute
)

// ErrFenced says that another attempt has the task.
var ErrFenced = wire.ErrFenced

// Run registers this machine, runs the tasks that it is given, and returns when it is told
// to switch off; the caller then does so. Cancelling ctx asks for a save and an end, as
// SIGTERM does; closing Config.Hard ends everything at once. It returns wire.ErrFenced where
// another attempt has the last task, or the machine is not wanted, and nil where all was said.
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
	if c.setups, err = setup.Open(filepath.Join(c.MachineDir, "setups"), host.BootID(), setup.Default()); err != nil {
		c.Log.Warn("no set-up is kept on this machine", "error", err)
	}
	defer func() { // a machine may have its folder on a disk that stays
		if err := place.RemoveAll(filepath.Join(c.MachineDir, "setups")); err != nil {
			c.Log.Warn("remove the set-ups that were kept", "error", err)
		}
	}()
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
		dropped: map[string]bool{}, answered: attempt.Wall(c.Now()), silence: attempt.DefaultSilence}
	wg.Go(d.accelerators.Before)
	wg.Go(func() { d.gpus.Run(life) })
	wg.Go(func() { d.collect(life) })
	if err := d.register(ctx, life); err != nil {
		return err
	}
	return d.serve(ctx, life)
}

// identify returns who this machine is, and reads its token where the configuration has none.
func (c *Config) identify() (*identity, error) {
	id, err := openIdentity(c.MachineDir)
	if err == nil {
		err = id.stays(c)
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

// ownMachine bounds and takes over what programs start, where nothing else in this process starts any.
func (c *Config) ownMachine() {
	if !c.Sole {
		return
	}
	if ok, _ := c.separate(); ok {
		if err := program.BoundUsers(); err != nil {
			c.Log.Warn("a program may use up the machine's processes", "error", err)
		}
	}
	if err := program.Adopt(); err != nil {
		c.Log.Warn("the machine cannot be shown clean between tasks", "error", err)
	}
}
