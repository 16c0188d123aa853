package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// post sends a body of a media type as the owner.
func (w *world) post(path, kind, key, body string) (*httptest.ResponseRecorder, api.Problem) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(auth.OnSocket(w.t.Context()), "POST", path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.gate.Owner)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Idempotency-Key", key)
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	var p api.Problem
	if rec.Code >= 400 {
		must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &p))
	}
	return rec, p
}

// The server accepts each example of the description unchanged, and all are the same job file: as YAML, as its text
// in JSON, and as an object.
func TestOpenAPI_ExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Examples map[string]struct{ Value json.RawMessage }
				}
			}
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	must.Do(t, json.Unmarshal(OpenAPI("test"), &doc))
	var file, published struct{ Properties map[string]any }
	must.Do(t, json.Unmarshal(doc.Components.Schemas["JobFile"], &file))
	if err := json.Unmarshal(spec.Schema(), &published); err != nil || len(file.Properties) != len(published.Properties) {
		t.Errorf("%d fields of the job file are described, and scrimp schema has %d (%v)", len(file.Properties),
			len(published.Properties), err)
	}
	w := newWorld(t, nil)
	shown, count := "", 0
	for kind, body := range doc.Paths["/v1/jobs"]["post"].RequestBody.Content {
		for name, example := range body.Examples {
			text := string(example.Value)
			if count++; kind == "application/yaml" {
				must.Do(t, json.Unmarshal(example.Value, &text))
			}
			rec, p := w.post("/v1/jobs", kind, name, text)
			if rec.Code != http.StatusOK {
				t.Errorf("%s %s: %d %+v", kind, name, rec.Code, p)
				continue
			}
			var j api.Job
			must.Do(t, json.Unmarshal(rec.Body.Bytes(), &j))
			rec, _ = w.ask("GET", "/v1/jobs/"+j.ID+"/spec", auth.OwnerName, nil)
			if shown == "" {
				shown = rec.Body.String()
			}
			if !strings.Contains(shown, `"dollars":"30"`) || rec.Body.String() != shown {
				t.Errorf("%s %s became %s, and another one %s", kind, name, rec.Body.String(), shown)
			}
		}
	}
	if count != 3 {
		t.Errorf("%d examples, want 3", count)
	}
}

// Errors in a job file read as in the commands, with field, line and fix; JSON has no lines.
func TestJobFile_ErrorsMatchTheCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	text := "command: a\nbudget: 5 apples\nresorces:\n  cpus: 2\n"
	_, _, err := spec.Parse(spec.Run, "job.yaml", []byte(text), "", w.clock.Wall)
	quoted, _ := json.Marshal(text)
	for kind, body := range map[string]string{"application/yaml": text, "text/yaml; charset=utf-8": text,
		"application/json": `{"spec":` + string(quoted) + `}`, "": `{"spec":` + string(quoted) + `}`} {
		rec, p := w.post("/v1/jobs", kind, "", body)
		if rec.Code != http.StatusUnprocessableEntity || p.Detail != err.Error() || p.Field != "budget" || p.Line != 2 ||
			len(p.Problems) != 2 || p.Problems[1].Field != "resorces" || p.Problems[1].Line != 3 || p.Problems[1].Fix == "" {
			t.Errorf("%s: %d %+v, want %v", kind, rec.Code, p, err)
		}
	}
	rec, p := w.post("/v1/jobs", "application/json", "",
		`{"spec":{"command":"a","budget":"5 apples","resorces":{"cpus":2},"name":"a","name":"b"}}`)
	lines := regexp.MustCompile(`(?m)^job\.yaml:\d+: `).ReplaceAllString(err.Error(), "")
	if rec.Code != http.StatusUnprocessableEntity || p.Detail != lines+"\n`name` stands twice: keep one" ||
		p.Field != "budget" || p.Line != 0 {
		t.Errorf("JSON: %d %+v\nwant %s", rec.Code, p, lines)
	}
	for _, text := range []string{"", "a: [", "- a", "\x00", "a: 1\n---\nb: 1\n"} {
		if rec, p := w.post("/v1/jobs", "application/yaml", "", text); rec.Code != http.StatusBadRequest || p.Fix == "" ||
			p.Field != "spec" {
			t.Errorf("%q: %d %+v", text, rec.Code, p)
		}
	}
	if rec, p := w.post("/v1/jobs", "text/plain", "", "command: a"); rec.Code != http.StatusBadRequest ||
		!strings.Contains(p.Fix, "Content-Type: application/yaml") {
		t.Errorf("YAML that nothing says is YAML: %d %+v", rec.Code, p)
	}
	if rec, p := w.post("/v1/jobs", "application/yaml", "", "command: \xff"); rec.Code != http.StatusBadRequest ||
		p.Fix == "" {
		t.Errorf("no text: %d %+v", rec.Code, p)
	}
}

