package interactive

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// seat returns the seat of a shell with a console, at a time that the test moves.
func seat(t *testing.T, idle time.Duration) (s *Seat, now *time.Time) {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	s = New(&api.Assignment{Job: "s", Session: Shell, Idle: idle, Grace: 20 * time.Second}, func() time.Time { return at })
	if _, _, _, err := s.Program(nil, 0); err != nil {
		t.Fatal(err)
	}
	return s, &at
}

// shown collects what a seat's users see until it has ended.
func shown(t *testing.T, s *Seat) string {
	t.Helper()
	s.Started()
	s.Ended()
	return s.console.Said()
}

// Each kind of use counts, and nothing else does. A task that is not a session reports no use.
func TestSeat_CountsEachUse(t *testing.T) {
	t.Parallel()
	half, none := 0.5, 0.0
	for name, c := range map[string]struct {
		use  api.Usage
		do   func(*Seat)
		want bool
	}{
		"nothing":                  {api.Usage{CPU: 0.04, GPU: &none}, func(*Seat) {}, false},
		"a processor":              {api.Usage{CPU: 0.05}, func(*Seat) {}, true},
		"a GPU":                    {api.Usage{GPU: &half}, func(*Seat) {}, true},
		"a key":                    {api.Usage{}, (*Seat).Typed, true},
		"an open connection":       {api.Usage{}, func(s *Seat) { s.Connected(1); s.InUse(t.Context(), api.Usage{}) }, true},
		"a connection that closed": {api.Usage{}, func(s *Seat) { s.Connected(1); s.Connected(-1) }, true},
		"one that closed long ago": {api.Usage{}, func(s *Seat) { s.Connected(1); s.Connected(-1); s.InUse(t.Context(), api.Usage{}) },
			false},
	} {
		s, _ := seat(t, time.Hour)
		if c.do(s); *s.InUse(t.Context(), c.use) != c.want {
			t.Errorf("%s: in use is %v", name, !c.want)
		}
		s.Started()
		s.Ended()
	}
	var no *Seat
	no.Typed()
	no.Connected(1)
	no.Budget(api.Orders{BudgetLeft: "1", Spent: "1"})
	if no.InUse(t.Context(), api.Usage{CPU: 1}) != nil || no.Console() != nil || New(&api.Assignment{}, time.Now) != nil {
		t.Error("a task that is not a session has a use")
	}
}

// A notebook is in use while a kernel is busy. One that answers nonsense, or nothing, is not.
func TestSeat_BusyKernelIsUse(t *testing.T) {
	t.Parallel()
	answer := `[{"execution_state":"idle"},{"execution_state":"busy"}]`
	jupyter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/kernels" && r.Header.Get("Authorization") == "token secret" {
			_, _ = w.Write([]byte(answer))
		}
	}))
	s := &Seat{kind: Notebook, now: time.Now, address: strings.TrimPrefix(jupyter.URL, "http://"), token: "secret"}
	for _, c := range []struct {
		answer string
		want   bool
	}{{answer, true}, {`[{"execution_state":"idle"}]`, false}, {`[]`, false}, {`<html>busy`, false},
		{`[{"execution_state":"busy"}`, false}} {
		if answer = c.answer; *s.InUse(t.Context(), api.Usage{}) != c.want {
			t.Errorf("%s: in use is %v", c.answer, !c.want)
		}
	}
	jupyter.Close()
	if *s.InUse(t.Context(), api.Usage{}) {
		t.Error("a notebook that is gone is in use")
	}
}

// Users are warned once before an idle session ends, and again after it was used.
func TestSeat_WarnsOfIdleEnd(t *testing.T) {
	t.Parallel()
	s, now := seat(t, 20*time.Minute)
	look := func(after time.Duration, cpu float64) {
		*now = now.Add(after)
		s.InUse(context.Background(), api.Usage{CPU: cpu})
	}
	for range 19 {
		look(time.Minute, 0) // the 18th and the 19th are within two minutes of the end
	}
	look(0, 1)
	look(time.Minute, 0)
	look(18*time.Minute, 0)
	if text := shown(t, s); strings.Count(text, "nobody uses this session") != 2 || !strings.Contains(text, "in 2m0s scrimp saves") {
		t.Errorf("it says %q", text)
	}
}

// Users are warned two minutes and twenty seconds before the budget is spent, with what the grace costs kept back.
func TestSeat_WarnsOfBudget(t *testing.T) {
	t.Parallel()
	s, now := seat(t, 0)
	spend := func(seconds int) { // a cent a second, of $10
		*now = time.Unix(1_700_000_000, 0).Add(time.Duration(seconds) * time.Second)
		s.Budget(api.Orders{Spent: cents(seconds), BudgetLeft: cents(1000 - seconds), Currency: "USD"})
	}
	for _, second := range []int{0, 100, 800, 859, 860, 870, 959, 960, 970} {
		spend(second)
	}
	s.Budget(api.Orders{Spent: "odd", BudgetLeft: "1"})
	text := shown(t, s)
	if strings.Count(text, "the budget of $10.00 is spent") != 2 || !strings.Contains(text, "in about 2m0s") ||
		!strings.Contains(text, "in about 20s") || !strings.Contains(text, "scrimp update s --budget") {
		t.Errorf("it says %q", text)
	}
}

// A budget of less than a cent is shown with its own digits.
func TestSeat_WarnsOfSmallBudget(t *testing.T) {
	t.Parallel()
	s, now := seat(t, 0)
	s.Budget(api.Orders{Spent: "0", BudgetLeft: "0.0015", Currency: "USD"})
	*now = now.Add(time.Minute)
	s.Budget(api.Orders{Spent: "0.0005", BudgetLeft: "0.001", Currency: "USD"})
	if text := shown(t, s); !strings.Contains(text, "the budget of $0.0015 is spent in about 1m40s") {
		t.Errorf("it says %q", text)
	}
}

func cents(n int) string {
	return string([]byte{byte('0' + n/1000), byte('0' + n/100%10), '.', byte('0' + n/10%10), byte('0' + n%10)})
}
