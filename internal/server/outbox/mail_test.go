package outbox

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/golden"
)

// An e-mail says what happened and why, what it has cost so far, where the job is, and which command comes next.
func TestText_SaysWhatHappenedCostAndNextCommand(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2026, 12, 1, 18, 0, 0, 0, time.UTC)
	finish := deadline.Add(5 * time.Hour)
	about := subject{cost: "$12.34", server: "https://scrimp.example.org:7077"}
	failed, late, ended := about, about, about
	failed.exit, failed.detail = 137, "ended by signal 9\nafter step 400"
	late.deadline = deadline
	ended.deadline, ended.ended = deadline, deadline.Add(90*time.Second)
	poor := about
	poor.budget = "$15"
	local := about
	local.server = ""
	var all strings.Builder
	for _, c := range []struct {
		w word
		s subject
	}{
		{word{Job: "train", Event: "failed", State: "failed", Why: "program_failed"}, failed},
		{word{Job: "train", Event: "done", State: "succeeded", Why: "completed"}, ended},
		{word{Job: "train", Event: "done", State: "cancelled", Why: "asked"}, local},
		{word{Job: "train", Event: "over_budget", State: "stopped", Why: "budget_spent"}, poor},
		{word{Job: "train", Event: "over_budget", State: "running", Forecast: &expected{Budget: "15", Spent: "12.34",
			Detail: "a budget ends most simulated runs before the work is done",
			Fix:    "scrimp update train --budget DOLLARS, --gpu-hours or --wall-clock"}}, poor},
		{word{Job: "train", Event: "late", State: "running", Forecast: &expected{Deadline: &deadline, Finish: &finish,
			Detail: "half of the simulated runs finish after 2026-12-01T23:00:00Z; its deadline is 2026-12-01T18:00:00Z",
			Fix:    "scrimp update train --deadline TIME, or scrimp explain train"}}, late},
		{word{Job: "train", Event: "late", State: "running", Forecast: &expected{Deadline: &deadline, Passed: true,
			Detail: "its deadline has passed: 2026-12-01T18:00:00Z", Fix: "scrimp explain train"}}, late},
		{word{Job: "train", Event: "late", State: "succeeded", Why: "completed", Forecast: &expected{Deadline: &deadline,
			Passed: true, Detail: "it ended after its deadline, 2026-12-01T18:00:00Z", Fix: "scrimp explain train"}}, ended},
	} {
		all.WriteString("Subject: " + c.w.line() + "\n\n" + c.w.text(c.s) + "----\n")
	}
	golden.Check(t, "mail.txt", all.String())
}
