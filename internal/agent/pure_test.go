package agent

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/api"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func TestFolderIsCapturedOnceItRests(t *testing.T) {
	type look struct {
		at           float64
		files, aside uint64
		capture      bool
	}
	for _, c := range []struct {
		name  string
		looks []look
	}{
		{"a save that rests for a second", []look{{0, 0, 0, false}, {1, 1, 0, false}, {1.5, 1, 0, false}, {2, 1, 0, true}}},
		{"a save that goes on", []look{{0, 0, 0, false}, {1, 1, 0, false}, {1.9, 2, 0, false}, {2.8, 3, 0, false}, {3.8, 3, 0, true}}},
		{"a file that is still written aside", []look{{0, 0, 0, false}, {1, 1, 5, false}, {1.9, 1, 6, false}, {2.5, 1, 7, false}, {3.5, 1, 7, true}}},
		{"a log that is written aside without end", []look{{0, 0, 0, false}, {1, 1, 5, false}, {15, 1, 5, true}}},
		{"the same content again", []look{{0, 0, 0, false}, {1, 1, 0, false}, {2, 1, 0, true}, {9, 1, 0, false}, {10, 2, 0, false}, {11, 2, 0, true}, {12, 1, 0, false}, {13, 1, 0, true}}},
		{"a program that saves all the time", []look{{0, 0, 0, false}, {0.9, 1, 0, false}, {1.8, 2, 0, false}, {10, 3, 0, false}, {20.5, 4, 0, true}, {21, 5, 0, false}, {40, 6, 0, false}, {41, 7, 0, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &watch{quiet: time.Second}
			for _, l := range c.looks {
				v := view{files: l.files, aside: l.aside, any: l.files != 0}
				if got := w.look(at(l.at), v); got != l.capture {
					t.Fatalf("at %gs: capture %v, want %v", l.at, got, l.capture)
				}
				if l.capture {
					w.took(at(l.at), l.files)
				}
			}
		})
	}
}

func TestWorkIsCountedUpToTheBeginningOfTheSave(t *testing.T) {
	w := &watch{quiet: time.Second}
	w.look(at(0), view{})
	w.look(at(1), view{aside: 1})            // it begins to write aside
	w.look(at(2), view{aside: 2})            // and goes on
	w.look(at(3), view{files: 1, any: true}) // renamed
	if !w.look(at(4), view{files: 1, any: true}) {
		t.Fatal("not captured")
	}
	if !w.began.Equal(at(0)) {
		t.Errorf("work is counted up to %v, want the last look before the save began", w.began)
	}
}

func TestOnlyWholeCheckpointsAreTakenAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		e    ending
		want bool
	}{
		{"nothing new", ending{status: 0}, false},
		{"exit 0", ending{changed: true, last: at(10), ended: at(10)}, true},
		{"crash in a save", ending{changed: true, status: 1, last: at(9.9), ended: at(10)}, false},
		{"crash long after a save", ending{changed: true, status: 1, last: at(8), ended: at(10)}, true},
		{"crash after an unannounced write of a program that announces", ending{changed: true, status: 1, last: at(8), ended: at(10), told: true}, false},
		{"saved after our signal", ending{changed: true, asked: at(5), last: at(9.9), ended: at(10)}, true},
		{"saved after our signal, exit 143", ending{changed: true, asked: at(5), status: 143, last: at(9.9), ended: at(10)}, true},
		{"the shell died of our signal, its child saved", ending{changed: true, asked: at(5), status: 143, signaled: true, last: at(8), ended: at(8.1)}, true},
		{"no handler, in the middle of a save", ending{changed: true, asked: at(5), status: 143, signaled: true, last: at(4.999), ended: at(5.001)}, false},
		{"no handler, at rest", ending{changed: true, asked: at(5), status: 143, signaled: true, last: at(3), ended: at(5.001)}, true},
		{"overstayed in a save", ending{changed: true, asked: at(5), killed: true, status: 137, signaled: true, last: at(9.9), ended: at(10)}, false},
		{"overstayed at rest", ending{changed: true, asked: at(5), killed: true, status: 137, signaled: true, last: at(7), ended: at(10)}, true},
	} {
		c.e.quiet = time.Second
		if got := c.e.whole(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestStopIsPlannedWithinTheNotice(t *testing.T) {
	for _, c := range []struct {
		left, lead, upload, signal, kill float64
	}{
		{120, 0, 20, 0, 100},
		{120, 90, 20, 30, 100},
		{30, 90, 5, 0, 25},
		{10, 0, 20, 0, 5},
		{3, 0, 1, 0, 3},
		{-5, 0, 1, 0, 2},
		{120, 10, 20, 0, 100}, // signalled before it is killed
	} {
		seconds := func(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }
		p := planStop(epoch, at(c.left), seconds(c.lead), seconds(c.upload))
		if !p.signal.Equal(at(c.signal)) || !p.kill.Equal(at(c.kill)) {
			t.Errorf("%+v: signal after %v, kill after %v", c, p.signal.Sub(epoch), p.kill.Sub(epoch))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		left := time.Duration(rapid.Int64Range(-10, 600).Draw(t, "left")) * time.Second
		p := planStop(epoch, epoch.Add(left), time.Duration(rapid.IntRange(0, 300).Draw(t, "lead"))*time.Second, time.Duration(rapid.IntRange(0, 900).Draw(t, "upload"))*time.Second)
		if p.signal.After(p.kill) || p.signal.Before(epoch) {
			t.Fatalf("a program is signalled before it is killed: %+v", p)
		}
		if p.kill.After(epoch.Add(max(left, late))) {
			t.Fatalf("a program never stays longer than the machine: %+v", p)
		}
	})
}

func TestSaveIsDue(t *testing.T) {
	for _, c := range []struct {
		since, interval time.Duration
		asked, stopping bool
		want            bool
	}{
		{time.Minute, 0, false, false, false},
		{59 * time.Second, time.Minute, false, false, false},
		{time.Minute, time.Minute, false, false, true},
		{0, 0, true, false, true},
		{0, time.Hour, false, true, true},
	} {
		if got := due(epoch.Add(c.since), epoch, c.interval, c.asked, c.stopping); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestSilence(t *testing.T) {
	look := func(s *silence, from, to float64) (due float64) {
		for x := from; x <= to; x++ {
			if s.due(at(x)) {
				return x
			}
		}
		return -1
	}
	t.Run("a server that is away", func(t *testing.T) {
		s := &silence{limit: time.Minute, answered: at(0)}
		if got := look(s, 0, 100); got != 61 {
			t.Errorf("given up after %g s, want 61", got)
		}
	})
	t.Run("a laptop that slept tries again first", func(t *testing.T) {
		s := &silence{limit: time.Minute, answered: at(0)}
		look(s, 0, 10)
		if got := look(s, 7200, 7300); got != 7220 {
			t.Errorf("given up at %g s, want 20 s after waking", got)
		}
	})
	t.Run("and stays where it is answered", func(t *testing.T) {
		s := &silence{limit: time.Minute, answered: at(0)}
		look(s, 0, 10)
		look(s, 7200, 7205)
		s.answer(at(7205))
		if got := look(s, 7206, 7260); got != -1 {
			t.Errorf("given up at %g s", got)
		}
	})
	t.Run("a clock that is set back", func(t *testing.T) {
		s := &silence{limit: time.Minute, answered: at(7200)}
		if got := look(s, 0, 100); got != 61 {
			t.Errorf("given up after %g s, want a minute of the new clock", got)
		}
	})
	t.Run("no limit", func(t *testing.T) {
		if got := look(&silence{answered: at(0)}, 0, 1000); got != -1 {
			t.Errorf("given up at %g s", got)
		}
	})
}

func TestMaskedLogIsTheSameHoweverItIsCut(t *testing.T) {
	secrets := map[string]string{"A": "hunter2!", "B": "hunt", "C": "rrrr", "PEM": "-----BEGIN KEY-----\nabcdefghijklmnop\n-----END KEY-----\n"}
	m := newMasker(secrets)
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"hunter2!", "hunter", "hunt", "er2!", "rrr", "r", "abcdefghijklmnop", "plain text\n", "*"})).Draw(rt, "parts")
		text := []byte(strings.Join(parts, ""))
		want := m.mask(text)
		path := filepath.Join(dir, "log")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			rt.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		// The shipper's own cut at a point, as the file grows: what it would send from each offset.
		s := &shipper{path: path, mask: m}
		offset := int64(rapid.IntRange(0, len(text)).Draw(rt, "offset"))
		got, _, err := s.chunk(f, offset, true)
		if err != nil || !bytes.Equal(got, want[offset:]) {
			rt.Fatalf("from %d: %q, want %q (%v)", offset, got, want[offset:], err)
		}
		// A prefix of the output, not final: no byte goes out that the rest would have masked.
		cut := rapid.IntRange(0, len(text)).Draw(rt, "cut")
		if err := os.Truncate(path, int64(cut)); err != nil {
			rt.Fatal(err)
		}
		got, _, err = s.chunk(f, 0, false)
		if err != nil || !bytes.HasPrefix(want, got) {
			rt.Fatalf("of the first %d: %q goes out, want a part of %q (%v)", cut, got, want, err)
		}
	})
}

