package client

import (
	"time"

	"scrimp/money"
)

// Machine is a machine that may cost something now.
type Machine struct {
	Instance string       `json:"instance"`
	Engine   string       `json:"engine"` // that it is rented from
	Offer    string       `json:"offer"`
	Type     string       `json:"type,omitempty"`
	Zone     string       `json:"zone,omitempty"`
	Image    string       `json:"image,omitempty"` // that it runs; "": its engine's own
	State    MachineState `json:"state"`
	Job      string       `json:"job,omitempty"` // that runs on it; "": none does
	Attempt  string       `json:"attempt,omitempty"`
	Node     int          `json:"node,omitempty"`   // its rank, where the attempt has several machines
	Nodes    int          `json:"nodes,omitempty"`  // how many that has, or is to have; 0: one
	Beside   []string     `json:"beside,omitempty"` // jobs that have parts of it too
	User     string       `json:"user,omitempty"`   // whose job runs on it, or ran last: another of theirs may take it
	Team     string       `json:"team,omitempty"`   // that pays for it now
	Served   int          `json:"served"`           // jobs that it has served, with the one that runs

	Since       time.Time      `json:"since"` // it is billed
	SinceMarket time.Time      `json:"since_market"`
	Rate        money.Rate     `json:"rate"` // an hour of market time
	Cost        money.Amount   `json:"cost"` // so far, over all its jobs
	Currency    money.Currency `json:"currency"`
	// Of one that waits for a job: since when, until when it is kept at the latest, and what
	// waiting has cost.
	IdleSince       time.Time     `json:"idle_since,omitzero"`
	IdleUntil       time.Time     `json:"idle_until,omitzero"`
	IdleUntilMarket time.Time     `json:"idle_until_market,omitzero"`
	IdleCost        *money.Amount `json:"idle_cost,omitempty"`
}

// MachineState is what a machine is doing.
type MachineState string

// The states of a machine.
const (
	MachineStarting  MachineState = "provisioning"
	MachineRunning   MachineState = "running"
	MachineWaiting   MachineState = "waiting"   // for the other machines of its gang
	MachineSaving    MachineState = "saving"    // its program was asked to save and end
	MachineCleaning  MachineState = "cleaning"  // its task is over, and what that left is being removed
	MachineIdle      MachineState = "idle"      // it waits for the next job
	MachineReleasing MachineState = "releasing" // its end is asked for
	MachineMissing   MachineState = "missing"   // its engine lists it no more
)
