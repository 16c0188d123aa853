package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// reader returns a task that prints the names and the contents of its input.
func reader(t *testing.T, job, from string) api.Assignment {
	t.Helper()
	a := shell(t, job, `cd "$SCRIMP_DATA_CORPUS" && find . -type l | sort && cat a sub/b && ls -L sub | wc -l`)
	a.Checkpoint, a.Workdir = api.Checkpoints{}, ""
	a.Data = []api.Input{{Name: "corpus", Variable: "SCRIMP_DATA_CORPUS", Path: from}}
	return a
}

// lastRead returns what the tasks reported of their inputs, in order, and whether their programs ran.
func (r *rig) lastRead() (list []api.Brought, started int) {
	for _, m := range append(r.server.before, r.server.messages()...) {
		if m.Started != nil {
			started++
			list = append(list, m.Started.Data...)
		}
		if m.Ended != nil {
			list = append(list, m.Ended.Data...)
		}
	}
	return list, started
}

// The second task of a machine finds the inputs of the first in the cache, and the agent reports that to the server.
func TestData_NextTaskFindsInputsInCache(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	if err := os.Mkdir(filepath.Join(from, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(from, "a"), "alpha\n")
	write(t, filepath.Join(from, "sub", "b"), "beta\n")
	r := inLine(t, reader(t, "job-1", "file://"+from), reader(t, "job-2", "file://"+from))
	for i, log := range r.played(t) {
		said, rest, _ := strings.Cut(log, "\n")
		want := fmt.Sprintf("scrimp: corpus: 2 files, 11B: %s from this machine's cache, %s from file://%s",
			[]string{"0B", "11B"}[i], []string{"11B", "0B"}[i], from)
		if !strings.HasPrefix(said, want) || rest != "./a\n./sub/b\nalpha\nbeta\n1\n" {
			t.Errorf("task %d says %q, want %q first", i, log, want)
		}
	}
	got, started := r.lastRead()
	if started != 2 || len(got) != 2 || got[0].Fetched != 11 || got[0].HitBytes != 0 || got[1].Fetched != 0 ||
		got[1].HitBytes != 11 || got[1].Hits != 2 || got[1].Bytes != 11 {
		t.Errorf("%d programs ran; the server heard %+v", started, got)
	}
	if _, err := os.Stat(filepath.Join(r.config.MachineDir, "cache")); err == nil {
		t.Error("the cache outlives the agent of a rented machine")
	}
}

// A missing input ends the task before its program runs. The error names the input and the field. Another
// machine may have a missing folder, but not a missing bucket, so after that scrimp pays for no other machine.
func TestData_MissingInputEndsTaskBeforeProgram(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]api.EndReason{
		"file:///no/such/folder":     api.EndSetup,
		"s3://bucket/a?prefix=other": api.EndFailed,
	} {
		r := newRig(t, reader(t, "job-1", path))
		r.played(t)
		_, started := r.lastRead()
		var ended *api.Ended
		for _, m := range r.server.messages() {
			if m.Ended != nil {
				ended = m.Ended
			}
		}
		if started != 0 || ended == nil || ended.Reason != want || !strings.Contains(ended.Error,
			"bring the input corpus from "+path+" (data)") {
			t.Errorf("%s: %d programs ran, and the task ended with %+v, want %s", path, started, ended, want)
		}
	}
}

// A program gets the address of a stream, and at its end the agent reports to the server how much it has read.
func TestData_StreamIsServedToTheProgram(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	write(t, filepath.Join(from, "a"), "alpha\n")
	a := reader(t, "job-1", "file://"+from)
	a.Data[0].Stream = true
	a.Command = `case "$SCRIMP_DATA_CORPUS" in http://127.0.0.1:*/*/) echo streamed;; esac`
	r := inLine(t, a)
	if log := r.played(t)[0]; log != "scrimp: corpus: 1 file, 6B, streamed from file://"+from+"\nstreamed\n" {
		t.Errorf("the log is %q", log)
	}
	for _, m := range append(r.server.before, r.server.messages()...) {
		if m.Started != nil && len(m.Started.Data) > 0 {
			t.Errorf("the program began with %+v", m.Started.Data)
		}
		if m.Ended != nil && (len(m.Ended.Data) != 1 || m.Ended.Data[0].Name != "corpus") {
			t.Errorf("it ended with %+v", m.Ended.Data)
		}
	}
}

// The cache of a user's own machine outlives its agents.
func TestData_FolderOfCacheOutlivesAgent(t *testing.T) {
	t.Parallel()
	from, cache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a"), "alpha\n")
	var hits []int64
	for i := range 2 {
		a := reader(t, "job-1", "file://"+from)
		a.Command = `cat "$SCRIMP_DATA_CORPUS/a"`
		r := newRig(t, a)
		r.config.CacheDir = cache
		r.played(t)
		got, _ := r.lastRead()
		if len(got) != 1 {
			t.Fatalf("agent %d: %+v", i, got)
		}
		hits = append(hits, got[0].HitBytes)
	}
	if fmt.Sprint(hits) != "[0 6]" {
		t.Errorf("the agents found %v in the cache", hits)
	}
}
