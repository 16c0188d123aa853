package server

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/lib/confined"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// The webhook of a limit can contain a secret, so only admins of all teams see it.
func TestLimit_RefusalDoesNotRevealItsWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	const secret = "T00/B00/zzsecret"
	for _, limit := range []string{`"jobs":0`, `"dollars":"0.5"`} {
		w.must("PUT", "/v1/users/ann", api.SetUser{}, nil)
		for _, scope := range []string{"team:vision", "all", "user:ann"} {
			w.must("PUT", "/v1/budgets", `{"limit":{"scope":"`+scope+`","window":"day",`+limit+
				`,"notify":"https://hooks.example.com/`+secret+`"}}`, nil)
		}
		for n, role := range []identity.Role{identity.Submitter, identity.Operator, identity.Admin} {
			user := w.user([]string{"ann", "bea", "cid"}[n], identity.Grant{Team: "vision", Role: role})
			for _, r := range [][3]string{{"POST", "/v1/jobs", `{"spec":{"name":"x","command":"true","budget":{"dollars":"9"}}}`},
				{"POST", "/v1/jobs/batch", `[{"spec":{"name":"x","command":"true","budget":{"dollars":"9"}}}]`},
				{"GET", "/v1/budgets", ""}} {
				rec, _ := w.ask(r[0], r[1], user, r[2])
				if strings.Contains(rec.Body.String(), "zzsecret") {
					t.Errorf("%s %s tells a %v: %s", r[0], r[1], role, rec.Body)
				}
				if r[0] == "POST" && rec.Code < 400 {
					t.Errorf("%s lets the job in: %d", limit, rec.Code)
				}
			}
		}
	}
}

// A user who sees a team's job and submits for another team cannot take its folder or checkpoint there.
func TestSubmission_CannotTakeFilesOfAnotherTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	w.must("POST", "/v1/jobs", aJob("theirs", "vision"), nil)
	w.must("POST", "/v1/jobs", aJob("nobodys", ""), nil)
	must.Do(t, os.MkdirAll(filepath.Join(w.opts.Dir, "work", "theirs"), 0o700))
	both := w.user("eve", identity.Grant{Team: "vision", Role: identity.Operator}, identity.Grant{Team: "text", Role: identity.Operator})
	viewer := w.user("vic", identity.Grant{Team: "vision", Role: identity.Viewer}, identity.Grant{Team: "text", Role: identity.Submitter})
	ruler := w.user("ada", identity.Grant{Team: "vision", Role: identity.Admin}, identity.Grant{Team: "text", Role: identity.Submitter})
	root := w.user("all", identity.Grant{Team: "*", Role: identity.Submitter})
	for name, c := range map[string]struct {
		token, how, job, team string
		want                  int
	}{
		"rerun for another team":           {both, "rerun", "theirs", "text", 403},
		"rerun of what is only seen":       {viewer, "rerun", "theirs", "text", 403},
		"from a checkpoint":                {both, "from", "theirs@latest", "text", 403},
		"rerun for the same team":          {both, "rerun", "theirs", "vision", 200},
		"an admin of the team":             {ruler, "rerun", "theirs", "text", 200},
		"who submits for all":              {root, "rerun", "theirs", "text", 403},
		"a job of no team for one":         {root, "rerun", "nobodys", "text", 403},
		"rerun of what is not seen at all": {viewer, "rerun", "nobodys", "text", 404},
	} {
		rec, p := w.ask("POST", "/v1/jobs", c.token, `{"`+c.how+`":"`+c.job+`",`+aJob("mine", c.team)[1:])
		if rec.Code != c.want || c.want == 403 && (p.Field != c.how || p.Fix == "") {
			t.Errorf("%s: %d %+v, want %d", name, rec.Code, p, c.want)
		}
	}
}

