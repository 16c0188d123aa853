package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/account"
	"scrimp/internal/cli/show/artifacts"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// At 80 and 120 columns no line is too wide, and each row keeps its whole name, also with names of 40 letters and
// letters of two columns.
func TestTables_KeepRowNames(t *testing.T) {
	long, wide := "finetune-a-language-model-on-many-pages-2", strings.Repeat("訓練", 10)
	offer := "aws/us-east-1a/p4de.24xlarge/on-demand-x"
	usd, cents := money.USD, amount("1241.5")
	job := api.Job{ID: long, Name: long, State: "running", Why: "cheapest", User: wide, Team: wide, Submitted: now, Deadline: ptr(now), TimeLeft: ptr(259200.0),
		Odds: ptr(0.98), Currency: usd, Spent: cents, Budget: ptr(amount("20000")), Step: 1_250_000, Total: ptr(int64(90_000_000)), Offer: offer}
	held := job
	held.State, held.Approval = "held", &api.Approval{Most: &cents, Until: now.Add(time.Hour), Limits: []api.Threshold{{Limit: "team:" + wide, Above: cents}}}
	uses := map[api.Use]money.Amount{api.Useful: cents, api.Lost: cents, api.StartUp: cents, api.Idle: cents, api.Open: cents}
	sold := sale()
	sold.Offers = append(sold.Offers, sold.Offers[0])
	last := &sold.Offers[len(sold.Offers)-1]
	last.Offer.ID, last.Quote.Offer = offer, offer
	for name, c := range map[string]struct {
		text func(show.Place) string
		has  []string
	}{
		"jobs": {func(p show.Place) string {
			return show.Jobs([]api.Job{job, {ID: "b", Currency: usd, Submitted: now}}, p)
		}, []string{long}},
		"held": {func(p show.Place) string { return show.Held([]api.Job{held}, p) }, []string{long}},
		"machines": {func(p show.Place) string {
			return show.Machines([]api.Machine{{Instance: "i-0123456789abcdef0", Offer: offer, State: api.MachineRunning, Job: long, Team: wide,
				User: wide, Since: now.Add(-time.Hour), Rate: 0.918e12, Cost: cents, Currency: usd}}, p)
		}, []string{"i-0123456789abcdef0"}},
		"costs": {func(p show.Place) string {
			return spending.Costs(api.Costs{By: "user", Until: now, Lines: []api.CostLine{{Name: wide, Currency: usd, Spent: cents, Jobs: 3, Uses: uses, Estimated: &cents, Actual: &cents,
				OnDemand: &cents, Saved: &cents, Foreseen: 3, Compared: 3}, {Name: long, Currency: usd, Spent: cents, Uses: uses}}}, p)
		}, []string{wide, long}},
		"budgets": {func(p show.Place) string {
			return spending.Budgets(api.Budgets{Currency: usd, Limits: []api.BudgetLine{{Limit: api.Limit{Scope: "team:" + wide, Window: "month", Dollars: &cents, GPUHours: ptr(200.0)},
				Use: api.LimitUse{Spent: cents, Held: cents, Jobs: 3}}}}, p)
		}, []string{wide}},
		"users": {func(p show.Place) string {
			return account.Users([]api.User{{Name: wide, Made: now, Grants: []api.Grant{{Team: wide, Role: api.Submitter}}}}, p)
		}, []string{wide}},
		"teams": {func(p show.Place) string {
			return account.Teams([]api.Team{{Name: wide, Projects: []string{wide, long}}}, p)
		}, []string{wide}},
		"tokens": {func(p show.Place) string {
			return account.Tokens([]api.Token{{ID: "0123456789ab", User: wide, Made: now, Expires: now, Note: long}}, p)
		}, []string{"0123456789ab"}},
		"market": {func(p show.Place) string { return listing.Sale{Market: sold}.Text(p) }, []string{offer}},
		"checkpoints": {func(p show.Place) string {
			return artifacts.Checkpoints(long, []api.Checkpoint{{Name: "000012-000007", Attempt: long + ".12", Step: 1_250_000, Captured: now, Bytes: 1 << 40, Files: 12, Newest: true,
				Metrics: map[string]float64{"validation_loss": 1.25, "accuracy": 0.5}}}, p)
		}, []string{"000012-000007"}},
	} {
		for _, width := range []int{80, 120} {
			text := c.text(show.Place{Width: width, Now: now})
			for line := range strings.Lines(text) {
				if n := draw.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d columns of %d: %s", name, n, width, line)
				}
			}
			for _, want := range c.has {
				if !strings.Contains(text, want) {
					t.Errorf("%s at %d columns has no %s:\n%s", name, width, want, text)
				}
			}
		}
	}
}
