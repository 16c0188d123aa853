package server

import (
	"net/http"

	"scrimp/internal/server/agents"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/books"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/groups"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/people"
	"scrimp/internal/server/retention"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/server/workdir"
)

// ofPeople is a handler of those who make users, teams and tokens.
func ofPeople(do func(*people.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.people, w, r) }
}

// inBooks is a handler of what is read in the log.
func inBooks(do func(*books.Books, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.books, w, r) }
}

// ofBills is a handler of bills and fees.
func ofBills(do func(*bills.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.bills, w, r) }
}

// ofTelemetry is a handler of what machines were measured to do.
func ofTelemetry(do func(*telemetry.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.telemetry, w, r) }
}

// ofAgents is a handler of what agents ask.
func ofAgents(do func(*agents.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.agents, w, r) }
}

// ofBudgets is a handler of limits.
func ofBudgets(do func(*budgets.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.budgets, w, r) }
}

// ofJobs is a handler of jobs.
func ofJobs(do func(*jobs.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.jobs, w, r) }
}

// ofSubmit is a handler of submissions.
func ofSubmit(do func(*submit.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.submit, w, r) }
}

// ofGroups is a handler of groups of jobs.
func ofGroups(do func(*groups.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.groups, w, r) }
}

// ofKept is a handler of what jobs have kept.
func ofKept(do func(*kept.Kept, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.kept, w, r) }
}

// ofRetention is a handler of what gives disk back.
func ofRetention(do func(*retention.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.old, w, r) }
}

// ofUploads is a handler of the work folders that are sent.
func ofUploads(do func(*workdir.Uploads, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.uploads, w, r) }
}
