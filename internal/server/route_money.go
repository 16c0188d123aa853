package server

import (
	"slices"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/anomalies"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/exports"
	"scrimp/internal/server/proposals"
	"scrimp/internal/server/reports"
	"scrimp/internal/server/review"
	"scrimp/internal/server/savings"
	"scrimp/internal/server/workloads"
	"scrimp/internal/wire/api"
)

// moneyRoutes report spending and manage limits.
func moneyRoutes() []route {
	span := []string{"since: month, day or whole hour in UTC from which costs are listed, such as 2026-10, " +
		"2026-10-15 or 2026-10-15T08:00:00Z (default: from the beginning)",
		"until: the same, up to which (default: the costs of running machines up to now)"}
	by := []string{"booked: time in UTC from which costs were booked, such as 2026-10-15T08:00:00Z, with what running " +
		"machines owe now: the costs that GET /v1/costs sums since that time"}
	for _, name := range charge.OnlyBy {
		text, special := map[string]string{
			"tag":   "KEY or KEY=VALUE: the costs with that tag; KEY=(none) for those without it; may be repeated",
			"rule":  "the costs that were booked by it, or with bill all that were booked from bills",
			"scope": "the costs that count towards the budgets of a scope, such as all, team:vision or tag:model=lm"}[name]
		if !special {
			text = "its costs alone; (none) for those without one"
		}
		by = append(by, name+": "+text)
	}
	by = append(by, "except: NAME=VALUE, where NAME is one of the names above from team on; without the costs with that "+
		"value; up to 100 times", "rented: 1 for the costs of machines that GET /v1/machines lists")
	return []route{
		{"GET", "/v1/costs", identity.Viewer, anyTeam, true, "Show what was spent, by whom and for what", nil, api.Costs{},
			"", []string{"by: team, project, user, kind, provider, region, sku, category, " +
				"job or tag:KEY (default: team)",
				"since: span until now"}, inBooks((*reports.Books).Costs)},
		{"GET", "/v1/costs/monthly", identity.Viewer, anyTeam, true,
			"Say what a month of each kind of workload costs, by the ledger's history", nil, client.MonthlyCosts{}, "",
			[]string{"months: the current month and those before it, 1 to 120 (default: 12)",
				"team: only its costs", "project: only its costs"}, ofWorkloads((*workloads.Service).Monthly)},
		{"GET", "/v1/review", identity.Viewer, anyTeam, true, "Review the spending of a month on one page", nil,
			client.MonthReview{}, "", []string{"month: such as 2026-10 (default: this month)"},
			ofReview((*review.Service).Get)},
		{"GET", "/v1/budgets", identity.Viewer, anyTeam, true,
			"List limits, what is spent and held of them, and the tags that jobs must have", nil, api.Budgets{}, "", nil,
			ofBudgets((*budgets.Service).Show)},
		{"PUT", "/v1/budgets", identity.Admin, allTeams, false, "Make, change or remove a limit, or require a tag",
			api.SetBudget{}, nil, "", nil, ofBudgets((*budgets.Service).Put)},
		{"GET", "/v1/queue/shares", identity.Viewer, anyTeam, true,
			"List the share of each team in the queue: what it should have, had and burns now", nil, api.QueueShares{}, "",
			nil, ofBudgets((*budgets.Service).ShowShares)},
		{"PUT", "/v1/queue/shares", identity.Admin, allTeams, false,
			"Set the weight, the guarantee and the limit of a team in the queue", api.SetQueueShare{}, nil, "", nil,
			ofBudgets((*budgets.Service).PutShare)},
		{"GET", "/v1/why", identity.Viewer, anyTeam, true, "Say why the cost of one period differs from that of another",
			nil, client.Why{}, "", []string{"before: a month, a day or a span, such as 2026-10, 2026-10-15 or " +
				"2026-10-01..2026-10-15 (default: last month)",
				"after: the same; this month", "by: as of GET /v1/costs"}, inBooks((*reports.Books).Why)},
		{"GET", "/v1/chargeback", identity.Viewer, anyTeam, true, "Divide what a month cost among teams", nil,
			client.Chargeback{}, "", []string{"month: such as 2026-10 (default: this month)",
				"rule: by which shared cost is divided: proportional (to GPU-hours), even or fixed; proportional where it " +
					"is not given",
				"share: TEAM=WEIGHT, for the rule fixed; once for each team"}, inBooks((*reports.Books).Chargeback)},
		{"GET", "/v1/chargeback/fees", identity.Viewer, allTeams, true, "List shared costs that no machine has", nil,
			[]client.Fee{}, "", nil, ofBills((*bills.Service).Fees)},
		{"PUT", "/v1/chargeback/fees", identity.Admin, allTeams, false,
			"Make or change a shared cost of every month, or remove it with the amount 0", client.Fee{}, nil, "", nil,
			ofBills((*bills.Service).SetFee)},
		{"GET", "/v1/export/focus", identity.Viewer, anyTeam, true,
			"Fetch costs as a CSV file of FOCUS, the FinOps Open Cost and Usage Specification", nil, nil, "text/csv",
			append([]string{"version: of the specification, 1.2, 1.3 or 1.4 (default: 1.2)"}, span...),
			inBooks((*reports.Books).ExportFocus)},
		{"GET", "/v1/export/costs", identity.Viewer, anyTeam, true, "Fetch costs as a CSV file for spreadsheets", nil, nil,
			"text/csv", slices.Concat(span, by), inBooks((*reports.Books).ExportCharges)},
	}
}

