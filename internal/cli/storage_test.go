package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// The dry run changes nothing; a plan deletes what it lists, unless a live job has come to need it since.
func TestStorage_DeletesOnlyByPlan(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := filepath.Join(h.dir, "runs")
	old := time.Now().Add(-200 * 24 * time.Hour)
	for _, name := range []string{"a.log", "b.log"} {
		file := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(dir, 0o700))
		must.Do(t, os.WriteFile(file, []byte("line\n"), 0o600))
		must.Do(t, os.Chtimes(file, old, old))
	}
	h.write("prices.yaml", "prices: [{store: local, month: 0.1, source: ours}]\n")
	var got struct {
		Deletes int    `json:"deletes"`
		Digest  string `json:"digest"`
		Saved   string `json:"saved_month"`
	}
	text := h.out("storage", "runs", "--price", "prices.yaml", "--plan", "plan.json", "--json")
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Deletes != 2 || got.Saved != "0.000000001" || len(got.Digest) != 64 {
		t.Fatalf("%s, %v: two files of 5 bytes at $0.10 a gigabyte cost $1e-9 a month", text, err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 2 {
		t.Fatal("a dry run deletes files")
	}
	h.write("needs.yaml", "name: needs\ncommand: cat "+dir+"/a.log\nresources: {cpus: 100000+}\n")
	h.do("run", "-y", "-d", "--force", "needs.yaml")
	if text, err := h.try("storage", "--apply", "plan.json"); err == nil || !strings.Contains(text, "nothing is deleted") {
		t.Errorf("%v: %s", err, text)
	}
	h.do("cancel", "needs")
	if text := h.do("storage", "--apply", "plan.json"); !strings.Contains(text, "Deleted 2 files, 10B") {
		t.Error(text)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left are %v", names)
	}
	if text := h.do("storage", "--price", "prices.yaml"); !strings.Contains(text, "work") || strings.Contains(text, "unknown") {
		t.Error(text)
	}
}

func TestStorage_ErrorNamesProblem(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("bad.yaml", "rules: [{kind: logs, action: burn, older_than: 3d}]\n")
	h.write("plan.json", "{}\n")
	for args, says := range map[string]string{
		"storage . --rules bad.yaml":           "bad.yaml:1: `rules[0].action` is \"burn\": write one of keep, tier, delete",
		"storage . --price bad.yaml":           "bad.yaml:1: `rules` is not known here",
		"storage . --keep none":                "--keep \"none\" matches nothing",
		"gc --older-than 0s":                   "write a time of more than 0",
		"storage none":                         "read none",
		"storage . --duplicates x":             "--duplicates \"x\" is not a size",
		"storage . -o x":                       "give --lifecycle too",
		"storage . --lifecycle s3":             "--lifecycle needs one bucket",
		"storage s3://b --lifecycle gcs":       "s3://b is not a bucket of that provider",
		"storage s3://b --lifecycle b2":        "--lifecycle \"b2\" is none of s3, s3-xml, gcs, azure",
		"storage --rules bad.yaml":             "--rules needs a PATH or a BUCKET",
		"storage . --apply plan.json":          "--apply takes no PATH",
		"storage --apply plan.json":            "plan.json: `version` is 0",
		"storage --apply plan.json --price p":  "--price and --apply do not go together",
		"storage --apply none.json":            "read --apply",
		"storage . --plan none/of/this/p.json": "write --plan",
		"storage s3://user:secret@b":           "leave the user out",
	} {
		if text, err := h.try(strings.Fields(args)...); err == nil || !strings.Contains(text, says) || strings.Contains(text, "secret") {
			t.Errorf("%s: %v: %s, want %s", args, err, text, says)
		}
	}
}
