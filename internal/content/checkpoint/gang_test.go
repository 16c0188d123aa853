package checkpoint_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// gang is a leader and its followers, with what each has restored.
type gang struct {
	leader *checkpoint.Writer
	others []*checkpoint.Follower // of rank 1, 2, …
	dirs   []string               // by rank
}

// follow returns rank's view of an epoch's claim; it waits for nothing once its part is stored.
func follow(t testing.TB, b *gocloud.Bucket, epoch, rank, nodes int) *checkpoint.Follower {
	t.Helper()
	f, err := open(b).Of(rank, nodes).Follow(t.Context(), epoch, fmt.Sprintf("j1.%d", epoch))
	must.Do(t, err)
	f.SetPatience(0)
	return f
}

// begin claims and restores on all ranks.
func begin(t testing.TB, b *gocloud.Bucket, epoch, nodes int) gang {
	t.Helper()
	g := gang{leader: claim(t, open(b).Of(0, nodes), epoch)}
	for range nodes {
		g.dirs = append(g.dirs, fast.Dir(t))
	}
	r, err := g.leader.Restore(t.Context(), g.dirs[0])
	if err == nil {
		err = g.leader.Lead(t.Context(), r)
	}
	must.Do(t, err)
	for rank := 1; rank < nodes; rank++ {
		f := follow(t, b, epoch, rank, nodes)
		if _, err := f.Restore(t.Context(), g.dirs[rank]); err != nil {
			t.Fatal(err)
		}
		g.others = append(g.others, f)
	}
	return g
}

// save writes each rank's state at a step.
func (g gang) save(t testing.TB, step int64) {
	for rank, dir := range g.dirs {
		put(t, dir, "part", fmt.Sprintf("step %04d of rank %d", step, rank))
		put(t, dir, "same", "what each rank has and no step changes")
	}
}

func (g gang) share(t testing.TB, rank int, step int64) error {
	t.Helper()
	c, err := folder.Take(t.Context(), g.dirs[rank])
	must.Do(t, err)
	defer func() { _ = c.Discard() }()
	_, err = g.others[rank-1].Share(t.Context(), c, format.Meta{Step: step})
	return err
}

func (g gang) publish(t testing.TB, step int64) (format.Manifest, error) {
	t.Helper()
	c, err := folder.Take(t.Context(), g.dirs[0])
	must.Do(t, err)
	defer func() { _ = c.Discard() }()
	m, _, err := g.leader.PublishRanks(t.Context(), c, format.Meta{Job: "j1", Step: step})
	return m, err
}

// holds fails unless the ranks of a new gang restore their states at a step; 0: nothing.
func holds(t testing.TB, b *gocloud.Bucket, epoch, nodes int, step int64) {
	t.Helper()
	g := begin(t, b, epoch, nodes)
	for rank, dir := range g.dirs {
		want := fmt.Sprintf("step %04d of rank %d", step, rank)
		if step == 0 {
			if got := read(t, dir); len(got) > 0 {
				t.Errorf("rank %d got %v, and nothing is kept", rank, got)
			}
			continue
		}
		if got := fmt.Sprint(read(t, dir)["part"]); !strings.Contains(got, want) {
			t.Errorf("rank %d got %q, want %q", rank, got, want)
		}
	}
}

// Every rank restores its own part, step after step, and prunes leave nothing that no checkpoint needs.
func testEveryRankGetsItsPart(t *testing.T, b *gocloud.Bucket) {
	g := begin(t, b, 1, 3)
	for step := int64(1); step <= 4; step++ {
		g.save(t, step)
		for rank := 1; rank < 3; rank++ {
			must.Do(t, g.share(t, rank, step))
		}
		m, err := g.publish(t, step)
		if err == nil {
			err = g.leader.Verify(t.Context(), m)
		}
		if err == nil {
			err = open(b).Verify(t.Context(), m, checkpoint.Full)
		}
		if err == nil {
			_, err = g.leader.Prune(t.Context(), checkpoint.Keep{Last: 1})
		}
		must.Do(t, err)
		if m.Ranks != 3 || m.Step != step {
			t.Errorf("manifest %+v", m)
		}
	}
	if left := keys(t, b, "jobs/j1/shares/"); len(left) > 0 {
		t.Errorf("shares left: %v", left)
	}
	if n := len(keys(t, b, "jobs/j1/manifests/")); n != 1 {
		t.Errorf("%d manifests", n)
	}
	whole := filepath.Join(fast.Dir(t), "all")
	if r, err := open(b).Restore(t.Context(), 0, whole); err != nil || r.Manifest == nil || len(read(t, whole)) != 9 {
		t.Errorf("whoever is no rank gets %v: %v", read(t, whole), err)
	}
	holds(t, b, 2, 3, 4)
	if _, err := begin(t, b, 3, 3).leader.Prune(t.Context(), checkpoint.Keep{Last: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := open(b).Find(t.Context(), "")
	must.Do(t, err)
	used := map[string]bool{}
	for _, f := range m.Files {
		for _, p := range f.Parts {
			used[p.Home+"/"+p.Sum] = true
		}
	}
	for _, key := range keys(t, b, "jobs/j1/objects/") {
		if !used[key] {
			t.Errorf("left of an earlier step: %s", key)
		}
	}
}

// If a rank crashes at any operation while it stores its part, before the operation or with its answer lost, the step
// is published with all parts or not at all, and the next step is published.
func TestShare_PublishesAllPartsOrNoneAfterACrash(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
			t.Parallel()
			crashBetweenParts(t, late)
		})
	}
}

