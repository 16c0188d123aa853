package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/money"
)

// The page of an array shows its deadline and that the market's clock is simulated; once the array is over, it no
// longer offers to stop it.
func TestGroup_ShowsDeadlineAndClock(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	by, done := now.Add(90*time.Minute), now
	g := api.Group{ID: "a", Kind: "array", State: "open", Array: &api.Indexes{Step: 1}, Members: 4, AtOnce: 4, User: "ann",
		Submitted: now, Currency: money.USD, Deadline: &by, Speed: 60}
	text := group.Group(g, show.Place{Width: 80, Now: now})
	for _, want := range []string{"2026-11-27 10:30:00 UTC, 1h 30m left", "60 × real time", "scrimp stop a"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	g.Finished, g.State, g.Speed, g.Deadline = &done, "over", 1, nil
	text = group.Group(g, show.Place{Now: now})
	for _, no := range []string{"deadline", "clock", "scrimp stop"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is in\n%s", no, text)
		}
	}
}

// The counts of a group add up to its members: pruned trials are no failures, and reused stages have succeeded.
func TestGroups_CountsAddUp(t *testing.T) {
	study := api.Group{ID: "s", Kind: "study", State: "over", Members: 5, Began: 5, Succeeded: 2, Stopped: 3, Currency: money.USD,
		Study: &api.StudyState{}}
	flow := api.Group{ID: "f", Kind: "pipeline", State: "over", Members: 2, Currency: money.USD, Pipeline: &api.PipelineState{
		Saved: money.Picos(2_500_000_000_000), Stages: []api.StageState{{Name: "a", State: "reused"}, {Name: "b", State: "reused"}}}}
	lines := strings.Split(group.Groups([]api.Group{study, flow}, show.Place{Width: 200}), "\n")
	for n, want := range []string{"ID KIND STATE MEMBERS SUCCEEDED FAILED STOPPED OPEN", "s study over 5 2 0 3 0", "f pipeline over 2 2 0 0 0"} {
		if got := strings.Join(strings.Fields(lines[n]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", n, got, want)
		}
	}
	r := api.GroupReceipt{Group: study, Study: &api.StudyReceipt{}}
	for range 3 {
		r.Members = append(r.Members, api.GroupMember{ID: "s.1", State: "stopped", Why: "pruned"})
	}
	if text := group.Receipt(r, show.Place{Width: 200}); !strings.Contains(text, "2 succeeded, 3 pruned\n") {
		t.Errorf("the receipt of the study does not say how its trials ended:\n%s", text)
	}
	text := group.Receipt(api.GroupReceipt{Group: flow, OnDemand: new(money.Amount{})}, show.Place{Width: 200})
	if strings.Contains(text, "MEMBER") || !strings.Contains(text, "all 2 stages were reused") || !strings.Contains(text, "$2.500000 by stages") {
		t.Errorf("the receipt of a reused pipeline is\n%s", text)
	}
}
