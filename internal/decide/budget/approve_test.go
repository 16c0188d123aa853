package budget_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

func TestApproval_CoversEveryExceededLimit(t *testing.T) {
	usd := func(s string) *money.Amount { a, _ := money.Parse(s); return &a }
	limits := []budget.Limit{
		{Scope: budget.All, Window: budget.Month, Approve: usd("1000")},
		{Scope: "team:a", Window: budget.Month, Approve: usd("100"), ApproveWithin: 24 * time.Hour},
		{Scope: "team:b", Window: budget.Month, Approve: usd("0")},
		{Scope: "team:a", Window: budget.Day, Dollars: usd("5")},
	}
	double := func(d time.Duration) time.Duration { return 2 * d }
	for _, c := range []struct {
		most   string // empty: unknown
		limits string
		within time.Duration
	}{
		{"100", "", 0}, {"100.000000000001", "team:a/month", 24 * time.Hour}, {"1000", "team:a/month", 24 * time.Hour},
		{"1000.01", "team:a/month all/month", 24 * time.Hour}, {"", "team:a/month all/month", 24 * time.Hour},
	} {
		j := budget.Job{ID: "j", User: "ann", Owner: ledger.Owner{Team: "a"}}
		if c.most != "" {
			j.Most, j.Bounded = *usd(c.most), true
		}
		a, asks := budget.Approval(limits, j, now, double)
		var names []string
		for _, l := range a.Limits {
			names = append(names, l.Limit)
		}
		if got := strings.Join(names, " "); got != c.limits || asks != (c.limits != "") ||
			asks && !a.Until.Equal(now.Add(2*c.within)) || a.Bounded != (c.most != "") && asks {
			t.Errorf("%q: %s, %v until %v, want %s", c.most, got, asks, a.Until, c.limits)
		}
	}
}

func TestMayApprove_FollowsTheRoles(t *testing.T) {
	team := budget.PendingApproval{Limits: []budget.Threshold{{Limit: "team:a/month", Scope: "team:a"}}}
	all := budget.PendingApproval{Limits: append(team.Limits, budget.Threshold{Limit: "all/month", Scope: budget.All})}
	for _, c := range []struct {
		a             budget.PendingApproval
		who           string
		admin, forAll bool
		want          budget.Unapproved
	}{
		{team, "bea", false, false, ""}, {team, "ann", false, false, budget.OwnJob}, {team, "ann", true, false, ""},
		{team, "ann", false, true, budget.OwnJob},
		{all, "bea", false, false, budget.NotForAll}, {all, "bea", true, false, budget.NotForAll},
		{all, "bea", false, true, ""}, {all, "ann", false, true, budget.OwnJob}, {all, "ann", true, true, ""},
	} {
		if got := c.a.May(c.who, "ann", c.admin, c.forAll); got != c.want {
			t.Errorf("%s (admin %v, for all %v) of %v: %q, want %q", c.who, c.admin, c.forAll, c.a.Limits, got, c.want)
		}
	}
}

func TestQuota_RefusesImpossibleOnes(t *testing.T) {
	for _, l := range []budget.Limit{
		{Scope: "all", Window: "day", Running: ptr(-1)}, {Scope: "all", Window: "day", GPUs: ptr(-1)},
		{Scope: "all", Window: "day", Running: ptr(1), Wait: true},
		{Scope: "all", Window: "total", GPUHours: ptr(1.0), Wait: true}, {Scope: "all", Window: "day", GPUHours: ptr(1e9)},
		{Scope: "all", Window: "day", Running: ptr(1), ApproveWithin: time.Hour},
		{Scope: "all", Window: "day", Approve: ptr(money.Picos(1)), ApproveWithin: -1},
	} {
		if l.Check() == nil {
			t.Errorf("%+v passes", l)
		}
	}
	for _, l := range []budget.Limit{{Scope: "all", Window: "day", Running: ptr(0)},
		{Scope: "all", Window: "week", GPUHours: ptr(0.0), Wait: true}, {Scope: "all", Window: "total", GPUs: ptr(8)}} {
		if err := l.Check(); err != nil || !l.Queues() {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
