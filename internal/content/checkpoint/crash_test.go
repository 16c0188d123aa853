package checkpoint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
)

// errCrash is the error of a crashed process's calls of the store.
var errCrash = errors.New("crashed")

// crashing returns a store that stops answering at operation number at, counted from 0. With late, the operation is
// done and only its answer is lost.
func crashing(t testing.TB, b *gocloud.Bucket, at int, late bool) (crashed *gocloud.Bucket, done func() int) {
	var mu sync.Mutex
	n := 0
	before := func(blobtest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		n++
		if n > at+1 || n == at+1 && !late {
			return errCrash
		}
		return nil
	}
	after := func(blobtest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if n > at {
			return errCrash
		}
		return nil
	}
	return bucketOver(t, blobtest.Watch(driverOf(t, b), before, after)), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// A crash at any operation of claim, restore, publish, verify and prune, before the operation or with its answer
// lost, is harmless: the next attempt restores a published state at least as new as the last successful publish, and
// can publish and prune.
func TestStore_SurvivesACrashAtEveryOperation(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, late)
		})
	}
}

func crashEverywhere(t *testing.T, late bool) {
	at := 0
	for ; ; at += lane.Pick(3, 1) { // an operation has the same neighbours in each of the two attempts
		b := openFolder(t, fast.Dir(t))
		broken, done := crashing(t, b, at, late)
		dir := fast.Dir(t)
		tried := []tree{} // states given to publish, in order
		promised := -1    // the newest one whose publish returned without error
		err := func() error {
			for epoch := 1; epoch <= 2; epoch++ {
				s := open(broken)
				w, err := s.Claim(t.Context(), epoch, fmt.Sprintf("j1.%d", epoch))
				if err != nil {
					return err
				}
				if _, err := w.Restore(t.Context(), dir); err != nil {
					return err
				}
				for step := range 3 {
					put(t, dir, "model.bin", fmt.Sprintf("%d%d the part that stays", epoch, step))
					tried = append(tried, read(t, dir))
					m, _, err := w.Publish(t.Context(), dir, format.Meta{Step: int64(step)})
					if err != nil {
						return err
					}
					promised = len(tried) - 1
					if err := w.Verify(t.Context(), m); err != nil {
						return err
					}
					if _, err := w.Prune(t.Context(), checkpoint.Keep{Last: 1}); err != nil {
						return err
					}
				}
			}
			return nil
		}()
		where := fmt.Sprintf("crash at operation %d, late %v", at, late)
		if err == nil {
			if done() > at {
				t.Errorf("%s was not noticed", where)
			}
			break // beyond the last operation
		}
		if !errors.Is(err, errCrash) {
			t.Fatalf("%s: %v", where, err)
		}
		_, got, refused := restored(t, open(b))
		found := slices.IndexFunc(tried, got.equal)
		switch {
		case len(refused) > 0:
			t.Errorf("%s: refused %v", where, refused)
		case got == nil && promised < 0:
		case found < promised || found < 0:
			t.Errorf("%s: restored state %d, promised %d", where, found, promised)
		}
		w := claim(t, open(b), 3)
		if _, err := w.Restore(t.Context(), dir); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		put(t, dir, "model.bin", "after the crash")
		publish(t, w, dir, 9)
		if _, err := w.Prune(t.Context(), checkpoint.Keep{}); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if _, got, _ := restored(t, open(b)); !got.equal(read(t, dir)) {
			t.Errorf("%s: the next attempt's checkpoint is not restored", where)
		}
		if left := keys(t, b, "jobs/j1/objects/"); len(left) != 2 {
			t.Errorf("%s: objects left: %v", where, left)
		}
	}
	t.Logf("late %v: %d operations", late, at)
	if at < 50 {
		t.Errorf("only %d operations: too few for two attempts", at)
	}
}

