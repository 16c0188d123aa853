package engines

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/test/must"
)

// passable returns a folder that other users can enter, unlike a test's own.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "scrimp-machines-")
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must.Do(t, errors.Join(err, os.Chmod(dir, 0o711)))
	return dir
}

// Doctor mentions users if there are several, or if a setting has no effect.
func TestDoctor_MentionsUsersWhenRelevant(t *testing.T) {
	t.Parallel()
	data, open := t.TempDir(), passable(t)
	must.Do(t, os.Chmod(filepath.Dir(data), 0o700))
	at := engine.WithOf(local.With{Machines: filepath.Join(open, "new", "machines")})
	kept := "" // the text if programs are separated
	if os.Geteuid() != 0 {
		kept = "not root"
	}
	for _, c := range []struct {
		engine engine.Setting
		people int
		want   string
	}{
		{engine.Setting{Name: "local", Kind: "local"}, 1, ""},
		{engine.Setting{Name: "local", Kind: "local"}, 0, ""},
		{engine.Setting{Name: "local", Kind: "local"}, 2, "the programs of 2 users run as this user"},
		{engine.Setting{Name: "local", Kind: "local", Users: "same"}, 3, "users: auto"},
		{engine.Setting{Name: "local", Kind: "local", Users: "auto"}, 1, "no effect"},
		{engine.Setting{Name: "local", Kind: "local", Users: "auto", With: at}, 2, kept},
		{engine.Setting{Name: "rack", Kind: "ssh"}, 2, ""},
		{engine.Setting{Name: "rack", Kind: "ssh", Users: "same"}, 1, ""},
		{engine.Setting{Name: "rack", Kind: "ssh", Users: "same"}, 2, "act as it"},
	} {
		got := separation(data, &c.engine, c.people)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v with %d people: %q, want %q", c.engine, c.people, got, c.want)
		}
	}
}
