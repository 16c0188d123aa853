package client

import (
	"time"

	"scrimp/money"
)

// Machine is a machine that may cost money now.
type Machine struct {
	Instance string       `json:"instance"`
	Engine   string       `json:"engine"` // engine that it is rented from
	Offer    string       `json:"offer"`
	Type     string       `json:"type,omitempty"`
	Zone     string       `json:"zone,omitempty"`
	Image    string       `json:"image,omitempty"` // image that it runs; "": its engine's own
	State    MachineState `json:"state"`
	Job      string       `json:"job,omitempty"` // job that runs on it; "": none
	Attempt  string       `json:"attempt,omitempty"`
	Node     int          `json:"node,omitempty"`   // its rank, if the attempt has several machines
	Nodes    int          `json:"nodes,omitempty"`  // machines of the attempt, granted or not; 0: one
	Beside   []string     `json:"beside,omitempty"` // other jobs that share it
	User     string       `json:"user,omitempty"`   // user of its present or last job, whose next job may reuse it
	Team     string       `json:"team,omitempty"`   // team that pays for it now
	Served   int          `json:"served"`           // jobs that it has served, including present ones

	Since       time.Time      `json:"since"` // start of billing
	SinceMarket time.Time      `json:"since_market"`
	Rate        money.Rate     `json:"rate"` // per hour of market time
	Cost        money.Amount   `json:"cost"` // so far, over all its jobs
	Currency    money.Currency `json:"currency"`
	// Own is the part of Cost that jobs and idle time of the teams that you see have caused. null: you see all teams, or
	// it is unknown.
	Own *money.Amount `json:"own"`
	// For an idle machine: since when and until when at the latest it is kept, and the cost of its idle time.
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
	MachineWaiting   MachineState = "waiting"   // waiting for the other machines of its gang
	MachineSaving    MachineState = "saving"    // draining: its program was told to save and exit
	MachineCleaning  MachineState = "cleaning"  // its task has ended, and the agent removes its files
	MachineIdle      MachineState = "idle"      // waiting for the next job
	MachineReleasing MachineState = "releasing" // its termination was requested
	MachineMissing   MachineState = "missing"   // its engine no longer lists it
)
