package agent

import (
	"bytes"
	"path/filepath"
	"testing"

	"scrimp/internal/content/tarball"
	"scrimp/internal/wire/api"
)

// The next stage on a machine finds the inputs and outputs of the first stage in the cache, and the agent reports that
// to the server. Small files come with the folder.
func TestWork_NextStageFindsInputsInCache(t *testing.T) {
	t.Parallel()
	folder, kept := t.TempDir(), t.TempDir()
	large := bytes.Repeat([]byte("corpus\n"), tarball.LeastLight/7+1)
	made := bytes.Repeat([]byte("CORPUS\n"), tarball.LeastLight/7+1)
	write(t, filepath.Join(folder, "large"), string(large))
	write(t, filepath.Join(folder, "small"), "small\n")
	first := servedBy(t, 1, "mkdir -p out; tr a-z A-Z < large > out/made; cat small; echo more >> large")
	second := servedBy(t, 2, `same() { test "$(cat "$1")" = "$(cat "$OLD/$1")"; }; same large && same made && cat small; test ! -L large`)
	second.Env = map[string]string{"OLD": folder}
	first.Checkpoint, second.Checkpoint = api.Checkpoints{}, api.Checkpoints{}
	r := inLine(t, first)
	r.server.line = []given{{task: second, first: func() { write(t, filepath.Join(folder, "made"), string(made)) }}}
	withStore(r)
	r.server.work, r.server.kept, r.server.summed = folder, kept, true
	logs := r.played(t)
	if len(logs) != 2 || logs[0] != "small\n" || logs[1] != "scrimp: work folder: 2MiB from this machine's cache\nsmall\n" {
		t.Errorf("the logs are %q", logs)
	}
	got, started := r.lastRead()
	if started != 2 || len(got) != 1 || got[0].Name != api.ServerWork || got[0].Hits != 2 || got[0].Fetched != 0 ||
		got[0].HitBytes != int64(len(large)+len(made)) {
		t.Errorf("%d programs ran; the server heard %+v", started, got)
	}
	if r.server.contents != 1 {
		t.Errorf("the server sent %d contents, want 1", r.server.contents)
	}
}