func crashBetweenParts(t *testing.T, late bool) {
	whole, none := 0, 0
	for at := 0; ; at++ {
		b := openFolder(t, fast.Dir(t))
		g := begin(t, b, 1, 3)
		g.save(t, 1)
		broken, done := crashing(t, b, at, late)
		calm := g.others[0]
		g.others[0] = follow(t, b, 1, 1, 3)
		g.others[0].SetStore(open(broken).Of(1, 3))
		err := g.share(t, 1, 1)
		if err == nil && done() <= at {
			break // beyond the last operation
		}
		g.others[0] = calm
		must.Do(t, g.share(t, 2, 1))
		g.save(t, 2)
		if err := g.share(t, 1, 2); err != nil { // so that step 1 never appears if it is missing
			t.Fatal(err)
		}
		kept := int64(0)
		if _, err := g.publish(t, 1); err == nil {
			kept, whole = 1, whole+1
		} else if errors.Is(err, checkpoint.ErrSkipped) {
			none++
		} else {
			t.Fatalf("crash at %d, late %v: %v", at, late, err)
		}
		if n := int64(len(keys(t, b, "jobs/j1/manifests/"))); n != kept {
			t.Errorf("crash at %d, late %v: %d manifests, %d published", at, late, n, kept)
		}
		must.Do(t, g.share(t, 2, 2))
		if _, err := g.publish(t, 2); err != nil {
			t.Fatal(err)
		}
		holds(t, b, 2, 3, 2)
	}
	if t.Logf("late %v: %d steps whole, %d none", late, whole, none); none < 5 || whole < 1 {
		t.Errorf("too few crashes came before or after the share")
	}
}

// A share that loses its part before the publish makes no checkpoint.
func TestPublishRanks_RefusesAMissingPart(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"missing", "truncated"} {
		b := openFolder(t, fast.Dir(t))
		g := begin(t, b, 1, 2)
		g.save(t, 1)
		must.Do(t, g.share(t, 1, 1))
		for _, key := range keys(t, b, "jobs/j1/objects/") {
			damage(t, b, "jobs/j1/objects/"+key, damages[how], rand.New(rand.NewPCG(1, 2)))
			break
		}
		if _, err := g.publish(t, 1); !errors.Is(err, checkpoint.ErrSkipped) {
			t.Errorf("%s: %v", how, err)
		}
		if left := keys(t, b, "jobs/j1/manifests/"); len(left) > 0 {
			t.Errorf("%s: published %v", how, left)
		}
	}
}

