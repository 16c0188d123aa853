package server

import (
	"context"

	"scrimp/internal/lib/identity"
	"scrimp/internal/server/condition"
	"scrimp/internal/server/groups"
	"scrimp/internal/server/stages"
	"scrimp/internal/server/submit"
	"scrimp/internal/wire/api"
	work "scrimp/internal/work/groups"
)

// groupRoutes manage groups of jobs.
func groupRoutes() []route {
	return []route{
		{"POST", "/v1/groups", identity.Submitter, anyTeam, false,
			"Submit a job as an array: the same job, with each of its indexes; or as a study: a search for its best " +
				"configuration; or stages as a pipeline", api.Submission{}, api.Group{}, "", nil,
			ofSubmit((*submit.Service).Group)},
		{"GET", "/v1/groups", identity.Viewer, anyTeam, true, "List groups of jobs, by name", nil, []api.Group{}, "",
			[]string{"limit: at most this many groups, up to 1000; the header Scrimp-Next names the last of them if others " +
				"follow (default: all groups)", "after: the groups whose name comes after this one; empty for the first page",
				"live: 1 for those that are not over (default: all)"},
			ofGroups((*groups.Service).List)},
		{"GET", "/v1/groups/{id}", identity.Viewer, ofJob, true, "Show a group of jobs", nil, api.Group{}, "", nil,
			ofGroups((*groups.Service).Get)},
		{"GET", "/v1/groups/{id}/receipt", identity.Viewer, ofJob, true, "Show what a group cost, by member", nil,
			api.GroupReceipt{}, "", nil, ofGroups((*groups.Service).Receipt)},
		{"GET", "/v1/groups/{id}/trials", identity.Viewer, ofJob, true, "List the trials of a search, in the order in " +
			"which they began", nil, []api.Trial{}, "",
			[]string{"curves: 1 to include the values of each trial's metric"},
			ofGroups((*groups.Service).Trials)},
		{"GET", "/v1/models", identity.Viewer, anyTeam, true, "List the versions of the models that pipelines " +
			"deploy, by pipeline", nil, []api.ModelVersion{}, "",
			[]string{"pipeline: its versions alone (default: of all pipelines)", "project: the same"},
			ofGroups((*groups.Service).Models)},
		{"GET", "/v1/models/{id}", identity.Viewer, ofJob, true, "Show the version of a model that a run has made, " +
			"with its lineage", nil, api.ModelVersion{}, "", nil, ofGroups((*groups.Service).Model)},
		{"POST", "/v1/groups/{id}/end", identity.Submitter, ofOwnJob, false, "End a group with its members", api.End{},
			api.Group{}, "", nil, ofGroups((*groups.Service).End)},
		{"POST", "/v1/groups/{id}/approve", identity.Operator, ofJob, false, "Approve a group that waits for approval",
			api.Review{}, api.Group{}, "", nil, ofGroups((*groups.Service).Approve)},
		{"POST", "/v1/groups/{id}/reject", identity.Operator, ofJob, false,
			"End a group that waits for approval, and say why", api.Review{}, api.Group{}, "", nil,
			ofGroups((*groups.Service).Reject)},
	}
}

func (s *Server) groupService() *groups.Service {
	return &groups.Service{Gate: s.gate, Control: s.control, Jobs: s.jobs, Turns: &s.turns, Settled: s.budgets.Settled}
}

// resolve returns what answers a planner's questions about the files of a pipeline, and about the conditions of a
// schedule, for one proposal.
func (s *Server) resolve(ctx context.Context) work.Resolver {
	files := &stages.Files{Control: s.control, Folders: s.folders, Kept: s.kept, Quota: s.quota.Folder,
		Errors: s.opts.Log}
	return func(now work.Snapshot, v work.Move) (work.Move, error) {
		if now.Schedule != nil {
			return (&condition.Reader{Control: s.control, Stores: s.stores}).Resolve(ctx, now, v)
		}
		return files.Resolve(ctx, now, v)
	}
}
