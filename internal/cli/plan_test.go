package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/test/must"
)

// A job of half a minute starts at once on available spot, however distant its deadline, and the plan agrees: it uses
// the same code.
func TestPlan_ShortJobWithFarDeadlineStartsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", endless+"work: {steps: 300, time: 35s}\ndeadline: in 24h\n")
	var p planning.Plan
	must.Do(t, json.Unmarshal([]byte(h.out("plan", "--json", "job.yaml")), &p))
	h.do("run", "-y", "-d", "job.yaml")
	var first api.Decision
	must.Do(t, json.Unmarshal([]byte(strings.SplitN(h.do("explain", "--json", "endless"), "\n", 2)[0]), &first))
	if !strings.HasSuffix(p.Take, "/spot") || p.FinishS[2] > 300 {
		t.Errorf("the plan begins on %q (%s) and ends after %.0f s", p.Take, p.Why, p.FinishS[2])
	}
	if string(first.Take) != p.Take || string(first.Why) != p.Why {
		t.Errorf("done was %s (%s), planned %s (%s)", first.Take, first.Why, p.Take, p.Why)
	}
}

// If no price meets the deadline, the plan does not blame the budget.
func TestPlan_BlamesDeadlineWhenMoneyDoesNotHelp(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", endless+"work: {steps: 300, time: 2h}\ndeadline: in 1h\nbudget: $90\n")
	text, err := h.try("plan", "job.yaml")
	if err == nil || !strings.Contains(text, "the deadline is too soon for any budget") || strings.Contains(text, "rather than dearer") || !strings.Contains(text, "would do") {
		t.Errorf("%v: %s", err, text)
	}
}