// savingRoutes find waste, rank what would lower spending, and compare savings with promises.
func savingRoutes() []route {
	return []route{
		{"GET", "/v1/waste", identity.Viewer, anyTeam, true,
			"List spending that buys nothing, with evidence and what to do about it", nil, client.Waste{}, "",
			[]string{"team: its findings alone, or with (none) those of no team; of all teams that you may see where it is " +
				"not given",
				"since: span until now, up to 90d (default: 30d)"}, ofSavings((*savings.Service).List)},
		{"GET", "/v1/waste/survey", identity.Viewer, allTeams, true,
			"Ask the engines for machines and volumes of their accounts that lack a tag or that nothing uses, whoever made them",
			nil, client.Survey{}, "", nil, ofSavings((*savings.Service).Survey)},
		{"GET", "/v1/recommend", identity.Viewer, anyTeam, true,
			"Rank what would lower spending, with the saving computed from the costs of the last 30 days", nil,
			[]client.SavingsPlan{}, "",
			[]string{"team: its costs alone (default: those of all teams that you may see)",
				"target: share of the spending to save, 1% to 99% (default: 25%)"},
			ofSavings((*savings.Service).Recommend)},
		{"POST", "/v1/recommend/take", identity.Viewer, anyTeam, false,
			"Follow a recommendation from now on, and record its expected saving; needs the role operator of its team, or " +
				"admin of all teams where it names none", client.TakeRecommendation{}, client.TakenRecommendation{}, "", nil,
			ofSavings((*savings.Service).Take)},
		{"GET", "/v1/recommend/taken", identity.Viewer, anyTeam, true,
			"Compare what recommendations were expected to save with what they have saved, by the ledger", nil,
			[]client.TakenRecommendation{}, "", []string{"team: its recommendations alone (default: those of all " +
				"teams that you may see)"}, ofSavings((*savings.Service).Taken)},
		{"POST", "/v1/waste/{id}/apply", identity.Viewer, anyTeam, false,
			"Do what a finding advises, where scrimp can: terminate an idle machine, or end a schedule; needs the role " +
				"operator of its team, or admin of all teams where it has no team", client.ApplyWaste{},
			client.WasteFinding{}, "", nil, ofSavings((*savings.Service).Apply)},
		{"GET", "/v1/waste/history", identity.Viewer, anyTeam, true,
			"Compare what applied findings promised with what they saved, by the ledger", nil, []client.WasteDecision{}, "",
			nil, ofSavings((*savings.Service).History)},
	}
}

// anomalyRoutes list incidents, and keep what people say about them.
func anomalyRoutes() []route {
	const needs = "; needs the role operator of its team, or admin of all teams where it has no team"
	return []route{
		{"GET", "/v1/anomalies", identity.Viewer, anyTeam, true, "List what went wrong with spending, and what it costs",
			nil, client.Anomalies{}, "", []string{"team: its incidents alone; of all teams that you may see where it is " +
				"not given",
				"since: span until now (default: 7d)",
				"all: 1 for those too that are planned, dismissed or snoozed"}, ofAnomalies((*anomalies.Service).List)},
		{"POST", "/v1/anomalies/{id}/snooze", identity.Viewer, anyTeam, false,
			"Hide an incident, and later ones of its kind about the same, until a time" + needs, client.SnoozeAnomaly{},
			client.Anomaly{}, "", nil, ofAnomalies((*anomalies.Service).Snooze)},
		{"POST", "/v1/anomalies/{id}/dismiss", identity.Viewer, anyTeam, false,
			"Say that an incident was no problem, and raise the threshold of its kind in its team" + needs,
			client.AnswerAnomaly{}, client.Anomaly{}, "", nil, ofAnomalies((*anomalies.Service).Dismiss)},
		{"POST", "/v1/anomalies/{id}/confirm", identity.Viewer, anyTeam, false,
			"Say that an incident was a problem, and lower the threshold of its kind in its team" + needs,
			client.AnswerAnomaly{}, client.Anomaly{}, "", nil, ofAnomalies((*anomalies.Service).Confirm)},
		{"GET", "/v1/anomalies/planned", identity.Viewer, anyTeam, true,
			"List the spans in which unusual spending is planned, those that end last first", nil,
			[]client.PlannedAnomalies{}, "", nil, ofAnomalies((*anomalies.Service).Plans)},
		{"POST", "/v1/anomalies/planned", identity.Viewer, anyTeam, false,
			"Plan unusual spending of a team, a project or a job in a span: it is not an incident" + needs,
			client.PlanAnomalies{}, client.PlannedAnomalies{}, "", nil, ofAnomalies((*anomalies.Service).Plan)},
		{"DELETE", "/v1/anomalies/planned/{id}", identity.Viewer, anyTeam, false,
			"Remove a planned span, as if nobody had planned it" + needs, nil, nil, "", nil,
			ofAnomalies((*anomalies.Service).Unplan)},
		{"GET", "/v1/anomalies/alerts", identity.Viewer, anyTeam, true,
			"List the alerts about anomalies, with the newest reports of each; receivers' secrets are left out", nil,
			[]client.AnomalyAlert{}, "", nil, ofAnomalies((*anomalies.Service).Alerts)},
		{"POST", "/v1/anomalies/alerts", identity.Viewer, anyTeam, false,
			"Report new anomalies of a team, or of all teams, to a webhook, Slack, PagerDuty or an e-mail address" + needs,
			client.AddAnomalyAlert{}, client.AnomalyAlert{}, "", nil, ofAnomalies((*anomalies.Service).AddAlert)},
		{"DELETE", "/v1/anomalies/alerts/{id}", identity.Viewer, anyTeam, false,
			"Remove an alert about anomalies, with what it has not reported yet" + needs, nil, nil, "", nil,
			ofAnomalies((*anomalies.Service).RemoveAlert)},
		{"POST", "/v1/anomalies/alerts/{id}/test", identity.Viewer, anyTeam, false,
			"Send a marked report to the receiver of an alert once, and say what became of it" + needs, nil, client.Notice{},
			"", nil, ofAnomalies((*anomalies.Service).TestAlert)},
	}
}

