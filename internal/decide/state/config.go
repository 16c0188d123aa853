package state

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Config is what the core works by. It enters as an event, so that a log
// replays the same whatever a later release would set. Spans go by the market's clock.
type Config struct {
	MaxRunning int            `json:"max_running"`   // jobs that may hold a machine at once
	Detect     time.Duration  `json:"detect_ns"`     // how long a loss can go unnoticed
	BootLimit  time.Duration  `json:"boot_limit_ns"` // from launch to a running program, then the machine is given up
	CoolOff    time.Duration  `json:"cool_off_ns"`   // after a first refusal; each further one doubles it
	Patience   time.Duration  `json:"patience_ns"`   // beyond the grace of a drain, then the machine is given back
	Currency   money.Currency `json:"currency"`      // quotes in another are not bought
	// Consistency is how long a provider's list may lack a machine that runs.
	Consistency time.Duration `json:"consistency_ns,omitempty"`
	// GrantWait is the longest that a provider takes to grant what it has; a deadline's
	// guard counts it.
	GrantWait time.Duration `json:"grant_wait_ns,omitempty"`
	// Idle is the longest that a machine may wait for the next job; 0: none waits.
	Idle time.Duration `json:"idle_ns,omitempty"`
	// Seats is how many tasks a machine may have at once; 0: one.
	Seats int `json:"seats,omitempty"`
	// Providers are those whose machines may be asked for, each with its timing; nil: all
	// that sell, with the timing above. What one sold that is named no more cannot be had.
	Providers map[string]Timing `json:"providers,omitempty"`

	// Speed is how much market time passes in a time on the wall, which people's deadlines
	// are given in; 0: as much.
	Speed float64 `json:"speed,omitempty"`

	// ArchiveAfter is how long after its end a job that is over, and all of whose machines are
	// billed, stays in memory; 0: for ever. ArchiveUnbilled is the same of one whose bills may come.
	ArchiveAfter    time.Duration `json:"archive_after_ns,omitempty"`
	ArchiveUnbilled time.Duration `json:"archive_unbilled_ns,omitempty"`

	Policy policy.Rule   `json:"policy,omitempty"`   // "": the default
	Spare  time.Duration `json:"spare_ns,omitempty"` // that the guard keeps back besides
	// the longest time between two polls of the market; 0: whenever a job asks
	Poll    time.Duration `json:"look_ns,omitempty"`
	Reserve int           `json:"reserve,omitempty"` // restarts that the guard keeps back besides the one of a move
}

// Timing is how a provider behaves in time; its fields are those of Config.
type Timing struct {
	Detect      time.Duration `json:"detect_ns"`
	BootLimit   time.Duration `json:"boot_limit_ns"`
	Consistency time.Duration `json:"consistency_ns,omitempty"`
	GrantWait   time.Duration `json:"grant_wait_ns,omitempty"`
	Idle        time.Duration `json:"idle_ns,omitempty"`
	Seats       int           `json:"seats,omitempty"`
}

// Timing is that of a provider which is not named.
func (c *Config) Timing() Timing {
	return Timing{Detect: c.Detect, BootLimit: c.BootLimit, Consistency: c.Consistency, GrantWait: c.GrantWait,
		Idle: c.Idle, Seats: c.Seats}
}

// TimingOf is the timing of a provider.
func (c *Config) TimingOf(provider string) Timing {
	if t, ok := c.Providers[provider]; ok {
		return t
	}
	return c.Timing()
}

// Sells reports whether machines of the provider may be asked for.
func (c *Config) Sells(provider string) bool {
	_, named := c.Providers[provider]
	return named || c.Providers == nil
}

// DefaultConfig suits one user on one machine on a market in real time.
func DefaultConfig() Config {
	return Config{
		MaxRunning: 4, Detect: 30 * time.Second, BootLimit: 10 * time.Minute,
		CoolOff: time.Minute, Patience: 2 * time.Minute, Currency: money.USD, Reserve: 1,
	}
}

// Stretch turns a span of the wall into the market's that passes meanwhile, ten years at most.
func (c *Config) Stretch(d time.Duration) time.Duration {
	if c.Speed == 0 {
		return d
	}
	return min(quantity.Scale(d, c.Speed), quantity.Decade)
}
