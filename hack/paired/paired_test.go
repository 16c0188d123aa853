package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

func TestParse_ReadsBenchmarksByNameAndUnit(t *testing.T) {
	got := parse(`goos: linux
BenchmarkLoad/sqlite-2   	       1	2500000000 ns/op	         8.5 restart-s	     900 submit/s
    load_test.go:88: submit: 900 a second, p50 1.0 ms
BenchmarkDecisions 	      20	   3029542 ns/op	    108779 decisions/s
BenchmarkDecisionStep/jobs=100000-16 	 7	 1 ns/op	 151100 steps/s
BenchmarkBroken-2
--- BENCH: BenchmarkLoad/sqlite-2
PASS
`)
	want := map[string]float64{
		"Load/sqlite ns/op": 2.5e9, "Load/sqlite s/op": 2.5, "Load/sqlite restart-s": 8.5, "Load/sqlite submit/s": 900,
		"Decisions ns/op": 3029542, "Decisions s/op": 0.003029542, "Decisions decisions/s": 108779,
		"DecisionStep/jobs=100000 ns/op": 1, "DecisionStep/jobs=100000 s/op": 1e-9,
		"DecisionStep/jobs=100000 steps/s": 151100,
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s: %v, want %v", key, got[key], v)
		}
	}
}

func TestMeasure_AlternatesBetweenTrees(t *testing.T) {
	var order []string
	r := runner{trees: [2]*Tree{{Name: "base"}, {Name: "now"}}}
	m := Measure{
		Name: "m", Rounds: 3,
		Figures: []Figure{{Name: "f", Key: "k", Higher: true, Ratio: 0.8}, {Name: "other", Key: "other"}},
		Run: func(_ context.Context, t *Tree) (map[string]float64, error) {
			order = append(order, t.Name)
			return map[string]float64{"k": float64(len(order))}, nil
		},
	}
	rows, err := r.measure(t.Context(), m)
	must.Do(t, err)
	if got := strings.Join(order, " "); got != "base now now base base now" {
		t.Errorf("measured %s", got)
	}
	base, now := rows[0].Base, rows[0].Now
	if !slices.Equal(base, Samples{1, 4, 5}) || !slices.Equal(now, Samples{2, 3, 6}) || rows[1].Now != nil {
		t.Errorf("rows %+v", rows)
	}
}

func TestMeasure_NamesWhatATreeLacksAndDoesNotRetry(t *testing.T) {
	for _, c := range []struct {
		in   string // the tree that lacks it
		err  error
		want Verdict
	}{
		{"base", errNotThere, Unknown},
		{"now", errNotThere, Unknown},
		{"base", errors.New("it broke"), Unknown},
		{"now", errors.New("it broke"), Failed},
	} {
		runs := 0
		r := runner{trees: [2]*Tree{{Name: "base", Commit: "aaa"}, {Name: "now", Commit: "bbb"}}}
		m := Measure{Name: "m", Rounds: 3, Figures: []Figure{{Key: "k", Ratio: 1.25}}}
		m.Run = func(_ context.Context, t *Tree) (map[string]float64, error) {
			if runs++; t.Name == c.in {
				return nil, c.err
			}
			return map[string]float64{"k": 1}, nil
		}
		rows, err := r.measure(t.Context(), m)
		must.Do(t, err)
		if got := rows[0].Verdict(); got != c.want || runs != 4 {
			t.Errorf("%v in %s: %s after %d runs, want %s after 4", c.err, c.in, got, runs, c.want)
		}
		if len(r.notes) != 1 || !strings.HasPrefix(r.notes[0], "not measured in "+c.in+" (") {
			t.Errorf("notes %q", r.notes)
		}
	}
}

func TestAllowed_GrowsByAttemptAndHour(t *testing.T) {
	if got := (Life{Attempts: 2, Hours: 10}).Allowed(); got != 50 {
		t.Errorf("%v KB are allowed, want 2 x 20 + 10", got)
	}
}

