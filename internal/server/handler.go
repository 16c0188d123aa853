package server

import (
	"net/http"

	"scrimp/internal/server/agents"
	"scrimp/internal/server/anomalies"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/books"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/datause"
	"scrimp/internal/server/diagnosis"
	"scrimp/internal/server/exports"
	"scrimp/internal/server/groups"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/jobs/exec"
	"scrimp/internal/server/jobs/output"
	"scrimp/internal/server/jobs/update"
	"scrimp/internal/server/joining"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/people"
	"scrimp/internal/server/planning"
	"scrimp/internal/server/proposals"
	"scrimp/internal/server/receipts"
	"scrimp/internal/server/retention"
	"scrimp/internal/server/review"
	"scrimp/internal/server/savings"
	"scrimp/internal/server/searches"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/server/workdir"
	"scrimp/internal/server/workloads"
)

// of adapts methods of a desk to handlers.
func of[D any](desk func(*Server) D) func(func(D, http.ResponseWriter, *http.Request)) handler {
	return func(do func(D, http.ResponseWriter, *http.Request)) handler {
		return func(s *Server, w http.ResponseWriter, r *http.Request) { do(desk(s), w, r) }
	}
}

// dataUse returns the desk of the inputs of jobs.
func (s *Server) dataUse() *datause.Desk {
	return &datause.Desk{Control: s.control, Telemetry: s.telemetry.Receipt}
}

// review returns the desk that reviews a month.
func (s *Server) review() *review.Desk {
	return &review.Desk{Now: s.control.Now, EachCharge: s.books.EachCharge, Unread: books.Unread,
		Chargeback: s.books.Chargeback, Budgets: s.budgets.Show, Costs: s.books.Costs, Measured: s.receipts.Measured,
		Anomalies: s.anomalies.List, Proposals: s.proposals.List, Taken: s.savings.Taken, Waste: s.savings.List}
}

// Adapters of the methods of each desk.
var (
	ofPeople    = of(func(s *Server) *people.Desk { return s.people })
	inBooks     = of(func(s *Server) *books.Books { return s.books })
	ofReceipts  = of(func(s *Server) *receipts.Desk { return s.receipts })
	ofExports   = of(func(s *Server) *exports.Fetcher { return s.exports })
	ofBills     = of(func(s *Server) *bills.Desk { return s.bills })
	ofAnomalies = of(func(s *Server) *anomalies.Desk { return s.anomalies })
	ofWorkloads = of(func(s *Server) *workloads.Desk {
		return &workloads.Desk{Control: s.control, Books: s.books, HasTeam: s.gate.People.HasTeam}
	})
	ofReview    = of((*Server).review)
	ofSavings   = of(func(s *Server) *savings.Desk { return s.savings })
	ofProposals = of(func(s *Server) *proposals.Desk { return s.proposals })
	ofDataUse   = of((*Server).dataUse)
	ofTelemetry = of(func(s *Server) *telemetry.Desk { return s.telemetry })
	ofDiagnosis = of(func(s *Server) *diagnosis.Desk { return s.diagnosis })
	ofAgents    = of(func(s *Server) *agents.Desk { return s.agents })
	ofJoining   = of(func(s *Server) *joining.Desk { return s.joining })
	ofPlanning  = of(func(s *Server) *planning.Desk { return s.planning })
	ofBudgets   = of(func(s *Server) *budgets.Desk { return s.budgets })
	ofJobs      = of(func(s *Server) *jobs.Desk { return s.jobs })
	ofOutput    = of(func(s *Server) *output.Desk { return s.output })
	ofUpdate    = of(func(s *Server) *update.Desk { return s.update })
	ofExec      = of(func(s *Server) *exec.Desk { return s.exec })
	ofSubmit    = of(func(s *Server) *submit.Desk { return s.submit })
	ofGroups    = of(func(s *Server) *groups.Desk { return s.groups })
	ofSearches  = of(func(s *Server) *searches.Desk { return s.searches })
	ofKept      = of(func(s *Server) *kept.Kept { return s.kept })
	ofRetention = of(func(s *Server) *retention.Desk { return s.old })
	ofUploads   = of(func(s *Server) *workdir.Uploads { return s.uploads })
)
