package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/provider"
)

// serving is a daemon within the test's process, whose clock and disk are the test's.
type serving struct {
	*Driver
	t    *testing.T
	stop func()
}

func serveHere(t *testing.T, dir string, trace market.Trace, change func(*Options)) *serving {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, Trace: trace, Machine: []string{self, "machine"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&o)
	}
	d, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, o) }()
	s := &serving{Driver: d, t: t}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := d.Clock(ctx); err == nil {
			return s
		}
		select {
		case err := <-served:
			served <- nil
			t.Fatalf("the daemon left: %v", err)
		default:
		}
		if time.Since(begun) > patience {
			t.Fatal("the daemon does not answer")
		}
	}
}

// folder is a data folder with a short path. What its market still runs ends with the test.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		text, _ := os.ReadFile(filepath.Join(dir, journalName))
		if s := read(text); s.market != nil {
			for id := range strays("i-"+s.market.Prefix+"-", nil) {
				killAll(id, 0, "")
			}
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

func (s *serving) rent(key string, offer market.OfferID) (provider.Instance, error) {
	return s.Launch(s.t.Context(), provider.Request{Key: key, Offer: offer})
}

func (s *serving) listed(id string) (provider.Instance, bool) {
	s.t.Helper()
	list, err := s.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range list {
		if i.ID == id {
			return i, true
		}
	}
	return provider.Instance{}, false
}

// written is a journal with launches, ends and a void one, and its records.
func written(t *testing.T) ([]byte, []record) {
	t.Helper()
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	m := func(n int, state provider.State) *machine {
		return &machine{
			Instance: provider.Instance{ID: fmt.Sprintf("i-abc123-%d", n), Key: fmt.Sprintf("job.%d", n), Offer: always, State: state, Launched: at.Add(time.Duration(n) * time.Second)},
			Wall:     at,
		}
	}
	trace := testTrace(1)
	records := []record{
		{Opened: &opened{Trace: trace, At: at, Prefix: "abc123"}},
		{Machine: m(1, provider.Running)}, {Machine: m(2, provider.Running)}, {Machine: m(1, provider.Ended)},
		{Machine: m(3, provider.Running)}, {Void: "i-abc123-3"}, {Machine: m(4, provider.Running)}, {Machine: m(2, provider.Ended)}, {Machine: m(5, provider.Running)}, {Machine: m(6, provider.Running)},
	}
	var text []byte
	for _, r := range records {
		line, err := encode(r)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, line...)
	}
	return text, records
}

// told is what a story tells, in a form that can be compared.
func told(s story) string {
	var b strings.Builder
	if s.market != nil {
		fmt.Fprintf(&b, "opened %s\n", s.market.Prefix)
	}
	for _, m := range s.machines {
		fmt.Fprintf(&b, "%s %s %v\n", m.ID, m.State, m.Launched)
	}
	return b.String()
}

// plainly is the slow twin of read: what whole records tell.
func plainly(records []record) string {
	var s story
	for _, r := range records {
		switch {
		case r.Opened != nil:
			s.market = r.Opened
		case r.Machine != nil:
			found := false
			for n, m := range s.machines {
				if m.ID == r.Machine.ID {
					s.machines[n], found = r.Machine, true
				}
			}
			if !found {
				s.machines = append(s.machines, r.Machine)
			}
		default:
			var left []*machine
			for _, m := range s.machines {
				if m.ID != r.Void {
					left = append(left, m)
				}
			}
			s.machines = left
		}
	}
	return told(s)
}

func TestAJournalTornAtAnyByteIsReadUpToTheTear(t *testing.T) {
	text, records := written(t)
	for cut := range len(text) + 1 {
		whole := bytes.Count(text[:cut], []byte("\n"))
		s := read(text[:cut])
		if got, want := told(s), plainly(records[:whole]); got != want {
			t.Fatalf("torn at %d of %d:\n%s\nwant\n%s", cut, len(text), got, want)
		}
		torn := cut > 0 && text[cut-1] != '\n'
		if s.lines != whole || s.tail != torn || (s.damaged > 0) != torn {
			t.Fatalf("torn at %d: %d whole lines, %d damaged, torn: %v; want %d, torn: %v", cut, s.lines, s.damaged, s.tail, whole, torn)
		}
	}
}

