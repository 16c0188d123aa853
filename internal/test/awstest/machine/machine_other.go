//go:build !linux

package machine

import (
	"errors"
	"time"
)

// Host is this computer, on which no machine runs.
type Host struct{}

// Machine is a machine that does not run.
type Machine struct{}

// Open refuses machines.
func Open(Options) (*Host, error) {
	return nil, errors.New("instances are processes on Linux only: leave Options.Run out")
}

// Close does nothing.
func (h *Host) Close() {}

// Boot returns a machine that does not run.
func (h *Host) Boot(Guest) *Machine { return &Machine{} }

// Output returns nothing.
func (m *Machine) Output() []byte { return nil }

// Over reports that no process runs.
func (m *Machine) Over() bool { return true }

// Warn does nothing.
func (m *Machine) Warn(int, time.Time) {}

// Stop does nothing.
func (m *Machine) Stop(bool) {}