func TestMaskHidesTheFormsOfASecret(t *testing.T) {
	m := newMasker(map[string]string{"K": "a b\"c/d", "short": "ab", "nl": "token-value\n"})
	got := string(m.mask([]byte(`a b"c/d|a b\"c/d|a+b%22c%2Fd|ab|token-value|`)))
	if want := `*******|********|***********|ab|***********|`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTailReadsEveryLineOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	tl := &tail{path: path, cr: true}
	var got []string
	take := func(last bool) {
		t.Helper()
		if err := tl.read(last, func(b []byte) { got = append(got, string(b)) }); err != nil {
			t.Fatal(err)
		}
	}
	take(false)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(s string) {
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntw")
	take(false)
	write("o\rthree\r\n")
	take(false)
	write(strings.Repeat("long", longestLine) + "\nfour\nrest")
	take(false)
	take(true)
	if want := []string{"one", "two", "three", "four", "rest"}; !slices.Equal(got, want) {
		t.Errorf("lines %.40q, want %q", got, want)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	write("again\n")
	take(false)
	if got[len(got)-1] != "again" {
		t.Errorf("after a truncation: %q", got[5:])
	}
	_ = f.Close()
}

func TestOutboxSurvivesACrashAndHoldsNoMoreThanItMust(t *testing.T) {
	dir := t.TempDir()
	o, err := openOutbox(dir, "j.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Add(api.Message{At: epoch, Started: &api.Started{}}); err != nil {
		t.Fatal(err)
	}
	for i := range 10000 { // hours without a server
		o.Step(epoch, api.Step{Step: int64(i)})
		o.Usage(epoch, api.Usage{DiskRead: 1})
		o.Next()
	}
	if n := len(o.Next()); n != 3 {
		t.Errorf("%d messages wait, want the start, one step and one measurement", n)
	}
	if err := o.Add(api.Message{At: epoch, Ended: &api.Ended{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Ack(1); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Ack(99); err == nil {
		t.Error("an acknowledgement of what was never written is no error")
	}
	before := o.Next()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "outbox.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"message":{"seq":77,`) // torn by the crash
	_ = f.Close()
	o, err = openOutbox(dir, "j.1")
	if err != nil {
		t.Fatal(err)
	}
	after := o.Next()
	if len(after) != len(before) || after[0].Seq != 2 || after[len(after)-1].Ended == nil || after[len(after)-2].Usage.DiskRead != 9999 {
		t.Errorf("after the crash %+v, before %+v", after, before)
	}
	_ = o.Close()
	if o, err = openOutbox(dir, "j.2"); err != nil || len(o.Next()) != 0 || o.seq != 0 {
		t.Errorf("another attempt begins with %d messages, number %d (%v)", len(o.queue), o.seq, err)
	}
	_ = o.Close()
}

func TestRetryGrowsAndEndsWhereItIsUseless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tries := time.Now(), 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := retry(ctx, func(context.Context) error { tries++; return fmt.Errorf("away") })
		if err == nil || time.Since(start) != time.Minute || tries < 10 || tries > 20 {
			t.Errorf("%d tries in %v: %v", tries, time.Since(start), err)
		}
		tries = 0
		if err := retry(t.Context(), func(context.Context) error { tries++; return ErrFenced }); err == nil || tries != 1 {
			t.Errorf("a refused token was tried %d times", tries)
		}
	})
}

// A saver in a bubble: one upload at a time, the newest wins, nothing is lost.
func TestNewestCaptureWins(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k := &memKeeper{}
		s := newSaver(dir, slowVault{k, 10 * time.Second}, time.Second, discard(), time.Now)
		var reported []int64
		s.saved = func(x api.Saved) { reported = append(reported, x.Step) }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.upload(ctx) }()
		for step := range int64(5) {
			if err := os.WriteFile(filepath.Join(dir, "state"), fmt.Append(nil, step), 0o600); err != nil {
				t.Error(err)
			}
			if err := s.Take(ctx, meta{Step: step, Captured: time.Now()}, true); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if err := s.Flush(ctx); err != nil {
			t.Error(err)
		}
		if !slices.Equal(reported, []int64{0, 4}) || !s.Holds() {
			t.Errorf("published %v, want the first and the newest", reported)
		}
		if e := s.Expected(); e != 16*time.Second {
			t.Errorf("an upload is expected to take %v after one of 10 s", e)
		}
		cancel()
		<-done
	})
}

type slowVault struct {
	*memKeeper
	span time.Duration
}

func (v slowVault) Publish(ctx context.Context, c capture, m meta) (published, error) {
	if !sleep(ctx, v.span) {
		return published{}, ctx.Err()
	}
	return v.memKeeper.Publish(ctx, c, m)
}

func FuzzProgress(f *testing.F) {
	f.Add([]byte(`{"step":12,"loss":NaN,"metrics":{"acc":-Infinity,"x":"1e3"}}`))
	f.Add([]byte(`{"NaN":"\"NaN","a\\":Infinity}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _, err := parseProgress(b)
		if err != nil {
			return
		}
		for name := range s.Metrics {
			if v := s.Metrics[name]; v-v != 0 {
				t.Errorf("metric %q is %v and not marked as broken", name, v)
			}
		}
		if s.Step < 0 || s.Total < 0 {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzTailAgainstSplit(f *testing.F) {
	f.Add("a\nb\r\n\nc", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 1000 {
			t.Skip()
		}
		chance := rand.New(rand.NewPCG(seed, 0))
		tl := &tail{cr: true}
		var got []string
		for rest := []byte(text); len(rest) > 0; {
			n := 1 + chance.IntN(len(rest))
			tl.split(slices.Clone(rest[:n]), func(b []byte) { got = append(got, string(b)) })
			rest = rest[n:]
		}
		got = append(got, string(tl.rest))
		want := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
		got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
