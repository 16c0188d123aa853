package pages

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"scrimp/client"
)

// An admin of all teams removes a bill of an open month on the page, others get no button.
func TestBills_AdminsRemoveOnesOfOpenMonths(t *testing.T) {
	f, s := full(t, "x")
	text := html.UnescapeString(asks(s, "GET", "/bills", "").Body.String())
	if n := strings.Count(text, `value="remove-bill"`); n != 1 || !strings.Contains(text, `scrimp bill remove AWS 'it'\''s 1/x' 2026-09 --yes`) {
		t.Errorf("%d forms, or no command: %s", n, text)
	}
	f.answers["POST /v1/bills/remove"] = client.RemovedBill{}
	form := url.Values{"act": {"remove-bill"}, "job": {"any"}, "provider": {"AWS"}, "account": {"it's 1/x"}, "month": {"2026-09"}, "back": {"/bills"}}
	rec := asks(s, "POST", "/do", form.Encode())
	if want := `{"provider":"AWS","account":"it's 1/x","month":"2026-09"}`; rec.Code != 303 || strings.TrimSpace(f.body) != want {
		t.Errorf("%d, sent %s, want %s", rec.Code, f.body, want)
	}
	f.answers["/v1/me"] = client.Me{User: "vi", Best: client.Viewer, Grants: []client.Grant{{Team: client.Everywhere, Role: client.Viewer}}}
	if text := asks(s, "GET", "/bills", "").Body.String(); strings.Contains(text, "remove-bill") || !strings.Contains(text, "2026-09") {
		t.Error("a viewer gets a button, or no bill")
	}
}
