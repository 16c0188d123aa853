package checkpoint_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/content/checkpoint/object"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// part is small, so that a few bytes make a large file.
const part = 8

// suite holds the tests that every kind of store must pass.
var suite = []struct {
	name string
	test func(*testing.T, *gocloud.Bucket)
}{
	{"RestoresWhatWasPublished", testRestoresWhatWasPublished},
	{"NothingToRestore", testNothingToRestore},
	{"StoresUnchangedPartsOnce", testStoresUnchangedPartsOnce},
	{"NewerClaimFencesOlder", testNewerClaimFencesOlder},
	{"StaleManifestIsNeverRestored", testStaleManifestIsNeverRestored},
	{"SameAttemptClaimsAgain", testSameAttemptClaimsAgain},
	{"LateManifestOfAnEarlierSession", testLateManifestOfAnEarlierSession},
	{"OneClaimWins", testOneClaimWins},
	{"DamageIsRefused", testDamageIsRefused},
	{"DamageIsStoredAnew", testDamageIsStoredAnew},
	{"PruneKeepsThePolicy", testPruneKeepsThePolicy},
	{"PruneNeedsAWholeNewest", testPruneNeedsAWholeNewest},
	{"KeepAndFetch", testKeepAndFetch},
	{"EveryRankGetsItsPart", testEveryRankGetsItsPart},
}

func TestFolder(t *testing.T) {
	t.Parallel()
	for _, s := range suite {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.test(t, openFolder(t, fast.Dir(t)))
		})
	}
}

