package agent

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/wire/api"
)

// servedBy returns an assignment that keeps its work folder, checkpoints and outputs on the server.
func servedBy(t *testing.T, epoch int, command string) api.Assignment {
	t.Helper()
	a := assign(t, "")
	a.Attempt, a.Epoch = "job-1."+strconv.Itoa(epoch), epoch
	a.Args, a.Command, a.Workdir = nil, command, api.ServerWork
	a.Checkpoint = api.Checkpoints{Dir: "ckpt", URL: api.ServerStore, Prefix: "jobs/job-1/", KeepLast: 2}
	a.Outputs, a.OutputsURL, a.OutputsPrefix = []string{"out"}, api.ServerStore, "jobs/job-1/"
	return a
}

// Connections break at every fifth request, in the content, in the response or after it. Still an
// attempt gets its complete work folder, keeps its checkpoint, the next attempts resume from it,
// and the outputs are what the program wrote.
func TestServerStore_WorksOverBadNetwork(t *testing.T) {
	t.Parallel()
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
	// The number of requests is random: run attempts until enough connections have broken.
	for epoch, cuts := 2, first.server.cuts; epoch == 2 || cuts < 5; epoch++ {
		if epoch > 30 {
			t.Fatalf("too few faults to say anything: %d", cuts)
		}
		next := play(epoch, "mkdir out; diff -q input ckpt/state && cp ckpt/state out/result")
		if e := told(next.server, endedIn)[0]; e.Reason != api.EndCompleted ||
			e.Outputs != "scrimp:?prefix=jobs/job-1/#job-1" {
			t.Errorf("attempt %d ended %+v", epoch, e)
		}
		if s := told(next.server, started)[0]; s.Restored == "" {
			t.Errorf("attempt %d began from nothing", epoch)
		}
		cuts += next.server.cuts
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

// An agent whose attempt has ended stops and publishes nothing, as with any other store.
func TestServerStore_FencesEndedAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, servedBy(t, 1, "while :; do date +%N > ckpt/x; mv ckpt/x ckpt/state; sleep 0.2; done"))
	withStore(r)
	r.start()
	r.server.waitFor("a checkpoint", func(m api.Message) bool { return m.Saved != nil })
	r.server.order(func() { r.server.fenced = true })
	if err := r.end(); err == nil || !strings.Contains(err.Error(), ErrFenced.Error()) {
		t.Errorf("error %v, want ErrFenced", err)
	}
}

// A job without a declared store makes the same requests as before stores could be declared.
func TestServerStore_IsDefaultStore(t *testing.T) {
	t.Parallel()
	served := t.TempDir()
	if err := os.WriteFile(filepath.Join(served, "from"), []byte("the server"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, servedBy(t, 1, "cat from"))
	withStore(r)
	asked := false
	r.server.work = served
	r.server.works = func() api.WorkBlob { asked = true; return api.WorkBlob{} }
	r.start()
	if err := r.end(); err != nil || string(r.server.log) != "the server" || asked {
		t.Errorf("%v, %q, asked %v", err, r.server.log, asked)
	}
}

// A work folder that is missing on the server is missing for every machine: the agent does not ask again and again, and
// reports a failure that no other machine would repair.
func TestWork_MissingOnTheServerFailsTheJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, servedBy(t, 1, "true"))
	withStore(r)
	r.server.order(func() { r.server.work, r.server.kept = filepath.Join(t.TempDir(), "gone"), t.TempDir() })
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if e := told(r.server, endedIn)[0]; e.Reason != api.EndFailed || e.Exit != 1 || !strings.Contains(e.Error, "404") {
		t.Errorf("the attempt ended %+v", e)
	}
}