// A prune that stalls before any of its deletes, while the next attempt claims, restores and publishes, deletes
// nothing that this attempt's checkpoint needs.
func TestPrune_DoesNoHarmWhenItStalls(t *testing.T) {
	t.Parallel()
	for at := 0; ; at++ {
		b := openFolder(t, fast.Dir(t))
		dir := fast.Dir(t)
		n, stalls := 0, false
		var next func()
		w1 := claim(t, open(hooked(t, b, func(op blobtest.Op) error {
			if next != nil && op.Kind == "delete" {
				if n == at {
					stalls = true
					next()
				}
				n++
			}
			return nil
		})), 1)
		for i := range 3 {
			put(t, dir, "a", fmt.Sprintf("shared  %08d", i))
			put(t, dir, "b", fmt.Sprintf("b%07d", i))
			publish(t, w1, dir, int64(i))
		}
		want := ""
		next = func() {
			s := open(b)
			w2 := claim(t, s, 2)
			mine := filepath.Join(fast.Dir(t), "c")
			if _, err := w2.Restore(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			// The next checkpoint needs what the prune is about to drop.
			put(t, mine, "a", "shared  00000000shared  00000001")
			put(t, mine, "b", "b0000001")
			m, _ := publish(t, w2, mine, 9)
			want = m.Name
		}
		if _, err := w1.Prune(t.Context(), checkpoint.Keep{Last: 1}); err != nil {
			t.Fatal(err)
		}
		if !stalls {
			if at != 6 {
				t.Errorf("the prune deletes %d objects, not two manifests and four parts", at)
			}
			return
		}
		if name, _, refused := restored(t, open(b)); name != want || len(refused) > 0 {
			t.Errorf("stalled at delete %d: restored %q, want %q, refused %v", at, name, want, refused)
		}
	}
}

// After a publishing process is killed with kill -9 at any object, the previous checkpoint is restored.
func TestPublish_SurvivesKill(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("CHECKPOINT_TEST_STORE"); dir != "" {
		var at int
		_, _ = fmt.Sscan(os.Getenv("CHECKPOINT_TEST_AT"), &at)
		var mu sync.Mutex
		n := 0
		b := hooked(t, openFolder(t, dir), func(op blobtest.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind == "write" && strings.Contains(op.Key, "jobs/") {
				if n == at {
					fmt.Println("killed at", op.Key)
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {}
				}
				n++
			}
			return nil
		})
		w := claim(t, open(b), 2)
		publish(t, w, os.Getenv("CHECKPOINT_TEST_DIR"), 2)
		fmt.Println("published")
		os.Exit(0)
	}
	store := fast.Dir(t)
	b := openFolder(t, store)
	dir := filepath.Join(fast.Dir(t), "c")
	put(t, dir, "f", "the first checkpoint")
	m, _ := publish(t, claim(t, open(b), 1), dir, 1)
	want := read(t, dir)
	put(t, dir, "f", "another, which is longer by some")
	for at := 0; ; at++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPublish_SurvivesKill$")
		cmd.Env = append(os.Environ(), "CHECKPOINT_TEST_STORE="+store, "CHECKPOINT_TEST_DIR="+dir, fmt.Sprint("CHECKPOINT_TEST_AT=", at))
		out, err := cmd.Output()
		if err == nil && strings.Contains(string(out), "published") {
			if at < 6 { // claim, fence, four parts, manifest
				t.Errorf("published after %d writes", at)
			}
			break
		}
		if err == nil || !strings.Contains(string(out), "killed at") {
			t.Fatalf("the child was to be killed: %v\n%s", err, out)
		}
		if name, got, refused := restored(t, open(b)); name != m.Name || !got.equal(want) || len(refused) > 0 {
			t.Errorf("killed at write %d (%s): restored %q, refused %v", at, out, name, refused)
		}
	}
	if name, got, _ := restored(t, open(b)); name == m.Name || !got.equal(read(t, dir)) {
		t.Errorf("restored %q after a publish that went well", name)
	}
	_ = filepath.WalkDir(store, func(at string, d fs.DirEntry, _ error) error {
		if strings.Contains(d.Name(), "aside") {
			t.Errorf("left behind: %s", at)
		}
		return nil
	})
	// The killed publisher's capture remains beside the folder until the next restore.
	if _, err := open(b).Restore(t.Context(), 0, dir); err != nil {
		t.Fatal(err)
	}
	if names, _ := os.ReadDir(filepath.Dir(dir)); len(names) != 1 {
		t.Errorf("captures are left: %v", names)
	}
}

// Two writers that publish at the same time under different claims never both succeed with one name, and only the
// newer one's success counts for ever.
func TestPublish_KeepsOneOfTwoRacingWriters(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for round := range lane.Pick(10, 30) {
		b := openFolder(t, fast.Dir(t))
		dirs := [2]string{fast.Dir(t), fast.Dir(t)}
		for i, d := range dirs {
			put(t, d, "f", fmt.Sprintf("writer %d %d", i, r.IntN(1000)))
		}
		old := claim(t, open(b), 1)
		var names [2]string
		var errs [2]error
		var wg sync.WaitGroup
		wg.Go(func() {
			m, _, err := old.Publish(t.Context(), dirs[0], format.Meta{})
			names[0], errs[0] = m.Name, err
		})
		wg.Go(func() {
			w, err := open(b).Claim(t.Context(), 1+round%2, "j1.1")
			if err == nil {
				var m format.Manifest
				m, _, err = w.Publish(t.Context(), dirs[1], format.Meta{})
				names[1] = m.Name
			}
			errs[1] = err
		})
		wg.Wait()
		if errs[1] != nil {
			t.Fatalf("the newer claim: %v", errs[1])
		}
		if errs[0] != nil && !errors.Is(errs[0], checkpoint.ErrFenced) {
			t.Fatalf("the older claim: %v", errs[0])
		}
		if errs[0] == nil && names[0] == names[1] {
			t.Fatalf("both published %s", names[0])
		}
		if name, _, refused := restored(t, open(b)); name != names[1] || len(refused) > 0 {
			t.Errorf("restored %q, want %q; refused %v", name, names[1], refused)
		}
	}
}
