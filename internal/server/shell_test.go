package server

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// The submitter's shell variables are stored only sealed, and reach only machines that share the submitter's files;
// other agents learn which are missing.
func TestShell_ReachesMachinesThatShareFilesOnly(t *testing.T) {
	t.Parallel()
	const spec, value = `{"name":"j","command":"true","inherit":["HF_HOME"]}`, "/data/hunter2-hub"
	shell := map[string]string{"PATH": "/v/bin:/bin", "VIRTUAL_ENV": "/v", "HF_HOME": value}
	for _, here := range []bool{true, false} {
		w := newWorldOf(t, &firm{}, nil)
		w.engines[0].Here = here
		w.must("POST", "/v1/jobs", api.Submission{Spec: api.Raw(spec), Shell: shell}, nil)
		a := w.take(w.booting(1)[0])
		if here && (!maps.Equal(a.Shell, shell) || a.Withheld != nil) || !here && (a.Shell != nil || !slices.Equal(a.Withheld, []string{"HF_HOME"})) {
			t.Errorf("here is %v: the machine gets %v without %v", here, a.Shell, a.Withheld)
		}
		err := filepath.WalkDir(w.opts.Dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(value)) {
				t.Errorf("%s holds the value", path)
			}
			return err
		})
		if err != nil || strings.Contains(w.log.String(), value) {
			t.Errorf("the server's log holds the value, or %v", err)
		}
	}
}

// The server refuses missing and unexpected shell variables: alone, in a batch, and when an ended job is resumed.
func TestShell_MatchesTheJobFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	token := w.user("ana", identity.Grant{Team: "*", Role: identity.Submitter})
	named, plain := `"spec":{"name":"j","command":"true","inherit":["HF_HOME"]}`, `"spec":{"name":"j","command":"true"}`
	for _, c := range []struct {
		what, token, path, body, field string
		code                           int
	}{
		{"it does not come", auth.OwnerName, "/v1/jobs", "{" + named + "}", "inherit", 422},
		{"nobody named it", auth.OwnerName, "/v1/jobs", `{` + plain + `,"shell":{"PGPASSWORD":"x"}}`, "shell", 422},
		{"from another machine", token, "/v1/jobs", `{` + named + `,"shell":{"HF_HOME":"x"}}`, "inherit", 422},
		{"named on another machine", token, "/v1/jobs", "{" + named + "}", "inherit", 422},
		{"in a batch", auth.OwnerName, "/v1/jobs/batch", "[{" + named + "}]", "[0].inherit", 422},
		{"all is there", auth.OwnerName, "/v1/jobs", `{` + named + `,"shell":{"HF_HOME":"x","PATH":"/bin"}}`, "", 200},
	} {
		rec, p := w.ask("POST", c.path, c.token, c.body)
		if rec.Code != c.code || p.Field != c.field || c.code != http.StatusOK && p.Fix == "" {
			t.Errorf("%s: %d %+v", c.what, rec.Code, p)
		}
	}
	w.must("POST", "/v1/jobs/j/end", api.End{}, nil)
	if rec, p := w.ask("POST", "/v1/jobs/j/resume", auth.OwnerName, `{}`); rec.Code != 422 || p.Field != "inherit" {
		t.Errorf("taken up again without it: %d %+v", rec.Code, p)
	}
	w.must("POST", "/v1/jobs/j/resume", `{"shell":{"HF_HOME":"y"}}`, nil)
	if v, err := w.vault().Open("j"); err != nil || v.Shell["HF_HOME"] != "y" {
		t.Errorf("taken up again with %v, %v", v.Shell, err)
	}
}

// A job never runs without a secret that it names: alone, as an array, in a batch, and from the page's form.
func TestSecrets_WithoutTheirValuesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	named := `"spec":{"name":"s","command":"true","secrets":["HF_TOKEN"]}`
	for _, c := range []struct {
		what, path, body, field string
		code                    int
	}{
		{"none comes", "/v1/jobs", "{" + named + "}", "secrets", 422},
		{"another comes", "/v1/jobs", "{" + named + `,"secrets":{"WANDB":"x"}}`, "secrets", 422},
		{"as an array", "/v1/groups", "{" + named + `,"array":"1-2"}`, "secrets", 422},
		{"in a batch", "/v1/jobs/batch", "[{" + named + "}]", "[0].spec.secrets", 422},
		{"it comes", "/v1/jobs", "{" + named + `,"secrets":{"HF_TOKEN":"x"}}`, "", 200},
	} {
		rec, p := w.ask("POST", c.path, auth.OwnerName, c.body)
		if rec.Code != c.code || p.Field != c.field || c.code != http.StatusOK && p.Fix == "" {
			t.Errorf("%s: %d %+v", c.what, rec.Code, p)
		}
	}
}
