package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// neighbours lists, for each package below server and cli, the packages there that it may import. All may import
// what is below the folders server and cli in House; the two root packages, which assemble the others, may import
// every one.
var neighbours = map[string][]string{
	"cli/ab": {"cli/command", "cli/groups", "cli/jobfile", "cli/pastruns", "cli/plan", "cli/show/comparison",
		"cli/submit"},
	"cli/anomalies": {"cli/command", "cli/show", "cli/show/spending"},
	"cli/benchmark": {"cli/command", "cli/show/simulation"},
	"cli/bill":      {"cli/command", "cli/show", "cli/show/bills", "cli/show/spending"},
	"cli/command":   {"cli/flagerror", "cli/show", "server", "server/artifacts", "server/workdir", "server/workdir/pack"},
	"cli/commit":    {"cli/command", "cli/show/purchase"},
	"cli/compress":  {"cli/command", "cli/offers", "cli/show/compression"},
	"cli/data": {"cli/command", "cli/show/holdings", "cli/show/utilization", "cli/storage",
		"cli/storage/compare"},
	"cli/engines":   {"cli/command", "cli/jobfile", "cli/show", "server", "server/disk"},
	"cli/estimate":  {"cli/command", "cli/pastruns", "cli/offers", "cli/show/sizing"},
	"cli/evidence":  {"cli/command", "cli/pastruns"},
	"cli/export":    {"cli/command"},
	"cli/files":     {"cli/command", "cli/show/artifacts", "server/workdir/pack"},
	"cli/follow":    {"cli/command", "cli/show", "cli/show/artifacts"},
	"cli/groups":    {"cli/command", "cli/follow", "cli/show", "cli/show/group"},
	"cli/flagerror": nil,
	"cli/jobfile":   {"cli/command"},
	"cli/jobs": {"cli/command", "cli/follow", "cli/groups", "cli/page", "cli/show", "cli/show/group", "cli/show/artifacts",
		"cli/show/planning", "cli/show/utilization", "cli/terminal"},
	"cli/pastruns": {"cli/command", "server", "server/workdir/pack"},
	"cli/models":   {"cli/command", "cli/show/group"},
	"cli/offers":   {"cli/command", "cli/show/listing"},
	"cli/own":      {"cli/command", "cli/page", "cli/show/purchase"},
	"cli/page":     nil,
	"cli/plan": {"cli/command", "cli/evidence", "cli/jobfile", "cli/pastruns", "cli/offers", "cli/show",
		"cli/show/planning", "server", "server/prediction", "server/terms"},
	"cli/propose":          {"cli/command", "cli/jobfile", "cli/show", "cli/submit"},
	"cli/queue":            {"cli/command", "cli/show/spending"},
	"cli/review":           {"cli/command", "cli/show"},
	"cli/serving":          {"cli/command", "cli/pastruns", "cli/offers", "cli/show/inference"},
	"cli/session":          {"cli/command", "cli/follow", "cli/jobfile", "cli/show", "cli/submit", "cli/terminal"},
	"cli/share":            {"cli/command", "cli/show", "cli/show/account", "cli/show/spending"},
	"cli/serve":            {"server", "server/mailer", "server/oidc"}, // it fills their settings
	"cli/show/account":     {"cli/show"},
	"cli/show/bills":       {"cli/show"},
	"cli/show/comparison":  {"cli/show"},
	"cli/show/calibration": {"cli/show"},
	"cli/show/compression": {"cli/show"},
	"cli/show/group":       {"cli/show", "cli/show/calibration", "cli/show/search"},
	"cli/show/holdings":    {"cli/show"},
	"cli/show/inference":   {"cli/show"},
	"cli/show/artifacts":   {"cli/show"},
	"cli/show/listing":     {"cli/show"},
	"cli/show/planning":    {"cli/show"},
	"cli/show/purchase":    {"cli/show"},
	"cli/show/simulation":  {"cli/show"},
	"cli/show/sizing":      {"cli/show"},
	"cli/show/spending":    {"cli/show"},
	"cli/show/utilization": {"cli/show"},
	"cli/simulate": {"cli/benchmark", "cli/command", "cli/jobfile", "server/forecast",
		"server/terms"},
	"cli/gc": {"cli/command", "cli/show/artifacts"},
	"cli/pipeline": {"cli/command", "cli/groups", "cli/jobfile", "cli/pastruns", "cli/plan", "cli/show/group",
		"cli/show/planning", "cli/submit"},
	"cli/run": {"cli/command", "cli/evidence", "cli/follow", "cli/groups", "cli/jobfile", "cli/pastruns",
		"cli/plan", "cli/show/planning", "cli/show/sizing", "cli/submit"},
	"cli/submit":          {"cli/command", "cli/jobfile", "cli/pastruns", "server/workdir/pack"},
	"cli/storage":         {"cli/command", "cli/show", "cli/show/holdings", "cli/storage/compare"},
	"cli/storage/compare": {},
	"cli/show/search":     {"cli/show"},
	"cli/show/tracking":   {},
	"cli/terminal":        {"cli/command"},
	"cli/tune": {"cli/command", "cli/groups", "cli/jobfile", "cli/pastruns", "cli/plan", "cli/show",
		"cli/show/group", "cli/show/planning", "cli/show/search", "cli/show/tracking", "cli/submit"},
	"cli/show":               {},
	"cli/utilization":        {"cli/command", "cli/show/utilization", "cli/utilization/nsight"},
	"cli/utilization/nsight": {},

	"server/agents": {"server/auth", "server/disk", "server/artifacts", "server/reply", "server/secret", "server/terms",
		"server/workblob", "server/workdir", "server/workdir/missing"},
	"server/anomalies": {"server/auth", "server/reports", "server/outbox", "server/reply", "server/secret"},
	"server/auth":      {"server/reply"},
	"server/reports":   {"server/auth", "server/reply"},
	"server/bills":     {"server/auth", "server/reports", "server/disk", "server/reply"},
	"server/budgets":   {"server/auth", "server/reply", "server/webhook"},
	"server/ask":       {"server/reply"},
	"server/diagnosis": {"server/ask", "server/reply"},
	"server/datause":   {"server/reply"},
	"server/disk":      {},
	"server/exports":   {"server/auth", "server/bills", "server/disk", "server/reply"},
	"server/forecast":  {},
	"server/listener":  {"server/reply"},
	"server/condition": {"server/artifacts", "server/reply"},
	"server/groups": {"server/auth", "server/budgets", "server/condition", "server/jobs", "server/reply",
		"server/keymutex"},
	"server/outbox": {"server/forecast", "server/mailer", "server/notices", "server/secret", "server/tries",
		"server/keymutex", "server/webhook"},
	"server/jobs": {"server/auth", "server/budgets", "server/jobs/filter", "server/jobs/watchers", "server/reply",
		"server/secret", "server/keymutex"},
	"server/jobs/exec":     {"server/auth", "server/jobs", "server/jobs/output", "server/reply"},
	"server/jobs/filter":   {},
	"server/jobs/output":   {"server/auth", "server/jobs/watchers", "server/reply"},
	"server/jobs/totals":   {"server/auth", "server/jobs/filter", "server/reply"},
	"server/jobs/update":   {"server/auth", "server/budgets", "server/jobs", "server/reply", "server/secret"},
	"server/jobs/watchers": {"server/auth"},
	"server/joining":       {"server/auth", "server/reply"},
	"server/artifacts":     {"server/auth", "server/reply", "server/keymutex"},
	"server/metrics":       {},
	"server/oidc":          {},
	"server/proposals":     {"server/auth", "server/jobs", "server/reply"},
	"server/openapi":       {"server/auth"},
	"server/mailer":        {"server/tries"},
	"server/notices":       {},
	"server/pages":         {},
	"server/people":        {"server/auth", "server/reply"},
	"server/planning":      {"server/prediction", "server/reply", "server/submit/request"},
	"server/prediction":    {"server/forecast", "server/terms"},
	"server/reply":         {},
	"server/retention": {"server/auth", "server/disk", "server/artifacts", "server/reply", "server/keymutex",
		"server/workblob", "server/workdir"},
	"server/receipts": {"server/auth", "server/reports", "server/reply"},
	"server/review":   {"server/ask", "server/auth", "server/reply"},
	"server/savings":  {"server/auth", "server/reports", "server/reply"},
	"server/searches": {"server/auth", "server/reply", "server/submit/group"},
	"server/secret":   {},
	"server/stages":   {"server/artifacts", "server/workdir", "server/workdir/missing"},
	"server/submit": {"server/auth", "server/budgets", "server/disk", "server/groups", "server/jobs", "server/artifacts",
		"server/proposals", "server/reply", "server/condition", "server/secret", "server/stages", "server/submit/group",
		"server/submit/inputs", "server/submit/naming", "server/submit/request", "server/terms", "server/keymutex",
		"server/workdir"},
	"server/submit/group":   {"server/reply"},
	"server/submit/inputs":  {"server/auth", "server/reply"},
	"server/submit/naming":  {},
	"server/workloads":      {"server/auth", "server/reports", "server/reply"},
	"server/submit/request": {"server/reply", "server/webhook"},
	"server/telemetry":      {"server/auth", "server/disk", "server/reply"},
	"server/terms":          {},
	"server/tries":          {},
	"server/keymutex":       {},
	"server/webhook":        {"server/tries"},
	"server/workblob":       {"server/artifacts", "server/workdir"},
	"server/workdir": {"server/auth", "server/disk", "server/reply", "server/workdir/flow", "server/workdir/pack",
		"server/workdir/seen"},
	"server/workdir/missing": {"server/workdir"},
	"server/workdir/flow":    {"server/disk"},
	"server/workdir/seen":    {},
	"server/workdir/pack":    {"server/disk"},
}

// Apart returns where p imports a neighbour that it may not, and the neighbours that it may import but does not: a
// list that only grows would check nothing.
func Apart(p Package) (problems []string) {
	room := p.room()
	if room == "cli" || room == "server" || !within(room, "cli") && !within(room, "server") {
		return nil
	}
	allowed, known := neighbours[room]
	if !known {
		return []string{fmt.Sprintf("%s is not in neighbours in internal/test/archtest/apart.go: say "+
			"which of its neighbours it may import", p.Dir)}
	}
	seen := map[string]bool{}
	for imported, file := range imports(p) {
		to, ours := strings.CutPrefix(imported, Module+"/internal/")
		if !ours || !within(to, "cli") && !within(to, "server") {
			continue
		}
		if seen[to] = true; !slices.Contains(allowed, to) {
			problems = append(problems, fmt.Sprintf("%s imports %s: let it declare a small interface, or add it to "+
				"neighbours in internal/test/archtest/apart.go and say why they belong together", file.Name, to))
		}
	}
	for _, to := range allowed {
		if !seen[to] {
			problems = append(problems, fmt.Sprintf("%s imports %s no more: take it out of neighbours in "+
				"internal/test/archtest/apart.go", p.Dir, to))
		}
	}
	return problems
}
