package budget_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
)

// A limit of dollars an hour stands alone, in the window hour.
func TestRate_IsALimitOfItsOwn(t *testing.T) {
	rate := func(r money.Rate) *money.Rate { return &r }
	one := 1
	for says, l := range map[string]budget.Limit{
		"": {Scope: "all", Window: budget.Hour, Rate: rate(0)},
		"all/day: dollars an hour are a limit of their own":  {Scope: "all", Window: budget.Day, Rate: rate(1e12)},
		"all/hour: dollars an hour are a limit of their own": {Scope: "all", Window: budget.Hour, Jobs: &one},
		"in the window hour":                  {Scope: "all", Window: budget.Hour, Rate: rate(1), Dollars: dollars("5")},
		"all/hour: the rate is out of bounds": {Scope: "all", Window: budget.Hour, Rate: rate(-1)},
		"rate is out of bounds: write":        {Scope: "all", Window: budget.Hour, Rate: rate(9e18)},
	} {
		err := l.Check()
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", l, err, says)
		}
	}
	at := time.Date(2026, 11, 2, 10, 59, 59, 5, time.UTC)
	if end, ok := budget.Hour.End(at); !ok || !end.Equal(at.Truncate(time.Hour).Add(time.Hour)) || !budget.Hour.Begin(end).Equal(end) {
		t.Errorf("the hour of %v ends at %v", at, end)
	}
}