// A prune while another rank stores a future step drops nothing of that step.
func TestPrune_KeepsAStepThatMayStillBePublished(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	g := begin(t, b, 1, 2)
	for step := int64(1); step <= 2; step++ {
		g.save(t, step)
		must.Do(t, g.share(t, 1, step))
		if _, err := g.publish(t, step); err != nil {
			t.Fatal(err)
		}
	}
	g.save(t, 3)
	pruned := false
	hook := hooked(t, b, func(op blobtest.Op) error {
		if op.Kind == "write" && strings.Contains(op.Key, "/shares/") && !pruned {
			pruned = true
			if _, err := g.leader.Prune(t.Context(), checkpoint.Keep{Last: 1}); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	g.others[0].SetStore(open(hook).Of(1, 2))
	if err := g.share(t, 1, 3); err != nil || !pruned {
		t.Fatal(err, pruned)
	}
	if _, err := g.publish(t, 3); err != nil {
		t.Fatal(err)
	}
	holds(t, b, 2, 2, 3)
}

// Once a newer attempt has claimed, no rank of the older one stores or publishes, whatever it was doing, and none of
// the older one's later steps counts.
func TestClaim_FencesAWholeGang(t *testing.T) {
	t.Parallel()
	t.Run("a rank stores", func(t *testing.T) {
		b := openFolder(t, fast.Dir(t))
		g := begin(t, b, 1, 2)
		g.save(t, 1)
		claim(t, open(b), 2)
		if err := g.share(t, 1, 1); !errors.Is(err, checkpoint.ErrFenced) {
			t.Error(err)
		}
		if _, err := g.publish(t, 1); !errors.Is(err, checkpoint.ErrFenced) {
			t.Error(err)
		}
		holds(t, b, 3, 2, 0)
	})
	t.Run("rank 0 waits for the others", func(t *testing.T) {
		b := openFolder(t, fast.Dir(t))
		looked := 0
		hook := hooked(t, b, func(op blobtest.Op) error {
			if op.Kind == "list" && strings.HasSuffix(op.Key, "/shares/") {
				if looked++; looked == 2 {
					claim(t, open(b), 2)
				}
			}
			return nil
		})
		g := begin(t, hook, 1, 2)
		g.save(t, 1)
		if _, err := g.publish(t, 1); !errors.Is(err, checkpoint.ErrFenced) || looked < 2 {
			t.Error(err, looked)
		}
		holds(t, b, 3, 2, 0)
	})
	t.Run("others follow", func(t *testing.T) {
		b := openFolder(t, fast.Dir(t))
		claim(t, open(b), 2)
		for _, c := range []struct {
			epoch   int
			attempt string
		}{{1, "j1.1"}, {2, "another"}} {
			if _, err := open(b).Of(1, 2).Follow(t.Context(), c.epoch, c.attempt); !errors.Is(err, checkpoint.ErrFenced) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}

// The other ranks wait for rank 0 and start from what it has restored, not from what they find, and not from what a
// stale attempt publishes meanwhile.
func TestFollow_StartsTheGangFromOneCheckpoint(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	old, dir := claim(t, open(b), 1), filepath.Join(fast.Dir(t), "c")
	for step := range int64(2) {
		put(t, dir, "f", fmt.Sprintf("step %d of the first", step))
		publish(t, old, dir, step)
	}
	type result struct {
		r   checkpoint.Restored
		err error
	}
	got, mine := make(chan result, 1), fast.Dir(t)
	looked := make(chan struct{}, 1000)
	hook := hooked(t, b, func(op blobtest.Op) error {
		select {
		case looked <- struct{}{}:
		default:
		}
		return nil
	})
	go func() {
		f, err := open(hook).Of(1, 2).Follow(t.Context(), 2, "j1.2")
		if err != nil {
			got <- result{err: err}
			return
		}
		r, err := f.Restore(t.Context(), mine)
		got <- result{r, err}
	}()
	<-looked // it waits for a claim
	leader := claim(t, open(b), 2)
	list, err := open(b).List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if _, _, err := old.Publish(t.Context(), dir, format.Meta{Step: 9}); !errors.Is(err, checkpoint.ErrFenced) {
		t.Fatal(err)
	}
	older := list[1].Manifest // as if rank 0 had found the newer one damaged
	must.Do(t, leader.Lead(t.Context(), checkpoint.Restored{Manifest: &older}))
	r := <-got
	if r.err != nil || r.r.Manifest == nil || r.r.Manifest.Name != older.Name || r.r.Manifest.Step != 0 {
		t.Errorf("rank 1 restored %+v", r)
	}
	// If rank 0 starts from nothing, so do the others.
	g := claim(t, open(b), 3)
	must.Do(t, g.Lead(t.Context(), checkpoint.Restored{}))
	if r, err := follow(t, b, 3, 1, 2).Restore(t.Context(), mine); err != nil || r.Manifest != nil || len(read(t, mine)) > 0 {
		t.Errorf("rank 1 begins from %+v, %v, with %v", r.Manifest, err, read(t, mine))
	}
}

// A checkpoint of all ranks fits only the same number of ranks. Another number gets an error and loses nothing.
func TestRestore_RefusesAnotherNumberOfRanks(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	g := begin(t, b, 1, 2)
	g.save(t, 1)
	must.Do(t, g.share(t, 1, 1))
	if _, err := g.publish(t, 1); err != nil {
		t.Fatal(err)
	}
	w := claim(t, open(b).Of(0, 3), 2)
	if _, err := w.Restore(t.Context(), filepath.Join(fast.Dir(t), "c")); !errors.Is(err, checkpoint.ErrRanks) {
		t.Errorf("three ranks begin from the parts of two: %v", err)
	}
	holds(t, b, 3, 2, 1)
}
