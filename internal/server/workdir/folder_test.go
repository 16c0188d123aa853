package workdir

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/workdir/pack"
	"scrimp/internal/test/must"
)

// Unpacking an upload writes nothing outside its folder.
func TestUnpack_WritesNothingOutside(t *testing.T) {
	t.Parallel()
	type entry struct {
		name, link, text string
		kind             byte
	}
	for name, list := range map[string][]entry{
		"a path upwards":   {{name: "../out", text: "x", kind: tar.TypeReg}},
		"an absolute path": {{name: "/tmp/scrimp-out", text: "x", kind: tar.TypeReg}},
		"a link and a file in it": {{name: "l", link: "..", kind: tar.TypeSymlink},
			{name: "l/out", text: "x", kind: tar.TypeReg}},
		"a link and a file on it": {{name: "l", link: "../out", kind: tar.TypeSymlink},
			{name: "l", text: "x", kind: tar.TypeReg}},
		"a path of 500,000 folders": {{name: strings.Repeat("a/", 500_000) + "a", text: "x", kind: tar.TypeReg}},
		"65 folders":                {{name: strings.Repeat("a/", 65) + "a", text: "x", kind: tar.TypeReg}},
		"a hard link":               {{name: "l", link: "/etc/passwd", kind: tar.TypeLink}},
		"a device":                  {{name: "d", kind: tar.TypeChar}},
	} {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		tw := tar.NewWriter(zip)
		for _, e := range list {
			must.Do(t, tw.WriteHeader(&tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Size: int64(len(e.text)),
				Mode: 0o644}))
			tw.Write([]byte(e.text))
		}
		tw.Close()
		zip.Close()
		dir := t.TempDir()
		to := filepath.Join(dir, "to")
		must.Do(t, os.Mkdir(to, 0o700))
		if err := Unpack(&b, to); err == nil {
			t.Errorf("%s is taken", name)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s wrote %v", name, left)
		}
	}
}

func TestPack_RoundTripsAFolder(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"a/b/c": "deep", "run.sh": "#!/bin/sh", "secret.env": "x",
		".scrimpignore": "*.env\n", ".git/config": "x", "data/db": "x"} {
		path := filepath.Join(from, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		must.Do(t, os.WriteFile(path, []byte(text), 0o755))
	}
	os.Symlink("b/c", filepath.Join(from, "a", "link"))
	var b bytes.Buffer
	must.Do(t, pack.Pack(&b, from, filepath.Join(from, "data")))
	must.Do(t, Unpack(&b, to))
	if text, err := os.ReadFile(filepath.Join(to, "a", "link")); err != nil || string(text) != "deep" {
		t.Errorf("%q, %v", text, err)
	}
	if s, err := os.Stat(filepath.Join(to, "run.sh")); err != nil || s.Mode()&0o100 == 0 {
		t.Errorf("%v, %v", s, err)
	}
	for _, name := range []string{"secret.env", ".git", "data"} {
		if _, err := os.Stat(filepath.Join(to, name)); err == nil {
			t.Errorf("%s was sent", name)
		}
	}
}

// Folders of scrimp get, and files in which tools keep secrets, are excluded; a line of the ignore file includes a
// secret again.
func TestPack_ExcludesFetchedFoldersAndSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"train.py", "job-outputs/" + pack.FetchedName, "job-outputs/model.bin", "deep/old/" + pack.FetchedName,
		"deep/old/model.bin", "mine-outputs/model.bin", ".env", "deep/tls.pem", "public.pem", ".ssh/id_ed25519", pack.FetchedName,
		pack.IgnoreName} {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, pack.IgnoreName), []byte("!/public.pem\n"), 0o600))
	if got := pack.Secrets(dir); !slices.Equal(got, []string{".env", ".ssh", "deep/tls.pem"}) {
		t.Errorf("said to stay here: %q", got)
	}
	got := sentFiles(t, dir)
	if want := []string{pack.FetchedName, pack.IgnoreName, "mine-outputs/model.bin", "public.pem", "train.py"}; !slices.Equal(got, want) {
		t.Errorf("sent are %q, want %q", got, want)
	}
}

// What scrimp wrote into a folder, and what is a secret by its content, does not travel; a line of the ignore file
// includes it again.
func TestPack_ExcludesWhatScrimpWrote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token, _ := identity.Mint([32]byte{1}, "ann", time.Unix(0, 0), time.Hour)
	login, page := `{"server": "https://s", "token": "t"}`, receipt.PageBegin+"train</title>"
	for name, text := range map[string]string{
		"train.py": "", "login.json": `{"user": "field"}`, "page.html": "<html>", "tokens/a.txt": "1 2 3",
		"deep/token": "x", "notes": token + " is mine",
		"r.html": page, "far/login.json": login, "far/told": "", "login-prod.json": login, "ann": token + "\n", "token": "hf_x",
		"mine": token, "srv/scrimp.db": "", "srv/server.lock": "", "srv/token": "x", ".env.example": "A=",
		".env.production": "A=1", pack.IgnoreName: "!/mine\n",
	} {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	want := []string{".env.production", "ann", "deep/token", "login-prod.json", "token"}
	if got := pack.Secrets(dir); !slices.Equal(got, want) {
		t.Errorf("said to stay here: %q, want %q", got, want)
	}
	want = []string{".env.example", pack.IgnoreName, "login.json", "mine", "notes", "page.html", "tokens/a.txt", "train.py"}
	if got := sentFiles(t, dir); !slices.Equal(got, want) {
		t.Errorf("sent are %q, want %q", got, want)
	}
}

// sentFiles returns the files of a folder that travel, sorted.
func sentFiles(t *testing.T, dir string) (got []string) {
	t.Helper()
	var sent bytes.Buffer
	must.Do(t, pack.Pack(&sent, dir, ""))
	to := t.TempDir()
	must.Do(t, Unpack(&sent, to))
	must.Do(t, filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			got = append(got, strings.TrimPrefix(path, to+"/"))
		}
		return err
	}))
	return got
}
