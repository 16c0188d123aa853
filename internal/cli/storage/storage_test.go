package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/cli/storage/compare"
	"scrimp/internal/content/blob"
	"scrimp/internal/lib/inode"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
	"scrimp/internal/work/storage"
)

var old = time.Now().Add(-400 * 24 * time.Hour).Truncate(time.Second)

// write makes a file that nobody used for a long time.
func write(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, old, old)))
}

// scanned returns the paths of the files below a folder that a rule about everything deletes, and the scanner.
func scanned(t *testing.T, g *guard, top string) (storage.Plan, *scanner, storage.Result) {
	t.Helper()
	places := []storage.Place{{Name: top, Store: storage.Local}}
	rules := []storage.Rule{{OlderThan: 24 * time.Hour, Action: storage.Delete}}
	p := storage.NewPlanner(time.Now(), places, rules, storage.Prices{})
	s := newScanner(g, p.Add, func(int64, int64) {})
	must.Do(t, s.local(t.Context(), 0, top))
	r := p.Finish()
	return storage.PlanOf(time.Now(), places, rules, nil, r), s, r
}

func names(p storage.Plan) (list []string) {
	for _, d := range p.Delete {
		list = append(list, d.Path)
	}
	return list
}

func folderOf(t *testing.T) string {
	t.Helper()
	return resolved(fast.Dir(t))
}