// A token limited to a role can revoke itself and equal ones, but none with more rights; tokens that it creates do
// not outlive it.
func TestLimitedToken_CannotActOnTokensWithMoreRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	full := w.user("ann", identity.Grant{Team: "vision", Role: identity.Operator})
	mint := func(by string, n api.NewToken) (m api.MadeToken) {
		t.Helper()
		rec, p := w.ask("POST", "/v1/tokens", by, n)
		if rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), &m) != nil {
			t.Fatalf("%d %+v", rec.Code, p)
		}
		return m
	}
	var me api.Me
	rec, _ := w.ask("GET", "/v1/me", full, nil)
	must.Do(t, json.Unmarshal(rec.Body.Bytes(), &me))
	cut := mint(full, api.NewToken{Most: client.Viewer, Life: 3_600_000_000_000})
	like, more := mint(full, api.NewToken{Most: client.Viewer}), mint(full, api.NewToken{Most: client.Submitter})
	child := mint(cut.Text, api.NewToken{Life: 1_000_000_000_000_000})
	if child.Most != client.Viewer || child.Expires.After(cut.Expires) {
		t.Errorf("a token that is cut makes %+v, and expires at %v itself", child.Token, cut.Expires)
	}
	for id, want := range map[string]int{me.Token: 403, more.ID: 403, like.ID: 204} {
		if rec, p := w.ask("DELETE", "/v1/tokens/"+id, cut.Text, nil); rec.Code != want {
			t.Errorf("%s: %d %+v, want %d", id, rec.Code, p, want)
		}
	}
	if rec, _ := w.ask("GET", "/v1/me", full, nil); rec.Code != 200 {
		t.Errorf("the full token: %d", rec.Code)
	}
	if rec, _ := w.ask("DELETE", "/v1/tokens/"+cut.ID, cut.Text, nil); rec.Code != 204 {
		t.Errorf("itself: %d", rec.Code)
	}
	if rec, _ := w.ask("DELETE", "/v1/tokens/"+more.ID, full, nil); rec.Code != 204 {
		t.Errorf("the full one ends a lesser one: %d", rec.Code)
	}
}

// lagging is a reader that takes the first bytes of a response and then waits for let.
type lagging struct {
	*httptest.ResponseRecorder
	begun chan<- bool
	let   <-chan struct{}
}

func (s lagging) Write(p []byte) (int, error) {
	s.begun <- true
	<-s.let
	return s.ResponseRecorder.Write(p)
}

// The server keeps no copies of outputs for slow readers; a user can fetch a few at once, and gets what was stored.
func TestOutputs_SlowReadersNeedNoCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("POST", "/v1/jobs", aJob("job", "vision"), nil)
	from := t.TempDir()
	content := make([]byte, 9<<20+7)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	err := errors.Join(os.MkdirAll(from+"/out/sub", 0o700), os.WriteFile(from+"/out/sub/large", content, 0o640),
		os.Symlink("sub/large", from+"/out/link"))
	b, err2 := blob.Open(t.Context(), artifacts.Address(w.opts.Dir))
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if _, _, err := checkpoint.Open(b, artifacts.OwnKeys("job")).Keep(t.Context(), confined.Folder{Path: from}, []string{"out"}, "job"); err != nil {
		t.Fatal(err)
	}
	before := files(t, w.opts.Dir)
	eve := w.user("eve", identity.Grant{Team: "vision", Role: identity.Viewer})
	begun, let, codes := make(chan bool, 100), make(chan struct{}), make(chan *httptest.ResponseRecorder, 12)
	for range 12 {
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/jobs/job/outputs", nil)
			r.Header.Set("Authorization", "Bearer "+eve)
			rec := lagging{httptest.NewRecorder(), begun, let}
			w.h.ServeHTTP(rec, r)
			codes <- rec.ResponseRecorder
		}()
	}
	for range 12 {
		<-begun
	}
	if after := files(t, w.opts.Dir); after != before {
		t.Errorf("while they are fetched the data folder holds:\n%s\nand before:\n%s", after, before)
	}
	go func() {
		for more := true; more; {
			_, more = <-begun
		}
	}()
	close(let)
	whole := 0
	for range 12 {
		rec := <-codes
		if rec.Code == http.StatusTooManyRequests {
			continue
		}
		whole++
		zip, err := gzip.NewReader(rec.Body)
		must.Do(t, err)
		var list []string
		for tr := tar.NewReader(zip); ; {
			h, err := tr.Next()
			if err != nil {
				break
			}
			list = append(list, h.Name)
			if got, _ := io.ReadAll(tr); h.Name == "out/sub/large" && !bytes.Equal(got, content) {
				t.Errorf("%d bytes of another content", len(got))
			}
		}
		if got := strings.Join(list, " "); got != "out/ out/link out/sub/ out/sub/large" {
			t.Errorf("the archive holds %s", got)
		}
	}
	if whole < 4 || whole > 8 {
		t.Errorf("%d of 12 were sent at once to one user", whole)
	}
	close(begun)
}

// files lists a folder without the database's own files.
func files(t *testing.T, dir string) (list string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !strings.Contains(e.Name(), ".db") {
			list += path + "\n"
		}
		return nil
	})
	return list
}
