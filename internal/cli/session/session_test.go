package session

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/test/must"
	"scrimp/money"
)

// The end of a session is the earlier of its idle end, from now on while it is in use, and the end of its budget, with
// the word that says which.
func TestEndsAt_IsEarlierOfIdleAndBudget(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	at := func(minutes int) *time.Time { return new(now.Add(time.Duration(minutes) * time.Minute)) }
	for name, c := range map[string]struct {
		budget string   // at a dollar an hour; empty: none
		idle   *float64 // limit in seconds
		since  *time.Time
		state  string
		end    *time.Time
		what   string
	}{
		"in use, the idle end is first":   {"1", new(600.0), nil, "running", at(10), "idle"},
		"in use, the budget is first":     {"0.1", new(600.0), nil, "running", at(6), "budget"},
		"idle for a while":                {"1", new(600.0), at(-4), "running", at(6), "idle"},
		"idle, the budget is first":       {"0.05", new(600.0), at(-4), "running", at(3), "budget"},
		"no budget":                       {"", new(600.0), nil, "running", at(10), "idle"},
		"no idle limit":                   {"0.5", nil, nil, "running", at(30), "budget"},
		"neither":                         {"", nil, nil, "running", nil, ""},
		"queued: its time does not begin": {"", new(600.0), nil, "queued", nil, ""},
	} {
		j := api.Job{State: c.state, IdleLimit: c.idle, IdleSince: c.since, Speed: 1}
		rate, err := money.ParseRate("1")
		must.Do(t, err)
		j.Rate = &rate
		if c.budget != "" {
			amount, err := money.Parse(c.budget)
			must.Do(t, err)
			j.Budget = &amount
		}
		end, what, ok := endsAt(j, now)
		if ok != (c.end != nil) || what != c.what || ok && end.Sub(*c.end).Abs() > time.Second {
			t.Errorf("%s: %v %q %v, want %v %q", name, end, what, ok, c.end, c.what)
		}
	}
}

// The list shows small amounts with their digits and never as zero.
func TestTable_ShowsSmallAmounts(t *testing.T) {
	t.Parallel()
	budget, spent := money.Picos(1_500_000_000), money.Picos(20_000_000)
	now := time.Unix(1_700_000_000, 0)
	text := table([]listed{{Job: api.Job{ID: "s", State: "running", Currency: money.USD, Budget: &budget, Spent: spent},
		EndsAt: new(now.Add(time.Minute)), EndsFor: "budget"}}, show.Place{Now: now}, now)
	for _, want := range []string{"$0.0015", "$0.00002", "in 1m 00s, budget"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}