func openFolder(t testing.TB, dir string) *gocloud.Bucket {
	t.Helper()
	f, err := folderblob.New(dir)
	must.Do(t, err)
	b := gocloud.NewBucket(f)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func open(b *gocloud.Bucket) *checkpoint.Store {
	s := checkpoint.Open(b, "jobs/j1")
	s.SetPartSize(part)
	return s
}

func claim(t testing.TB, s *checkpoint.Store, epoch int) *checkpoint.Writer {
	t.Helper()
	w, err := s.Claim(t.Context(), epoch, fmt.Sprintf("j1.%d", epoch))
	must.Do(t, err)
	return w
}

func publish(t testing.TB, w *checkpoint.Writer, dir string, step int64) (format.Manifest, object.Stats) {
	t.Helper()
	m, stats, err := w.Publish(t.Context(), dir, format.Meta{Job: "j1", Step: step})
	must.Do(t, err)
	return m, stats
}

// restored restores to a new folder and returns the manifest's name; empty: none.
func restored(t testing.TB, s *checkpoint.Store) (string, tree, []checkpoint.Refused) {
	t.Helper()
	dir := filepath.Join(fast.Dir(t), "ckpt")
	r, err := s.Restore(t.Context(), 0, dir)
	must.Do(t, err)
	if r.Manifest == nil {
		return "", nil, r.Refused
	}
	return r.Manifest.Name, read(t, dir), r.Refused
}

func testRestoresWhatWasPublished(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	top := fast.Dir(t)
	dir := filepath.Join(top, "ckpt")
	put(t, dir, "model.bin", "0123456789abcdef!")
	put(t, dir, "a/b/deep", "x")
	put(t, dir, "none", "")
	put(t, dir, "skip.tmp", "not this")
	put(t, dir, "cache/x", "nor this")
	for _, do := range []error{
		os.Chmod(filepath.Join(dir, "model.bin"), 0o600),
		os.MkdirAll(filepath.Join(dir, "hollow/hollower"), 0o700),
		os.Symlink("b/deep", filepath.Join(dir, "a/last")),
		os.Symlink(filepath.Join(dir, "model.bin"), filepath.Join(dir, "a/absolute")),
		os.Chmod(filepath.Join(dir, "a/b"), 0o500),
	} {
		if do != nil {
			t.Fatal(do)
		}
	}
	w := claim(t, s, 1)
	metrics := map[string]float64{"loss": 1.5, "bad": math.NaN()}
	m, stats, err := w.Publish(t.Context(), dir, format.Meta{Job: "j1", Attempt: "j1.1", Step: 7, Metrics: metrics}, "*.tmp", "cache/")
	must.Do(t, err)
	if m.Name != "000001-000001" || m.Step != 7 || m.Epoch != 1 || m.Bytes != 18 || stats.Bytes != 18 || stats.Uploaded != 18 || stats.Stored != 4 {
		t.Errorf("manifest %+v, stats %+v", m, stats)
	}
	if len(m.Metrics) != 1 || m.Metrics["loss"] != 1.5 {
		t.Errorf("metrics %v: what is not a number is left out", m.Metrics)
	}
	for _, depth := range []checkpoint.Depth{checkpoint.Sizes, checkpoint.Full} {
		if err := s.Verify(t.Context(), m, depth); err != nil {
			t.Error(err)
		}
	}

	want := read(t, dir)
	delete(want, "skip.tmp")
	delete(want, "cache")
	delete(want, "cache/x")
	want["a/absolute"] = strings.Replace(want["a/absolute"], filepath.Join(dir, "model.bin"), "../model.bin", 1)
	to := filepath.Join(fast.Dir(t), "ckpt")
	put(t, to, "left/over", "of another attempt")
	r, err := s.Restore(t.Context(), 0, to)
	if err != nil || r.Manifest == nil || r.Manifest.Step != 7 || len(r.Refused) != 0 {
		t.Fatalf("restored %+v, %v", r, err)
	}
	if got := read(t, to); !got.equal(want) {
		t.Errorf("restored differs:%s", want.diff(got))
	}
	for _, at := range []string{top, filepath.Dir(to)} {
		if names, _ := os.ReadDir(at); len(names) != 1 {
			t.Errorf("left behind in %s: %v", at, names)
		}
	}
	l, err := s.List(t.Context())
	if err != nil || len(l) != 1 || l[0].Name != m.Name || l[0].Fenced || l[0].Damaged != nil {
		t.Errorf("list %+v, %v", l, err)
	}
}

func testNothingToRestore(t *testing.T, b *gocloud.Bucket) {
	dir := fast.Dir(t)
	put(t, dir, "mine", "stays")
	r, err := open(b).Restore(t.Context(), 0, dir)
	if err != nil || r.Manifest != nil || len(r.Refused) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := read(t, dir); len(got) != 1 {
		t.Errorf("the folder holds %v", got)
	}
}

func testStoresUnchangedPartsOnce(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	put(t, dir, "big", "aaaaaaaabbbbbbbbaaaaaaaacccccccc") // a occurs twice
	w := claim(t, s, 1)
	if _, stats := publish(t, w, dir, 1); stats.Uploaded != 3*part || stats.Stored != 3 || stats.Parts != 4 {
		t.Errorf("first: %+v", stats)
	}
	if _, stats := publish(t, w, dir, 2); stats.Uploaded != 0 {
		t.Errorf("unchanged: %+v", stats)
	}
	put(t, dir, "big", "aaaaaaaabbbbbbbbaaaaaaaadddddddde")
	put(t, dir, "copy", "bbbbbbbb")
	if _, stats := publish(t, w, dir, 3); stats.Uploaded != part+1 {
		t.Errorf("one part and one byte changed: %+v", stats)
	}
	w2 := claim(t, s, 2)
	if _, err := w2.Restore(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, stats := publish(t, w2, dir, 4); stats.Uploaded != 0 {
		t.Errorf("the next attempt: %+v", stats)
	}
	_, got, _ := restored(t, s)
	if want := read(t, dir); !got.equal(want) {
		t.Errorf("differs:%s", want.diff(got))
	}
}

func testNewerClaimFencesOlder(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	put(t, dir, "f", "one")
	w1 := claim(t, s, 1)
	publish(t, w1, dir, 1)
	claim(t, s, 2)
	if _, _, err := w1.Publish(t.Context(), dir, format.Meta{Step: 2}); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("publish after a newer claim: %v", err)
	}
	if _, err := w1.Prune(t.Context(), checkpoint.Keep{}); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("prune after a newer claim: %v", err)
	}
	if _, err := w1.Restore(t.Context(), dir); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("restore after a newer claim: %v", err)
	}
	if _, err := s.Claim(t.Context(), 1, "j1.1"); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("claim of an older epoch: %v", err)
	}
	if _, err := s.Claim(t.Context(), 2, "other"); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("claim of another's epoch: %v", err)
	}
	if name, _, _ := restored(t, s); name != "000001-000001" {
		t.Errorf("restored %q: what was published before the claim counts", name)
	}
}

// A manifest of a stale attempt that lands after the claim of a newer one, as on a slow network, is never restored,
// not by later attempts either.
func testStaleManifestIsNeverRestored(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	put(t, dir, "f", "good")
	publish(t, claim(t, s, 1), dir, 1)
	put(t, dir, "f", "stale")
	m, _ := publish(t, claim(t, s, 2), dir, 2)
	key := "jobs/j1/manifests/" + m.Name
	late, err := b.ReadAll(t.Context(), key)
	must.Do(t, err)
	if err := b.Delete(t.Context(), key); err != nil { // it is still on its way
		t.Fatal(err)
	}
	claim(t, s, 3)
	if err := b.WriteAll(t.Context(), key, late, nil); err != nil {
		t.Fatal(err)
	}
	checkStale(t, b, key)
}

