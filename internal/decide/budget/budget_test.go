package budget_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

var now = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) // a Saturday

func ptr[T any](v T) *T { return &v }

func TestWindow_IsACalendarSpanInUTC(t *testing.T) {
	for w, want := range map[budget.Window][2]string{
		budget.Day: {"2026-11-21", "2026-11-22"}, budget.Week: {"2026-11-16", "2026-11-23"},
		budget.Month: {"2026-11-01", "2026-12-01"},
	} {
		end, ok := w.End(now.In(time.FixedZone("", 3600)))
		if got := w.Begin(now).Format(time.DateOnly); got != want[0] || !ok || end.Format(time.DateOnly) != want[1] {
			t.Errorf("%s: %s to %v, want %v", w, got, end, want)
		}
	}
	if _, ok := budget.Total.End(now); ok || !budget.Total.Begin(now).IsZero() {
		t.Error("all time begins or ends")
	}
}

func TestScope_CoversItsJobsAndNoOthers(t *testing.T) {
	o := ledger.Owner{Team: "a", Project: "p", Tags: map[string]string{"env": "prod"}}
	for text, want := range map[string]bool{
		"all": true, "team:a": true, "team:b": false, "project:p": true, "project:q": false, "user:ann": true,
		"user:bob": false, "tag:env=prod": true, "tag:env=dev": false, "tag:x=y": false,
	} {
		s, err := budget.ParseScope(text)
		if err != nil || s.Holds(o, "ann") != want {
			t.Errorf("%s: %v, %v, want %v", text, s.Holds(o, "ann"), err, want)
		}
	}
	for _, bad := range []string{"", "team", "team:", "tag:env", "tag:=x", "tag:env=", "colour:red", "All"} {
		if s, err := budget.ParseScope(bad); err == nil {
			t.Errorf("%q is read as %v", bad, s)
		}
	}
}

// Jobs arrive, spend at most their maximum, and end, while windows roll over. At each admission spent plus held
// stay within each limit, no window spends more than its limit, and nothing is held at the end.
func TestWindow_SpendsAtMostItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scopes := []budget.Scope{"all", "team:a", "team:b", "user:ann", "tag:env=prod"}
		b := budget.Accounts{Spent: map[string]money.Amount{}, GPUs: map[string]float64{}}
		for i, n := 0, rapid.IntRange(1, 4).Draw(t, "limits"); i < n; i++ {
			w := rapid.SampledFrom([]budget.Window{budget.Day, budget.Month, budget.Total}).Draw(t, "window")
			l := budget.Limit{Scope: scopes[i], Window: w,
				Dollars: ptr(money.Picos(rapid.Int64Range(0, 1000).Draw(t, "dollars")))}
			b.Limits = append(b.Limits, l)
		}
		at, admitted := now, 0
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				j := budget.Job{ID: fmt.Sprint(n), User: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "user"),
					Bounded: rapid.IntRange(0, 9).Draw(t, "bounded") > 0, GPUBounded: true}
				j.Owner.Team = rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "team")
				j.Owner.Tags = map[string]string{"env": rapid.SampledFrom([]string{"prod", "dev"}).Draw(t, "env")}
				j.Most = money.Picos(rapid.Int64Range(0, 600).Draw(t, "most"))
				before := b.Admit(j)
				slices.Reverse(b.Live)
				if after := b.Admit(j); (before == nil) != (after == nil) || before != nil && before.Error() != after.Error() {
					t.Fatalf("in another order of jobs: %v and %v", before, after)
				}
				if before != nil {
					continue
				}
				admitted++
				if b.Live = append(b.Live, j); !budget.Capped(b.Limits, j.Owner, j.User) {
					continue
				}
				for _, l := range b.Limits {
					if u := b.Use(l); l.Scope.Holds(j.Owner, j.User) && u.Spent.Add(u.Held).Cmp(*l.Dollars) > 0 {
						t.Fatalf("%s: %v spent and %v held pass %v", l.Name(), u.Spent, u.Held, *l.Dollars)
					}
				}
			case 1:
				if len(b.Live) == 0 {
					continue
				}
				j := &b.Live[rapid.IntRange(0, len(b.Live)-1).Draw(t, "who")]
				part := money.Min(money.Picos(rapid.Int64Range(0, 300).Draw(t, "part")), j.Most.Sub(j.Spent))
				if !j.Bounded || part.Sign() <= 0 {
					continue
				}
				j.Spent = j.Spent.Add(part)
				for _, l := range b.Limits {
					if !l.Scope.Holds(j.Owner, j.User) {
						continue
					}
					if b.Spent[l.Name()] = b.Spent[l.Name()].Add(part); b.Spent[l.Name()].Cmp(*l.Dollars) > 0 {
						t.Fatalf("%s has spent %v of %v", l.Name(), b.Spent[l.Name()], *l.Dollars)
					}
				}
			case 2:
				if len(b.Live) > 0 {
					i := rapid.IntRange(0, len(b.Live)-1).Draw(t, "who")
					b.Live = slices.Delete(b.Live, i, i+1)
				}
			case 3:
				next := at.Add(time.Duration(rapid.IntRange(1, 800).Draw(t, "hours")) * time.Hour)
				for _, l := range b.Limits {
					if !l.Window.Begin(next).Equal(l.Window.Begin(at)) {
						delete(b.Spent, l.Name())
					}
				}
				at = next
			}
		}
		b.Live = nil
		for _, l := range b.Limits {
			if u := b.Use(l); u.Held.Sign() != 0 || u.Jobs != 0 {
				t.Fatalf("%s holds %v for nobody", l.Name(), u.Held)
			}
		}
	})
}

