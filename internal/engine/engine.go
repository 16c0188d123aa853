package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// Engine is something that machines are rented from, by its name. Several are asked at
// once, each at its own pace; none waits for another.
type Engine struct {
	Name     string // that the Provider of each of its offers is
	Kind     string // "local", …: which program drives it
	Driver   Driver
	Timing   Timing
	AgentURL string // by which its machines reach the server: unix:///PATH, http://… or https://…
	Seats    int    // how many tasks of one user a machine may have at once; 0: one
	Here     bool   // its machines are this one: they share the files of who submits by the server's socket
	Users    string // whose the programs on its machines are: UsersSame, or UsersAuto, which "" is too
	// Clock is how its market's time runs; zero: with the wall's.
	Clock  Clock
	Client *ClientConfig // how patient its calls are; nil: DefaultClient
}

// Timing is how an engine behaves in time, on the wall.
type Timing struct {
	Poll        time.Duration `json:"poll_ns"`        // between two polls of its instances and prices
	Sweep       time.Duration `json:"sweep_ns"`       // between two sweeps of its whole inventory
	Detect      time.Duration `json:"detect_ns"`      // how long a loss can go unnoticed; 0: two polls
	Boot        time.Duration `json:"boot_ns"`        // from launch to a running program; then the machine is given up
	Consistency time.Duration `json:"consistency_ns"` // how long its list may lack a machine that runs
	GrantWait   time.Duration `json:"grant_wait_ns"`  // the longest that it takes to grant what it has
	Bills       time.Duration `json:"bills_ns"`       // between two questions for bills; 0: with each sweep
	// Idle is the longest that a machine whose task is over waits for the next job of the same
	// user, where that is expected to pay; 0: none waits.
	Idle time.Duration `json:"idle_ns"`
}

// Detection is how long a loss can go unnoticed: two polls unless it is stated.
func (t *Timing) Detection() time.Duration {
	if t.Detect > 0 {
		return t.Detect
	}
	return 2 * t.Poll
}

// Validate says what is wrong.
func (t *Timing) Validate() error {
	if t.Poll <= 0 || t.Sweep <= 0 || t.Boot <= 0 {
		return fmt.Errorf("poll %v, sweep %v, boot %v: each must be above zero", t.Poll, t.Sweep, t.Boot)
	}
	if min(t.Detect, t.Consistency, t.GrantWait, t.Bills, t.Idle) < 0 {
		return errors.New("a span of its timing is below zero")
	}
	return nil
}

const nameRule = "a name is up to 32 small letters, digits and hyphens, and begins with a letter"

var named = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Validate says what is wrong.
func (e *Engine) Validate() error {
	if !named.MatchString(e.Name) {
		return fmt.Errorf("engine %q: %s", e.Name, nameRule)
	}
	if e.Driver == nil {
		return fmt.Errorf("engine %s: it has no driver", e.Name)
	}
	if err := e.Timing.Validate(); err != nil {
		return fmt.Errorf("engine %s: %w", e.Name, err)
	}
	if e.AgentURL == "" {
		return nil
	}
	if !reachable(e.AgentURL) {
		return fmt.Errorf("engine %s: its agents cannot reach %q: write unix:///PATH, http://HOST:PORT or https://HOST:PORT",
			e.Name, e.AgentURL)
	}
	return nil
}

// reachable reports whether an address is one that agents can ask.
func reachable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && schemes[u.Scheme] && (u.Scheme == "unix" && u.Path != "" || u.Scheme != "unix" && u.Host != "")
}

var schemes = map[string]bool{"unix": true, "http": true, "https": true}

// Examiner is what a driver also does that can say what its engine lacks.
type Examiner interface {
	// Examine tries what jobs will need there, in the order in which they do. It rents nothing and
	// leaves nothing behind.
	Examine(ctx context.Context) []Finding
}

// Comparer is what a driver also does that knows a text by which its engine's account is set up.
type Comparer interface {
	// Compare holds the engine's settings and the account against what that text has put out, as Terraform prints it.
	// Its error is one of what it is given, or of reaching the account.
	Compare(ctx context.Context, outputs []byte) ([]Finding, error)
}

// Finding is one thing that was looked at.
type Finding struct {
	Name string // what was looked at: "commands", "clock", …
	OK   bool
	Text string // what was found; where it is not well also what to do, with the command
}

// Absence is what a driver also does that knows the machines of its engine by name.
type Absence interface {
	// Away are those that do not answer now, with why, as it knows without asking them.
	Away() []AwayMachine
}

// AwayMachine is a machine that does not answer.
type AwayMachine struct {
	Name string
	Err  error
}

// Keeper is what a driver also does whose engine is a process on this machine.
type Keeper interface {
	// Keep starts the engine's process where it has died, and reports whether it did.
	Keep(context.Context) (started bool, err error)
}

// Leaver is what a driver also does whose machines leave folders on the server's disk when they end.
type Leaver interface {
	// Left are the folders of machines that have ended, and of those that nobody knows.
	Left(context.Context) ([]LeftFolder, error)
}

// LeftFolder is what a machine has left.
type LeftFolder struct {
	Instance string
	Path     string
	Changed  time.Time // wall time of the last change of it
}

// Closer is what a driver also does whose engine ends with its server, where that is told
// to give everything back. Its machines are given back before.
type Closer interface {
	Close(context.Context) error
}

// Watcher is what a driver also does that is told of changes: its engine is polled when
// something changed, and with each sweep.
type Watcher interface {
	// Watch calls changed when instances or offers may differ, until ctx ends or it cannot
	// any more. Meanwhile the engine is polled as one that has no Watch.
	Watch(ctx context.Context, changed func()) error
}

// Biller is what a driver also does whose bills are known later than the end.
type Biller interface {
	// Bills returns the newest bill of each instance whose bill became known or changed since.
	Bills(ctx context.Context, since time.Time) ([]Bill, error)
}

// Bill is what an instance costs in all, as far as it is known now.
type Bill struct {
	Instance string `json:"instance"`
	Key      string `json:"key"` // that it was launched with
	Lines    []Line `json:"lines"`
}
