package checkpoint_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	gocloud "gocloud.dev/blob"
	"pgregory.net/rapid"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"
)

// state is one attempted publish. Its index is the step in its manifest.
type state struct {
	tree     tree
	manifest *format.Manifest // of a successful publish
	fenced   bool             // attempted after a newer claim
}

// attempt is a writer and the folder of its program.
type attempt struct {
	w   *checkpoint.Writer
	dir string
}

// model predicts the contents of a store after any history.
type model struct {
	t       *testing.T
	rt      *rapid.T
	top     string
	clean   *gocloud.Bucket // never crashes
	bucket  *gocloud.Bucket // crashes when left reaches 0
	mu      sync.Mutex
	left    int // operations until the crash; negative: never
	late    bool
	epoch   int
	folders int
	live    *attempt
	stale   []*attempt
	doubt   []*attempt // possibly not fenced, because the claim after them may have crashed too early
	states  []*state
	damaged map[string]bool
}

func (m *model) before(blobtest.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 || m.left == 1 && !m.late {
		m.left = 0
		return errCrash
	}
	if m.left > 0 {
		m.left--
	}
	return nil
}

func (m *model) after(blobtest.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		return errCrash
	}
	return nil
}

// survived reports whether the writer continues after err. A crashed writer is gone.
func (m *model) survived(err error, allowed ...error) bool {
	for _, a := range allowed {
		if errors.Is(err, a) {
			err = nil
		}
	}
	if err == nil {
		return true
	}
	if !errors.Is(err, errCrash) {
		m.rt.Fatalf("unexpected: %v", err)
	}
	seen["crashed"]++
	m.live = nil
	m.left = -1
	return false
}

// start claims, as the next attempt or as the same one again, and restores.
func (m *model) start(again bool) {
	if m.live != nil {
		m.doubt = append(m.doubt, m.live)
		m.live = nil
	}
	if !again || m.epoch == 0 {
		m.epoch++
	}
	w, err := open(m.bucket).Claim(m.t.Context(), m.epoch, fmt.Sprintf("j1.%d", m.epoch))
	if !m.survived(err) {
		return
	}
	m.stale = append(m.stale, m.doubt...)
	m.doubt = nil
	m.folders++
	a := &attempt{w, filepath.Join(m.top, fmt.Sprint("machine", m.folders), "c")}
	r, err := w.Restore(m.t.Context(), a.dir)
	if !m.survived(err) {
		return
	}
	if r.Manifest == nil {
		must.Do(m.rt, os.MkdirAll(a.dir, 0o755))
	}
	m.live = a
}

func (m *model) publish() {
	s := &state{tree: read(m.t, m.live.dir)}
	m.states = append(m.states, s)
	man, _, err := m.live.w.Publish(m.t.Context(), m.live.dir, format.Meta{Step: int64(len(m.states) - 1)})
	if m.survived(err) {
		s.manifest = &man
	}
}

// publishStale publishes from a fenced attempt that does not know it yet.
func (m *model) publishStale(a *attempt) {
	m.left = -1
	s := &state{tree: read(m.t, a.dir), fenced: true}
	m.states = append(m.states, s)
	_, _, err := a.w.Publish(m.t.Context(), a.dir, format.Meta{Step: int64(len(m.states) - 1)})
	if !errors.Is(err, checkpoint.ErrFenced) {
		m.rt.Fatalf("a stale attempt's publish: %v", err)
	}
	seen["fenced"]++
	if _, err := a.w.Prune(m.t.Context(), checkpoint.Keep{}); !errors.Is(err, checkpoint.ErrFenced) {
		m.rt.Fatalf("a stale attempt's prune: %v", err)
	}
}

func (m *model) breakOne(r *rand.Rand) {
	all := append(keys(m.t, m.clean, "jobs/j1/objects/"), keys(m.t, m.clean, "jobs/j1/manifests/")...)
	if len(all) == 0 {
		return
	}
	i := r.IntN(len(all))
	key := "jobs/j1/objects/" + all[i]
	if i >= len(all)-len(keys(m.t, m.clean, "jobs/j1/manifests/")) {
		key = "jobs/j1/manifests/" + all[i]
	}
	if m.damaged[key] {
		return // flipping a bit twice would repair it
	}
	for _, how := range []string{"bit flipped", "truncated", "missing"} {
		if r.IntN(2) == 0 || how == "missing" {
			damage(m.t, m.clean, key, damages[how], r)
			m.damaged[key] = true
			return
		}
	}
}

