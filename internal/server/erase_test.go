package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

const (
	leaver     = "zephyrine"
	leaverMail = "zephyrine.w@example.org"
)

// leaves makes a user who works, with an address, a job, a limit and refused requests.
func (w *world) leaves() (token string) {
	w.t.Helper()
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	token = w.user(leaver, identity.Grant{Team: "vision", Role: identity.Submitter})
	w.must("PUT", "/v1/users/"+leaver, api.SetUser{Email: new(leaverMail)}, nil)
	w.limit(budget.Limit{Scope: "user:" + leaver, Window: budget.Day, Jobs: new(9)})
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/v1/jobs", aJob("net", "vision")}, {"POST", "/v1/jobs", aJob("gone", "vision")}, {"POST", "/v1/jobs/gone/end", "{}"},
		{"POST", "/v1/jobs", `{"spec":{"name":"no command"}}`}, {"GET", "/v1/users", ""}, {"PUT", "/v1/users/" + leaver, "{}"},
		{"POST", "/v1/tokens", `{"user":"` + leaver + `","life_ns":-5}`}, {"DELETE", "/v1/tokens/none", ""},
	} {
		w.ask(r.method, r.path, token, r.body)
	}
	w.ask("PUT", "/v1/users/other", auth.OwnerName, api.SetUser{Email: new(leaverMail)}) // taken
	return token
}

// everything returns all that an admin can read of people and their jobs.
func (w *world) everything() string {
	w.t.Helper()
	var all strings.Builder
	for _, r := range table() {
		if r.Method != http.MethodGet || r.Scope == auth.Open || r.Scope > auth.OfOwnJob || r.Stream != "" && r.Stream != "text/csv" {
			continue
		}
		path := strings.ReplaceAll(r.Path, "{id}", "net")
		if strings.Contains(path, "{") {
			continue
		}
		for _, query := range []string{"", "?by=user", "?user=" + identity.ErasedName(1)} {
			rec, _ := w.ask("GET", path+query, auth.OwnerName, nil)
			all.WriteString(path + "\n" + rec.Body.String() + "\n")
		}
	}
	return all.String()
}

// logged returns the texts of the log, of what is beside it, and of snapshots.
func (w *world) logged() string {
	w.t.Helper()
	var all strings.Builder
	for r, err := range w.eachRecord(w.t) {
		if err != nil {
			w.t.Fatal(err)
		}
		all.WriteString(r.Key + string(r.Event) + string(r.Facts) + "\n")
	}
	return all.String()
}

// An erasure says how many groups may begin more jobs: those that are not over.
func TestErase_CountsGroupsThatGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	token := w.user(leaver, identity.Grant{Team: "vision", Role: identity.Submitter})
	for name, over := range map[string]bool{"open": false, "over": true} {
		if rec, p := w.ask("POST", "/v1/groups", token, inArray(name, "vision", "0-1", "")); rec.Code >= 300 {
			t.Fatalf("%d %+v", rec.Code, p)
		}
		if over {
			w.must("POST", "/v1/groups/"+name+"/end", `{}`, nil)
		}
	}
	var v api.Erasure
	w.must("POST", "/v1/users/"+leaver+"/erase", api.EraseUser{DryRun: true}, &v)
	if v.Groups != 1 {
		t.Errorf("the dry run says %+v, want one group", v)
	}
}

// An erased user has no name: no answer, no event and nothing beside the log holds it. What they did is that of
// erased-1, and the next user of the name inherits nothing.
func TestErase_LeavesTheNameNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	token := w.leaves()
	if all := w.everything(); !strings.Contains(all, leaver) || !strings.Contains(all, leaverMail) || strings.Contains(all, "person-") {
		t.Errorf("before, an admin reads\n%s%s", linesWith(all, leaver), linesWith(all, "person-"))
	}
	if text := w.logged(); strings.Contains(text, leaver) || strings.Contains(text, leaverMail) {
		t.Errorf("the log holds the name:\n%s", linesWith(text, leaver))
	}
	var v api.Erasure
	w.must("POST", "/v1/users/"+leaver+"/erase", api.EraseUser{DryRun: true}, &v)
	if want := (api.Erasure{As: "erased-1", Tokens: 1, Jobs: 1, DryRun: true}); v != want {
		t.Errorf("the dry run says %+v, want %+v", v, want)
	}
	if rec, _ := w.ask("GET", "/v1/me", token, nil); rec.Code != http.StatusOK {
		t.Errorf("the dry run has changed something: %d", rec.Code)
	}
	w.must("POST", "/v1/users/"+leaver+"/erase", api.EraseUser{}, nil)
	if rec, _ := w.ask("GET", "/v1/me", token, nil); rec.Code != http.StatusUnauthorized {
		t.Errorf("the token still opens the server: %d", rec.Code)
	}
	if rec, p := w.ask("POST", "/v1/users/erased-1/erase", auth.OwnerName, api.EraseUser{}); rec.Code != http.StatusConflict {
		t.Errorf("a second erasure: %d %+v", rec.Code, p)
	}
	w.erased(t)
	w.user(leaver, identity.Grant{Team: "vision", Role: identity.Submitter})
	var jobs []api.Job
	if w.must("GET", "/v1/jobs?user="+leaver, nil, &jobs); len(jobs) != 0 {
		t.Errorf("the next %s has jobs %+v", leaver, jobs)
	}
	if w.must("GET", "/v1/jobs?user=erased-1", nil, &jobs); len(jobs) != 2 || jobs[0].User != "erased-1" {
		t.Errorf("erased-1 has jobs %+v", jobs)
	}
	var page api.Audit
	w.must("GET", "/v1/audit?user="+leaver, nil, &page)
	if len(page.Acts) != 0 {
		t.Errorf("the next %s did %+v", leaver, page.Acts)
	}
	w.must("GET", "/v1/audit?limit=1000", nil, &page)
	if !slices.ContainsFunc(page.Acts, func(a api.Act) bool {
		return a.Route == "POST /v1/users/{id}/erase" && a.Object == "erased-1" && a.Who == "owner" && a.Outcome == "done"
	}) {
		t.Errorf("the audit trail has no erasure: %+v", page.Acts)
	}
	var ledger api.Verified
	if w.must("GET", "/v1/ledger/verify", nil, &ledger); !ledger.OK {
		t.Errorf("%+v", ledger)
	}
}

