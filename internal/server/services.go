package server

import (
	"cmp"
	"context"
	"time"

	"scrimp/internal/server/agents"
	"scrimp/internal/server/anomalies"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/diagnosis"
	"scrimp/internal/server/exports"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/jobs/exec"
	"scrimp/internal/server/jobs/output"
	"scrimp/internal/server/jobs/update"
	"scrimp/internal/server/joining"
	"scrimp/internal/server/metrics"
	"scrimp/internal/server/people"
	"scrimp/internal/server/planning"
	"scrimp/internal/server/proposals"
	"scrimp/internal/server/receipts"
	"scrimp/internal/server/reports"
	"scrimp/internal/server/retention"
	"scrimp/internal/server/savings"
	"scrimp/internal/server/searches"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/submit/naming"
	"scrimp/internal/server/submit/request"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/server/workblob"
	"scrimp/internal/server/workdir"
)

// buildHandlers builds the request handlers once the log is open.
func (s *Server) buildHandlers() {
	s.gate.Control, s.outbox.Control = s.control, s.control
	// Serve has checked the stores.
	s.stores, _ = artifacts.NewStores(!s.wide, append(s.lentStores(), s.opts.Stores...), s.opts.Dir)
	s.joining = joining.New(joining.Service{Gate: s.gate, Engines: s.engines, Allocation: s.control.AllocationOf,
		Exe: s.opts.Exe, Log: s.opts.Log, Closed: s.closed})
	s.gate.Admits = s.joining.Name
	s.follower.On(s.control)
	s.telemetry = &telemetry.Service{Control: s.control, Store: s.store, Room: s.disk, Errors: s.opts.Log,
		Quota: func(ctx context.Context, job string, n int64) error { return s.quota.Bytes(ctx, job, n) }}
	s.bills = &bills.Service{Meta: s.store, Dir: s.opts.Dir, Room: s.disk, Gate: s.gate, Control: s.control,
		HasTeam: s.gate.People.HasTeam}
	s.exports = exports.New(&exports.Fetcher{Bills: s.bills, Meta: s.store, Dir: s.opts.Dir, Room: s.disk,
		Log: s.opts.Log}, s.engines)
	s.bills.Exports = s.exports.List
	s.books = &reports.Books{Control: s.control, Log: s.store, Errors: s.opts.Log, Fees: s.bills.FeesOf,
		HasTeam: s.bills.HasTeam, Names: s.gate.People.Names}
	s.bills.Ledger = s.books
	s.receipts = &receipts.Service{Control: s.control, Log: s.store, View: s.view, Machines: s.dataUse().Receipt}
	s.anomalies = &anomalies.Service{Gate: s.gate, Control: s.control, Books: s.books, View: s.view,
		HasTeam: s.bills.HasTeam, HasTeams: s.gate.People.HasTeams, Meta: s.store, Vault: s.vault(), Outbox: s.outbox,
		Log: s.opts.Log}
	s.savings = &savings.Service{Gate: s.gate, Control: s.control, Books: s.books, View: s.view,
		Telemetry: s.telemetry.Receipt, HasTeam: s.bills.HasTeam, HasTeams: s.gate.People.HasTeams,
		Answers: s.anomalies.Answers, Engines: s.engines}
	s.budgets = &budgets.Service{Gate: s.gate, Control: s.control, Meta: s.store, Hooks: s.hooks, Log: s.opts.Log,
		Spent: s.books.Under}
	s.kept = &artifacts.Kept{Gate: s.gate, Control: s.control, Turns: &s.turns, Meta: s.store, Dir: s.opts.Dir,
		Stores: s.stores}
	s.folders = workdir.New(s.opts.Dir, s.disk)
	s.workBlobs = workblob.New(s.folders, s.lender, s.opts.Log)
	s.quota = &retention.Quota{Control: s.control, Logs: s.store, Folders: s.folders, Dir: s.opts.Dir, Limits: s.teamDisks}
	s.agents = &agents.Service{
		Gate: s.gate, Control: s.control, Log: s.store, Dir: s.opts.Dir, Room: s.disk, Vault: s.vault(),
		Files: agents.NewFiles(), Build: s.opts.Build, Exe: s.opts.Exe, LogLimit: s.opts.LogLimit, Errors: s.opts.Log,
		Printed: s.metrics.Printed,
		Here:    s.here, Folders: s.folders, Blobs: s.workBlobs, Quota: s.quota.Bytes,
		Moves: &s.moves, Pace: s.logPace, AllPace: s.allPace, Reports: agents.NewReportPace(),
		Measured: s.telemetry.Take, Lender: s.lender,
	}
	s.uploads = workdir.NewUploads(s.folders)
	s.old = &retention.Service{Gate: s.gate, Control: s.control, Logs: s.store, Folders: s.folders,
		Blobs: s.workBlobs, Kept: s.kept,
		Turns: &s.turns, Engines: s.engines, Dir: s.opts.Dir, Span: cmp.Or(s.opts.Retain, retention.StandardSpan),
		OutputSpan: s.opts.RetainOutputs, Errors: s.opts.Log}
	s.old.Removed = s.quota.Again
	s.people = people.New(s.gate, s.view, s.quota.Used)
	s.odds.Control, s.odds.Errors = s.control, s.opts.Log
	s.jobs = jobs.New(jobs.Service{Gate: s.gate, Control: s.control, View: s.view, Turns: &s.turns,
		Vault: s.vault(), Odds: &s.odds, Settled: s.budgets.Settled, Removed: s.kept.Removed,
		Notices: s.notices})
	s.output = &output.Service{Control: s.control, Log: s.store, Share: s.jobs.Share(), Removed: s.kept.Removed}
	s.update, s.exec = update.New(s.jobs), exec.New(s.jobs, s.agents)
	s.groups = s.groupService()
	s.outbox.Weeks = s.weeks
	s.searches = &searches.Service{Meta: s.store, Gate: s.gate, Control: s.control}
	reader := request.Reader{Hooks: s.hooks, Mails: s.outbox.Mails != nil, Now: s.control.Now}
	s.diagnosis = diagnosis.New(&diagnosis.Service{Job: s.jobs.Get, Jobs: s.jobs.List, Telemetry: s.telemetry.Get,
		Receipt: s.receipts.Receipt, Output: s.output.Output, Spec: s.jobs.Spec, Now: time.Now,
		SeesTeam: s.gate.SeesTeam})
	s.planning = planning.New(planning.Service{Reader: reader, Server: s.getServer, Market: s.getMarket,
		Measured: s.receipts.Measured, Log: s.opts.Log})
	s.savings.Cheaper = s.planning.Cheaper
	s.submit = &submit.Service{
		Gate: s.gate, Control: s.control, Log: s.store, LogHere: s.opts.DB == "", Dir: s.opts.Dir, Room: s.disk,
		Turns: &s.turns, Vault: s.vault(), Uploads: s.uploads, Kept: s.kept, Jobs: s.jobs, Groups: s.groups,
		Reader: reader, Names: &naming.Names{Control: s.control},
		Settled: s.budgets.Settled, Forget: s.outbox.Forget, Quota: s.quota.Folder, Foresee: s.planning.Foresee,
		Charges: s.charges, Measured: s.planning.WithParallel,
	}
	s.proposals = &proposals.Service{Gate: s.gate, Control: s.control, View: s.view, Jobs: s.jobs,
		HasTeam: s.bills.HasTeam}
	s.metrics.Add(metrics.State{Control: s.control, Leads: s.store.Leads, Drawn: s.jobs.Drawn,
		Running: s.telemetry.Running, Anomalies: s.anomalies.Open, Version: s.opts.Version})
}
