package server

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"archive/tar"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// noise returns random text.
func noise(n int) string {
	b := make([]byte, n/2)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// A team cannot exceed its disk limit with folders, checkpoints and output together. Shared files count once, other
// teams are not affected, and removed files free their room.
func TestDiskLimit_HoldsForATeam(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, shut{}, nil)
	limit := int64(1 << 20)
	w.must("PUT", "/v1/teams/small", api.SetTeam{Disk: &limit}, nil)
	w.must("PUT", "/v1/teams/other", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter})
	submit := func(name, team, folder string) int {
		t.Helper()
		rec, _ := w.ask("POST", "/v1/work", ann, folder)
		if rec.Code != 200 {
			t.Fatal(rec.Body)
		}
		var sent api.Work
		must.Do(t, json.Unmarshal(rec.Body.Bytes(), &sent))
		rec, p := w.ask("POST", "/v1/jobs", ann, fmt.Sprintf(`{"work":%q,%s`, sent.Work, aJob(name, team)[1:]))
		if rec.Code == http.StatusInsufficientStorage && (!strings.Contains(p.Detail, "small has") || p.Fix == "") {
			t.Errorf("%+v", p)
		}
		return rec.Code
	}
	three := folderOf(t, map[string]string{"data": noise(768 << 10)})
	for n := range 3 {
		if code := submit(fmt.Sprintf("same-%d", n), "small", three); code != 200 {
			t.Fatalf("the same folder for the %d. time: %d", n+1, code)
		}
	}
	two := folderOf(t, map[string]string{"data": noise(512 << 10)})
	if code := submit("more", "small", two); code != http.StatusInsufficientStorage {
		t.Errorf("beyond its limit: %d", code)
	}
	many := map[string]string{}
	for n := range 100 { // each takes a block
		many[fmt.Sprint(n)] = noise(16)
	}
	if code := submit("many", "small", folderOf(t, many)); code != http.StatusInsufficientStorage {
		t.Errorf("100 small files: %d", code)
	}
	if code := submit("free", "other", two); code != 200 {
		t.Errorf("of another team: %d", code)
	}
	for _, job := range []string{"more", "many"} {
		if _, err := w.folders.Of(job); err == nil {
			t.Errorf("%s was refused, and has a folder", job)
		}
	}
	if err := w.quota.Bytes(t.Context(), "same-0", 512<<10); err == nil {
		t.Error("an agent may send what is beyond the limit")
	}
	if err := w.quota.Bytes(t.Context(), "free", 512<<10); err != nil {
		t.Errorf("an agent of another team may not: %v", err)
	}
	var teams []client.Team
	w.must("GET", "/v1/teams", nil, &teams)
	for _, team := range teams {
		if team.Name == "small" && (team.Disk != limit || team.DiskUsed < 768<<10 || team.DiskUsed > limit) {
			t.Errorf("%+v", team)
		}
	}
	for n := range 3 {
		w.must("POST", fmt.Sprintf("/v1/jobs/same-%d/end", n), api.End{}, nil)
	}
	w.gone(client.GC{OlderThan: 1})
	if code := submit("again", "small", two); code != 200 {
		t.Errorf("with room again: %d", code)
	}
	w.must("PUT", "/v1/teams/small", api.SetTeam{Projects: []string{"x"}}, &teams[0])
	if teams[0].Disk != limit {
		t.Errorf("a change of projects changes the limit: %+v", teams[0])
	}
	for _, want := range []struct {
		set      api.SetTeam
		projects []string
	}{{api.SetTeam{Disk: &limit}, []string{"x"}}, {api.SetTeam{Projects: []string{}}, nil}, {api.SetTeam{Disk: &limit}, nil}} {
		var is client.Team
		w.must("PUT", "/v1/teams/small", want.set, &is)
		if !slices.Equal(is.Projects, want.projects) || is.Disk != limit {
			t.Errorf("%+v makes it %+v, want the projects %q", want.set, is, want.projects)
		}
	}
}