func TestRefusal_NamesItsLimitAndItsFix(t *testing.T) {
	usd := func(s string) *money.Amount { a, _ := money.Parse(s); return &a }
	other := budget.Job{ID: "other", Bounded: true, Most: *usd("60"), Spent: *usd("10"), GPUBounded: true, GPUMost: 6}
	j := budget.Job{ID: "new", Bounded: true, Most: *usd("50"), GPUBounded: true, GPUMost: 3}
	with := func(f func(*budget.Job, *budget.Job)) (budget.Job, budget.Job) {
		a, b := j, other
		f(&a, &b)
		return a, b
	}
	for want, c := range map[budget.Reason]struct {
		limit budget.Limit
		f     func(j, other *budget.Job)
	}{
		"":                 {budget.Limit{Dollars: usd("110"), GPUHours: ptr(9.0), Jobs: ptr(2)}, func(_, _ *budget.Job) {}},
		budget.Dollars:     {budget.Limit{Dollars: usd("109.999999999999")}, func(_, _ *budget.Job) {}},
		budget.NoBudget:    {budget.Limit{Dollars: usd("1000")}, func(j, _ *budget.Job) { j.Bounded = false }},
		budget.OtherOpen:   {budget.Limit{Dollars: usd("1000")}, func(_, o *budget.Job) { o.Bounded = false }},
		budget.GPUHours:    {budget.Limit{GPUHours: ptr(8.9)}, func(_, _ *budget.Job) {}},
		budget.NoGPUBudget: {budget.Limit{GPUHours: ptr(100.0)}, func(j, _ *budget.Job) { j.GPUBounded = false }},
		budget.GPUOpen:     {budget.Limit{GPUHours: ptr(100.0)}, func(_, o *budget.Job) { o.GPUBounded = false }},
		budget.TooMany:     {budget.Limit{Jobs: ptr(1)}, func(_, _ *budget.Job) {}},
	} {
		a, o := with(c.f)
		c.limit.Scope, c.limit.Window = budget.All, budget.Month
		b := budget.Accounts{Limits: []budget.Limit{c.limit}, Spent: map[string]money.Amount{"all/month": *usd("10")},
			Live: []budget.Job{o}}
		r := b.Admit(a)
		if want == "" {
			if r != nil {
				t.Errorf("what fits exactly is refused: %v", r)
			}
			continue
		}
		if r == nil || r.Why != want || r.Fix == "" || r.Limit.Name() != "all/month" || r.Error() == string(want) {
			t.Errorf("%s: %+v", want, r)
		}
	}
}

// A refusal states the room left: a job of exactly that amount is admitted, one of a cent more is not.
func TestRefusal_StatesTheRoomLeft(t *testing.T) {
	for spent, left := range map[string]string{"0": "4", "1.17": "2.83", "1.170000000001": "2.82", "3.999": "0",
		"4": "0", "5": "0"} {
		b := budget.Accounts{Limits: []budget.Limit{{Scope: budget.All, Window: budget.Month, Dollars: dollars("4")}},
			Spent: map[string]money.Amount{"all/month": *dollars(spent)}}
		r := b.Admit(budget.Job{ID: "new", Bounded: true, Most: *dollars("9.50")})
		if r == nil || !strings.Contains(r.Error(),
			"leaves "+money.Format(*dollars(left), money.USD, 2)+", and the job can cost $9.50") {
			t.Errorf("of $4, $%s is spent: %v, want that $%s is left", spent, r, left)
		}
		if spent != "5" && b.Admit(budget.Job{ID: "new", Bounded: true, Most: *dollars(left)}) != nil {
			t.Errorf("of $4, $%s is spent: a job of $%s is refused", spent, left)
		}
		if b.Admit(budget.Job{ID: "new", Bounded: true, Most: dollars(left).Add(*dollars("0.01"))}) == nil {
			t.Errorf("of $4, $%s is spent: a job of a cent more than $%s is let in", spent, left)
		}
	}
}

