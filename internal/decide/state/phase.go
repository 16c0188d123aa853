package state

import "slices"

// Status is the state of a job.
//
//	Held ──> Queued ──> Running ──> Succeeded | Failed | Stopped | Cancelled
//	         ^  │ ^       │  │             │
//	         │  │ └───────┘  │             └──> Queued: resumed
//	         │  v            v
//	         └─ Paused <─────┘
//
// A job is Running from its request for a machine on. It returns to Queued if its machine is lost or terminated.
type Status string

// States of a job.
const (
	Held      Status = "held" // waits for approval; the limits hold no money for it
	Queued    Status = "queued"
	Running   Status = "running"
	Paused    Status = "paused" // by the user; holds no machine and no place in the queue
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Stopped   Status = "stopped"   // by the user or a guardrail; its checkpoint is kept
	Cancelled Status = "cancelled" // by the user, at once
)

// Statuses lists all states of a job.
var Statuses = []Status{Held, Queued, Running, Paused, Succeeded, Failed, Stopped, Cancelled}

// Over reports whether the job has ended. A job that did not succeed can be resumed.
func (s Status) Over() bool { return s == Succeeded || s == Failed || s == Stopped || s == Cancelled }

// AllocationPhase is the state of a request for machines.
//
//	Pending ──> Granted
//	  │ │
//	  │ └────> Refused | Expired
//	  └──> Cancelling ──> Cancelled
//
// The provider may still grant a request while it is being cancelled.
type AllocationPhase string

// States of an allocation.
const (
	Pending    AllocationPhase = "pending"
	Granted    AllocationPhase = "granted"
	Refused    AllocationPhase = "refused"
	Expired    AllocationPhase = "expired"
	Cancelling AllocationPhase = "cancelling" // scrimp has asked the provider to cancel it
	CancelDone AllocationPhase = "cancelled"
)

// TaskPhase is the state of one rank of an attempt.
//
//	Assigned ──> Starting ──> Running ──> Ended
//
// Each state may go to Ended at once: the machine is lost, or the program never starts.
type TaskPhase string

// States of a task.
const (
	Assigned    TaskPhase = "assigned" // its machine boots
	Starting    TaskPhase = "starting" // the agent has received it
	TaskRunning TaskPhase = "running"  // the program runs
	Ended       TaskPhase = "ended"
)

// AttemptPhase is the state of an attempt. It is over once its last task has ended and none of its machines is
// billed.
type AttemptPhase string

// States of an attempt.
const (
	Underway AttemptPhase = "running"
	Over     AttemptPhase = "over"
)

// InstancePhase is the state of a rented machine.
//
//	Provisioning ──> Ready ──> Draining ──> Terminating ──> Gone
//	                  ^          │
//	                  └──────────┘
//
// A machine whose task has ended may stay Ready for the next one. Terminating means that scrimp wants it to end.
// Each state may go to Gone at once, or to Missing if the provider no longer lists the machine: then its actual end
// may still arrive, or it reappears and scrimp terminates it.
type InstancePhase string

// States of an instance.
const (
	Provisioning InstancePhase = "provisioning" // billed; its agent has not reported yet
	Ready        InstancePhase = "ready"
	Draining     InstancePhase = "draining" // its program must save and end
	Terminating  InstancePhase = "terminating"
	Missing      InstancePhase = "missing"
	Gone         InstancePhase = "ended"
)

// Next are the transitions that each state machine allows; TestMove_AllowsOnlyTableTransitions holds Apply to them.
var (
	NextStatus = map[Status][]Status{
		"":      {Queued, Held},
		Held:    {Held, Queued, Cancelled, Stopped},
		Queued:  {Running, Paused, Succeeded, Failed, Stopped, Cancelled, Queued},
		Running: {Queued, Paused, Succeeded, Failed, Stopped, Cancelled},
		Paused:  {Queued, Succeeded, Stopped, Cancelled},
		Failed:  {Queued, Held}, Stopped: {Queued, Held}, Cancelled: {Queued, Held}, // resumed
	}
	NextAllocation = map[AllocationPhase][]AllocationPhase{
		"":         {Pending},
		Pending:    {Granted, Refused, Expired, Cancelling},
		Cancelling: {Granted, Refused, Expired, CancelDone},
	}
	NextTask = map[TaskPhase][]TaskPhase{
		"":          {Assigned},
		Assigned:    {Starting, TaskRunning, Ended},
		Starting:    {TaskRunning, Ended},
		TaskRunning: {Ended},
	}
	NextAttempt  = map[AttemptPhase][]AttemptPhase{"": {Underway}, Underway: {Over}}
	NextInstance = map[InstancePhase][]InstancePhase{
		"":           {Provisioning},
		Provisioning: {Ready, Terminating, Missing, Gone},
		Ready:        {Draining, Terminating, Missing, Gone},
		Draining:     {Ready, Terminating, Missing, Gone}, // Ready: its task has ended, and it waits for the next
		Terminating:  {Missing, Gone},
		Missing:      {Terminating, Gone},
	}
)

// move changes the state. A transition that the table lacks is a bug in a rule.
func move[P ~string](next map[P][]P, what, name string, from *P, to P) {
	if !slices.Contains(next[*from], to) {
		panic("state: " + what + " " + name + " cannot go from " + string(*from) + " to " + string(to))
	}
	*from = to
}

// Stage is the state of a job's newest machine as users see it. It combines the allocation, the attempt's tasks and
// the instance.
type Stage string

// Stages, in order.
const (
	StageRequested    Stage = "requested"
	StageProvisioning Stage = "provisioning"
	StageRunning      Stage = "running"
	StageTerminating  Stage = "terminating"
	StageTerminated   Stage = "terminated"
)

// Stage returns the stage of the attempt.
func (a *Attempt) Stage() Stage {
	switch t := a.Task(); {
	case !a.Live():
		return StageTerminated
	case t == Ended:
		return StageTerminating
	case t == TaskRunning:
		return StageRunning
	}
	return StageProvisioning
}
