package server

import (
	"net/http"

	"scrimp/internal/server/agents"
	"scrimp/internal/server/anomalies"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/bills"
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
	"scrimp/internal/server/people"
	"scrimp/internal/server/planning"
	"scrimp/internal/server/proposals"
	"scrimp/internal/server/receipts"
	"scrimp/internal/server/reports"
	"scrimp/internal/server/retention"
	"scrimp/internal/server/review"
	"scrimp/internal/server/savings"
	"scrimp/internal/server/searches"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/server/workdir"
	"scrimp/internal/server/workloads"
)

// of adapts methods of a service to handlers.
func of[D any](service func(*Server) D) func(func(D, http.ResponseWriter, *http.Request)) handler {
	return func(do func(D, http.ResponseWriter, *http.Request)) handler {
		return func(s *Server, w http.ResponseWriter, r *http.Request) { do(service(s), w, r) }
	}
}

// dataUse returns the service of the inputs of jobs.
func (s *Server) dataUse() *datause.Service {
	return &datause.Service{Control: s.control, Telemetry: s.telemetry.Receipt}
}

// review returns the service that reviews a month.
func (s *Server) review() *review.Service {
	return &review.Service{Now: s.control.Now, EachCharge: s.books.EachCharge, Unread: reports.Unread,
		Chargeback: s.books.Chargeback, Budgets: s.budgets.Show, Costs: s.books.Costs, Measured: s.receipts.Measured,
		Anomalies: s.anomalies.List, Proposals: s.proposals.List, Taken: s.savings.Taken, Waste: s.savings.List}
}

// Adapters of the methods of each service.
var (
	ofPeople    = of(func(s *Server) *people.Service { return s.people })
	inBooks     = of(func(s *Server) *reports.Books { return s.books })
	ofReceipts  = of(func(s *Server) *receipts.Service { return s.receipts })
	ofExports   = of(func(s *Server) *exports.Fetcher { return s.exports })
	ofBills     = of(func(s *Server) *bills.Service { return s.bills })
	ofAnomalies = of(func(s *Server) *anomalies.Service { return s.anomalies })
	ofWorkloads = of(func(s *Server) *workloads.Service {
		return &workloads.Service{Control: s.control, Books: s.books, HasTeam: s.gate.People.HasTeam}
	})
	ofReview    = of((*Server).review)
	ofSavings   = of(func(s *Server) *savings.Service { return s.savings })
	ofProposals = of(func(s *Server) *proposals.Service { return s.proposals })
	ofDataUse   = of((*Server).dataUse)
	ofTelemetry = of(func(s *Server) *telemetry.Service { return s.telemetry })
	ofDiagnosis = of(func(s *Server) *diagnosis.Service { return s.diagnosis })
	ofAgents    = of(func(s *Server) *agents.Service { return s.agents })
	ofJoining   = of(func(s *Server) *joining.Service { return s.joining })
	ofPlanning  = of(func(s *Server) *planning.Service { return s.planning })
	ofBudgets   = of(func(s *Server) *budgets.Service { return s.budgets })
	ofJobs      = of(func(s *Server) *jobs.Service { return s.jobs })
	ofOutput    = of(func(s *Server) *output.Service { return s.output })
	ofUpdate    = of(func(s *Server) *update.Service { return s.update })
	ofExec      = of(func(s *Server) *exec.Service { return s.exec })
	ofSubmit    = of(func(s *Server) *submit.Service { return s.submit })
	ofGroups    = of(func(s *Server) *groups.Service { return s.groups })
	ofSearches  = of(func(s *Server) *searches.Service { return s.searches })
	ofKept      = of(func(s *Server) *artifacts.Kept { return s.kept })
	ofRetention = of(func(s *Server) *retention.Service { return s.old })
	ofUploads   = of(func(s *Server) *workdir.Uploads { return s.uploads })
)
