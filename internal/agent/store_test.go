package agent

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/keeper"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/wire/api"
)

// stored returns an assignment that keeps its checkpoints in folder dir, with the real keeper.
func stored(t *testing.T, dir string, epoch int, play string, env ...string) api.Assignment {
	t.Helper()
	a := assign(t, play, env...)
	a.Attempt, a.Epoch = "job-1."+strconv.Itoa(epoch), epoch
	a.Checkpoint = api.Checkpoints{URL: "file://" + dir, Prefix: "job-1", KeepLast: 2}
	return a
}

func withStore(r *rig) { r.config.open = nil }

// manifests returns the published checkpoints.
func manifests(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "job-1", "manifests", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

// A bucket that is gone is gone for every machine: the attempt ends as a failure that no other machine would repair, and
// says which bucket, which field of the job file, and nothing of a server that refuses something.
func TestStore_MissingBucketFailsTheJob(t *testing.T) {
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`<?xml version="1.0"?><Error><Code>NoSuchBucket</Code><Message>none</Message></Error>`))
	}))
	t.Cleanup(gone.Close)
	for _, variable := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(variable, "k")
	}
	a := stored(t, "", 1, "train")
	a.Checkpoint.URL = "s3://gone?region=us-east-1&endpoint=" + gone.URL
	r := newRig(t, a)
	withStore(r)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	e := told(r.server, endedIn)
	if len(e) != 1 || e[0].Reason != api.EndFailed || len(told(r.server, started)) > 0 {
		t.Fatalf("ended as %+v", e)
	}
	for _, want := range []string{"s3://gone", "(checkpoint.store)", "no other machine is tried"} {
		if !strings.Contains(e[0].Error, want) {
			t.Errorf("no %q in %q", want, e[0].Error)
		}
	}
	if strings.Contains(e[0].Error, "refuses") {
		t.Error(e[0].Error)
	}
}

func TestStore_NextAttemptResumesAfterKill(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	first := running(t, stored(t, store, 1, "train", "TEST_EVERY=150"), withStore)
	first.server.waitFor("a checkpoint", func(m api.Message) bool { return m.Saved != nil })
	first.hard() // no notice
	if err := first.end(); !errors.Is(err, errHard) {
		t.Fatal(err)
	}
	kept := told(first.server, savedIn)
	newest := kept[len(kept)-1]
	if strings.Contains(first.server.story(), "ended") {
		t.Errorf("story %s", first.server.story())
	}

	goal := newest.Step + 160
	second := newRig(t, stored(t, store, 2, "train", "TEST_STEPS="+strconv.FormatInt(goal, 10)))
	withStore(second)
	second.start()
	if err := second.end(); err != nil {
		t.Fatal(err)
	}
	s := told(second.server, started)[0]
	if s.Restored == "" || s.Restored < newest.Manifest {
		t.Errorf("began from %+v, want %s or newer", s, newest.Manifest)
	}
	begin := string(second.server.log[:strings.IndexByte(string(second.server.log), '\n')])
	var step int64
	for _, word := range strings.Fields(begin) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			step = n
			break
		}
	}
	if step == 0 || step%150 != 0 || !strings.HasSuffix(begin, "restored "+s.Restored) {
		t.Errorf("the program says %q", begin)
	}
	if e := told(second.server, endedIn)[0]; !e.Saved || e.Reason != api.EndCompleted {
		t.Errorf("ended %+v", e)
	}
	if names := manifests(t, store); len(names) != 2 || !strings.HasPrefix(names[len(names)-1], "000002-") {
		t.Errorf("the store holds %v, want the two newest", names)
	}
}

func TestStore_FencesOlderAttempt(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	old := running(t, stored(t, store, 1, "train"), withStore)
	second := newRig(t, stored(t, store, 2, "train", "TEST_STEPS=3"))
	withStore(second)
	second.start()
	if err := second.end(); err != nil {
		t.Fatal(err)
	}
	old.stop() // it saves, and must not publish
	if err := old.end(); !errors.Is(err, ErrFenced) {
		t.Errorf("error %v, want ErrFenced", err)
	}
	for _, name := range manifests(t, store) {
		if strings.HasPrefix(name, "000001-") {
			t.Errorf("the fenced attempt published %s", name)
		}
	}
	if got := old.server.story(); got != "started, noticed signal" {
		t.Errorf("story of the fenced attempt: %s", got)
	}
	late := newRig(t, stored(t, store, 1, "train"))
	withStore(late)
	late.config.Instance = "i-2"
	late.start()
	if err := late.end(); err != nil && !errors.Is(err, ErrFenced) {
		t.Error(err)
	}
	if len(late.server.log) != 0 {
		t.Error("an attempt that came too late ran its program")
	}
}

