package server

import (
	"net/http"

	"scrimp/internal/server/agents"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/books"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/exports"
	"scrimp/internal/server/groups"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/people"
	"scrimp/internal/server/proposals"
	"scrimp/internal/server/receipts"
	"scrimp/internal/server/retention"
	"scrimp/internal/server/savings"
	"scrimp/internal/server/searches"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/server/workdir"
)

// ofPeople adapts a method of people.Desk (users, teams and tokens) to a handler.
func ofPeople(do func(*people.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.people, w, r) }
}

// inBooks adapts a method of books.Books (reports of spending) to a handler.
func inBooks(do func(*books.Books, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.books, w, r) }
}

// ofReceipts adapts a method of receipts.Desk (what jobs did, from the log) to a handler.
func ofReceipts(do func(*receipts.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.receipts, w, r) }
}

// ofExports adapts a method of exports.Fetcher to a handler.
func ofExports(do func(*exports.Fetcher, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.exports, w, r) }
}

// ofBills adapts a method of bills.Desk (bills and fees) to a handler.
func ofBills(do func(*bills.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.bills, w, r) }
}

// ofSavings adapts a method of savings.Desk (waste) to a handler.
func ofSavings(do func(*savings.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.savings, w, r) }
}

// ofProposals adapts a method of proposals.Desk to a handler.
func ofProposals(do func(*proposals.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.proposals, w, r) }
}

// ofTelemetry adapts a method of telemetry.Desk to a handler.
func ofTelemetry(do func(*telemetry.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.telemetry, w, r) }
}

// ofAgents adapts a method of agents.Desk (the routes of agents) to a handler.
func ofAgents(do func(*agents.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.agents, w, r) }
}

// ofBudgets adapts a method of budgets.Desk (limits) to a handler.
func ofBudgets(do func(*budgets.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.budgets, w, r) }
}

// ofJobs adapts a method of jobs.Desk to a handler.
func ofJobs(do func(*jobs.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.jobs, w, r) }
}

// ofSubmit adapts a method of submit.Desk (submissions) to a handler.
func ofSubmit(do func(*submit.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.submit, w, r) }
}

// ofGroups adapts a method of groups.Desk to a handler.
func ofGroups(do func(*groups.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.groups, w, r) }
}

// ofSearches adapts a method of searches.Desk (searches by a user's own program) to a handler.
func ofSearches(do func(*searches.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.searches, w, r) }
}

// ofKept adapts a method of kept.Kept (outputs and checkpoints of jobs) to a handler.
func ofKept(do func(*kept.Kept, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.kept, w, r) }
}

// ofRetention adapts a method of retention.Desk (deletion of old files) to a handler.
func ofRetention(do func(*retention.Desk, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.old, w, r) }
}

// ofUploads adapts a method of workdir.Uploads (work folders) to a handler.
func ofUploads(do func(*workdir.Uploads, http.ResponseWriter, *http.Request)) handler {
	return func(s *Server, w http.ResponseWriter, r *http.Request) { do(s.uploads, w, r) }
}
