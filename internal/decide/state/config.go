package state

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Config has the settings of the core. It enters as an event, so that a log replays the same whatever a later
// release would set. Durations are market time.
type Config struct {
	MaxRunning int           `json:"max_running"` // jobs that may hold a machine at once
	Detect     time.Duration `json:"detect_ns"`   // how long a loss can go unnoticed
	// limit from launch to a running program; then the machine is given up
	BootLimit time.Duration  `json:"boot_limit_ns"`
	CoolOff   time.Duration  `json:"cool_off_ns"` // after a first refusal; each further refusal doubles it
	Patience  time.Duration  `json:"patience_ns"` // beyond the grace of a drain; then the machine is terminated
	Currency  money.Currency `json:"currency"`    // quotes in another currency are not bought
	// Consistency is how long a provider's list may lack a running machine.
	Consistency time.Duration `json:"consistency_ns,omitempty"`
	// GrantWait is the longest time a provider takes to grant available capacity. The deadline guard allows for it.
	GrantWait time.Duration `json:"grant_wait_ns,omitempty"`
	// Idle is the longest time a machine may wait for the next job; 0: none waits.
	Idle time.Duration `json:"idle_ns,omitempty"`
	// Seats is the number of tasks a machine may have at once; 0: one.
	Seats int `json:"seats,omitempty"`
	// PreemptAfter is how long a program runs before a critical job may preempt it; 0: DefaultPreemptAfter.
	PreemptAfter time.Duration `json:"preempt_after_ns,omitempty"`
	// Providers are those that may be rented from, each with its timing. nil means all providers, with the timing
	// above. Offers of providers that are no longer named are unavailable.
	Providers map[string]Timing `json:"providers,omitempty"`

	// Speed is the market time that passes in a unit of real time, which users give deadlines in; 0: the same.
	Speed float64 `json:"speed,omitempty"`

	// ArchiveAfter is how long a job stays in memory after its end once all its machines are billed; 0: forever.
	// ArchiveUnbilled is the same for a job that may still receive bills.
	ArchiveAfter    time.Duration `json:"archive_after_ns,omitempty"`
	ArchiveUnbilled time.Duration `json:"archive_unbilled_ns,omitempty"`

	Policy policy.Rule   `json:"policy,omitempty"`   // empty: the default
	Spare  time.Duration `json:"spare_ns,omitempty"` // extra time that the guard keeps back
	// Poll is the longest time between two polls of the market; 0: only when a job needs one.
	Poll    time.Duration `json:"look_ns,omitempty"`
	Reserve int           `json:"reserve,omitempty"` // restarts that the guard keeps back besides the one of a move
}

// Timing is the timing of a provider. Its fields are those of Config.
type Timing struct {
	Detect      time.Duration `json:"detect_ns"`
	BootLimit   time.Duration `json:"boot_limit_ns"`
	Consistency time.Duration `json:"consistency_ns,omitempty"`
	GrantWait   time.Duration `json:"grant_wait_ns,omitempty"`
	Idle        time.Duration `json:"idle_ns,omitempty"`
	Seats       int           `json:"seats,omitempty"`
}

// Timing returns the timing of a provider that is not named.
func (c *Config) Timing() Timing {
	return Timing{Detect: c.Detect, BootLimit: c.BootLimit, Consistency: c.Consistency, GrantWait: c.GrantWait,
		Idle: c.Idle, Seats: c.Seats}
}

// TimingOf returns the timing of a provider.
func (c *Config) TimingOf(provider string) Timing {
	if t, ok := c.Providers[provider]; ok {
		return t
	}
	return c.Timing()
}

// Sells reports whether machines of the provider may be requested.
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

// Stretch converts real time to market time, ten years at most.
func (c *Config) Stretch(d time.Duration) time.Duration {
	if c.Speed == 0 {
		return d
	}
	return min(quantity.Scale(d, c.Speed), quantity.Decade)
}
