package core

import (
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/members"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/step"
)

// Exported types of the parts.
type (
	Account       = accounting.Account
	Action        = step.Action
	BuildTable    = step.BuildTable
	Cancel        = step.Cancel
	Drain         = step.Drain
	Faults        = step.Faults
	Launch        = step.Launch
	Notify        = step.Notify
	Outcome       = step.Outcome
	Probe         = step.Probe
	Propose       = step.Propose
	Refusal       = step.Refusal
	RefusalReason = step.RefusalReason
	RunRound      = step.RunRound
	Terminate     = step.Terminate
	Unused        = placement.Unused
)

// Reasons why jobs and groups are refused, wait or end.
const (
	AllOver           = step.AllOver
	ApprovalExpired   = step.ApprovalExpired
	BudgetSpent       = step.BudgetSpent
	ClosedByUser      = step.ClosedByUser
	DependencyFailed  = step.DependencyFailed
	GroupFull         = step.GroupFull
	HoursSpent        = step.HoursSpent
	LimitReached      = step.LimitReached
	LimitSpent        = step.LimitSpent
	MadeElsewhere     = members.MadeElsewhere
	DeployedElsewhere = members.DeployedElsewhere
	NeedsApproval     = step.NeedsApproval
	NeverApproved     = step.NeverApproved
	NoDependency      = step.NoDependency
	NoGroup           = step.NoGroup
	ScheduleOpen      = step.ScheduleOpen
	NoMoreRuns        = members.NoMoreRuns
	PausedBySearch    = step.PausedBySearch
	Plateau           = step.Plateau
	PricedLater       = accounting.PricedLater
	Rejected          = step.Rejected
	ResumedFor        = step.ResumedFor
	SetAside          = lifecycle.SetAside
	TagMissing        = step.TagMissing
	TimeSpent         = step.TimeSpent
	TrainedInFull     = step.TrainedInFull
)

// Exported functions and errors of the parts.
var (
	Booked   = lifecycle.Booked
	Concerns = step.Concerns
	ErrStale = admission.ErrStale
	NotifyOf = step.NotifyOf
	ToldOf   = step.ToldOf
	Weighed  = admission.Weighed
)