// A key belongs to the job, however its file is written; other fields come in the query.
func TestKey_MatchesAJobFileInAnotherForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, s := range []struct{ kind, body, says string }{
		{"application/yaml", "command: exec python3 src/train.py\nbudget: $5\n", `"id":"train"`},
		{"application/json", `{"spec":{"name":"train","budget":{"dollars":"5.00"},"command":"exec python3 src/train.py"}}`,
			`"id":"train"`},
		{"application/json", `{"spec":{"command":"exec python3 src/train.py","budget":5}}`, `"id":"train"`},
		{"application/yaml", "command: exec python3 src/train.py\nbudget: $6\n", `"status":409`},
	} {
		if rec, _ := w.post("/v1/jobs", s.kind, "one", s.body); !strings.Contains(rec.Body.String(), s.says) {
			t.Errorf("%s: %s, want %s", s.body, rec.Body, s.says)
		}
	}
	if rec, p := w.post("/v1/jobs?from=gone", "application/yaml", "two", "command: a"); rec.Code != http.StatusNotFound ||
		p.Field != "from" {
		t.Errorf("from a job that is not there: %d %+v", rec.Code, p)
	}
	if rec, p := w.post("/v1/jobs?accept_wait=maybe", "application/yaml", "3", "command: a"); rec.Code != http.StatusBadRequest ||
		p.Field != "accept_wait" {
		t.Errorf("accept_wait=maybe: %d %+v", rec.Code, p)
	}
	gpu := "command: a\nresources: {accelerator: H100}\n"
	sells := newWorldOf(t, &firm{}, nil)
	sells.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	for path, code := range map[string]int{"/v1/jobs": 422, "/v1/jobs?accept_wait=1": 200} {
		if rec, p := sells.post(path, "application/yaml", path, gpu); rec.Code != code {
			t.Errorf("%s: %d %+v", path, rec.Code, p)
		}
	}
}

// An unknown field is refused in a batch, too; the server used to ignore it.
func TestBatch_RefusesUnknownFields(t *testing.T) {
	t.Parallel()
	rec, p := newWorld(t, nil).ask("POST", "/v1/jobs/batch", auth.OwnerName,
		`[{"spec":"command: a"},{"spec":{"command":"a","dedline":"in 6h"}}]`)
	if rec.Code != http.StatusUnprocessableEntity || p.Field != "[1].dedline" || !strings.Contains(p.Fix, "deadline") {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// The curl command in docs/serve.md submits a job.
func TestDocs_CurlCommandSubmitsAJob(t *testing.T) {
	lane.Component(t, "host")
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	page, err := os.ReadFile("../../docs/serve.md")
	must.Do(t, err)
	line := regexp.MustCompile(`(?m)^curl (?:.*\\\n)*.*$`).FindString(string(page))
	w := newWorld(t, nil)
	site := httptest.NewServer(w.h)
	t.Cleanup(site.Close)
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "job.yaml"), []byte("name: sent\ncommand: a\nbudget: $5\n"), 0o600))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "SCRIMP_SERVER="+site.URL,
		"SCRIMP_TOKEN="+w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter}))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"id":"sent"`) {
		t.Errorf("%s\nanswered %s (%v)", line, out, err)
	}
}

// A model must be plausible: with an impossible one, any machine would fit the job.
func TestModel_ThatIsImplausibleIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for model, want := range map[string]string{
		`{shape: "transformer layrs=3"}`: "layrs: is no field of a model",
		`{shape: "cnn params=5M"}`:       "gmacs",
		`{parameters: 1e30}`:             "is above 100000000000000",
	} {
		rec, p := w.post("/v1/jobs", "application/yaml", model, "command: 'true'\nmodel: "+model+"\n")
		if rec.Code != http.StatusUnprocessableEntity || !strings.HasPrefix(p.Field, "model") || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %+v", model, rec.Code, p)
		}
	}
	if rec, p := w.post("/v1/jobs", "application/yaml", "sound", "command: 'true'\nmodel: {parameters: 1M}\n"); rec.Code != http.StatusOK {
		t.Errorf("a small model: %d %+v", rec.Code, p)
	}
}
