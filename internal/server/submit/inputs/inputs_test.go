package inputs

import (
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/test/eventually"
)

// A missing folder is refused only where the machines are this host and nobody can make the folder first. Only the owner
// of the server hears which folders the host has.
func TestRefuses_MissingFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	until := time.Now().Add(eventually.Limit)
	for _, c := range []struct {
		name    string
		probe   Probe
		path    string
		later   bool
		refuses bool
	}{
		{"a missing folder of this host", Probe{own: true, here: true}, "none", false, true},
		{"an existing folder", Probe{own: true, here: true}, "", false, false},
		{"a missing folder that another job may make", Probe{own: true, here: true}, "none", true, false},
		{"a missing folder of another host", Probe{own: true}, "none", false, false},
		{"a missing folder that another user names", Probe{}, "none", false, false},
	} {
		c.probe.until, c.probe.asked = until, map[string]string{}
		j := spec.Job{Data: []spec.Data{{Path: "notes.txt"}, {Path: "file://" + filepath.Join(dir, c.path)}}}
		no := c.probe.Refuses(t.Context(), j, c.later)
		if (no != nil) != c.refuses || no != nil && no.Field != "data[1].path" {
			t.Errorf("%s: %+v", c.name, no)
		}
	}
}

// Machines of an engine elsewhere have folders of their own, and a caller over the network is not the owner.
func TestNew_LooksAtThisHostForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	if p := New(httptest.NewRequest("POST", "/v1/jobs", nil), map[string]string{"local": "local"}); p.here || p.own {
		t.Errorf("a caller over the network probes as %+v", p)
	}
}
