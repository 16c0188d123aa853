package state

import "time"

// MachineRegistered: the agent of an instance has made its key, and says what its machine is.
type MachineRegistered struct {
	Instance   string    `json:"instance"`
	Allocation string    `json:"allocation"` // that its bootstrap token was made for
	Key        string    `json:"key"`        // Ed25519, public, in base64
	Version    string    `json:"version"`
	Wire       int       `json:"wire"`
	Boot       time.Time `json:"boot"`              // when the agent began, by its own clock
	Address    string    `json:"address,omitempty"` // by which other machines reach it
	CPUs       int       `json:"cpus"`
	Memory     int64     `json:"memory"` // bytes; 0: unknown
	Root       bool      `json:"root,omitempty"`
	Isolated   bool      `json:"isolated,omitempty"` // its programs run as another user
}

// MachineCleaned: the agent of an instance shows that no task runs there and nothing of an
// earlier one is left.
type MachineCleaned struct {
	Instance string `json:"instance"`
}

// MachineReleased: a user gives a machine back that has no task.
type MachineReleased struct {
	Instance string `json:"instance"`
}

// Kind implements Body.
func (MachineReleased) Kind() string { return "machine_released" }

// TaskGone: the agent of a machine runs the task of an attempt no more, whose seat was taken from
// it, and nothing of it is left.
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