// billRoutes keep the bills of providers, and compare them with the ledger.
func billRoutes() []route {
	return []route{
		{"GET", "/v1/bills", identity.Viewer, allTeams, true,
			"List the imported bills, the closed months, and the exports of bills that the server fetches", nil,
			client.Bills{}, "", nil, ofBills((*bills.Service).List)},
		{"POST", "/v1/bills", identity.Admin, allTeams, false,
			"Keep the rows of bills, JSON lines in gzip as scrimp bill import sends them; the same bill again changes " +
				"nothing, and another one of its provider, account and month replaces it", []byte{}, []client.ImportedBill{}, "",
			[]string{"name: of a file that the rows come from",
				"currency: that of the bills; they may then replace kept ones in another"}, ofBills((*bills.Service).Import)},
		{"POST", "/v1/bills/remove", identity.Admin, allTeams, false,
			"Remove a kept bill, or say with dry_run what would be removed; the ledger keeps what was booked until its month " +
				"is booked again", client.RemoveBill{}, client.RemovedBill{}, "", nil, ofBills((*bills.Service).Remove)},
		{"POST", "/v1/bills/fetch", identity.Admin, allTeams, false,
			"Fetch the export of an engine's bill from its bucket now, and keep what is new or changed", client.FetchBills{},
			client.BillExport{}, "", nil, ofExports((*exports.Fetcher).Handle)},
		{"GET", "/v1/bills/reconcile", identity.Viewer, allTeams, true,
			"Compare the imported bills of a month with the ledger", nil, client.BillComparison{}, "",
			[]string{"month: such as 2026-10 (default: this month)"}, ofBills((*bills.Service).Compare)},
		{"POST", "/v1/bills/reconcile", identity.Admin, allTeams, false,
			"Book the differences between the imported bills of a month and the ledger", client.BookBills{},
			client.BillComparison{}, "", nil, ofBills((*bills.Service).Book)},
		{"PUT", "/v1/bills/months", identity.Admin, allTeams, false,
			"Close a month, so that nothing is imported or booked for it, or reopen it", client.SetBillMonth{}, nil, "", nil,
			ofBills((*bills.Service).SetMonth)},
	}
}

// proposalRoutes rank proposed jobs, and keep what they gave. POST /v1/jobs proposes them.
func proposalRoutes() []route {
	return []route{
		{"GET", "/v1/proposals", identity.Viewer, anyTeam, true,
			"List proposed jobs: those that wait for approval by value per dollar of planned cost, then the others", nil,
			client.Proposals{}, "", []string{"team: its proposals alone; those of all teams that you may see where it is " +
				"not given", "budget: dollars, such as 500, to say which of those that wait fit into it"},
			ofProposals((*proposals.Service).List)},
		{"GET", "/v1/proposals/{id}", identity.Viewer, ofJob, true,
			"Show a proposed job: what was expected, what it has cost, and what it gave", nil, client.Proposal{}, "", nil,
			ofProposals((*proposals.Service).Get)},
		{"POST", "/v1/proposals/{id}/outcome", identity.Submitter, ofOwnJob, false, "Record what a proposed job has given",
			client.ProposalOutcome{}, client.Proposal{}, "", nil, ofProposals((*proposals.Service).SetOutcome)},
	}
}
