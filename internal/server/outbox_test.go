package server

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/test/must"
)

// over makes finished jobs; every fourth has a webhook that, except for the last, was called, and every fourth of
// the others left its secrets behind.
func (w *world) over(n int) {
	w.t.Helper()
	dirs := []string{filepath.Join(w.opts.Dir, "told"), filepath.Dir(w.vault().File("any"))}
	for _, dir := range dirs {
		must.Do(w.t, os.MkdirAll(dir, 0o700))
	}
	note := func(path string) {
		must.Do(w.t, os.WriteFile(path, nil, 0o600))
	}
	var events []core.Event
	for i := range n {
		id, hooked := fmt.Sprint("j", i), i%4 == 0
		for _, b := range []core.Body{core.JobSubmitted{Job: id, Terms: core.Terms{Name: id, Notify: hooked}},
			core.JobEnded{Job: id}} {
			events = append(events, core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default", Body: b})
		}
		if hooked && i+4 < n {
			note(filepath.Join(dirs[0], id))
		}
		if i%16 == 1 {
			note(w.vault().File(id))
		}
		if len(events) < 2000 && i < n-1 {
			continue
		}
		must.Do(w.t, w.control.Propose(w.t.Context(), events...))
		events = events[:0]
	}
}

// A starting server makes the missing calls, and forgets the secrets of finished and unknown jobs, but not of
// others.
func TestOutbox_StartMakesMissingCallsAndForgetsSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.over(21)
	w.must("POST", "/v1/jobs", `{"secrets":{"A":"x"},`+aJob("waits", "")[1:], nil)
	for _, left := range []string{w.vault().File("nobody"), w.vault().File("j2"), w.vault().File("j0"), w.vault().File("j20")} {
		must.Do(t, os.WriteFile(left, nil, 0o600))
	}
	list, err := w.outbox.Unsent()
	if err != nil || len(list) != 1 || list[0].Job != "j20" || list[0].State != core.Cancelled {
		t.Fatalf("%v %v", list, err)
	}
	left, err := w.vault().Jobs()
	must.Do(t, err)
	var names []string
	for name := range left {
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"j20", "waits"}) {
		t.Errorf("secrets are left of %v", names)
	}
}

// BenchmarkOutbox_SearchAtStart measures that search among -jobs finished jobs.
func BenchmarkOutbox_SearchAtStart(b *testing.B) {
	n := 20_000
	if f := flag.Lookup("jobs"); f != nil {
		n, _ = strconv.Atoi(f.Value.String())
	}
	w := newWorld(b, nil)
	w.over(n)
	for b.Loop() {
		begun := time.Now()
		list, err := w.outbox.Unsent()
		if err != nil || len(list) != 1 {
			b.Fatalf("%d words, %v", len(list), err)
		}
		held, err := w.outbox.Unasked()
		if err != nil || len(held) != 0 {
			b.Fatalf("%d words, %v", len(held), err)
		}
		b.ReportMetric(time.Since(begun).Seconds(), "s/start")
	}
}