// The same holds for a publish that the claim interrupts.
func TestRestore_NeverTakesAStalePublish(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	s := open(b)
	dir := fast.Dir(t)
	put(t, dir, "f", "good")
	publish(t, claim(t, s, 1), dir, 1)
	var once sync.Once
	stale := hooked(t, b, func(op blobtest.Op) error {
		if op.Kind == "write" && strings.Contains(op.Key, "manifests/") {
			once.Do(func() { claim(t, s, 3) })
		}
		return nil
	})
	put(t, dir, "f", "stale")
	if _, _, err := claim(t, open(stale), 2).Publish(t.Context(), dir, format.Meta{Step: 2}); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("publish across a claim: %v", err)
	}
	checkStale(t, b, "jobs/j1/manifests/000002-000002")
}

// checkStale checks that a store with two manifests and three claims restores the first one, until a fourth claim
// publishes and drops the stale one.
func checkStale(t *testing.T, b *gocloud.Bucket, stale string) {
	t.Helper()
	s := open(b)
	if ok, err := b.Exists(t.Context(), stale); !ok || err != nil {
		t.Fatalf("the stale manifest is not there, so nothing is tested: %v", err)
	}
	check := func(want string) {
		t.Helper()
		if name, _, refused := restored(t, s); name != want || len(refused) != 0 {
			t.Errorf("restored %q, refused %v; want %s", name, refused, want)
		}
	}
	check("000001-000001")
	w4 := claim(t, s, 4)
	check("000001-000001")
	dir := fast.Dir(t)
	put(t, dir, "f", "new")
	m, _ := publish(t, w4, dir, 3)
	check(m.Name)
	l, err := s.List(t.Context())
	if err != nil || len(l) != 3 || !l[1].Fenced || l[0].Fenced || l[2].Fenced {
		t.Errorf("list %+v, %v", l, err)
	}
	if _, err := w4.Prune(t.Context(), checkpoint.Keep{Last: 9}); err != nil {
		t.Fatal(err)
	}
	if ok, err := b.Exists(t.Context(), stale); ok || err != nil {
		t.Errorf("prune leaves the stale manifest: %v, %v", ok, err)
	}
}

// A restarted agent claims again for the same attempt, continues where it was, and fences out its earlier self.
func testSameAttemptClaimsAgain(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	put(t, dir, "f", "one")
	w1 := claim(t, s, 1)
	publish(t, w1, dir, 1)
	again := claim(t, s, 1)
	if again.Token() != "000001-000002" {
		t.Errorf("token %s", again.Token())
	}
	if _, _, err := w1.Publish(t.Context(), dir, format.Meta{}); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("the agent before: %v", err)
	}
	if m, _ := publish(t, again, dir, 2); m.Name != "000001-000002" {
		t.Errorf("published %s", m.Name)
	}
}

// A publish that an agent had started before it was killed, and that lands after the restarted agent has claimed
// again, is not restored and does not get in the way.
func testLateManifestOfAnEarlierSession(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	put(t, dir, "f", "one")
	w := claim(t, s, 1)
	publish(t, w, dir, 1)
	put(t, dir, "f", "late")
	m, _ := publish(t, w, dir, 2)
	key := "jobs/j1/manifests/" + m.Name
	late, err := b.ReadAll(t.Context(), key)
	must.Do(t, err)
	if err := b.Delete(t.Context(), key); err != nil { // it is still on its way
		t.Fatal(err)
	}
	again := claim(t, s, 1)
	if err := b.WriteAll(t.Context(), key, late, nil); err != nil {
		t.Fatal(err)
	}
	if name, _, refused := restored(t, s); name != "000001-000001" || len(refused) > 0 {
		t.Errorf("restored %q, refused %v", name, refused)
	}
	put(t, dir, "f", "three")
	m, _ = publish(t, again, dir, 3)
	if name, _, _ := restored(t, s); m.Name != "000001-000003" || name != m.Name {
		t.Errorf("published %s, restored %s", m.Name, name)
	}
	claim(t, s, 1) // once more: the fence now contains what counts
	if name, _, _ := restored(t, s); name != m.Name {
		t.Errorf("restored %s", name)
	}
}

func testOneClaimWins(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	for epoch := range 5 {
		var won atomic.Int64
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				_, err := s.Claim(t.Context(), epoch+1, fmt.Sprintf("j1.%d", n))
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, checkpoint.ErrFenced) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("epoch %d has %d winners", epoch+1, won.Load())
		}
	}
}
