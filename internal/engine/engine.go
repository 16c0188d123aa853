package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// Engine is a named source of machines. The server calls its engines concurrently, each at its own
// pace, and none waits for another.
type Engine struct {
	Name     string // the Provider of each of its offers
	Kind     string // name of its driver, such as "local"
	Driver   Driver
	Timing   Timing
	AgentURL string // URL at which its machines reach the server: unix:///PATH, http://… or https://…
	Seats    int    // how many tasks of one user a machine may run at once; 0: one
	Here     bool   // its machines run on this host: they share files with users who submit through the server's socket
	Users    string // which user runs programs on its machines: UsersSame or UsersAuto; empty means UsersAuto
	// Clock relates the market's time to wall time; zero means wall time.
	Clock  Clock
	Client *ClientConfig // timeouts and retries of calls; nil: DefaultClient
}

// Timing is the timing of an engine, in wall time.
type Timing struct {
	Poll        time.Duration `json:"poll_ns"`        // between polls of its instances and prices
	Sweep       time.Duration `json:"sweep_ns"`       // between sweeps of its whole inventory
	Detect      time.Duration `json:"detect_ns"`      // how long a loss can go unnoticed; 0: two polls
	Boot        time.Duration `json:"boot_ns"`        // limit from launch to a running program
	Start       time.Duration `json:"start_ns"`       // expected from launch to a restored program, until measured
	Consistency time.Duration `json:"consistency_ns"` // how long its list may lack a running machine
	GrantWait   time.Duration `json:"grant_wait_ns"`  // longest time it takes to grant a launch if it has capacity
	Bills       time.Duration `json:"bills_ns"`       // between requests for bills; 0: with each sweep
	// Idle is the longest time a machine without a task waits for the next job of the same user, if
	// that is expected to pay; 0: no machine waits.
	Idle time.Duration `json:"idle_ns"`
}

// Detection returns how long a loss can go unnoticed: Detect or two polls.
func (t *Timing) Detection() time.Duration {
	if t.Detect > 0 {
		return t.Detect
	}
	return 2 * t.Poll
}

// Validate returns an error that names what is wrong.
func (t *Timing) Validate() error {
	if t.Poll <= 0 || t.Sweep <= 0 || t.Boot <= 0 {
		return fmt.Errorf("poll %v, sweep %v, boot %v: each must be above zero", t.Poll, t.Sweep, t.Boot)
	}
	if min(t.Start, t.Detect, t.Consistency, t.GrantWait, t.Bills, t.Idle) < 0 {
		return errors.New("one of its timing values is negative")
	}
	return nil
}

const nameRule = "a name is up to 32 small letters, digits and hyphens, and begins with a letter"

var named = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Validate returns an error that names what is wrong.
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

// reachable reports whether an address has a form that agents can connect to.
func reachable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && schemes[u.Scheme] && (u.Scheme == "unix" && u.Path != "" || u.Scheme != "unix" && u.Host != "")
}

var schemes = map[string]bool{"unix": true, "http": true, "https": true}

// Examiner is implemented by drivers that can check their engine.
type Examiner interface {
	// Examine tries what jobs will need on the engine, in the same order. It rents nothing and
	// leaves nothing behind.
	Examine(ctx context.Context) []Finding
}

// Comparer is implemented by drivers whose account can be set up from a template, such as Terraform's.
type Comparer interface {
	// Compare compares the engine's settings and the account with the template's outputs, as
	// Terraform prints them. It returns an error if the outputs are invalid or the account is
	// unreachable.
	Compare(ctx context.Context, outputs []byte) ([]Finding, error)
}

// Finding is the result of one check.
type Finding struct {
	Name string // subject of the check: "commands", "clock", …
	OK   bool
	Text string // result; if not OK, also the fix, with its command
}

// Absence is implemented by drivers that know the machines of their engine by name.
type Absence interface {
	// Away returns the machines that do not respond, with the reason. It does not contact them.
	Away() []AwayMachine
}

// AwayMachine is a machine that does not respond.
type AwayMachine struct {
	Name string
	Err  error
}

// Keeper is implemented by drivers whose engine is a process on this machine.
type Keeper interface {
	// Keep restarts the engine's process if it has died, and reports whether it did.
	Keep(context.Context) (started bool, err error)
}

// Leaver is implemented by drivers whose machines leave folders on the server's disk when they end.
type Leaver interface {
	// Left returns the folders of ended machines and of unknown ones.
	Left(context.Context) ([]LeftFolder, error)
}

// LeftFolder is the folder of a machine.
type LeftFolder struct {
	Instance string
	Path     string
	Changed  time.Time // wall time of its last change
}

// Closer is implemented by drivers whose engine ends with its server if the user stops the server and releases
// everything. The server terminates the machines before it calls Close.
type Closer interface {
	Close(context.Context) error
}

// Watcher is implemented by drivers that receive change events: the server then polls the engine on
// changes and with each sweep.
type Watcher interface {
	// Watch calls changed when instances or offers may differ, until ctx ends or watching fails.
	// After that the server polls the engine like one without Watch.
	Watch(ctx context.Context, changed func()) error
}

// Biller is implemented by drivers whose bills arrive after the end of an instance.
type Biller interface {
	// Bills returns the newest bill of each instance whose bill became known or changed since.
	Bills(ctx context.Context, since time.Time) ([]Bill, error)
}

// Bill is the total cost of an instance, as known so far.
type Bill struct {
	Instance string `json:"instance"`
	Key      string `json:"key"` // key of its launch
	Lines    []Line `json:"lines"`
}