func TestAByteThatChangesInAJournalHidesItsOwnLineOnly(t *testing.T) {
	text, records := written(t)
	starts := []int{0}
	for n, b := range text {
		if b == '\n' {
			starts = append(starts, n+1)
		}
	}
	line := 0
	for at := range text {
		if at >= starts[line+1] {
			line++
		}
		for _, bit := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(text)
			bad[at] ^= bit
			kept := append(append([]record{}, records[:line]...), records[line+1:]...)
			if text[at] == '\n' && line+1 < len(records) { // two lines have become one
				kept = append(append([]record{}, records[:line]...), records[line+2:]...)
			}
			s := read(bad)
			if got, want := told(s), plainly(kept); got != want {
				t.Fatalf("byte %d of line %d changed by %#x:\n%s\nwant\n%s", at, line, bit, got, want)
			}
			if s.damaged == 0 {
				t.Fatalf("byte %d of line %d changed by %#x: not found", at, line, bit)
			}
		}
	}
}

func TestAfterADamageNoNameIsGivenTwiceAndTheDamagedJournalIsKept(t *testing.T) {
	text, _ := written(t)
	// Each newline, the end of the last line, and a byte within each line.
	var at []int
	for n, b := range text {
		if b == '\n' || b == '{' && n > 0 && text[n-1] == ' ' {
			at = append(at, n)
		}
	}
	names := regexp.MustCompile(`i-abc123-\d+`)
	for _, n := range at {
		bad := bytes.Clone(text)
		bad[n] ^= 1
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, journalName), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		d := &daemon{opts: Options{Dir: dir, Trace: testTrace(1), Log: slog.New(slog.DiscardHandler), now: func() time.Time { return at }}, keys: map[string]*machine{}}
		err := d.load()
		aside, _ := filepath.Glob(filepath.Join(dir, journalName+".damaged-*"))
		if d.opened.Prefix == "" {
			if err == nil || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("byte %d: the market's own line is damaged: %v", n, err)
			}
			if b, _ := os.ReadFile(filepath.Join(dir, journalName)); !bytes.Equal(b, bad) {
				t.Errorf("byte %d: refused, and yet rewritten", n)
			}
			continue
		}
		if err != nil {
			t.Errorf("byte %d: %v", n, err)
			continue
		}
		_ = d.journal.f.Close()
		next := fmt.Sprintf("i-abc123-%d", d.seq+1)
		for _, name := range names.FindAllString(string(text), -1) {
			if name == next {
				t.Errorf("byte %d: %s is given again", n, next)
			}
		}
		again, _ := os.ReadFile(filepath.Join(dir, journalName))
		if s := read(again); s.damaged > 0 || told(s) != told(read(bad)) {
			t.Errorf("byte %d: rewritten as\n%s\nwant\n%s", n, told(s), told(read(bad)))
		}
		if read(bad).tail {
			continue
		}
		if len(aside) != 1 {
			t.Errorf("byte %d: kept aside are %v", n, aside)
		} else if b, _ := os.ReadFile(aside[0]); !bytes.Equal(b, bad) {
			t.Errorf("byte %d: what is kept aside is not what was there", n)
		}
	}
}

// fullDisk takes so many bytes more, and then none.
type fullDisk struct {
	disk
	mu    *sync.Mutex
	room  *int
	stuck *bool // it cannot even cut off
}

func newFullDisk(room int) fullDisk {
	return fullDisk{mu: &sync.Mutex{}, room: &room, stuck: new(bool)}
}

func (f fullDisk) set(room int, stuck bool) {
	f.mu.Lock()
	*f.room, *f.stuck = room, stuck
	f.mu.Unlock()
}

func (f fullDisk) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := *f.room; n < len(b) {
		*f.room = 0
		n, err := f.disk.Write(b[:n])
		return n, errors.Join(syscall.ENOSPC, err)
	}
	*f.room -= len(b)
	return f.disk.Write(b)
}

func (f fullDisk) Sync() error { return nil } // thousands of disks are tested

func (f fullDisk) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *f.stuck {
		return io.ErrClosedPipe
	}
	return f.disk.Truncate(size)
}

func TestADiskFullAtAnyByteLeavesWholeRecordsOnly(t *testing.T) {
	text, records := written(t)
	path := filepath.Join(t.TempDir(), "j")
	for room := 0; room <= len(text); room += 23 {
		for _, stuck := range []bool{false, true} {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			full := newFullDisk(room)
			full.disk = f
			*full.stuck = stuck
			j := journal{f: full}
			var kept []record
			for n, r := range records {
				if n == len(records)-1 {
					full.set(1<<20, false) // there is room again
				}
				err := j.append(r)
				if err == nil {
					kept = append(kept, r)
				} else if !strings.HasPrefix(err.Error(), "write the market's journal: ") || !errors.Is(err, syscall.ENOSPC) && !stuck {
					t.Fatalf("room for %d bytes: %v", room, err)
				}
			}
			_ = f.Close()
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := read(got)
			if s.damaged > 0 || told(s) != plainly(kept) {
				t.Fatalf("room for %d bytes, stuck: %v: %d damaged lines and\n%s\nwant\n%s", room, stuck, s.damaged, told(s), plainly(kept))
			}
		}
	}
}