// A refusal advises only what can help: no smaller budget if nothing is left, and no wait for jobs if all is spent.
func TestRefusal_AdvisesWhatCanHelp(t *testing.T) {
	job := func(most string) budget.Job { return budget.Job{ID: "j" + most, Bounded: true, Most: *dollars(most)} }
	for _, c := range []struct {
		window      budget.Window
		spent, held string
		want        string
	}{
		{budget.Month, "1", "1", "give the job a smaller budget, wait until jobs are over, or ask an admin for " +
			"scrimp budgets set"},
		{budget.Month, "1", "3", "wait until jobs are over, or ask an admin for scrimp budgets set"},
		{budget.Month, "4", "0", "wait for the next month, or ask an admin for scrimp budgets set"},
		{budget.Day, "5", "1", "wait for the next day, or ask an admin for scrimp budgets set"},
		{budget.Total, "4", "0", "ask an admin for scrimp budgets set"},
	} {
		l := budget.Limit{Scope: budget.All, Window: c.window, Dollars: dollars("4")}
		b := budget.Accounts{Limits: []budget.Limit{l}, Spent: map[string]money.Amount{l.Name(): *dollars(c.spent)},
			Live: []budget.Job{job(c.held)}}
		if r := b.Admit(job("9")); r == nil || r.Fix != c.want {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

func TestLimit_NotifyMustBeAWebAddress(t *testing.T) {
	for address, want := range map[string]bool{"": true, "https://example.org/hook?a=b": true,
		"http://127.0.0.1:7999": true, "ftp://example.org": false, "example.org": false, "https://": false,
		"https:///x": false, "https://a b": false} {
		l := budget.Limit{Scope: budget.All, Window: budget.Month, Dollars: dollars("4"), Notify: address}
		if err := l.Check(); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func dollars(s string) *money.Amount { a, _ := money.Parse(s); return &a }

func TestForecast_PredictsBreachAndThresholdsInOrder(t *testing.T) {
	l := budget.Limit{Scope: budget.All, Window: budget.Day, Dollars: ptr(money.Picos(100e12)), Warn: []float64{0.8, 0.5}}
	at, ok := l.Breach(budget.Use{Spent: money.Picos(80e12)}, 10e12, now)
	if !ok || !at.Equal(now.Add(2*time.Hour)) {
		t.Errorf("$20 at $10 an hour last until %v, %v", at, ok)
	}
	if at, ok := l.Breach(budget.Use{Spent: money.Picos(80e12)}, 1e12, now); ok {
		t.Errorf("tomorrow is another window, not %v", at)
	}
	if _, ok := l.Breach(budget.Use{}, 0, now); ok {
		t.Error("nothing that runs breaches")
	}
	for spent, want := range map[int64]string{49: "[]", 50: "[0.5]", 99: "[0.5 0.8]", 100: "[0.5 0.8 1]"} {
		if got := fmt.Sprint(l.Passed(budget.Use{Spent: money.Picos(spent * 1e12)})); got != want {
			t.Errorf("at %d: %s, want %s", spent, got, want)
		}
	}
}

// Limits and required tags treat the fields environment and model_version like tags.
func TestEnvironment_IsLimitedAndRequiredLikeATag(t *testing.T) {
	scope, err := budget.ParseScope("tag:environment=prod")
	if err != nil || !scope.Holds(ledger.Owner{Environment: "prod"}, "ann") || scope.Holds(ledger.Owner{Environment: "dev"}, "ann") {
		t.Errorf("%v %v", scope, err)
	}
	o := ledger.Owner{ModelVersion: "v3"}
	r := budget.Tags{"environment": {"dev"}, "model_version": nil}
	if err := r.Check(o); err == nil || err.Error() != "environment is missing: write dev" {
		t.Errorf("%v", err)
	}
	if o.Environment = "dev"; r.Check(o) != nil {
		t.Error(r.Check(o))
	}
}

func TestRequiredTags_AreNamedInTheError(t *testing.T) {
	r := budget.Tags{"env": {"dev", "prod"}, "ticket": nil}
	for want, has := range map[string]map[string]string{
		"": {"env": "dev", "ticket": "4"}, "tag env is missing: write dev, prod": {"ticket": "4"},
		`tag env is "test": write dev, prod`:     {"env": "test"},
		"tag ticket is missing: write any value": {"env": "dev", "ticket": ""},
	} {
		if err := r.Check(ledger.Owner{Tags: has}); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v: %v, want %q", has, err, want)
		}
	}
}

func TestRequiredTags_TeamAndProjectAreFieldsOfTheJob(t *testing.T) {
	r := budget.Tags{"team": {"vision"}, "project": nil}
	for want, o := range map[string]ledger.Owner{
		"":                                    {Team: "vision", Project: "lanes"},
		`team is "text": write vision`:        {Team: "text", Project: "lanes", Tags: map[string]string{"team": "vision"}},
		"project is missing: write any value": {Team: "vision"},
	} {
		if err := r.Check(o); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestLimit_ErrorNamesTheFault(t *testing.T) {
	one := ptr(money.Picos(1))
	for _, l := range []budget.Limit{
		{Scope: "x", Window: "day", Dollars: one}, {Scope: "all", Window: "year", Dollars: one},
		{Scope: "all", Window: "day"}, {Scope: "all", Window: "day", Dollars: ptr(money.Picos(-1))},
		{Scope: "all", Window: "day", Dollars: one, Warn: []float64{2}},
		{Scope: "all", Window: "day", Jobs: ptr(1), Warn: []float64{0.5}},
	} {
		if l.Check() == nil {
			t.Errorf("%+v passes", l)
		}
	}
}
