package tarball_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/content/tarball"
	"scrimp/internal/test/must"
)

// made creates a folder with everything that a work folder may contain.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	old := time.Date(2020, 2, 3, 4, 5, 6, 789, time.UTC)
	for name, content := range map[string]string{"train.sh": "#!/bin/sh\n", "data/a": strings.Repeat("a", 100_000),
		"data/" + strings.Repeat("long", 40): "", "ä ö": "x"} {
		at := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(content), 0o640),
			os.Chtimes(at, old, old))
		must.Do(t, err)
	}
	err := errors.Join(os.Chmod(filepath.Join(dir, "train.sh"), 0o755), os.Symlink("data/a", filepath.Join(dir, "link")),
		os.Symlink("/usr/bin/python3", filepath.Join(dir, "python")), os.Mkdir(filepath.Join(dir, "empty"), 0o750),
		os.Chtimes(filepath.Join(dir, "data"), old, old))
	must.Do(t, err)
	return dir
}

// listed returns the content of a folder, one line each.
func listed(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, at)
		link, _ := os.Readlink(at)
		content := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			content = string(b[:min(len(b), 20)]) + fmt.Sprint(len(b))
		}
		when := info.ModTime().UTC().Format(time.RFC3339Nano)
		if info.Mode()&fs.ModeSymlink != 0 {
			when = ""
		}
		fmt.Fprintln(&text, rel, info.Mode(), when, link, content)
		return nil
	})
	must.Do(t, err)
	return text.String()
}

func packed(t *testing.T, dir string, offset int64) []byte {
	t.Helper()
	f, err := tarball.Scan(dir)
	must.Do(t, err)
	var b bytes.Buffer
	if _, err := f.Write(t.Context(), &b, offset); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Unpack restores what Write sent: files, folders, links, permissions and times.
func TestUnpack_RestoresWhatWriteSent(t *testing.T) {
	dir, to := made(t), t.TempDir()
	must.Do(t, tarball.Unpack(t.Context(), bytes.NewReader(packed(t, dir, 0)), to))
	if want, got := listed(t, dir), listed(t, to); want != got {
		t.Errorf("sent\n%s\narrived\n%s", want, got)
	}
}

// From any byte on, the rest is the same, and the tag tells a changed folder from the original.
func TestWrite_ResumesAtAnyByte(t *testing.T) {
	dir := made(t)
	all := packed(t, dir, 0)
	for _, offset := range []int{1, 511, 512, 5000, len(all) / 2, len(all) - 1, len(all)} {
		if !bytes.Equal(packed(t, dir, int64(offset)), all[offset:]) {
			t.Errorf("from byte %d on it differs", offset)
		}
	}
	before, err := tarball.Scan(dir)
	must.Do(t, err)
	must.Do(t, os.Chmod(filepath.Join(dir, "train.sh"), 0o700))
	if after, err := tarball.Scan(dir); err != nil || after.Tag() == before.Tag() {
		t.Errorf("a changed folder has the same tag, %v", err)
	}
}

// A missing folder counts as an empty one.
func TestScan_TreatsAMissingFolderAsEmpty(t *testing.T) {
	to := t.TempDir()
	b := packed(t, filepath.Join(to, "missing"), 0)
	if err := tarball.Unpack(t.Context(), bytes.NewReader(b), to); err != nil || listed(t, to) != "" {
		t.Errorf("%q, %v", listed(t, to), err)
	}
}

// Unpack writes nothing outside the folder for any tar file, and returns an error for a file that is cut short.
func TestUnpack_StaysInsideItsFolder(t *testing.T) {
	top := t.TempDir()
	for name, entries := range map[string][]*tar.Header{
		"dots":     {{Typeflag: tar.TypeReg, Name: "../out", Size: 3, Mode: 0o600}},
		"absolute": {{Typeflag: tar.TypeReg, Name: "/" + top + "/out", Size: 3, Mode: 0o600}},
		"climbing link": {{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "../.."},
			{Typeflag: tar.TypeReg, Name: "a/out", Size: 3, Mode: 0o600}},
		"link that climbs from below": {{Typeflag: tar.TypeSymlink, Name: "deep/a", Linkname: "../../x"}},
		"through an absolute link": {{Typeflag: tar.TypeSymlink, Name: "a", Linkname: top},
			{Typeflag: tar.TypeReg, Name: "a/out", Size: 3, Mode: 0o600}},
		"onto a link": {{Typeflag: tar.TypeSymlink, Name: "a", Linkname: top + "/out"},
			{Typeflag: tar.TypeReg, Name: "a", Size: 3, Mode: 0o600}},
		"device": {{Typeflag: tar.TypeChar, Name: "null"}},
		"hard":   {{Typeflag: tar.TypeLink, Name: "hard", Linkname: "/etc/passwd"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range entries {
			must.Do(t, w.WriteHeader(h))
			if h.Size > 0 {
				if _, err := io.WriteString(w, "out"); err != nil {
					t.Fatal(err)
				}
			}
		}
		must.Do(t, w.Close())
		to := filepath.Join(top, "in", name)
		must.Do(t, os.MkdirAll(to, 0o700))
		if err := tarball.Unpack(t.Context(), &b, to); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(top, "*")); err != nil || len(left) != 1 {
		t.Errorf("written outside: %v, %v", left, err)
	}
	all := packed(t, made(t), 0)
	for _, n := range []int{100, 600, len(all) / 2} {
		if err := tarball.Unpack(t.Context(), bytes.NewReader(all[:n]), t.TempDir()); err == nil {
			t.Errorf("cut at byte %d it was taken for whole", n)
		}
	}
}
