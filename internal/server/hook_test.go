package server

import (
	"net/http"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/wire/api"
)

// A webhook whose address itself leads inside is refused at submission, with the field.
func TestWebhook_WithAnInsideAddressIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	admin := w.user("root", identity.Grant{Team: identity.Everywhere, Role: identity.Admin})
	job := strings.Replace(aJob("j", ""), `"command"`, `"notify":"http://169.254.169.254/latest","command"`, 1)
	for _, ask := range []struct {
		method, path, field string
		body                any
	}{
		{"POST", "/v1/jobs", "notify.webhook", job},
		{"POST", "/v1/jobs/batch", "[0].notify.webhook", "[" + job + "]"},
		{"PUT", "/v1/budgets", "limit.notify",
			api.SetBudget{Limit: &client.Limit{Scope: "all", Window: "month", Jobs: new(3),
				Notify: "http://localhost:9/"}}},
	} {
		rec, p := w.ask(ask.method, ask.path, admin, ask.body)
		if rec.Code != http.StatusUnprocessableEntity || p.Field != ask.field || !strings.Contains(p.Fix, "--hook-hosts") {
			t.Errorf("%s %s: %d %+v", ask.method, ask.path, rec.Code, p)
		}
	}
}
