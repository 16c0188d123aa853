package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/driver"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// hooked returns the same folder, with a hook before each operation.
func hooked(t testing.TB, b *gocloud.Bucket, before func(blobtest.Op) error) *gocloud.Bucket {
	t.Helper()
	return bucketOver(t, blobtest.Watch(driverOf(t, b), before, nil))
}

func driverOf(t testing.TB, b *gocloud.Bucket) driver.Bucket {
	t.Helper()
	var dir string
	if !b.As(&dir) {
		t.Fatal("only a folder's operations can be hooked")
	}
	f, err := folderblob.New(dir)
	must.Do(t, err)
	return f
}

func bucketOver(t testing.TB, d driver.Bucket) *gocloud.Bucket {
	b := gocloud.NewBucket(d)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func keys(t testing.TB, b *gocloud.Bucket, prefix string) []string {
	t.Helper()
	var all []string
	for it := b.List(&gocloud.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(t.Context())
		if err != nil {
			return all
		}
		all = append(all, strings.TrimPrefix(o.Key, prefix))
	}
}

func testPruneKeepsThePolicy(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	w := claim(t, s, 1)
	loss := []float64{9, 3, 1, 4, 5, 6, 7}
	for i, l := range loss {
		put(t, dir, "f", fmt.Sprintf("%08d", i))
		put(t, dir, "same", "stays in all of them")
		if _, _, err := w.Publish(t.Context(), dir, format.Meta{Step: int64(i), Metrics: map[string]float64{"loss": l}}); err != nil {
			t.Fatal(err)
		}
	}
	// The objects of a killed publish belong to nobody.
	must.Do(t, b.WriteAll(t.Context(), "jobs/j1/objects/000001-000001/"+strings.Repeat("0", 64), []byte("x"), nil))
	p, err := w.Prune(t.Context(), checkpoint.Keep{Last: 2, Best: "loss", EveryNth: 5})
	must.Do(t, err)
	want := []string{"000001-000003", "000001-000005", "000001-000006", "000001-000007"} // best, fifth, last two
	if got := keys(t, b, "jobs/j1/manifests/"); !slices.Equal(got, want) || len(p.Manifests) != 3 {
		t.Errorf("kept %v, dropped %v", got, p.Manifests)
	}
	if p.Objects != 4 {
		t.Errorf("dropped %d objects: one for each checkpoint, and one of a killed publish", p.Objects)
	}
	l, err := s.List(t.Context())
	must.Do(t, err)
	for _, c := range l {
		if err := s.Verify(t.Context(), c.Manifest, checkpoint.Full); err != nil {
			t.Error(err)
		}
	}
	// A dropped part is stored again when it is needed again.
	put(t, dir, "f", "00000000")
	if _, stats := publish(t, w, dir, 9); stats.Uploaded != part {
		t.Errorf("stats %+v", stats)
	}
	if p, err := w.Prune(t.Context(), checkpoint.Keep{}); err != nil || len(p.Manifests) != 4 {
		t.Errorf("the newest only: %+v, %v", p, err)
	}
	if name, got, refused := restored(t, s); name != "000001-000008" || !got.equal(read(t, dir)) || len(refused) > 0 {
		t.Errorf("restored %q, refused %v", name, refused)
	}
}

func testPruneNeedsAWholeNewest(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	w := claim(t, s, 1)
	put(t, dir, "f", "old")
	old, _ := publish(t, w, dir, 1)
	put(t, dir, "f", "new")
	bad, _ := publish(t, w, dir, 2)
	p := bad.Files[0].Parts[0]
	damage(t, b, "jobs/j1/objects/"+p.Home+"/"+p.Sum, damages["truncated"], rand.New(rand.NewPCG(1, 1)))
	if _, err := w.Prune(t.Context(), checkpoint.Keep{}); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("prune: %v", err)
	}
	if name, _, _ := restored(t, s); name != old.Name {
		t.Errorf("restored %q", name)
	}
}

func testKeepAndFetch(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	base := fast.Dir(t)
	put(t, base, "out/model", "0123456789")
	put(t, base, "deep/er/log", "text")
	put(t, base, "deep/other", "not kept")
	for _, err := range []error{
		os.Symlink("model", filepath.Join(base, "out", "last")),
		os.Symlink("/etc/passwd", filepath.Join(base, "out", "away")),
		os.Symlink("/usr", filepath.Join(base, "venv")),
	} {
		must.Do(t, err)
	}
	_, stats, err := s.Keep(t.Context(), confined.Folder{Path: base}, []string{"out", "deep/er", "missing"}, "final")
	if err != nil || !strings.HasPrefix(stats.Left.String(), "out/away (it leads out") {
		t.Fatalf("%+v, %v", stats, err)
	}
	want := read(t, base)
	for _, p := range []string{"deep/other", "out/away", "venv"} {
		delete(want, p)
	}
	to := filepath.Join(fast.Dir(t), "got")
	if _, err := s.Fetch(t.Context(), "final", to); err != nil {
		t.Fatal(err)
	}
	if got := read(t, to); !got.equal(want) {
		t.Errorf("fetched differs:%s", want.diff(got))
	}
	if _, err := s.Fetch(t.Context(), "final", to); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("fetch over files: %v", err)
	}
	put(t, base, "out/model", "01234567!!")
	if _, stats, err := s.Keep(t.Context(), confined.Folder{Path: base}, []string{"out"}, "final"); err != nil || stats.Uploaded != 2 {
		t.Errorf("kept again: %+v, %v", stats, err)
	}
	to = filepath.Join(fast.Dir(t), "again")
	if _, err := s.Fetch(t.Context(), "final", to); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(to, "out/model")); string(data) != "01234567!!" {
		t.Errorf("fetched %q", data)
	}
	if _, err := s.Fetch(t.Context(), "never", to+"2"); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("fetch what was never kept: %v", err)
	}
	for _, name := range []string{"", "..", "a/b"} {
		if _, _, err := s.Keep(t.Context(), confined.Folder{Path: base}, []string{"out"}, name); err == nil {
			t.Errorf("kept as %q", name)
		}
	}
	if _, _, err := s.Keep(t.Context(), confined.Folder{Path: base}, []string{"../.."}, "x"); err == nil {
		t.Error("kept what lies outside")
	}
}

// A store that does not answer yields an error, never an older checkpoint.
func TestRestore_FailsWhenTheStoreDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	dir := fast.Dir(t)
	put(t, dir, "f", "x")
	publish(t, claim(t, open(b), 1), dir, 1)
	silent := errors.New("connection refused")
	for _, kind := range []string{"list", "read"} {
		h := hooked(t, b, func(op blobtest.Op) error {
			if op.Kind == kind {
				return silent
			}
			return nil
		})
		r, err := open(h).Restore(t.Context(), 0, dir)
		if !errors.Is(err, silent) || r.Manifest != nil || len(r.Refused) > 0 {
			t.Errorf("%s fails: %+v, %v", kind, r, err)
		}
		if got := read(t, dir); len(got) != 1 {
			t.Errorf("the folder was touched: %v", got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := open(b).Restore(ctx, 0, dir); !errors.Is(err, context.Canceled) || len(r.Refused) > 0 {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
}
