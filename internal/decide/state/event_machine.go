package state

import "time"

// MachineRegistered: the agent of an instance registers its key and describes its machine.
type MachineRegistered struct {
	Instance   string    `json:"instance"`
	Allocation string    `json:"allocation"` // allocation that its bootstrap token was made for
	Key        string    `json:"key"`        // Ed25519 public key, base64
	Version    string    `json:"version"`
	Wire       int       `json:"wire"`
	Boot       time.Time `json:"boot"`              // start of the agent, by its own clock
	Address    string    `json:"address,omitempty"` // address that other machines reach it at
	CPUs       int       `json:"cpus"`
	Memory     int64     `json:"memory"` // bytes; 0: unknown
	Root       bool      `json:"root,omitempty"`
	Isolated   bool      `json:"isolated,omitempty"` // its programs run as another user
}

// MachineCleaned: the agent of an instance has shown that no task runs there and that earlier tasks left nothing
// behind.
type MachineCleaned struct {
	Instance string `json:"instance"`
}

// MachineReleased: a user releases an idle machine.
type MachineReleased struct {
	Instance string `json:"instance"`
}

// Kind implements Body.
func (MachineReleased) Kind() string { return "machine_released" }

// TaskGone: the agent has ended a task that had to leave its seat, and the task left nothing behind.
type TaskGone struct {
	Attempt string `json:"attempt"`
	Node    int    `json:"node,omitempty"` // rank that the machine had
}

// Kind implements Body.
func (TaskGone) Kind() string { return "task_gone" }

// Kind implements Body.
func (MachineCleaned) Kind() string { return "machine_cleaned" }

// Kind implements Body.
func (MachineRegistered) Kind() string { return "machine_registered" }
