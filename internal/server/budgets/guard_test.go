package budgets

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/webhook"
	"scrimp/internal/wire/api"
)

// The guard retries an unreachable webhook after growing waits, and gives up on one that refuses. The log has the
// warning once, with the reason.
func TestGuard_BacksOffFromUnreachableWebhooks(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	d := &Service{Hooks: webhook.NewSender("test", true, nil, log), Log: log}
	asked, code := 0, http.StatusBadGateway
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		asked++
		rw.WriteHeader(code)
	}))
	defer hook.Close()
	l := budget.Limit{Scope: "all", Window: budget.Total, Dollars: new(money.Picos(1e12)), Notify: hook.URL + "/secret"}
	look := func() bool {
		return d.warn(t.Context(), "k", l, budget.Use{Spent: money.Picos(1)}, api.BudgetWarning{Share: 1})
	}
	for range 5 {
		if look() {
			t.Fatal("a webhook that answers 502 counts as told")
		}
	}
	if asked != 1 || strings.Count(said.String(), "msg=budget ") != 1 || !strings.Contains(said.String(), "502") {
		t.Errorf("asked %d times at 5 looks in a row; the log:\n%s", asked, &said)
	}
	for n, wait := 2, webhook.Rule.First; n < 12; n++ {
		wait = min(2*wait, webhook.Rule.Longest)
		d.owed["k"] = owed{time.Now().Add(-1), d.owed["k"].wait}
		if look() || asked != n || d.owed["k"].wait != wait {
			t.Errorf("try %d: asked %d, again in %v, want %v", n, asked, d.owed["k"].wait, wait)
		}
	}
	code = http.StatusNotFound
	d.owed["k"] = owed{time.Now().Add(-1), time.Minute}
	if !look() || len(d.owed) != 0 || !strings.Contains(said.String(), "404") ||
		strings.Contains(said.String(), "secret") {
		t.Errorf("a webhook that refuses: owed %v; the log:\n%s", d.owed, &said)
	}
}