func TestAFullDiskIsAClearErrorAndNothingIsLost(t *testing.T) {
	dir, full := folder(t), newFullDisk(1<<20)
	wrap := func(o *Options) { o.disk = func(d disk) disk { f := full; f.disk = d; return f } }
	s := serveHere(t, dir, testTrace(60), wrap)
	kept, err := s.rent("a.1", always)
	if err != nil {
		t.Fatal(err)
	}

	full.set(100, false) // a launch
	_, err = s.rent("a.2", always)
	if err == nil || provider.Refused(err) || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), "journal") {
		t.Fatalf("a launch on a full disk: %v", err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("listed are %v, %v", list, err)
	}
	full.set(1<<20, false)
	second, err := s.rent("a.2", always)
	if err != nil || second.ID == kept.ID {
		t.Fatalf("once there is room: %+v, %v", second, err)
	}

	full.set(10, true) // an end, which cannot even be cut off
	if err := s.Terminate(t.Context(), kept.ID); err == nil || provider.Refused(err) || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("an end on a full disk: %v", err)
	}
	if i, ok := s.listed(kept.ID); !ok || i.State != provider.Running {
		t.Errorf("an end that is not written is told: %+v", i)
	}
	if left := members(kept.ID, 0, ""); len(left) > 0 {
		t.Errorf("processes %v run on", left)
	}
	s.stop() // and the daemon is restarted on the torn journal, with room
	full.set(1<<20, false)
	s = serveHere(t, dir, testTrace(60), wrap)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if i, ok := s.listed(kept.ID); ok && i.State == provider.Ended && len(i.Bill) == 1 {
			break
		} else if time.Since(begun) > patience {
			t.Fatalf("the end is not written: %+v", i)
		}
	}
	if i, ok := s.listed(second.ID); !ok || i.State != provider.Running || len(members(second.ID, 0, "")) != 1 {
		t.Errorf("the other one is %+v", i)
	}
	again, err := s.rent("a.2", always)
	if err != nil || again.ID != second.ID {
		t.Errorf("a.2 rents %s, and then %s, %v", second.ID, again.ID, err)
	}

	full.set(10, false) // an end that is written as soon as there is room, without a restart
	if err := s.Terminate(t.Context(), second.ID); err == nil {
		t.Error("an end that is not written is no error")
	}
	full.set(1<<20, false)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if i, _ := s.listed(second.ID); i.State == provider.Ended {
			if i.Cause != provider.Terminated || len(i.Bill) != 1 || i.Bill[0].Amount != i.Rate.Until(i.Ended.Sub(i.Launched)) {
				t.Errorf("ended as %+v", i)
			}
			break
		} else if time.Since(begun) > patience {
			t.Fatalf("the end is not written: %+v", i)
		}
	}
	s.stop()
	text, err := os.ReadFile(filepath.Join(dir, journalName))
	if st := read(text); err != nil || st.damaged > 0 || len(st.machines) != 2 {
		t.Errorf("the journal tells\n%s, %d lines damaged, %v", told(st), st.damaged, err)
	}
}

func TestALaunchWhoseProcessWasNotWrittenIsFoundByTheNextDaemon(t *testing.T) {
	dir, full := folder(t), newFullDisk(1<<20)
	s := serveHere(t, dir, testTrace(60), func(o *Options) {
		o.disk = func(d disk) disk { f := full; f.disk = d; return secondFails{f, new(int)} }
	})
	i, err := s.rent("a.1", always)
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	if text, _ := os.ReadFile(filepath.Join(dir, journalName)); len(read(text).machines) != 1 || read(text).machines[0].PID != 0 {
		t.Fatalf("the test is void: the process is written: %s", text)
	}
	pid, _ := first(i.ID)
	s = serveHere(t, dir, testTrace(60), nil)
	got, ok := s.listed(i.ID)
	if !ok || !reflect.DeepEqual(got, i) {
		t.Errorf("adopted as %+v, want %+v", got, i)
	}
	if again, err := s.rent("a.1", always); err != nil || again.ID != i.ID {
		t.Errorf("rented again: %+v, %v", again, err)
	}
	if err := s.Terminate(t.Context(), i.ID); err != nil || begun(pid) != "" {
		t.Errorf("given back: %v, its process is there: %v", err, begun(pid) != "")
	}
	if got, _ := s.listed(i.ID); got.Cause != provider.Terminated { // and not as one without a process
		t.Errorf("ended as %+v", got)
	}
}

// secondFails is a disk that refuses every second record.
type secondFails struct {
	disk
	n *int
}

func (f secondFails) Write(b []byte) (int, error) {
	if *f.n++; *f.n%2 == 0 {
		return 0, syscall.ENOSPC
	}
	return f.disk.Write(b)
}
