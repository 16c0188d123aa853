package api

import "scrimp/client"

// The user's side:
//
//	GET  /v1/server                       -> Server
//	POST /v1/server/stop       StopServer -> 204
//	GET  /v1/machines                     -> []Machine
//	GET  /v1/instances/undecided          -> []Undecided
//	POST /v1/instances/decide  Ownership  -> []Undecided, those that were decided
//	GET  /v1/market                       -> Market
//	GET  /v1/history                      -> History
//	POST /v1/jobs              Submission -> Job
//	POST /v1/groups            Submission -> Group
//	GET  /v1/jobs                         -> []Job, newest last
//	GET  /v1/jobs/{id}                    -> Job
//	GET  /v1/jobs/{id}/watch              -> a Job a line, at each change, until it is closed
//	POST /v1/jobs/{id}/end     End        -> Job
//	PATCH /v1/jobs/{id}        Changes    -> Job
//	POST /v1/jobs/{id}/pause   Pause      -> Job
//	POST /v1/jobs/{id}/resume  Resume     -> Job
//	POST /v1/jobs/{id}/approve Review     -> Job
//	POST /v1/jobs/{id}/reject  Review     -> Job
//	GET  /v1/jobs/{id}/log?offset=N[&follow=1] -> text
//	GET  /v1/jobs/{id}/receipt            -> Receipt
//	GET  /v1/jobs/{id}/checkpoints        -> []Checkpoint, newest first
//	GET  /v1/jobs/{id}/checkpoints/{name} -> its files, as a tar file in gzip
//	DELETE /v1/jobs/{id}/checkpoints/{name} -> 204
//	GET  /v1/jobs/{id}/spec               -> the job file as it was validated
//	GET  /v1/jobs/{id}/explain            -> []Decision
//	POST /v1/jobs/{id}/exec    Exec       -> ExecResult
//	GET  /v1/models                       -> []ModelVersion
//	GET  /v1/models/{id}                  -> ModelVersion
//	GET  /v1/ledger/verify                -> Verified
//
// Package client declares the types, so that other programs can import them.
type (
	Dashboard       = client.Dashboard
	Submission      = client.Submission
	Group           = client.Group
	GroupReceipt    = client.GroupReceipt
	GroupMember     = client.GroupMember
	Indexes         = client.Indexes
	Study           = client.Study
	StudyFidelity   = client.StudyFidelity
	TrialPoint      = client.TrialPoint
	StudyParam      = client.StudyParam
	StudyPast       = client.StudyPast
	StudyPlateau    = client.StudyPlateau
	StudyProxy      = client.StudyProxy
	StudyProxyState = client.StudyProxyState
	GroupLimits     = client.GroupLimits
	StudyPoint      = client.StudyPoint
	StudyState      = client.StudyState
	StudyReceipt    = client.StudyReceipt
	StudyMark       = client.StudyMark
	StudyRung       = client.StudyRung
	StudyImportance = client.StudyImportance
	Trial           = client.Trial
	Pipeline        = client.Pipeline
	PipelineState   = client.PipelineState
	Schedule        = client.Schedule
	ScheduleState   = client.ScheduleState
	ScheduleRun     = client.ScheduleRun
	ScheduleCheck   = client.ScheduleCheck
	ScheduleWeek    = client.ScheduleWeek

	ScheduleConditions = client.ScheduleConditions
	ScheduleData       = client.ScheduleData
	SchedulePrice      = client.SchedulePrice
	SchedulePays       = client.SchedulePays
	ScheduleDataCheck  = client.ScheduleDataCheck
	SchedulePriceCheck = client.SchedulePriceCheck
	SchedulePaysCheck  = client.SchedulePaysCheck

	StageState     = client.StageState
	PipelineDrift  = client.PipelineDrift
	PipelineSample = client.PipelineSample
	PipelineWarm   = client.PipelineWarm
	WarmStart      = client.WarmStart
	DriftVerdict   = client.DriftVerdict
	ColumnDrift    = client.ColumnDrift
	StageContent   = client.StageContent
	GateVerdict    = client.GateVerdict
	GateInterval   = client.GateInterval
	ModelVersion   = client.ModelVersion
	ModelStage     = client.ModelStage
	Checkpoint     = client.Checkpoint
	Outputs        = client.Outputs
	Work           = client.Work
	End            = client.End
	Pause          = client.Pause
	Changes        = client.Changes
	Resume         = client.Resume
	Review         = client.Review
	Approval       = client.Approval
	StopServer     = client.StopServer
	Server         = client.Server
	Engine         = client.Engine
	EngineTiming   = client.EngineTiming
	MetricValues   = client.MetricValues
	MetricValue    = client.MetricValue
	Undecided      = client.Undecided
	Machine        = client.Machine
	Ownership      = client.Ownership
	MarketClock    = client.MarketClock
	Market         = client.Market
	History        = client.History
	PastJob        = client.PastJob
	Listing        = client.Listing
	Job            = client.Job
	JobNode        = client.JobNode
	Decision       = client.Decision
	Verified       = client.Verified
	Exec           = client.Exec
	LogLine        = client.LogLine
	Terminal       = client.Terminal
	ExecOutput     = client.ExecOutput
	ExecInput      = client.ExecInput
	ExecResult     = client.ExecResult
	Raw            = client.Raw
	Receipt        = client.Receipt
	Run            = client.Run
)