// whole reports whether a published checkpoint is still complete.
func (m *model) whole(man *format.Manifest) bool {
	at := []string{"jobs/j1/manifests/" + man.Name}
	for _, f := range man.Files {
		for _, p := range f.Parts {
			at = append(at, "jobs/j1/objects/"+p.Home+"/"+p.Sum)
		}
	}
	for _, k := range at {
		if ok, err := m.clean.Exists(m.t.Context(), k); err != nil || !ok || m.damaged[k] {
			return false
		}
	}
	return true
}

// seen counts what the histories contained, so that a test which tests nothing fails.
var seen = map[string]int{}

// check restores and compares the result with the model.
func (m *model) check() {
	dir := filepath.Join(m.top, "check")
	defer os.RemoveAll(dir)
	r, err := open(m.clean).Restore(m.t.Context(), 0, dir)
	must.Do(m.rt, err)
	newest := -1
	for i, s := range m.states {
		if s.manifest != nil && m.whole(s.manifest) {
			newest = i
		}
	}
	if len(r.Refused) > 0 {
		seen["refused"]++
	}
	if r.Manifest == nil {
		seen["nothing restored"]++
		if newest >= 0 {
			m.rt.Fatalf("nothing is restored, but state %d was published; refused %v", newest, r.Refused)
		}
		return
	}
	s := m.states[r.Manifest.Step]
	seen["restored"]++
	if s.manifest == nil {
		seen["restored what seemed to fail"]++
	}
	if s.fenced {
		m.rt.Fatalf("state %d of a fenced attempt is restored", r.Manifest.Step)
	}
	if got := read(m.t, dir); !got.equal(s.tree) {
		m.rt.Fatalf("state %d is restored with differences:%s", r.Manifest.Step, s.tree.diff(got))
	}
	if int(r.Manifest.Step) < newest {
		m.rt.Fatalf("state %d is restored, but %d is whole; refused %v", r.Manifest.Step, newest, r.Refused)
	}
}

// For any history of edits, publishes, crashes, damage, stale attempts, prunes and claims, restore returns exactly a
// state that was published and not fenced, and the newest of those that are complete.
func TestStore_RestoresTheNewestStateAfterAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: t, rt: rt, left: -1, damaged: map[string]bool{}}
		var err error
		if m.top, err = os.MkdirTemp(fast.Dir(t), "history"); err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(m.top)
		m.clean = openFolder(t, filepath.Join(m.top, "store"))
		m.bucket = bucketOver(t, blobtest.Watch(driverOf(t, m.clean), m.before, m.after))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		m.start(false)
		steps := rapid.SliceOfN(rapid.IntRange(0, 15), 15, lane.Pick(35, 60)).Draw(rt, "steps")
		for _, step := range steps {
			if m.live == nil && step != 12 && step != 15 {
				m.start(r.IntN(2) == 0)
				continue
			}
			switch step {
			case 0, 1, 2, 3, 4, 5:
				edit(t, r, m.live.dir)
			case 6, 7, 8:
				m.publish()
			case 9:
				p, err := m.live.w.Prune(t.Context(), checkpoint.Keep{Last: 1 + r.IntN(2), EveryNth: r.IntN(4)})
				m.survived(err, checkpoint.ErrDamaged)
				if err == nil && len(p.Manifests) > 0 {
					seen["pruned"]++
				}
			case 10:
				m.start(false)
			case 11:
				m.start(true)
			case 12:
				if len(m.stale) > 0 {
					m.publishStale(m.stale[r.IntN(len(m.stale))])
				}
			case 13, 14: // some later operation crashes
				m.left, m.late = r.IntN(15)+1, r.IntN(2) == 0
			case 15:
				m.breakOne(r)
			}
			if m.left == 0 { // a crash that the last operation did not notice still counts
				m.live, m.left = nil, -1
			}
			if m.live == nil || step > 5 {
				m.check()
			}
		}
	})
	for _, what := range []string{"restored", "nothing restored", "restored what seemed to fail", "refused", "crashed", "pruned", "fenced"} {
		if seen[what] == 0 {
			t.Errorf("no history has: %s", what)
		}
	}
	t.Log(seen)
}
