package state

// Kinds of events, as the log stores them.
func (JobSubmitted) Kind() string          { return "job_submitted" }
func (JobReviewed) Kind() string           { return "job_reviewed" }
func (JobEnded) Kind() string              { return "job_ended" }
func (JobPaused) Kind() string             { return "job_paused" }
func (JobResumed) Kind() string            { return "job_resumed" }
func (JobUpdated) Kind() string            { return "job_updated" }
func (MarketSeen) Kind() string            { return "market_seen" }
func (Audited) Kind() string               { return "audited" }
func (IdentityChanged) Kind() string       { return "identity_changed" }
func (BudgetsSet) Kind() string            { return "budgets_set" }
func (Tick) Kind() string                  { return "tick" }
func (Configured) Kind() string            { return "configured" }
func (LaunchDone) Kind() string            { return "launch_done" }
func (LaunchRefused) Kind() string         { return "launch_refused" }
func (LaunchPending) Kind() string         { return "launch_pending" }
func (LaunchExpired) Kind() string         { return "launch_expired" }
func (LaunchCancelled) Kind() string       { return "launch_cancelled" }
func (BillReceived) Kind() string          { return "bill_received" }
func (BillReconciled) Kind() string        { return "bill_reconciled" }
func (IncarnationBegun) Kind() string      { return "incarnation_begun" }
func (OwnershipDecided) Kind() string      { return "ownership_decided" }
func (TableReady) Kind() string            { return "table_ready" }
func (InstanceEnded) Kind() string         { return "instance_ended" }
func (InterruptionAnnounced) Kind() string { return "interruption_announced" }
func (InventorySeen) Kind() string         { return "inventory_seen" }
func (AgentClaimed) Kind() string          { return "agent_claimed" }
func (AttemptStarted) Kind() string        { return "attempt_started" }
func (Progressed) Kind() string            { return "progressed" }
func (CheckpointSaved) Kind() string       { return "checkpoint_saved" }
func (CheckpointFailed) Kind() string      { return "checkpoint_failed" }
func (CheckpointRefused) Kind() string     { return "checkpoint_refused" }
func (NoticeGiven) Kind() string           { return "notice_given" }
func (UsageSeen) Kind() string             { return "usage_seen" }
func (AttemptEnded) Kind() string          { return "attempt_ended" }
func (AgentSilent) Kind() string           { return "agent_silent" }

// Kinds lists every kind of event, for tests that measure coverage.
var Kinds = []string{
	"job_submitted", "job_ended", "market_seen", "tick", "launch_done", "launch_refused", "instance_ended",
	"inventory_seen", "agent_claimed", "attempt_started", "progressed", "checkpoint_saved", "checkpoint_refused",
	"notice_given", "usage_seen", "attempt_ended", "agent_silent", "configured", "job_reviewed", "budgets_set",
	"launch_pending", "launch_expired", "launch_cancelled", "bill_received", "incarnation_begun", "ownership_decided",
	"table_ready", "bill_reconciled", "job_paused", "job_resumed", "job_updated", "group_opened", "group_reviewed",
	"group_closed", "spawn", "machine_registered", "machine_cleaned", "task_gone", "rehydrated", "rehydrated_group",
	"round_proposed", "interruption_announced", "checkpoint_failed", "proposed", "machine_released",
}
