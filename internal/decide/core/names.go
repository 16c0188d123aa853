package core

import (
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// The machine uses the events, jobs and attempts of package state. They are aliased here, so that drivers of the
// core import only the core.
type (
	Event  = state.Event
	Body   = state.Body
	Terms  = state.Terms
	Config = state.Config
	Fact   = state.Fact

	Job        = state.Job
	Attempt    = state.Attempt
	Task       = state.Task
	Allocation = state.Allocation
	Instance   = state.Instance
	Approval   = state.Approval
	State      = state.Status
	TaskPhase  = state.TaskPhase

	JobSubmitted          = state.JobSubmitted
	JobReviewed           = state.JobReviewed
	JobEnded              = state.JobEnded
	JobPaused             = state.JobPaused
	JobResumed            = state.JobResumed
	JobUpdated            = state.JobUpdated
	Changes               = state.Changes
	Source                = state.Source
	MarketSeen            = state.MarketSeen
	Timing                = state.Timing
	Audited               = state.Audited
	IdentityChanged       = state.IdentityChanged
	BudgetsSet            = state.BudgetsSet
	Tick                  = state.Tick
	GroupOpened           = state.GroupOpened
	GroupReviewed         = state.GroupReviewed
	GroupClosed           = state.GroupClosed
	Proposed              = state.Proposed
	GroupTerms            = state.GroupTerms
	Spawn                 = state.Spawn
	Configured            = state.Configured
	LaunchDone            = state.LaunchDone
	LaunchPending         = state.LaunchPending
	LaunchRefused         = state.LaunchRefused
	LaunchExpired         = state.LaunchExpired
	LaunchCancelled       = state.LaunchCancelled
	InstanceEnded         = state.InstanceEnded
	InterruptionAnnounced = state.InterruptionAnnounced
	BillReceived          = state.BillReceived
	BillReconciled        = state.BillReconciled
	InventorySeen         = state.InventorySeen
	IncarnationBegun      = state.IncarnationBegun
	OwnershipDecided      = state.OwnershipDecided
	TableReady            = state.TableReady
	RoundProposed         = state.RoundProposed
	Rehydrated            = state.Rehydrated
	RehydratedGroup       = state.RehydratedGroup
	MachineRegistered     = state.MachineRegistered
	MachineCleaned        = state.MachineCleaned
	MachineReleased       = state.MachineReleased
	TaskGone              = state.TaskGone
	AgentClaimed          = state.AgentClaimed
	AttemptStarted        = state.AttemptStarted
	DataRead              = state.DataRead
	Progressed            = state.Progressed
	CheckpointSaved       = state.CheckpointSaved
	CheckpointFailed      = state.CheckpointFailed
	CheckpointRefused     = state.CheckpointRefused
	NoticeGiven           = state.NoticeGiven
	UsageSeen             = state.UsageSeen
	AttemptEnded          = state.AttemptEnded
	AgentSilent           = state.AgentSilent
	BillLine              = state.BillLine
	ReconciledLine        = state.ReconciledLine
	Rented                = state.Rented

	History      = state.History
	HistoryOwner = state.HistoryOwner
)

// States of a job, and of a task.
const (
	Held      = state.Held
	Queued    = state.Queued
	Running   = state.Running
	Paused    = state.Paused
	Succeeded = state.Succeeded
	Failed    = state.Failed
	Stopped   = state.Stopped
	Cancelled = state.Cancelled

	Assigned    = state.Assigned
	Starting    = state.Starting
	TaskRunning = state.TaskRunning
	Ended       = state.Ended

	Owner            = state.Owner
	Schema           = state.Schema
	SnapshotVersion  = state.SnapshotVersion
	WaitsForApproval = state.WaitsForApproval
)

// Limits of a job that can be used up, as Exhausted names them.
const (
	BudgetGone = plan.BudgetGone
	TimeGone   = plan.TimeGone
	HoursGone  = plan.HoursGone
)

// States lists all states of a job, and Kinds all kinds of events.
var (
	States        = state.Statuses
	Kinds         = state.Kinds
	DefaultConfig = state.DefaultConfig
	Cost          = state.CostOf
	OwnerOf       = state.OwnerOf
	HistoryOf     = state.HistoryOf
)
