package marketd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/procs"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// A market whose folder was copied while machines ran leaves them to the original folder. It ends
// none of them by itself, neither known nor unknown ones, uses other ids, and ends one of them only
// on request.
func TestCopy_LeavesMachinesToOriginal(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(1))
	first, second := c.launch("job.1", always), c.launch("job.2", always)
	c.kill()
	dir := fast.Dir(t)
	for _, name := range []string{journalName, "trace.json"} {
		b, err := os.ReadFile(filepath.Join(c.dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		must.Do(t, err)
	}
	c.start()
	third := c.launch("job.3", always) // launched after the copy
	d, err := local.Dial(dir)
	must.Do(t, err)
	copied := &cloud{d, t, dir}
	t.Cleanup(copied.clean)
	copied.start()
	lives := func(when string, ids ...string) {
		t.Helper()
		for _, id := range ids {
			if len(procs.Members(id, 0, "")) == 0 {
				t.Fatalf("%s: %s has no process", when, id)
			}
		}
	}
	lives("the copy has begun", first.ID, second.ID, third.ID)
	for _, i := range []engine.Instance{first, second} {
		if got := copied.instance(i.ID); got.State != engine.Running {
			t.Errorf("the copy lists %s as %+v", i.ID, got)
		}
	}
	own := copied.launch("other.1", always)
	prefix, _, _ := strings.Cut(strings.TrimPrefix(first.ID, "i-"), "-")
	if strings.Contains(own.ID, prefix) {
		t.Errorf("the copy calls its machine %s, the original %s", own.ID, first.ID)
	}
	copied.kill()
	copied.start()
	lives("the copy has begun again", first.ID, second.ID, third.ID, own.ID)

	end := func(c *cloud, id string) {
		t.Helper()
		must.Do(t, c.Terminate(t.Context(), id))
	}
	end(c, first.ID)
	copied.until("the copy sees that the original ended its machine", func() bool {
		i := copied.instance(first.ID)
		return i.State == engine.Ended && i.Cause == engine.Stopped
	})
	lives("the original has ended its first", second.ID, third.ID, own.ID)
	end(copied, second.ID) // a server has adopted it there
	if left := procs.Members(second.ID, 0, ""); len(left) > 0 {
		t.Errorf("processes of %s are left: %v", second.ID, left)
	}
	lives("the copy has ended the second", third.ID, own.ID)
}
