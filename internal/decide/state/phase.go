package state

import "slices"

// Status is where a job stands.
//
//	Held ──> Queued ──> Running ──> Succeeded | Failed | Stopped | Cancelled
//	          ^  │ ^       │  │             │
//	          │  │ └───────┘  │             └──> Queued: it is resumed
//	          │  v            v
//	          └─ Paused <─────┘
//
// It is Running from the request for a machine on, and Queued again where its machine
// was lost or given back.
type Status string

// The states of a job.
const (
	Held      Status = "held" // it waits for approval, and no money is set aside for it
	Queued    Status = "queued"
	Running   Status = "running"
	Paused    Status = "paused" // by the user: it holds no machine and no place in the queue
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Stopped   Status = "stopped"   // by the user or a guardrail; its checkpoint is kept
	Cancelled Status = "cancelled" // by the user, at once
)

// Statuses are all of them.
var Statuses = []Status{Held, Queued, Running, Paused, Succeeded, Failed, Stopped, Cancelled}

// Over reports whether the job has ended. One that did not succeed can be resumed.
func (s Status) Over() bool { return s == Succeeded || s == Failed || s == Stopped || s == Cancelled }

// AllocationPhase is where a request for machines stands.
//
//	Pending ──> Granted
//	   │ │
//	   │ └────> Refused | Expired
//	   └──> Cancelling ──> Cancelled
//
// What is granted while it is being cancelled was granted all the same.
type AllocationPhase string

// The states of an allocation.
const (
	Pending    AllocationPhase = "pending"
	Granted    AllocationPhase = "granted"
	Refused    AllocationPhase = "refused"
	Expired    AllocationPhase = "expired"
	Cancelling AllocationPhase = "cancelling" // we ask for its end
	CancelDone AllocationPhase = "cancelled"
)

// TaskPhase is where one rank of an attempt stands.
//
//	Assigned ──> Starting ──> Working ──> Ended
//
// Each may fall to Ended at once: its machine was lost, or the program never began.
type TaskPhase string

// The states of a task.
const (
	Assigned    TaskPhase = "assigned" // its machine boots
	Starting    TaskPhase = "starting" // the agent has it
	TaskRunning TaskPhase = "running"  // the program runs
	Ended       TaskPhase = "ended"
)

// AttemptPhase is where an attempt stands: it is over when its last task has ended and
// nothing of it is billed any more.
type AttemptPhase string

// The states of an attempt.
const (
	Underway AttemptPhase = "running"
	Over     AttemptPhase = "over"
)

// InstancePhase is where a rented machine stands.
//
//	Provisioning ──> Ready ──> Draining ──> Terminating ──> Gone
//	                   ^          │
//	                   └──────────┘
//
// One whose task is over may stay Ready for the next. Terminating is wanted by us; each may
// fall to Gone at once, or to Missing where its provider lists it no more: then its true end
// may come yet, or it is shown again and given back.
type InstancePhase string

// The states of an instance.
const (
	Provisioning InstancePhase = "provisioning" // billed, and its agent has not spoken
	Ready        InstancePhase = "ready"
	Draining     InstancePhase = "draining" // its program was asked to save and end
	Terminating  InstancePhase = "terminating"
	Missing      InstancePhase = "missing"
	Gone         InstancePhase = "ended"
)

// Next are the moves that each state machine allows; TestOnlyTheseMovesAreLegal holds
// Apply to them.
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
		Draining:     {Ready, Terminating, Missing, Gone}, // ready: its task is over, and it waits for the next
		Terminating:  {Missing, Gone},
		Missing:      {Terminating, Gone},
	}
)

// move is the new state; a move that the table does not have is a bug of a rule.
func move[P ~string](next map[P][]P, what, name string, from *P, to P) {
	if !slices.Contains(next[*from], to) {
		panic("state: " + what + " " + name + " cannot go from " + string(*from) + " to " + string(to))
	}
	*from = to
}

// Stage is where a job's newest machine stands, as it is shown: an allocation, an
// attempt's task and its instance in one word.
type Stage string

// The stages, in order.
const (
	StageRequested    Stage = "requested"
	StageProvisioning Stage = "provisioning"
	StageRunning      Stage = "running"
	StageTerminating  Stage = "terminating"
	StageTerminated   Stage = "terminated"
)

// Stage is that of the attempt.
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