func TestStore_SkipsAndReportsDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	first := running(t, stored(t, store, 1, "train", "TEST_EVERY=150"), withStore)
	first.server.wait("two checkpoints", func() bool {
		n := 0
		for _, m := range first.server.applied {
			if m.Saved != nil {
				n++
			}
		}
		return n >= 2
	})
	first.hard()
	if err := first.end(); !errors.Is(err, errHard) {
		t.Fatal(err)
	}
	names := manifests(t, store)
	torn := names[len(names)-1]
	path := filepath.Join(store, "job-1", "manifests", torn)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	second := newRig(t, stored(t, store, 2, "train", "TEST_STEPS=1"))
	withStore(second)
	second.start()
	if err := second.end(); err != nil {
		t.Fatal(err)
	}
	refused := told(second.server, func(m api.Message) *api.Refused { return m.Refused })
	if len(refused) != 1 || refused[0].Manifest != torn {
		t.Errorf("refused %+v, want %s", refused, torn)
	}
	if s := told(second.server, started)[0]; s.Restored != names[len(names)-2] {
		t.Errorf("began from %s, want %s", s.Restored, names[len(names)-2])
	}
}

func TestStore_KeepsCheckpointAsAnnounced(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	r := runningSilent(t, stored(t, store, 1, "helper"))
	r.server.order(func() { r.server.orders.Interval = 50 * time.Millisecond })
	r.server.wait("some checkpoints", func() bool {
		n := 0
		for _, m := range r.server.applied {
			if m.Saved != nil {
				n++
			}
		}
		return n >= 5
	})
	r.hard()
	_ = r.end() // the agent is ended at once
	dir := filepath.Join(t.TempDir(), "restored")
	b, err := blob.Open(t.Context(), "file://"+store)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	got, err := checkpoint.Open(b, "job-1").Restore(t.Context(), 0, dir)
	if err != nil || got.Manifest == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	// The helper program overwrites file a in place as soon as it may.
	for _, name := range []string{"a", "b"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(content) != strconv.FormatInt(got.Manifest.Step, 10) {
			t.Errorf("file %s holds %q for step %d (%v)", name, content, got.Manifest.Step, err)
		}
	}
}

// runningSilent starts an agent with a program that prints nothing.
func runningSilent(t *testing.T, a api.Assignment) *rig {
	t.Helper()
	r := newRig(t, a)
	withStore(r)
	r.start()
	r.server.waitFor("the program's start", func(m api.Message) bool { return m.Started != nil })
	return r
}

// fetchOutputs copies what an attempt kept into folder dir.
func fetchOutputs(t *testing.T, address, dir string) error {
	k, err := keeper.Open(t.Context(), keeper.Options{Log: discard()})
	if err != nil {
		return err
	}
	return errors.Join(k.Fetch(t.Context(), address, dir), k.Close())
}

func TestOutputs_AreKeptAfterFailure(t *testing.T) {
	t.Parallel()
	store, outputs := t.TempDir(), t.TempDir()
	a := stored(t, store, 1, "")
	a.Args, a.Command = nil, "mkdir -p out/deep && echo result > out/deep/metrics.json && exit 9"
	a.Outputs, a.OutputsURL = []string{"out", "missing"}, "file://"+outputs
	r := newRig(t, a)
	withStore(r)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	e := told(r.server, endedIn)[0]
	if e.Exit != 9 || e.Outputs != "file://"+outputs+"#job-1" || e.Error != "" {
		t.Errorf("ended %+v", e)
	}
	dir := filepath.Join(t.TempDir(), "got")
	if err := fetchOutputs(t, e.Outputs, dir); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "out", "deep", "metrics.json")); string(b) != "result\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// The report names outputs that are not kept because a link leads out of the work folder.
func TestOutputs_ReportsLinksThatLeadOut(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := stored(t, t.TempDir(), 1, "")
	a.Args, a.Command = nil, "mkdir out; echo 1 > out/kept; for i in a b c d e; do ln -s "+secret+" out/$i; done"
	a.Outputs, a.OutputsURL = []string{"out"}, "file://"+t.TempDir()
	r := newRig(t, a)
	withStore(r)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	ended := told(r.server, endedIn)[0]
	if ended.Outputs == "" || ended.Exit != 0 || !strings.Contains(ended.Error, "out/a, out/b, out/c and 2 more") {
		t.Errorf("outputs %q, error %q", ended.Outputs, ended.Error)
	}
}

func TestWorkFolder_IsFetchedFromStore(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	b, err := blob.Open(t.Context(), "file://"+store)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if err := b.WriteAll(t.Context(), "work/train.sh", []byte("#!/bin/sh\necho fetched\n"), nil); err != nil {
		t.Fatal(err)
	}
	a := assign(t, "")
	a.Checkpoint.URL = ""
	a.Args, a.Command, a.Workdir = nil, "./train.sh", "file://"+store+"?prefix=work"
	r := newRig(t, a)
	withStore(r)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if string(r.server.log) != "fetched\n" || r.server.story() != "started, ended completed 0 saved=false" {
		t.Errorf("log %q, story %s", r.server.log, r.server.story())
	}
}

func TestCapture_LeavesNoTrace(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	r := newRig(t, stored(t, store, 1, "train", "TEST_STEPS=5"))
	withStore(r)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(r.config.MachineDir, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, "scrimp-capture") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
