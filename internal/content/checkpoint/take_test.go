package checkpoint_test

import (
	"errors"
	"testing"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// A job that starts from another job's checkpoint gets all of it and nothing else. The copy counts until the job has
// its own checkpoint, and stays whatever happens to the other job.
func TestCopyFrom_CopiesACheckpointToAnotherJob(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	from := open(b)
	w := claim(t, from, 1)
	dir := folderOf(t, "a", "the same in both, and long", "b", "one")
	files := read(t, dir)
	first, _ := publish(t, w, dir, 1)
	publish(t, w, folderOf(t, "a", "the same in both, and long", "b", "two"), 2)

	to := checkpoint.Open(b, "jobs/j2")
	seeds, err := to.Claim(t.Context(), 0, "j2.0")
	must.Do(t, err)
	m, err := from.Find(t.Context(), first.Name)
	must.Do(t, err)
	c, err := seeds.CopyFrom(t.Context(), from, m, format.Meta{Job: "j2", Step: m.Step})
	must.Do(t, err)
	for _, l := range []string{first.Name, "000001-000002"} {
		must.Do(t, from.Remove(t.Context(), l))
	}
	if _, err := from.Find(t.Context(), ""); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("after all were removed the newest is found: %v", err)
	}
	if name, got, refused := restored(t, to); name != c.Name || !got.equal(files) || len(refused) > 0 {
		t.Errorf("%s is restored with %v (refused %v), not %s with %v", name, got, refused, c.Name, files)
	}
	next := claim(t, to, 1)
	own, _ := publish(t, next, folderOf(t, "a", "its own"), 5)
	if name, _, _ := restored(t, to); name != own.Name {
		t.Errorf("%s is restored after %s was published", name, own.Name)
	}
	if err := seeds.Verify(t.Context(), c); err != nil {
		t.Errorf("the copy is not whole any more: %v", err)
	}
}

// Removing one checkpoint leaves what the others need.
func TestRemove_LeavesTheOthersWhole(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	s := open(b)
	w := claim(t, s, 1)
	var all []format.Manifest
	for step, text := range []string{"one", "two", "three"} {
		m, _ := publish(t, w, folderOf(t, "shared", "0123456789abcdef", "own", text), int64(step))
		all = append(all, m)
	}
	must.Do(t, s.Remove(t.Context(), all[1].Name))
	for i, m := range all {
		if err := s.Verify(t.Context(), m, checkpoint.Full); (err == nil) == (i == 1) {
			t.Errorf("checkpoint %d of 3, of which the second is removed: %v", i+1, err)
		}
	}
	if err := s.Remove(t.Context(), all[1].Name); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("what is not there is removed: %v", err)
	}
}

// folderOf creates a folder with files, each given by its path and content.
func folderOf(t *testing.T, files ...string) string {
	t.Helper()
	dir := fast.Dir(t)
	for i := 0; i < len(files); i += 2 {
		put(t, dir, files[i], files[i+1])
	}
	return dir
}
