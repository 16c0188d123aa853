// Package pack has the values of a decision about which tasks share which machines: a View goes in, and a Plan of
// launches, placements, moves and releases comes out. Package scheduler decides; equal views give equal plans.
package pack

import "scrimp/internal/lib/money"

// Resources of a Size, by index. A Size counts thousandths of an accelerator, of a vCPU or of a gigabyte.
const (
	GPU = iota
	CPU
	Memory
	Resources
)

// Milli is the number of units of a Size in one accelerator, one vCPU or one gigabyte.
const Milli = 1000

// Size is the demand of a task or the capacity of a machine, in thousandths, so that sums are exact.
type Size [Resources]int64

// Add returns the sum of s and t.
func (s Size) Add(t Size) Size {
	for i := range s {
		s[i] += t[i]
	}
	return s
}

// Sub returns s without t.
func (s Size) Sub(t Size) Size {
	for i := range s {
		s[i] -= t[i]
	}
	return s
}

// Fits reports whether s fits into room.
func (s Size) Fits(room Size) bool {
	return s[GPU] <= room[GPU] && s[CPU] <= room[CPU] && s[Memory] <= room[Memory]
}

// Type is a machine type for sale.
type Type struct {
	Name  string
	Size  Size
	Price money.Rate // per hour
	// Ready is the number of seconds from a launch until a task can start, and Boot the billed part of them.
	Ready, Boot int64
}

// Waiting is the place of a task without a machine.
const Waiting = -1

// Task is an unfinished task.
type Task struct {
	ID   int // increases with arrival
	Kind int // tasks of one kind slow their neighbours alike
	Size Size
	// Arrived is the second at which the task arrived.
	Arrived int64
	// Setup is the number of seconds from a launch to the first progress, and Leave that from the decision to move
	// to the new start.
	Setup, Leave int64
	// On is the index in View.Machines of the machine that the task is on or bound for, or Waiting.
	On int
	// Fixed is set while the task is being launched or moved, so that this round leaves it in place.
	Fixed bool
	// Busy is set if the task contends with its neighbours.
	Busy bool
	// Rate is the measured progress in seconds of work per second; 0 while the task makes none.
	Rate float64
	// Progress is the number of seconds of work done so far, which every scheduler can count.
	Progress float64
	// Oracle is set only for policies whose name says so: the remaining work and the deadline.
	Oracle Oracle
}

// Oracle holds facts that a scheduler has only if the user states them.
type Oracle struct {
	Known    bool
	Left     float64 // seconds of work
	Deadline int64   // second
}

// Machine is a machine that is provisioning or running.
type Machine struct {
	ID    int
	Type  int   // index in View.Types
	Tasks []int // indices in View.Tasks of the tasks on it or bound for it
}

// View is the input of a scheduler in one round. Policies do not change it.
type View struct {
	Now      int64 // seconds
	Period   int64 // seconds between rounds
	Types    []Type
	Tasks    []Task // by increasing ID
	Machines []Machine
}

// Move puts a task on a machine: a waiting task starts there, any other moves there.
type Move struct {
	Task int // index in View.Tasks
	To   int // index in View.Machines, or len(View.Machines)+i for Plan.Launches[i]
}

// Plan is the decision of a round. It is applied as a whole or not at all.
type Plan struct {
	Launches []int // types of the machines to launch
	Moves    []Move
	Releases []int // machines that take no new task and end when the last one has left
}

// Cheapest returns the cheapest type that fits a task of that size alone, the first of equals. ok is false if none
// does. The price of that type is the task's reservation price.
func Cheapest(types []Type, s Size) (int, bool) {
	best, ok := 0, false
	for i, t := range types {
		if s.Fits(t.Size) && (!ok || t.Price < types[best].Price) {
			best, ok = i, true
		}
	}
	return best, ok
}

// Hourly returns a price in dollars per hour, for estimates only.
func Hourly(p money.Rate) float64 { return p.Float() }
