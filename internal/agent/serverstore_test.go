package agent

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/api"
	"scrimp/internal/blob"
	"scrimp/internal/checkpoint"
)

// servedBy returns an assignment whose work folder, checkpoints and outputs are the server's.
func servedBy(t *testing.T, epoch int, command string) api.Assignment {
	t.Helper()
	a := assign(t, "")
	a.Attempt, a.Epoch = "job-1."+string(rune('0'+epoch)), epoch
	a.Args, a.Command, a.Workdir = nil, command, api.ServerWork
	a.Checkpoint = api.Checkpoints{Dir: "ckpt", URL: api.ServerStore, Prefix: "jobs/job-1/", KeepLast: 2}
	a.Outputs, a.OutputsURL, a.OutputsPrefix = []string{"out"}, api.ServerStore, "jobs/job-1/"
	return a
}

// With connections that break off at every fifth request, in the content, in the answer
// or behind it, an attempt gets its work folder whole, its checkpoint is kept, the next
// one goes on from it, and the outputs are what the program wrote.
func TestTheServersStoreOverABadNetwork(t *testing.T) {
	folder, kept := t.TempDir(), t.TempDir()
	input := make([]byte, 300_000)
	for i := range input {
		input[i] = byte(i * i >> 7)
	}
	if err := os.WriteFile(filepath.Join(folder, "input"), input, 0o644); err != nil {
		t.Fatal(err)
	}
	play := func(epoch int, command string) *rig {
		r := newRig(t, servedBy(t, epoch, command))
		withStore(r)
		r.server.order(func() {
			r.server.work, r.server.kept = folder, kept
			r.server.chance, r.server.faults = rand.New(rand.NewPCG(uint64(epoch), 7)), 0.2
		})
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := play(1, "cp input ckpt/state; exit 0")
	if e := told(first.server, endedIn)[0]; e.Reason != api.EndCompleted || !e.Saved {
		t.Errorf("the first attempt ended %+v", e)
	}
	second := play(2, "mkdir out; cmp input ckpt/state && cp ckpt/state out/result")
	if e := told(second.server, endedIn)[0]; e.Reason != api.EndCompleted ||
		e.Outputs != "scrimp:?prefix=jobs/job-1/#job-1" {
		t.Errorf("the second attempt ended %+v", e)
	}
	if s := told(second.server, started)[0]; s.Restored == "" {
		t.Error("the second attempt began from nothing")
	}
	if first.server.cuts+second.server.cuts < 5 {
		t.Errorf("too few faults to say anything: %d", first.server.cuts+second.server.cuts)
	}
	b, err := blob.Open(t.Context(), "file://"+kept+"?prefix=jobs/job-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	to := filepath.Join(t.TempDir(), "got")
	if _, err := checkpoint.Open(b, "").Fetch(t.Context(), "job-1", to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "out", "result")); !bytes.Equal(got, input) {
		t.Errorf("the outputs hold %d bytes, %v", len(got), err)
	}
}

// An agent whose attempt is over stops and publishes nothing, as with any other store.
func TestTheServersStoreFencesAnAttemptThatIsOver(t *testing.T) {
	r := newRig(t, servedBy(t, 1, "while :; do date +%N > ckpt/x; mv ckpt/x ckpt/state; sleep 0.2; done"))
	withStore(r)
	r.start()
	r.server.waitFor("a checkpoint", func(m api.Message) bool { return m.Saved != nil })
	r.server.order(func() { r.server.fenced = true })
	if err := r.end(); err == nil || !strings.Contains(err.Error(), ErrFenced.Error()) {
		t.Errorf("error %v, want ErrFenced", err)
	}
}
