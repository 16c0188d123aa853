package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/engine"
)

// Kind is the kind of engines of this package.
const Kind = "local"

// usual is the default timing: a local market responds at once, and its list is always complete.
var usual = engine.Timing{Poll: 300 * time.Millisecond, Sweep: 20 * time.Second, Boot: 5 * time.Minute,
	Start: 3 * time.Second}

// With holds the settings under with of a local engine.
type With struct {
	Market   string `yaml:"market,omitempty"`   // a file or a built-in market; empty: the folder's
	Machines string `yaml:"machines,omitempty"` // absolute path of the machines' folder; empty: beside the market
}

func readWith(s *engine.Setting) (w With, err error) {
	if err := s.With.Into(&w, "a local engine has market, a file or a built-in one, and machines, the folder of its "+
		"machines"); err != nil {
		return w, err
	}
	if w.Machines != "" && !filepath.IsAbs(w.Machines) {
		return w, fmt.Errorf("with: machines is %q: write an absolute path", w.Machines)
	}
	return w, nil
}

// Open opens the market of an engine, and starts its process if none answers.
func Open(ctx context.Context, s engine.Setting, h engine.Host) (engine.Engine, error) {
	with, err := readWith(&s)
	if err != nil {
		return engine.Engine{}, err
	}
	file := cmp.Or(with.Market, h.Market)
	if own := filepath.Join(h.Dir, with.Market); with.Market != "" && exists(own) { // relative to engines.yaml
		file = own
	}
	agents, err := h.AgentURL(s)
	if err != nil {
		return engine.Engine{}, err
	}
	dir := Dir(h.Dir, s.Name)
	d, err := Dial(dir)
	if err != nil {
		return engine.Engine{}, err
	}
	d.at = with.Machines
	d.spawn = func(ctx context.Context) error { return spawn(ctx, dir, s.Name, with.Machines, file, h) }
	if _, err := d.Keep(ctx); err != nil {
		return engine.Engine{}, err
	}
	clock, err := d.Clock(ctx)
	if err != nil {
		return engine.Engine{}, err
	}
	return engine.Engine{Name: s.Name, Kind: Kind, Driver: d, Timing: s.Timing.Over(usual), AgentURL: agents, Clock: clock,
		Here: true, Users: Users(&s), Seats: int(s.Seats), Client: nearby()}, nil
}

// Users returns which user runs the programs of a local engine: by default this user, for whose
// PATH and files they are written.
func Users(s *engine.Setting) string { return cmp.Or(s.Users, engine.UsersSame) }

// Machines returns the folder of an engine's machines.
func Machines(data string, s *engine.Setting) string {
	with, _ := readWith(s) // another check reports an invalid setting
	return cmp.Or(with.Machines, filepath.Join(Dir(data, s.Name), "machines"))
}

// Dir returns the folder of a market in a data folder. The default engine and all others have
// different parents.
func Dir(data, name string) string {
	if name == Kind {
		return filepath.Join(data, "market")
	}
	return filepath.Join(data, "engines", name)
}

func exists(path string) bool {
	at, err := os.Stat(path)
	return err == nil && !at.IsDir()
}

// nearby returns the client configuration for a local market, which needs no tight rate limit.
func nearby() *engine.ClientConfig {
	c := engine.DefaultClient()
	c.Act = engine.Limit{Every: 5 * time.Millisecond, Burst: 100}
	return &c
}

// spawn starts the market's process if none answers.
func spawn(ctx context.Context, dir, name, machines, file string, h engine.Host) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("open market: %w", err)
	}
	exe := h.Exe
	if exe == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("open market: %w", err)
		}
		exe = self
	}
	args := []string{"market", "serve", "--data", dir, "--name", name}
	if machines != "" {
		args = append(args, "--machines", machines)
	}
	if file != "" {
		args = append(args, "--market", file)
	}
	after, err := h.After(ctx)
	if err != nil {
		return err
	}
	if !after.IsZero() {
		args = append(args, "--after", after.Format(time.RFC3339Nano))
	}
	if h.Umask != "" { // the server's own umask hides its files from other users, which is wrong for programs
		args = append([]string{"-c", `umask "$1"; shift; exec "$@"`, "scrimp-market", h.Umask, exe}, args...)
		exe = "/bin/sh"
	}
	return Spawn(ctx, dir, exe, args)
}

// Keep implements engine.Keeper. The market finds its machines in its journal; they kept running without it.
func (d *Driver) Keep(ctx context.Context) (started bool, err error) {
	if _, err := d.Clock(ctx); err == nil || d.spawn == nil {
		return false, err
	}
	if err := d.spawn(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// Close implements engine.Closer.
func (d *Driver) Close(ctx context.Context) error { return d.Stop(ctx) }
