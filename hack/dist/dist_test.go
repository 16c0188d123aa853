package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/cli"
	"scrimp/internal/test/image"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// read returns the content of a tar file by name.
func read(t *testing.T, b []byte) (files map[string][]byte, heads map[string]*tar.Header) {
	t.Helper()
	files, heads = map[string][]byte{}, map[string]*tar.Header{}
	last := ""
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, heads
		}
		must.Do(t, err)
		if h.Name <= last || h.ModTime.Unix() != day.Unix() {
			t.Errorf("%s stands behind %s, of %v", h.Name, last, h.ModTime)
		}
		last = h.Name
		heads[h.Name] = h
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func unpacked(t *testing.T, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	must.Do(t, err)
	if !r.ModTime.IsZero() || r.Name != "" {
		t.Errorf("compressed at %v as %q", r.ModTime, r.Name)
	}
	all, err := io.ReadAll(r)
	must.Do(t, err)
	return all
}

// day is the date of the tests' sources.
var day = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// copied copies the sources of the program to another folder.
func copied(t *testing.T, root string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"cmd", "internal", "client", "money"} {
		must.Do(t, os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(root, name))))
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "README.md", "CHANGELOG.md"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		must.Do(t, err)
		must.Do(t, os.WriteFile(filepath.Join(to, name), b, 0o600))
	}
	return to
}

// Two builds of the same sources in two folders by two users give the same bytes, and their content is complete.
func TestDist_IsReproducible(t *testing.T) {
	lane.Nightly(t, "it builds the whole program twice from nothing")
	root, err := filepath.Abs("../..")
	must.Do(t, err)
	certs := filepath.Join(t.TempDir(), "certs")
	must.Do(t, os.WriteFile(certs, []byte("authorities"), 0o600))
	r := release{Root: root, Version: "1.2.3-dev+abc", Tags: "local", When: day, Certs: certs}
	first, err := r.one(t.Context(), "linux/"+runtime.GOARCH)
	must.Do(t, err)
	t.Setenv("USER", "somebody")
	t.Setenv("TZ", "Asia/Tokyo")
	r.Root = copied(t, root)
	second, err := r.one(t.Context(), "linux/"+runtime.GOARCH)
	must.Do(t, err)
	if len(first) != 4 || len(second) != 4 {
		t.Fatalf("%d and %d files, want 4", len(first), len(second))
	}
	for i := range first {
		if first[i].Path != second[i].Path || !bytes.Equal(first[i].Body, second[i].Body) {
			t.Errorf("%s and %s are not the same", first[i].Path, second[i].Path)
		}
	}
	files, _ := read(t, unpacked(t, first[0].Body))
	stem := strings.TrimSuffix(first[0].Path, ".tar.gz")
	binary := files[stem+"/bin/scrimp"]
	if runtime.GOOS == "linux" {
		file := filepath.Join(t.TempDir(), "scrimp")
		must.Do(t, os.WriteFile(file, binary, 0o700))
		if out, err := exec.CommandContext(t.Context(), file, "--version").CombinedOutput(); err != nil ||
			!strings.Contains(string(out), "1.2.3-dev+abc") {
			t.Errorf("its version is %s (%v)", out, err)
		}
	}
	billed(t, first[1].Body)
	debian(t, first[2], binary)
	layout(t, first[3].Body, binary)
}

// billed checks a bill of materials: all relations are between existing items, and all imports are listed.
func billed(t *testing.T, b []byte) {
	t.Helper()
	var doc spdx
	must.Do(t, json.Unmarshal(b, &doc))
	ids, names := map[string]bool{doc.ID: true}, map[string]bool{}
	for _, p := range doc.Packages {
		if ids[p.ID] {
			t.Errorf("%s stands twice", p.ID)
		}
		ids[p.ID], names[p.Name] = true, true
	}
	for _, r := range doc.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%+v is of what is not there", r)
		}
	}
	for _, want := range []string{"scrimp", "stdlib", "github.com/spf13/cobra", "modernc.org/sqlite"} {
		if !names[want] {
			t.Errorf("%s is not billed", want)
		}
	}
}

// debian checks a package: the members of the archive, and that dpkg, if installed, reads it.
func debian(t *testing.T, deb image.File, binary []byte) {
	t.Helper()
	rest, ok := bytes.CutPrefix(deb.Body, []byte("!<arch>\n"))
	var names []string
	for len(rest) >= 60 && ok {
		head := string(rest[:60])
		size, err := strconv.Atoi(strings.TrimSpace(head[48:58]))
		if err != nil || head[58:] != "`\n" {
			t.Fatalf("head %q: %v", head, err)
		}
		name := strings.TrimSpace(head[:16])
		names = append(names, name)
		if name == "data.tar.gz" {
			files, heads := read(t, unpacked(t, rest[60:60+size]))
			if h := heads["./usr/bin/scrimp"]; h == nil || h.Mode != 0o755 || h.Uname != "root" ||
				!bytes.Equal(files["./usr/bin/scrimp"], binary) {
				t.Errorf("the program is %+v", h)
			}
			if files["./usr/share/man/man1/scrimp-run.1.gz"] == nil || heads["./usr/share/man/man1/"] == nil {
				t.Error("the manual is not in it")
			}
		}
		rest = rest[60+size+size%2:]
	}
	if strings.Join(names, " ") != "debian-binary control.tar.gz data.tar.gz" || len(rest) != 0 {
		t.Errorf("members %v, and %d bytes", names, len(rest))
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return // not on Debian
	}
	file := filepath.Join(t.TempDir(), deb.Path)
	must.Do(t, os.WriteFile(file, deb.Body, 0o600))
	out, err := exec.CommandContext(t.Context(), "dpkg-deb", "-f", file, "Package", "Version").CombinedOutput()
	if err != nil || string(out) != "Package: scrimp\nVersion: 1.2.3~dev+abc\n" {
		t.Errorf("dpkg-deb says %s (%v)", out, err)
	}
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--contents", file).CombinedOutput(); err != nil {
		t.Errorf("dpkg-deb says %s (%v)", out, err)
	}
}

