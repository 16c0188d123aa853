package client

import (
	"time"

	"scrimp/money"
)

// QueueShares says how teams share the queue.
type QueueShares struct {
	// Shared is set once an admin has set the weight of a team. Until then, the queue does not regard teams.
	Shared   bool           `json:"shared"`
	HalfLife time.Duration  `json:"half_life_ns"` // market time in which what a team spent counts half
	Teams    []QueueShare   `json:"teams"`        // those that the caller sees, by name
	Currency money.Currency `json:"currency"`
}

// QueueShare is the share of one team.
type QueueShare struct {
	Team   string  `json:"team"`
	Weight float64 `json:"weight"`
	Set    bool    `json:"set"`    // somebody has set the weight; otherwise it is 1
	Wanted float64 `json:"wanted"` // its part of the weights of all teams that are set, run or wait; 0 to 1
	Had    float64 `json:"had"`    // its part of what all teams have spent and hold; 0 to 1
	// Spent is what the team has spent since the queue is shared, where an older dollar counts less. Held is what its
	// machines are expected to cost beyond that.
	Spent   money.Amount `json:"spent"`
	Held    money.Amount `json:"held"`
	Burn    money.Rate   `json:"burn"`    // dollars per hour of what runs now
	Running int          `json:"running"` // jobs that hold or request a machine
	Waits   bool         `json:"waits"`   // at least one job waits
	// Guarantee is the dollars per hour that the team may have running before others get beyond their share; 0: none.
	Guarantee money.Rate `json:"guarantee"`
	// Borrow is the dollars per hour beyond its share at which no job of the team starts; null: no limit.
	Borrow *money.Rate `json:"borrow"`
	// Met and Missed count the team's jobs with a deadline that ended within the last half-life, since the queue is
	// shared. MissShare is the part of them that missed it, 0 to 1; null: none had a deadline.
	Met       int      `json:"deadlines_met"`
	Missed    int      `json:"deadlines_missed"`
	MissShare *float64 `json:"miss_share"`
	// Stopped is set while the team burns as much beyond its share as it may.
	Stopped bool `json:"stopped"`
}

// SetQueueShare changes the share of a team, the half-life of what teams spent, or both. What is missing stays as it
// is.
type SetQueueShare struct {
	Team      string      `json:"team,omitempty"`
	Weight    *float64    `json:"weight,omitempty"`    // of a new team: 1
	Guarantee *money.Rate `json:"guarantee,omitempty"` // 0: none
	Borrow    *money.Rate `json:"borrow,omitempty"`
	NoBorrow  bool        `json:"no_borrow_limit,omitempty"` // the team may borrow without a limit again
	// Off removes the setting of the team. Without any settings, the queue does not regard teams.
	Off      bool           `json:"off,omitempty"`
	HalfLife *time.Duration `json:"half_life_ns,omitempty"`
}