func TestRan_ReadsTheReceipt(t *testing.T) {
	attempts, hours, err := ran(`{"attempts":3,"tries":[
		{"from":"2026-11-22T02:00:00Z","until":"2026-11-22T03:30:00Z"},{"from":null,"until":null},
		{"from":"2026-11-22T04:00:00Z","until":"2026-11-22T05:00:00Z"}]}`)
	if err != nil || attempts != 3 || hours != 2.5 {
		t.Errorf("%d attempts, %v hours, %v", attempts, hours, err)
	}
	if _, _, err := ran(`{"attempts":1,"tries":[]}`); err == nil {
		t.Error("a receipt without a machine is taken")
	}
}

func TestMeasureLog_CountsEveryTableThatCannotBeRebuilt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scrimp.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	must.Do(t, err)
	defer func() { _ = db.Close() }()
	for _, text := range []string{
		"CREATE TABLE fact (seq INTEGER PRIMARY KEY, body TEXT)", "CREATE INDEX fact_body ON fact (body)",
		"CREATE TABLE snapshot_part (seq INTEGER PRIMARY KEY, bytes BLOB)", "CREATE TABLE meta (key TEXT)",
	} {
		_, err := db.Exec(text)
		must.Do(t, err)
	}
	before, err := measureLog(t.Context(), path, false)
	must.Do(t, err)
	for _, table := range []string{"fact", "snapshot_part"} {
		_, err := db.Exec("INSERT INTO "+table+" VALUES (1, ?)", strings.Repeat("x", 50_000))
		must.Do(t, err)
	}
	after, err := measureLog(t.Context(), path, true)
	must.Do(t, err)
	if grown := after.Records - before.Records; grown < 50_000 || grown > 50_100 {
		t.Errorf("the records grew by %d bytes, want those of one row of 50,000", grown)
	}
	if grown := after.Used - before.Used; grown < 100_000 || grown > 101_000 {
		t.Errorf("used grew by %d bytes, want the row and its index", grown)
	}
	if after.File < 150_000 || len(after.Tables) != 1 {
		t.Errorf("file of %d bytes, tables %v", after.File, after.Tables)
	}
}

// open checks the base out beside the repository, and close removes all of it.
func TestOpen_ChecksOutBaseAndRemovesIt(t *testing.T) {
	lane.Component(t, "host")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: git is not installed")
	}
	t.Setenv("TMPDIR", t.TempDir())
	repo := filepath.Join(t.TempDir(), "repo")
	must.Do(t, os.MkdirAll(filepath.Join(repo, "a"), 0o755))
	commit := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(repo, "a", "file"), []byte(text), 0o600))
		me := []string{"-c", "user.name=a", "-c", "user.email=a@example.org"}
		for _, args := range [][]string{{"add", "-A"}, append(me, "commit", "-q", "-m", text)} {
			_, err := git(t.Context(), repo, args...)
			must.Do(t, err)
		}
	}
	_, err := git(t.Context(), repo, "init", "-q")
	must.Do(t, err)
	commit("one")
	commit("two")
	w, trees, err := open(t.Context(), repo, "HEAD~1")
	must.Do(t, err)
	for i, want := range []string{"one", "two"} {
		text, err := os.ReadFile(filepath.Join(trees[i].Dir, "a", "file"))
		if err != nil || string(text) != want || !strings.HasSuffix(trees[i].Commit, want) {
			t.Errorf("%s has %q (%s), %v, want %q", trees[i].Name, text, trees[i].Commit, err, want)
		}
	}
	w.close()
	if _, err := os.Stat(w.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder is left: %v", err)
	}
	if list, err := git(t.Context(), repo, "worktree", "list"); err != nil || strings.Count(list, "\n") != 0 {
		t.Errorf("worktrees %q, %v", list, err)
	}
	if _, _, err := open(t.Context(), repo, "nowhere"); err == nil {
		t.Error("a commit that is not there is compared with")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "paired-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
