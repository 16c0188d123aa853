package state

import (
	"encoding/json"
)

// Names of facts, as the log stores them.
func (JobHeld) Fact() string              { return "job_held" }
func (JobRefused) Fact() string           { return "job_refused" }
func (JobQueued) Fact() string            { return "job_queued" }
func (JobEnding) Fact() string            { return "job_ending" }
func (JobOver) Fact() string              { return "job_over" }
func (JobSuspended) Fact() string         { return "job_suspended" }
func (JobReopened) Fact() string          { return "job_reopened" }
func (JobChanged) Fact() string           { return "job_changed" }
func (JobPriced) Fact() string            { return "job_priced" }
func (Decided) Fact() string              { return "decided" }
func (ProbeAsked) Fact() string           { return "probe_asked" }
func (RungFailed) Fact() string           { return "rung_failed" }
func (AllocationRequested) Fact() string  { return "allocation_requested" }
func (AllocationQueued) Fact() string     { return "allocation_queued" }
func (AllocationGranted) Fact() string    { return "allocation_granted" }
func (AllocationCancelling) Fact() string { return "allocation_cancelling" }
func (AllocationClosed) Fact() string     { return "allocation_closed" }
func (AllocationReduced) Fact() string    { return "allocation_reduced" }
func (BackedOff) Fact() string            { return "backed_off" }
func (AttemptBegan) Fact() string         { return "attempt_began" }
func (TaskClaimed) Fact() string          { return "task_claimed" }
func (TaskStarted) Fact() string          { return "task_started" }
func (NoticeTaken) Fact() string          { return "notice_taken" }
func (DrainRequested) Fact() string       { return "drain_requested" }
func (TaskEnded) Fact() string            { return "task_ended" }
func (TimeSettled) Fact() string          { return "time_settled" }
func (TaskCut) Fact() string              { return "task_cut" }
func (StrayFound) Fact() string           { return "stray_found" }
func (InstanceReleased) Fact() string     { return "instance_released" }
func (InstanceRegistered) Fact() string   { return "instance_registered" }
func (InterruptionTaken) Fact() string    { return "interruption_taken" }
func (InstanceMissing) Fact() string      { return "instance_missing" }
func (InstanceListed) Fact() string       { return "instance_listed" }
func (InstanceClosed) Fact() string       { return "instance_closed" }
func (InstanceExtended) Fact() string     { return "instance_extended" }
func (InstanceLeft) Fact() string         { return "instance_left" }
func (BillTaken) Fact() string            { return "bill_taken" }
func (InstanceOwned) Fact() string        { return "instance_owned" }
func (SeatLeft) Fact() string             { return "seat_left" }
func (SeatReleased) Fact() string         { return "seat_released" }
func (InstanceCleaned) Fact() string      { return "instance_cleaned" }
func (BillSplit) Fact() string            { return "bill_split" }
func (ConfigSet) Fact() string            { return "config_set" }
func (RulesSet) Fact() string             { return "rules_set" }
func (LimitReached) Fact() string         { return "limit_reached" }
func (IncarnationSet) Fact() string       { return "incarnation_set" }
func (ReconciliationBooked) Fact() string { return "reconciliation_booked" }
func (ReserveSettled) Fact() string       { return "reserve_settled" }

// factKinds maps the name of a fact to the function that decodes it.
var factKinds = map[string]func(json.RawMessage) (Fact, error){}

func reads[F Fact]() {
	var zero F
	factKinds[zero.Fact()] = func(b json.RawMessage) (Fact, error) {
		var f F
		err := decode(b, &f)
		return f, err
	}
}

func init() {
	reads[JobHeld]()
	reads[JobRefused]()
	reads[JobQueued]()
	reads[JobEnding]()
	reads[JobOver]()
	reads[JobSuspended]()
	reads[JobReopened]()
	reads[JobChanged]()
	reads[JobPriced]()
	reads[Decided]()
	reads[ProbeAsked]()
	reads[RungFailed]()
	reads[AllocationRequested]()
	reads[AllocationQueued]()
	reads[AllocationGranted]()
	reads[AllocationCancelling]()
	reads[AllocationClosed]()
	reads[AllocationReduced]()
	reads[BackedOff]()
	reads[AttemptBegan]()
	reads[TaskClaimed]()
	reads[TaskStarted]()
	reads[NoticeTaken]()
	reads[DrainRequested]()
	reads[TaskEnded]()
	reads[TimeSettled]()
	reads[TaskCut]()
	reads[StrayFound]()
	reads[InstanceReleased]()
	reads[InstanceRegistered]()
	reads[InterruptionTaken]()
	reads[InstanceMissing]()
	reads[InstanceListed]()
	reads[InstanceClosed]()
	reads[InstanceExtended]()
	reads[InstanceLeft]()
	reads[BillTaken]()
	reads[InstanceOwned]()
	reads[SeatLeft]()
	reads[SeatReleased]()
	reads[InstanceCleaned]()
	reads[BillSplit]()
	reads[ConfigSet]()
	reads[RulesSet]()
	reads[LimitReached]()
	reads[IncarnationSet]()
	reads[ReconciliationBooked]()
	reads[ReserveSettled]()
}