// Links, pipes, unreadable folders and odd names are counted and end no scan; a cycle of links is not followed.
func TestScan_CountsWhatItCannotRead(t *testing.T) {
	top := folderOf(t)
	write(t, filepath.Join(top, "a.log"), "a")
	write(t, filepath.Join(top, "b\x1b[31m\n.log"), "b")
	write(t, filepath.Join(top, "c\xff.log"), "c")
	must.Do(t, errors.Join(os.Mkdir(filepath.Join(top, "d"), 0o700), os.Symlink("..", filepath.Join(top, "d", "up")), os.Symlink("/etc", filepath.Join(top, "etc")),
		syscall.Mkfifo(filepath.Join(top, "pipe"), 0o600), os.Link(filepath.Join(top, "a.log"), filepath.Join(top, "d", "again.log"))))
	want := 0
	if os.Getuid() != 0 {
		must.Do(t, os.Mkdir(filepath.Join(top, "closed"), 0))
		want = 1
	}
	p, s, r := scanned(t, &guard{}, top)
	if s.skipped.count[symlink] != 2 || s.skipped.count[special] != 1 || s.skipped.count[unreadable] != int64(want) || s.files != 4 {
		t.Errorf("%d files, skipped %v", s.files, s.skipped.count)
	}
	if got := names(p); !slices.Equal(got, []string{"b\x1b[31m\n.log"}) {
		t.Errorf("deletes %q", got)
	}
	if u := r.Usage[0]; u.Files != 3 || u.Bytes != 3 {
		t.Errorf("%+v: a file with two names counts once", u)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stop"))
	if err := s.local(ctx, 0, top); err == nil || err.Error() != "stop" {
		t.Errorf("an interrupted scan: %v", err)
	}
}

// What a live job names, a data folder and a store of scrimp stay, whether the scan begins above, at or below them.
func TestScan_KeepsWhatLiveJobsAndServersNeed(t *testing.T) {
	top := folderOf(t)
	for _, name := range []string{"job/data/a", "job/one.csv", "server/scrimp.db", "server/logs/x.log", "store/jobs/lm/manifests/1-1",
		"store/jobs/lm/objects/1-a/ff", "store/jobs/lm/claims/1-a", "free/x.log", "linked/y.log"} {
		write(t, filepath.Join(top, name), "x")
	}
	if err := os.Symlink(filepath.Join(top, "linked"), filepath.Join(top, "alias")); err != nil {
		t.Fatal(err)
	}
	g := newGuard(filepath.Join(top, "none"))
	for _, text := range []string{filepath.Join(top, "job/data"), filepath.Join(top, "job/one.csv"), filepath.Join(top, "alias"), "relative", "s3://other/x"} {
		g.name(text)
	}
	p, _, r := scanned(t, g, top)
	if got := names(p); !slices.Equal(got, []string{"free/x.log"}) {
		t.Errorf("deletes %q", got)
	}
	stays := map[storage.Reason]int64{}
	for _, s := range r.Stays {
		stays[s.Reason] = s.Files
	}
	if stays[storage.Needed] != 3 || stays[storage.ServerData] != 2 || stays[storage.OwnStore] != 3 {
		t.Errorf("%v", stays)
	}
	for _, below := range []string{"job/data", "server/logs", "store/jobs/lm/objects/1-a"} {
		if p, _, _ := scanned(t, g, filepath.Join(top, below)); len(p.Delete) > 0 {
			t.Errorf("%s: deletes %q", below, names(p))
		}
	}
	pattern := newGuard(top + "/none")
	pattern.name(filepath.Join(top, "free", "shard-*.log"))
	if p, _, _ := scanned(t, pattern, filepath.Join(top, "free")); len(p.Delete) > 0 {
		t.Errorf("a pattern keeps its folder: %q", names(p))
	}
}

// One change of anything in the plan, or a new need, and nothing is deleted.
func TestApply_RefusesWhenAnythingHasChanged(t *testing.T) {
	for what, change := range map[string]func(top string, g *guard) error{
		"a file has grown": func(top string, _ *guard) error {
			return os.WriteFile(filepath.Join(top, "b.log"), []byte("bb"), 0o600)
		},
		"a file was touched": func(top string, _ *guard) error {
			return os.Chtimes(filepath.Join(top, "b.log"), old, old.Add(time.Hour))
		},
		"a file has other contents of its length and its old time": func(top string, _ *guard) error {
			name := filepath.Join(top, "b.log")
			before, err := os.Stat(name)
			for after := before; err == nil && inode.Of(after) == inode.Of(before); { // the clock of the file system has ticks
				if err = errors.Join(os.WriteFile(name, []byte(top[:5]), 0o600), os.Chtimes(name, old, old)); err == nil {
					after, err = os.Stat(name)
				}
			}
			return err
		},
		"a checkpoint has grown": func(top string, _ *guard) error {
			return os.WriteFile(filepath.Join(top, "run", "checkpoint-1", "more"), nil, 0o600)
		},
		"a folder leads elsewhere": func(top string, _ *guard) error {
			return errors.Join(os.Rename(filepath.Join(top, "run"), filepath.Join(top, "run2")), os.Symlink("/usr", filepath.Join(top, "run")))
		},
		"a file is gone": func(top string, _ *guard) error { return os.Remove(filepath.Join(top, "b.log")) },
		"a link replaces a file": func(top string, _ *guard) error {
			return errors.Join(os.Remove(filepath.Join(top, "b.log")), os.Symlink("a.log", filepath.Join(top, "b.log")))
		},
		"a file has a second name": func(top string, _ *guard) error { return os.Link(filepath.Join(top, "b.log"), filepath.Join(top, "c")) },
		"the newest checkpoint is gone": func(top string, _ *guard) error {
			return os.Remove(filepath.Join(top, "run", "checkpoint-2", "w"))
		},
		"a job needs a file": func(top string, g *guard) error { g.name(filepath.Join(top, "b.log")); return nil },
		"a job needs all":    func(top string, g *guard) error { g.name(top); return nil },
		"a server begins":    func(top string, _ *guard) error { return os.WriteFile(filepath.Join(top, "scrimp.db"), nil, 0o600) },
	} {
		top := folderOf(t)
		for _, name := range []string{"a.log", "b.log", "run/checkpoint-1/w"} {
			write(t, filepath.Join(top, name), name)
		}
		newer := filepath.Join(top, "run", "checkpoint-2", "w")
		write(t, newer, "w")
		must.Do(t, os.Chtimes(newer, old, old.Add(48*time.Hour)))
		g := newGuard(filepath.Join(top, "none"))
		p, _, _ := scanned(t, g, top)
		if len(p.Delete) != 3 {
			t.Fatalf("deletes %q", names(p))
		}
		must.Do(t, change(top, g))
		files, _, err := apply(t.Context(), g, p, func(int64, int64) {})
		if err == nil || files != 0 || !strings.Contains(err.Error(), "nothing is deleted") || strings.Contains(err.Error(), "escapes") {
			t.Errorf("%s: %d files deleted, %v", what, files, err)
		}
		if _, err := os.Stat(filepath.Join(top, "a.log")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A deleted checkpoint leaves no empty folder, and what the plan does not delete stays.
func TestApply_RemovesEmptiedCheckpointFolders(t *testing.T) {
	top := folderOf(t)
	for _, name := range []string{"run/checkpoint-1/w", "run/checkpoint-1/rank/0/w", "run/checkpoint-2/w", "run/checkpoint-2/link.d/w"} {
		write(t, filepath.Join(top, name), name)
	}
	must.Do(t, os.Symlink("w", filepath.Join(top, "run/checkpoint-2/link.d/alias")))
	newer := filepath.Join(top, "run/checkpoint-3/w")
	write(t, newer, "w")
	must.Do(t, os.Chtimes(newer, old, old.Add(48*time.Hour)))
	g := newGuard(filepath.Join(top, "none"))
	p, _, _ := scanned(t, g, top)
	files, _, err := apply(t.Context(), g, p, func(int64, int64) {})
	if err != nil || files != 4 || len(p.Folders) != 2 {
		t.Errorf("%d files of %+v: %v", files, p.Folders, err)
	}
	for name, stays := range map[string]bool{"run/checkpoint-1": false, "run/checkpoint-2": true, "run/checkpoint-2/link.d/alias": true, "run/checkpoint-3/w": true} {
		if exists(filepath.Join(top, name)) != stays {
			t.Errorf("%s stays: %v", name, !stays)
		}
	}
}

// A path of --keep counts from here and from the scanned folder. One that keeps nothing is refused.
func TestKeep_RefusesWhatMatchesNothing(t *testing.T) {
	top := folderOf(t)
	for _, name := range []string{"runs/a.log", "runs/b.log", "other/c.log"} {
		write(t, filepath.Join(top, name), "x")
	}
	t.Chdir(top)
	places := []storage.Place{{Name: filepath.Join(top, "runs"), Store: storage.Local}, {Name: "s3://models?prefix=p", Store: "aws", Prefix: "p/"}}
	for _, k := range []string{"a.log", "runs/a.log", "./runs/../runs/a.log", filepath.Join(top, "runs/a.log"), "file://" + top + "/runs/a.log"} {
		g := newGuard(filepath.Join(top, "none"))
		if _, err := keepAll(g, []string{k}, places); err != nil {
			t.Errorf("%s: %v", k, err)
		}
		if p, _, _ := scanned(t, g, places[0].Name); !slices.Equal(names(p), []string{"b.log"}) {
			t.Errorf("--keep %s deletes %q", k, names(p))
		}
	}
	for _, k := range []string{top, ".", "runs", "runs/*.log", "*.log", "s3://models/p/x", "s3://models"} {
		if _, err := keepAll(newGuard(top), []string{k}, places); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	for _, k := range []string{"", "none", "runs/none", "other/c.log", "/none", "none/*.log", "s3://else/p/x", "s3://models/q", "gs://models/p", "file:///none"} {
		if got, err := keepAll(newGuard(top), []string{k}, places); err == nil || !strings.Contains(err.Error(), "matches nothing") {
			t.Errorf("--keep %q: %q, %v", k, got, err)
		}
	}
}

// A sparse file counts with what it holds on disk, in the table as in the plan.
func TestScan_CountsWhatASparseFileHolds(t *testing.T) {
	top := folderOf(t)
	name := filepath.Join(top, "a.log")
	write(t, name, "text")
	if err := errors.Join(os.Truncate(name, 1<<40), os.Chtimes(name, old, old)); err != nil {
		t.Skip(err) // the file system has a lower limit
	}
	p, s, r := scanned(t, &guard{}, top)
	if p.Bytes > 1<<20 || s.bytes != p.Bytes || r.Usage[0].Bytes != p.Bytes || p.Delete[0].Bytes != 1<<40 {
		t.Errorf("the plan frees %d bytes; the table shows %d", p.Bytes, r.Usage[0].Bytes)
	}
	if files, bytes, err := apply(t.Context(), newGuard(top+"/none"), p, func(int64, int64) {}); err != nil || files != 1 || bytes != p.Bytes {
		t.Errorf("%d files, %d bytes, %v", files, bytes, err)
	}
}

func TestApply_DeletesThePlanOnly(t *testing.T) {
	top := folderOf(t)
	for i := range 20 {
		write(t, filepath.Join(top, "logs", fmt.Sprint(i)+".log"), "text")
	}
	g := newGuard(filepath.Join(top, "none"))
	p, _, _ := scanned(t, g, top)
	write(t, filepath.Join(top, "logs", "later.log"), "text")
	files, bytes, err := apply(t.Context(), g, p, func(int64, int64) {})
	left, _ := os.ReadDir(filepath.Join(top, "logs"))
	if err != nil || files != 20 || bytes != 80 || len(left) != 1 || left[0].Name() != "later.log" {
		t.Errorf("%d files, %d bytes, %v left, %v", files, bytes, left, err)
	}
}

// Files with the same contents are found by content alone, and the comparison leaves the time of their last use.
func TestDuplicates_AreFoundByContent(t *testing.T) {
	top := folderOf(t)
	long := strings.Repeat("x", 64<<10+10)
	for name, text := range map[string]string{"a": long + "1", "b": long + "1", "c": long + "2", "d": "short", "e": "short", "f": "shorT", "g": "alone"} {
		write(t, filepath.Join(top, name), text)
	}
	places := []storage.Place{{Name: top, Store: storage.Local}}
	c := &storage.Candidates{Least: 1}
	s := newScanner(&guard{}, c.Add, func(int64, int64) {})
	must.Do(t, s.local(t.Context(), 0, top))
	list, left, err := compare.Duplicates(t.Context(), places, c, func(int64, int64) {})
	var got []string
	for _, d := range list {
		for _, f := range d.Files {
			got = append(got, f.Path)
		}
		got = append(got, "|")
	}
	if err != nil || left != 0 || strings.Join(got, "") != "ab|de|" {
		t.Errorf("%q, %d, %v", got, left, err)
	}
	info, err := os.Stat(filepath.Join(top, "a"))
	if err != nil || !inode.Of(info).Used.Equal(old) {
		t.Errorf("a was last used %v, want %v (%v)", inode.Of(info).Used, old, err)
	}
}

// The same holds for a bucket: a store of scrimp and what a job names stay, and a changed object ends the deletion.
func TestBucket_KeepsWhatIsNeeded(t *testing.T) {
	top := folderOf(t)
	b, err := blob.Open(t.Context(), "file://"+top)
	must.Do(t, err)
	defer b.Close()
	for _, key := range []string{"logs/a.log", "logs/b.log", "data/x.csv", "team/jobs/lm/manifests/1-1", "team/jobs/lm/objects/1-a/ff", "objects/plain"} {
		must.Do(t, b.WriteAll(t.Context(), key, []byte(key), nil))
	}
	place := storage.Place{Name: "s3://models?prefix=p", Store: "aws", Prefix: "p/"}
	g := newGuard(filepath.Join(top, "none"))
	g.name("s3://models/p/data")
	g.name("gs://models/p/logs")
	rules := []storage.Rule{{OlderThan: 24 * time.Hour, Action: storage.Delete}}
	p := storage.NewPlanner(time.Now().Add(48*time.Hour), []storage.Place{place}, rules, storage.Prices{})
	s := newScanner(g, p.Add, func(int64, int64) {})
	must.Do(t, s.bucket(t.Context(), 0, place, b))
	plan := storage.PlanOf(time.Now(), []storage.Place{place}, rules, nil, p.Finish())
	if got := names(plan); !slices.Equal(got, []string{"logs/a.log", "logs/b.log", "objects/plain"}) {
		t.Errorf("deletes %q", got)
	}
	target := &bucketTarget{b, g, place, map[string]bool{}}
	if err := target.check(t.Context(), plan.Delete[0]); err != nil {
		t.Errorf("an object as it was: %v", err)
	}
	must.Do(t, b.WriteAll(t.Context(), "logs/a.log", []byte("other"), nil))
	if err := target.check(t.Context(), plan.Delete[0]); !errors.Is(err, errChanged) {
		t.Errorf("an object that has changed: %v", err)
	}
	g.name("s3://models/p/logs/")
	if err := target.check(t.Context(), plan.Delete[1]); err == nil {
		t.Error("an object that a job needs by now may be deleted")
	}
}

func TestPlaces_RefusesWhatItCannotScan(t *testing.T) {
	top := folderOf(t)
	write(t, filepath.Join(top, "f"), "x")
	must.Do(t, os.Mkdir(filepath.Join(top, "d"), 0o700))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{filepath.Join(top, "f")}, "is not a folder"}, {[]string{filepath.Join(top, "none")}, "no such file"},
		{[]string{top, filepath.Join(top, "d")}, "lies in"}, {[]string{""}, "write . for"}, {[]string{"ftp://x"}, "is neither a folder nor a bucket"}, {[]string{"s3://"}, "is neither a folder nor a bucket"},
		{[]string{"s3://a/b", "s3://a"}, "lies in"}, {slices.Repeat([]string{"s3://a"}, 65), "too many"},
	} {
		if _, err := Places(c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %s", c.args, err, c.says)
		}
	}
	got, err := Places([]string{"s3://a/x/y/?region=eu-west-1", "s3://a/x/yz"})
	text, _ := json.Marshal(got)
	if err != nil || string(text) != `[{"name":"s3://a?prefix=x%2Fy\u0026region=eu-west-1","store":"aws"},{"name":"s3://a?prefix=x%2Fyz","store":"aws"}]` {
		t.Errorf("%s, %v", text, err)
	}
}
