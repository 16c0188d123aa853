package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"scrimp/internal/lib/identity"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/wire/api"
)

// For invalid text and SQL in each string of a submission, the database accepts it or the response says what is
// wrong, and the next client is served.
func TestSubmission_HostileTextDoesNotBreakSQLite(t *testing.T) {
	t.Parallel()
	stopNoDatabase(t, newWorld(t, nil))
}

// PostgreSQL refuses some texts that SQLite accepts.
func TestSubmission_HostileTextDoesNotBreakPostgres(t *testing.T) {
	lane.Component(t, "postgres")
	db := pgtest.Start(t).Database(t)
	stopNoDatabase(t, newWorld(t, func(o *Options) { o.DB = db }))
}

func stopNoDatabase(t *testing.T, w *world) {
	w.must("PUT", "/v1/teams/vision", api.SetTeam{Projects: []string{"lanes"}}, nil)
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Operator})
	w.must("POST", "/v1/jobs", aJob("victim", "vision"), nil)
	const sql = `'); DROP TABLE event; SELECT pg_terminate_backend(pg_backend_pid()); --`
	for name, evil := range map[string]string{"a byte that no text has": "\xff", "a cut letter": "\xc3",
		"an encoded surrogate": "\xed\xa0\x80", "an escaped zero": `\u0000`,
		"an escaped surrogate": `\ud800`, "SQL": sql, "a quoted end": `\"'$$\\`, "bytes of a terminal": `\u001b]0;x\u0007`} {
		for place, body := range map[string]string{
			"command":                   `{"spec":{"name":"x","command":"true EVIL"}}`,
			"a tag":                     `{"spec":{"name":"x","command":"true","tags":{"a":"EVIL"}}}`,
			"a tag's name":              `{"spec":{"name":"x","command":"true","tags":{"EVIL":"a"}}}`,
			"env":                       `{"spec":{"name":"x","command":"true","env":{"A":"EVIL"}}}`,
			"environment":               `{"spec":{"name":"x","command":"true","environment":"EVIL"}}`,
			"model_version":             `{"spec":{"name":"x","command":"true","model_version":"EVIL"}}`,
			"team":                      `{"spec":{"name":"x","command":"true","team":"EVIL"}}`,
			"project":                   `{"spec":{"name":"x","command":"true","project":"EVIL"}}`,
			"name":                      `{"spec":{"name":"EVIL","command":"true"}}`,
			"key":                       `{"key":"EVIL","spec":{"name":"x","command":"true"}}`,
			"a secret":                  `{"secrets":{"A":"EVIL"},"spec":{"name":"x","command":"true"}}`,
			"notify":                    `{"spec":{"name":"x","command":"true","notify":"https://example.com/EVIL"}}`,
			"a field that is not known": `{"spec":{"name":"x","command":"true","EVIL":"EVIL"}}`,
		} {
			body = strings.ReplaceAll(body, "EVIL", evil)
			if rec, p := w.ask("POST", "/v1/jobs", ann, body); rec.Code >= 500 {
				t.Fatalf("%s in %s: %d %+v", name, place, rec.Code, p)
			}
			if place != "a secret" {
				if rec, p := w.ask("POST", "/v1/jobs/batch", ann, "["+body+"]"); rec.Code >= 500 {
					t.Fatalf("%s in %s of a batch: %d %+v", name, place, rec.Code, p)
				}
			}
		}
		for _, r := range [][3]string{{"POST", "/v1/jobs/victim/reject", `{"reason":"EVIL"}`},
			{"POST", "/v1/jobs/victim/exec", `{"command":["EVIL"]}`}, {"POST", "/v1/tokens", `{"note":"EVIL"}`}} {
			if rec, p := w.ask(r[0], r[1], ann, strings.ReplaceAll(r[2], "EVIL", evil)); rec.Code >= 500 {
				t.Fatalf("%s to %s: %d %+v", name, r[1], rec.Code, p)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/jobs", strings.NewReader(aJob("x", "")))
		r.Header.Set("Authorization", "Bearer "+ann)
		r.Header.Set("Idempotency-Key", evil)
		rec := httptest.NewRecorder()
		if w.h.ServeHTTP(rec, r); rec.Code >= 500 {
			t.Fatalf("%s in the key's header: %d %s", name, rec.Code, rec.Body)
		}
		for _, path := range []string{"/v1/jobs?after=", "/v1/jobs?before=", "/v1/jobs?state=", "/v1/jobs?limit=",
			"/v1/costs?by=", "/v1/costs?by=tag:", "/v1/costs?since=", "/v1/measured?name=", "/v1/measured?limit=",
			"/v1/events?after=", "/v1/jobs/victim/log?offset="} {
			if rec, p := w.ask("GET", path+url.QueryEscape(evil), ann, nil); rec.Code >= 500 {
				t.Errorf("%s to %s: %d %+v", name, path, rec.Code, p)
			}
		}
		var j api.Job
		rec, p := w.ask("POST", "/v1/jobs", ann, aJob("good", ""))
		if json.Unmarshal(rec.Body.Bytes(), &j); rec.Code != http.StatusOK || !strings.HasPrefix(j.ID, "good") {
			t.Fatalf("after %s nobody can submit: %d %+v", name, rec.Code, p)
		}
	}
	var v api.Verified
	if w.must("GET", "/v1/ledger/verify", nil, &v); !v.OK {
		t.Errorf("after the attacks: %+v", v)
	}
}
