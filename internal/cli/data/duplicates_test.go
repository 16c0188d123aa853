package data

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/datadigest"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/holdings"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
}

// Duplicates finds a kept file and an input among the files of a folder, counts each copy once, and adds up prices as a
// plain loop does.
func TestDuplicates_ComparesFoldersWithKnownContents(t *testing.T) {
	top, err := filepath.EvalSymlinks(fast.Dir(t))
	must.Do(t, err)
	long := strings.Repeat("weights ", (format.PartSize+1000)/8)
	set := map[string]string{"x": strings.Repeat("x", 5000), "deep/y": strings.Repeat("y", 6000)}
	write(t, filepath.Join(top, "model.bin"), long)
	write(t, filepath.Join(top, "same-size.bin"), long[1:]+"?")
	for name, text := range set {
		write(t, filepath.Join(top, "corpus", name), text)
		write(t, filepath.Join(top, "other", "copy", name), text)
	}
	write(t, filepath.Join(top, "y"), set["deep/y"]) // a third copy of a file of the folders
	folder, err := datadigest.Folder(t.Context(), filepath.Join(top, "corpus"))
	must.Do(t, err)
	// By hand: the digest of a file with two parts.
	parts := fmt.Appendf(nil, "%x %d\n%x %d\n", sha256.Sum256([]byte(long[:format.PartSize])), format.PartSize,
		sha256.Sum256([]byte(long[format.PartSize:])), len(long)-format.PartSize)
	list := []known{
		{Name: "j (checkpoint 1)", Path: "w", Store: "aws", Bytes: int64(len(long)), Files: 1,
			Digest: fmt.Sprintf("%x", sha256.Sum256(parts)), Remove: "scrimp checkpoints rm j@1"},
		{Name: "s3://b/corpus", Store: "aws", Bytes: 11000, Files: 2, Digest: folder},
		{Name: "s3://c/other", Store: "aws", Bytes: 11000, Files: 2, Digest: strings.Repeat("0", 64)},
		{Name: "file://" + filepath.Join(top, "corpus"), Store: "local", Bytes: 11000, Files: 2, Digest: folder},
	}
	prices := filepath.Join(fast.Dir(t), "prices.yaml")
	write(t, prices, "prices:\n  - {store: local, month: 0.08, source: ours}\n  - {store: aws, month: 0.05, source: list}\n")
	find := func(price string) holdings.Duplicates {
		t.Helper()
		v, err := (&app{&command.App{Now: time.Now, Data: fast.Dir(t)}}).find(t.Context(), 1024, price, []string{top}, list)
		must.Do(t, err)
		return v
	}
	v := find(prices)
	var got []string
	for _, g := range v.Groups {
		for _, c := range g.Copies {
			got = append(got, fmt.Sprint(g.Bytes, " ", c.Place, " ", c.Path, " ", c.Remove))
		}
	}
	want := []string{fmt.Sprint(len(long), " ", top, " model.bin "),
		fmt.Sprint(len(long), " j (checkpoint 1) w scrimp checkpoints rm j@1"),
		fmt.Sprint(11000, " ", top, " corpus "), fmt.Sprint(11000, " ", top, " other/copy "), "11000 s3://b/corpus  ",
		fmt.Sprint(6000, " ", top, " corpus/deep/y "), fmt.Sprint(6000, " ", top, " y ")}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("copies %q\nwant %q", got, want)
	}
	extra := int64(len(long)) + 2*11000 + 6000
	// The dearest copy of each stays: of the model and the folder the others cost $0.05 or $0.08 for 1e9 bytes.
	if month := (float64(len(long)+11000)*0.05 + (11000+6000)*0.08) / 1e9; v.Extra != extra || v.Unpriced != 0 || v.Month == nil ||
		fmt.Sprintf("%.9f", v.Month.Float()) != fmt.Sprintf("%.9f", month) {
		t.Errorf("%d bytes and %v a month, want %d and %v", v.Extra, v.Month, extra, month)
	}
	if v = find(""); v.Month != nil || v.Unpriced != extra {
		t.Errorf("without a price of the local disk: %v a month and %d bytes unpriced", v.Month, v.Unpriced)
	}
}
