// Package agent runs on every rented machine: it pulls one attempt from the
// server, runs its program, keeps what the program saves, ships its output, and
// gets the work to safety before the machine goes away.
//
// The agent calls the server and never the reverse. The program's output goes
// straight to a file and its checkpoints to a folder of this machine, so that nothing the
// agent does, and no server that is away, can hold the program up.
package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/wire"
	"scrimp/internal/api"
	"scrimp/internal/blob/httpblob"
)

// Config is what an agent needs to know to begin.
type Config struct {
	Server     string           // unix:///path, http://host:port or https://host:port
	Token      string           // one-time claim token of the instance
	Instance   string           // the provider's id of this machine
	MachineDir string           // the machine's own folder, its disk
	Metadata   notice.Endpoints // to watch for notices
	Environ    []string         // the machine's environment, NAME=value; the program gets it without SCRIMP_*
	Version    string
	Background bool            // lower the agent's own priority once the program runs
	Hard       <-chan struct{} // closed to end at once: the program is killed, nothing more is saved
	// how long an unmodified program's checkpoint folder must rest before it is captured; 0 is 1 s
	Quiet    time.Duration
	ClaimFor time.Duration // how long to try to claim the task; 0 is 10 minutes
	Now      func() time.Time
	Log      *slog.Logger

	client wire.Server // for tests, instead of Server
	open   func(context.Context, api.Assignment, *httpblob.Bucket, *slog.Logger) (keeper, error)
	store  *httpblob.Bucket // the server's own
}

// Default values of Config.
const (
	defaultQuiet    = time.Second
	defaultClaimFor = 10 * time.Minute
	defaultReport   = time.Second
	defaultGrace    = 30 * time.Second
	defaultSilence  = 5 * time.Minute
)

// Validate fills in defaults and says what is missing.
func (c *Config) Validate() error {
	switch {
	case c.Server == "" && c.client == nil:
		return errors.New("agent: SCRIMP_SERVER is not set: the provider gives the server's address to the machine")
	case c.Token == "":
		return errors.New("agent: SCRIMP_TOKEN is not set: the provider gives the instance's token to the machine")
	case c.MachineDir == "" || !filepath.IsAbs(c.MachineDir):
		return fmt.Errorf("agent: SCRIMP_MACHINE_DIR is %q, want the absolute path of a folder for this machine",
			c.MachineDir)
	}
	if c.Quiet == 0 {
		c.Quiet = defaultQuiet
	}
	if c.ClaimFor == 0 {
		c.ClaimFor = defaultClaimFor
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.open == nil {
		c.open = openKeeper
	}
	return nil
}

// Why the agent's own life ends before all is said.
var (
	errHard = errors.New("told to end at once")
	errOver = errors.New("the attempt is over")
)

// ErrFenced says that another attempt has the task.
var ErrFenced = wire.ErrFenced

// Run claims the task of this machine, runs it to its end and returns; the
// caller then switches the machine off. Cancelling ctx asks for a save and an
// end, as SIGTERM does; closing Config.Hard ends everything at once. It returns
// wire.ErrFenced where another attempt has the task, and nil where all was said.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.MachineDir, 0o700); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	var token atomic.Pointer[string]
	token.Store(&c.Token)
	server := c.client
	if server == nil {
		s, err := wire.Dial(c.Server, func() string { return *token.Load() })
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		defer s.Close()
		server, c.store = s, s.Store()
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end(errOver)
	wg.Go(func() {
		select {
		case <-c.Hard:
			end(errHard)
		case <-life.Done():
		}
	})
	a, err := claim(ctx, life, server, c)
	if err != nil {
		return fmt.Errorf("agent: claim the task of %s: %w", c.Instance, err)
	}
	token.Store(&a.AttemptToken)
	g, err := newAttempt(c, a, server)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return g.run(ctx, life, end)
}

// claim asks for the task until the server answers.
func claim(soft, life context.Context, server wire.Server, c Config) (api.Assignment, error) {
	ctx, cancel := context.WithTimeoutCause(soft, c.ClaimFor, fmt.Errorf("no answer within %v", c.ClaimFor))
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	var a api.Assignment
	boot := c.Now().UTC()
	secret, err := machineSecret(c.MachineDir)
	if err != nil {
		c.Log.Warn("keep the machine's secret: an agent that is started again here cannot claim the task", "error", err)
	}
	err = wire.Retry(ctx, func(ctx context.Context) error {
		a, err = server.Claim(ctx, api.Claim{Instance: c.Instance, Boot: boot, Version: c.Version, Secret: secret})
		if err != nil {
			c.Log.Warn("claim the task", "error", err)
		}
		return err
	})
	if err == nil && a.AttemptToken == "" {
		a.AttemptToken = c.Token
	}
	return a, err
}

// machineSecret is what this machine claims its task with: a random text that
// stays in the machine's folder, for an agent that is started again.
func machineSecret(dir string) (string, error) {
	path := filepath.Join(dir, "claim.secret")
	if b, err := os.ReadFile(path); err == nil && len(b) >= 26 {
		return string(b), nil
	}
	secret := rand.Text()
	return secret, replaceFile(path, []byte(secret))
}

// mark is written before the program starts, so that an agent that is started
// again on the same machine knows that the program ran and died with the agent before.
type mark struct {
	Attempt string `json:"attempt"`
}

func markPath(dir string) string { return filepath.Join(dir, "attempt.json") }

// ranBefore reports whether this attempt's program was started on this machine before.
func ranBefore(dir, attempt string) bool {
	b, err := os.ReadFile(markPath(dir))
	var m mark
	return err == nil && json.Unmarshal(b, &m) == nil && m.Attempt == attempt
}

func markRan(dir, attempt string) error {
	b, err := json.Marshal(mark{attempt})
	if err != nil {
		return err
	}
	return replaceFile(markPath(dir), b)
}
