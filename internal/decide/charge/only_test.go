package charge_test

import (
	"slices"
	"testing"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// Each charge is under the value that it has, and charges without one are under exactly one of the names for that.
func TestOnly_SelectsByOneProperty(t *testing.T) {
	t.Parallel()
	job := charge.Charge{Owner: ledger.Owner{Team: "vision", Job: "a", Attempt: "a.1", Instance: "i", Tags: map[string]string{"model": "lm"}},
		Use: ledger.Useful, Currency: "USD"}
	job.Kind, job.Rule, job.Billed = "training", ledger.ReconciledRule("tax"), true
	idle := charge.Charge{Owner: ledger.Owner{Team: "Vision", Task: "a.1/idle.0", Instance: "i"}, Use: ledger.Idle, Currency: "EUR"}
	unused := charge.Charge{Rule: state.ReservedRule, Use: ledger.Idle, Currency: "USD"}
	for _, c := range []struct {
		name, value        string
		job, idle, reserve bool
	}{
		{"team", "vision", true, false, false},
		{"scope", "team:vision", true, true, false}, // budgets ignore case
		{"scope", "all", true, true, true},
		{"scope", "tag:model=lm", true, false, false},
		{"team", charge.Unused, false, false, true},
		{"team", charge.None, false, false, false},
		{"project", charge.None, true, true, false},
		{"job", charge.Idle, false, true, false},
		{"job", charge.None, false, false, false},
		{"kind", "training", true, false, false},
		{"kind", charge.Idle, false, true, false},
		{"attempt", "a.1", true, false, false},
		{"instance", "i", true, true, false},
		{"use", "idle", false, true, true},
		{"currency", "USD", true, false, true},
		{"rule", charge.Reconciled, true, false, false},
		{"rule", ledger.ReconciledRule("tax"), true, false, false},
		{"rule", ledger.ReconciledRule("credit"), false, false, false},
		{"rule", state.ReservedRule, false, false, true},
		{"confidence", "billed", true, false, false},
		{"tag", "model", true, false, false},
		{"tag", "model=lm", true, false, false},
		{"tag", "model=" + charge.None, false, true, false},
		{"tag", "model=" + charge.Unused, false, false, true},
		{"tag", "model=other", false, false, false},
	} {
		only := charge.OnlyOf(map[string][]string{c.name: {c.value}})
		if got := [3]bool{only.Has(&job), only.Has(&idle), only.Has(&unused)}; got != [3]bool{c.job, c.idle, c.reserve} || only.All() {
			t.Errorf("%s=%s selects %v", c.name, c.value, got)
		}
		others, err := charge.Only{}.Except([]string{c.name + "=" + c.value})
		if err != nil || others.All() {
			t.Errorf("without %s=%s: %v", c.name, c.value, err)
		}
		for _, x := range []*charge.Charge{&job, &idle, &unused} {
			if others.Has(x) == only.Has(x) {
				t.Errorf("%s=%s and all others both have, or both lack, %v", c.name, c.value, x)
			}
		}
	}
	if none := charge.OnlyOf(map[string][]string{"team": {""}}); !none.All() || !none.Has(&job) {
		t.Error("no selection leaves charges out")
	}
	for want, tags := range map[bool][]string{true: {"model", "model=lm"}, false: {"model=lm", "other=" + charge.Unused}} {
		if both := charge.OnlyOf(map[string][]string{"tag": tags}); both.Has(&job) != want {
			t.Errorf("%v selects the job: %v", tags, !want)
		}
	}
	on, err := charge.ParseOnly(map[string][]string{"rented": {"1"}}, func() map[string]bool { return map[string]bool{"i": true} })
	if err != nil || on.All() || !on.Has(&job) || !on.Has(&idle) || on.Has(&unused) {
		t.Error("the selection of a machine has other charges")
	}
	for _, wrong := range [][]string{{""}, {"team"}, {"team="}, {"color=red"}, slices.Repeat([]string{"team=a"}, charge.MostExcept+1)} {
		if _, err := (charge.Only{}).Except(wrong); err == nil {
			t.Errorf("%q is accepted", wrong[0])
		}
	}
}