// erased checks that the name is nowhere.
func (w *world) erased(t *testing.T) {
	t.Helper()
	if all := w.everything(); strings.Contains(all, leaver) || strings.Contains(all, "person-") || !strings.Contains(all, "erased-1") {
		t.Errorf("afterwards, an admin reads\n%s%s", linesWith(all, leaver), linesWith(all, "person-"))
	}
	if text := w.logged(); strings.Contains(text, leaver) {
		t.Errorf("the log holds the name:\n%s", linesWith(text, leaver))
	}
	beside, err := w.store.AllMeta(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key, text := range beside {
		if strings.Contains(key+text, leaver) {
			t.Errorf("%s beside the log holds %s", key, text)
		}
	}
}

func linesWith(text, part string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return !strings.Contains(l, part) }), "\n")
}

// A server that is killed after the erasure is in the log, and before the name is gone, erases it at its next start.
func TestErase_GoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.leaves()
	id, _ := w.gate.People.ID(leaver)
	row := "person/" + id
	text, _, err := w.store.Meta(t.Context(), row)
	if err != nil || !strings.Contains(text, leaver) {
		t.Fatalf("%q, %v", text, err)
	}
	w.must("POST", "/v1/users/"+leaver+"/erase", api.EraseUser{}, nil)
	for key, left := range map[string]string{row: text, "person/" + identity.NewID([10]byte{1}): text} { // as a kill leaves them
		if err := w.store.PutMeta(t.Context(), key, left); err != nil {
			t.Fatal(err)
		}
	}
	if w.gate.People, err = auth.ReadPeople(t.Context(), w.store); err != nil {
		t.Fatal(err)
	}
	w.erased(t)
}

// The log of an older release holds names. An erased user of it is erased-1 wherever a user is named.
func TestErase_UserOfAnOlderReleaseIsShownAsErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	var c identity.Change
	if err := json.Unmarshal([]byte(`{"user":{"name":"zephyrine","email":"zephyrine.w@example.org",`+
		`"grants":[{"team":"vision","role":"submitter"}],"made":"2026-01-02T03:04:05Z"}}`), &c); err != nil {
		t.Fatal(err)
	}
	if err := w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: w.control.Tenant(),
		Actor: "user", Body: core.IdentityChanged{Change: c}}); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.gate.People, err = auth.ReadPeople(t.Context(), w.store); err != nil {
		t.Fatal(err)
	}
	w.leaves()
	var v api.Erasure
	w.must("POST", "/v1/users/"+leaver+"/erase", api.EraseUser{}, &v)
	if !v.Logged || v.As != "erased-1" {
		t.Errorf("%+v", v)
	}
	if all := w.everything(); strings.Contains(all, leaver) || !strings.Contains(all, "erased-1") {
		t.Errorf("afterwards, an admin reads\n%s", linesWith(all, leaver))
	}
	w.user(leaver)
	var jobs []api.Job
	if w.must("GET", "/v1/jobs?user="+leaver, nil, &jobs); len(jobs) != 0 {
		t.Errorf("the next %s has jobs %+v", leaver, jobs)
	}
	if w.must("GET", "/v1/jobs?user=erased-1", nil, &jobs); len(jobs) != 2 {
		t.Errorf("erased-1 has jobs %+v", jobs)
	}
}

// A mistyped name makes no user who is off: the one who was meant would keep their tokens.
func TestUsers_OffNeedsAUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.user("zoe", identity.Grant{Team: "*", Role: identity.Viewer})
	if rec, said := w.ask("PUT", "/v1/users/zoey", auth.OwnerName, `{"off":true}`); rec.Code != http.StatusNotFound || said.Field != "name" {
		t.Errorf("an unknown user who is to be off: %d %+v", rec.Code, said)
	}
	var list []api.User
	w.must("GET", "/v1/users", nil, &list)
	if slices.ContainsFunc(list, func(u api.User) bool { return u.Name == "zoey" }) {
		t.Error("the refusal made the user")
	}
	w.must("PUT", "/v1/users/zoe", `{"off":true}`, nil)
}
