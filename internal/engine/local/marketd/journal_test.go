package marketd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/procs"
	"scrimp/internal/market"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// serving is a daemon in the test's process, with the test's clock and disk.
type serving struct {
	*local.Driver
	t    *testing.T
	stop func()
}

func serveHere(t *testing.T, dir string, trace market.Trace, change func(*Options)) *serving {
	t.Helper()
	self, err := os.Executable()
	must.Do(t, err)
	o := Options{Dir: dir, Trace: trace, Machine: []string{self, "machine"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&o)
	}
	d, err := local.Dial(dir)
	must.Do(t, err)
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
	eventually.True(t, "the daemon answers", func() bool {
		select {
		case err := <-served:
			served <- nil
			t.Fatalf("the daemon left: %v", err)
		default:
		}
		_, err := d.Clock(ctx)
		return err == nil
	})
	return s
}

// folder returns a data folder whose market's processes end with the test.
func folder(t *testing.T) string {
	t.Helper()
	dir := fast.Dir(t)
	t.Cleanup(func() {
		text, _ := os.ReadFile(filepath.Join(dir, journalName))
		if s := read(text); s.market != nil {
			for id := range procs.Strays("i-"+s.market.Prefix+"-", nil) {
				procs.KillAll(id, 0, "")
			}
		}
	})
	return dir
}

func (s *serving) rent(key string, offer market.OfferID) (engine.Instance, error) {
	list, err := s.Launch(s.t.Context(), engine.Request{Key: key, Offer: offer})
	if err != nil {
		return engine.Instance{}, err
	}
	return list[0], nil
}

func (s *serving) listed(id string) (engine.Instance, bool) {
	s.t.Helper()
	list, err := s.List(s.t.Context())
	must.Do(s.t, err)
	for _, i := range list {
		if i.ID == id {
			return i, true
		}
	}
	return engine.Instance{}, false
}

// written returns a journal with launches, ends and a voided launch, and its records.
func written(t *testing.T) ([]byte, []record) {
	t.Helper()
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	m := func(n int, state engine.State) *machine {
		return &machine{
			Instance: engine.Instance{ID: fmt.Sprintf("i-abc123-%d", n), Key: fmt.Sprintf("job.%d", n), Offer: always, State: state, Launched: at.Add(time.Duration(n) * time.Second)},
			Wall:     at,
		}
	}
	trace := testTrace(1)
	records := []record{
		{Opened: &opened{Trace: trace, At: at, Prefix: "abc123"}},
		{Machine: m(1, engine.Running)}, {Machine: m(2, engine.Running)}, {Machine: m(1, engine.Ended)},
		{Machine: m(3, engine.Running)}, {Void: "i-abc123-3"}, {Machine: m(4, engine.Running)}, {Machine: m(2, engine.Ended)}, {Machine: m(5, engine.Running)}, {Machine: m(6, engine.Running)},
	}
	var text []byte
	for _, r := range records {
		line, err := encode(r)
		must.Do(t, err)
		text = append(text, line...)
	}
	return text, records
}

// told returns the content of a story in a comparable form.
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

// slowRead is the slow reference for read: the content of complete records.
func slowRead(records []record) string {
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

func TestRead_StopsAtTear(t *testing.T) {
	t.Parallel()
	text, records := written(t)
	for cut := range len(text) + 1 {
		if near := text[max(0, cut-2):min(cut+2, len(text))]; cut%lane.Pick(7, 1) > 0 && !bytes.Contains(near, []byte("\n")) {
			continue // each byte next to a line's end, and some of the others
		}
		whole := bytes.Count(text[:cut], []byte("\n"))
		s := read(text[:cut])
		if got, want := told(s), slowRead(records[:whole]); got != want {
			t.Fatalf("torn at %d of %d:\n%s\nwant\n%s", cut, len(text), got, want)
		}
		torn := cut > 0 && text[cut-1] != '\n'
		if s.lines != whole || s.tail != torn || (s.damaged > 0) != torn {
			t.Fatalf("torn at %d: %d whole lines, %d damaged, torn: %v; want %d, torn: %v", cut, s.lines, s.damaged, s.tail, whole, torn)
		}
	}
}

func TestRead_DamagedByteHidesOnlyItsLine(t *testing.T) {
	t.Parallel()
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
		if at%lane.Pick(5, 1) > 0 && text[at] != '\n' {
			continue
		}
		for _, bit := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(text)
			bad[at] ^= bit
			kept := append(append([]record{}, records[:line]...), records[line+1:]...)
			if text[at] == '\n' && line+1 < len(records) { // two lines have become one
				kept = append(append([]record{}, records[:line]...), records[line+2:]...)
			}
			s := read(bad)
			if got, want := told(s), slowRead(kept); got != want {
				t.Fatalf("byte %d of line %d changed by %#x:\n%s\nwant\n%s", at, line, bit, got, want)
			}
			if s.damaged == 0 {
				t.Fatalf("byte %d of line %d changed by %#x: not found", at, line, bit)
			}
		}
	}
}

func TestLoad_AfterDamageReusesNoIDAndKeepsJournal(t *testing.T) {
	t.Parallel()
	text, _ := written(t)
	// Each newline, the end of the last line, and a byte in each line.
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
		dir := fast.Dir(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, journalName), bad, 0o600))
		at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		d := &daemon{opts: Options{Dir: dir, Trace: testTrace(1), Log: slog.New(slog.DiscardHandler), now: func() time.Time { return at }}, keys: map[string][]*machine{}}
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