// bomb returns a small file that unpacks to much more.
func bomb(t *testing.T, each func(*tar.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	tw := tar.NewWriter(zip)
	must.Do(t, each(tw))
	must.Do(t, tw.Close())
	must.Do(t, zip.Close())
	return b.String()
}

// Small uploads that unpack to much more are refused, and leave neither contents nor a name. Package workdir tests
// the other limits of a folder.
func TestUploads_SmallBombsAreRefused(t *testing.T) {
	t.Parallel()
	refusedUploads(t, map[string]string{
		"a path of 65 folders": bomb(t, func(tw *tar.Writer) error {
			return tw.WriteHeader(&tar.Header{Name: strings.Repeat("a/", 66), Typeflag: tar.TypeDir})
		}),
		"a link to zeros": bomb(t, func(tw *tar.Writer) error {
			return tw.WriteHeader(&tar.Header{Name: ".scrimpignore", Typeflag: tar.TypeSymlink, Linkname: "/dev/zero"})
		}),
		"no folder":  "some bytes",
		"cut short":  folderOf(t, map[string]string{"a": noise(1 << 16)})[:1<<14],
		"zeros only": string(make([]byte, 1<<20)),
	})
}

// Uploads of a few MB that unpack to half a million folders, to 400 MiB of patterns, and to 2 GiB.
func TestUploads_LargeBombsAreRefused(t *testing.T) {
	lane.Nightly(t, "it unpacks gigabytes")
	zeros := make([]byte, 1<<20)
	refusedUploads(t, map[string]string{
		"512,001 folders": bomb(t, func(tw *tar.Writer) (err error) {
			for n := 0; n < 512_001 && err == nil; n += 64 {
				err = tw.WriteHeader(&tar.Header{Name: fmt.Sprint(n, "/") + strings.Repeat("a/", 63), Typeflag: tar.TypeDir})
			}
			return err
		}),
		"an ignore file of 400 MiB": bomb(t, func(tw *tar.Writer) error {
			err := tw.WriteHeader(&tar.Header{Name: ".scrimpignore", Typeflag: tar.TypeReg, Size: 400 << 20, Mode: 0o600})
			lines := bytes.Repeat([]byte("a\n"), 10<<20)
			for n := 0; n < 20 && err == nil; n++ {
				_, err = tw.Write(lines)
			}
			return err
		}),
		"zeros for 2 GiB and more": bomb(t, func(tw *tar.Writer) (err error) {
			for n := 0; n < 2049 && err == nil; n++ {
				err = tw.WriteHeader(&tar.Header{Name: fmt.Sprint(n), Typeflag: tar.TypeReg, Size: 1 << 20, Mode: 0o600})
				if err == nil {
					_, err = tw.Write(zeros)
				}
			}
			return err
		}),
	})
}

// refusedUploads fails unless the server refuses each of the uploads and keeps nothing of it.
func refusedUploads(t *testing.T, uploads map[string]string) {
	t.Helper()
	w := newWorld(t, nil)
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter})
	for name, text := range uploads {
		rec, p := w.ask("POST", "/v1/work", ann, text)
		if rec.Code != http.StatusUnprocessableEntity || p.Fix == "" || p.Detail == "" {
			t.Errorf("%s, %d bytes: %d %+v", name, len(text), rec.Code, p)
		}
		_ = filepath.WalkDir(w.folders.Dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				t.Errorf("%s leaves %s", name, path)
			}
			return nil
		})
	}
}

// A refused submission releases its folder, wherever the refusal happens.
func TestSubmission_ReleasesItsFolderWhenRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/budgets", api.SetBudget{Tag: "why"}, nil)
	from := t.TempDir()
	for name, body := range map[string]string{
		"a folder": fmt.Sprintf(`{"folder":%q,%s`, from, aJob("x", "")[1:]),
		"a name":   `{"work":"` + strings.Repeat("0", 32) + `",` + aJob("x", "")[1:],
	} {
		if rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName, body); rec.Code < 400 {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
	var sent api.Work
	w.must("POST", "/v1/work", folderOf(t, map[string]string{"a": "b"}), &sent)
	if rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName, fmt.Sprintf(`{"work":%q,%s`, sent.Work, aJob("x", "")[1:])); rec.Code < 400 {
		t.Fatalf("%d: the test is void", rec.Code)
	}
	if jobs, err := w.folders.Jobs(); err != nil || len(jobs) > 0 {
		t.Errorf("refused jobs have folders: %v, %v", jobs, err)
	}
}