// layout verifies an image: each blob has the digest and size that its parent states, from the index down.
func layout(t *testing.T, b, binary []byte) {
	t.Helper()
	files, _ := read(t, b)
	type ref struct {
		Digest string
		Size   int
	}
	blob := func(r ref) []byte {
		content := files["blobs/"+strings.Replace(r.Digest, ":", "/", 1)]
		if len(content) != r.Size || image.Digest(content) != r.Digest {
			t.Errorf("%s has %d bytes of %s, want %d", r.Digest, len(content), image.Digest(content), r.Size)
		}
		return content
	}
	unmarshal := func(b []byte, v any) {
		must.Do(t, json.Unmarshal(b, v))
	}
	var index struct{ Manifests []ref }
	unmarshal(files["index.json"], &index)
	if len(index.Manifests) != 1 {
		t.Fatalf("%d manifests", len(index.Manifests))
	}
	var manifest struct {
		Config ref
		Layers []ref
	}
	unmarshal(blob(index.Manifests[0]), &manifest)
	var config struct {
		Config struct {
			User       string
			Entrypoint []string
		}
		RootFS struct {
			IDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	unmarshal(blob(manifest.Config), &config)
	if len(manifest.Layers) != 1 || len(config.RootFS.IDs) != 1 {
		t.Fatalf("%d layers, %d known by their content", len(manifest.Layers), len(config.RootFS.IDs))
	}
	layer := unpacked(t, blob(manifest.Layers[0]))
	if image.Digest(layer) != config.RootFS.IDs[0] {
		t.Errorf("the layer is %s, and the configuration says %s", image.Digest(layer), config.RootFS.IDs[0])
	}
	if config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/usr/bin/scrimp serve" {
		t.Errorf("it runs %+v", config.Config)
	}
	inside, heads := read(t, layer)
	if !bytes.Equal(inside["usr/bin/scrimp"], binary) || string(inside["etc/ssl/certs/ca-certificates.crt"]) != "authorities" ||
		heads["data/"].Uid != imageUser || heads["data/"].Mode != 0o700 {
		t.Errorf("files %v", maps.Keys(inside))
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct{ changes, commit, want, debian string }{
		{"# Changes\n\n## Unreleased\n\n## 1.0.0\n", "abc", cli.Version + "+abc", strings.ReplaceAll(cli.Version, "-", "~") + "+abc"},
		{"# Changes\n\n## 1.2.0 (2026-11-22)\n", "abc", "1.2.0", "1.2.0"},
		{"## 2.0.0-rc.1\n", "", "2.0.0-rc.1", "2.0.0~rc.1"}, {"", "", cli.Version, strings.ReplaceAll(cli.Version, "-", "~")},
	} {
		if got := versionOf(c.changes, c.commit); got != c.want || debianVersion(got) != c.debian {
			t.Errorf("%q at %q is %s, for Debian %s, want %s and %s", c.changes, c.commit, got, debianVersion(got), c.want, c.debian)
		}
	}
	for _, c := range []struct {
		epoch, commit string
		want          int64
	}{{"5", "7", 5}, {"", "7", 7}, {"", "", 315532800}} {
		if got, err := whenOf(c.epoch, c.commit); err != nil || got.Unix() != c.want {
			t.Errorf("%q, %q is %v, %v", c.epoch, c.commit, got, err)
		}
	}
	if _, err := whenOf("today", ""); err == nil {
		t.Error("SOURCE_DATE_EPOCH=today is taken")
	}
}

// Groff formats the man pages without a complaint.
func TestManPages_AreAcceptedByGroff(t *testing.T) {
	lane.Component(t, "host")
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff is not installed")
	}
	list, err := release{Version: "1", When: day}.manual()
	must.Do(t, err)
	for i, f := range list {
		if i%8 != 1 || !strings.HasSuffix(f.Path, ".1") {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "groff", "-man", "-Tutf8", "-ww")
		cmd.Stdin = bytes.NewReader(f.Body)
		var says bytes.Buffer
		cmd.Stderr = &says
		if err := cmd.Run(); err != nil || says.Len() > 0 {
			t.Errorf("%s: %v %s", f.Path, err, says.String())
		}
	}
}

// Each visible command has a page, which contains nothing of this user's settings.
func TestManPages(t *testing.T) {
	list, err := release{Version: "1", When: day}.manual()
	must.Do(t, err)
	home, _ := os.UserHomeDir()
	pages := 0
	for _, f := range list {
		if strings.Contains(string(f.Body), home+"/") {
			t.Errorf("%s names %s", f.Path, home)
		}
		if !strings.HasSuffix(f.Path, ".1") {
			continue
		}
		pages++
		if bad := regexp.MustCompile(`(?m)^[.'](?:[^A-Z]|[A-Z]{3,})`).FindString(string(f.Body)); bad != "" &&
			!strings.HasPrefix(bad, ".n") && !strings.HasPrefix(bad, ".f") && !strings.HasPrefix(bad, ".b") {
			t.Errorf("%s has a request %q", f.Path, bad)
		}
	}
	if want := len(commands(cli.Root())); pages < want || want < 40 {
		t.Errorf("%d pages for %d commands", pages, want)
	}
	if got := roff(".SH a-b \\n"); got != `\&.SH a\-b \en` {
		t.Errorf("roff writes %s", got)
	}
}
