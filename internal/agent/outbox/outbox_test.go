package outbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "scrimp/internal/test/sameseed"
	"scrimp/internal/wire/api"
)

func TestBox_SurvivesCrashAndStaysSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, err := Open(dir, "j.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Add(api.Message{At: epoch, Started: &api.Started{}}); err != nil {
		t.Fatal(err)
	}
	for i := range 10000 { // hours without a server
		o.Step(epoch, api.Step{Step: int64(i)}, nil)
		o.Usage(epoch, api.Usage{DiskRead: 1})
		o.Next()
	}
	if n := len(o.Next()); n != 3 {
		t.Errorf("%d messages wait, want the start, one step and one measurement", n)
	}
	if err := o.Add(api.Message{At: epoch, Ended: &api.Ended{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Ack(1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Ack(99, 0); err == nil {
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
	_, _ = f.WriteString(`{"message":{"seq":77,`) // torn by a crash
	_ = f.Close()
	o, err = Open(dir, "j.1")
	if err != nil {
		t.Fatal(err)
	}
	after := o.Next()
	if len(after) != len(before) || after[0].Seq != 2 || after[len(after)-1].Ended == nil || after[len(after)-2].Usage.DiskRead != 9999 {
		t.Errorf("after the crash %+v, before %+v", after, before)
	}
	_ = o.Close()
	if o, err = Open(dir, "j.2"); err != nil || len(o.Next()) != 0 || o.seq != 0 {
		t.Errorf("another attempt begins with %d messages, number %d (%v)", len(o.queue), o.seq, err)
	}
	_ = o.Close()
}

// Open reads a torn or damaged file as far as possible, and gives later messages new numbers.
func FuzzOutbox(f *testing.F) {
	for _, text := range []string{`{"attempt":"j.1"}` + "\n" + `{"message":{"seq":1,"step":{"step":3}}}` + "\n" + `{"ack":1}`,
		`{"attempt":"j.1"}` + "\n" + `{"value":{"value":1}}` + "\n" + `{"message":{"seq":9223372036854775807,"step":{"values":[{}]}}}`,
		`{"attempt":"j.2"}`, "{", `{"attempt":"j.1"}` + "\n" + `{"ack":9223372036854775807}`, "\x00\n\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "outbox.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := Open(dir, "j.1")
		if err != nil {
			return
		}
		defer o.Close()
		before := o.Next()
		_ = o.Add(api.Message{Ended: &api.Ended{Reason: api.EndFailed}})
		last := o.queue[len(o.queue)-1]
		for _, m := range before {
			if m.Seq == last.Seq {
				t.Errorf("two messages have the number %d", m.Seq)
			}
		}
	})
}

func TestBox_SendsWithFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, err := Open(dir, "j.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Add(api.Message{At: epoch, Started: &api.Started{}}); err != nil {
		t.Fatal(err)
	}
	// The disk becomes full after a part of a line.
	if _, err := o.file.WriteString(`{"message":{"se`); err != nil {
		t.Fatal(err)
	}
	good := o.file
	if o.file, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Skipf("skipped: %v", err)
	}
	if err := o.Add(api.Message{At: epoch, Saved: &api.Saved{Manifest: "a"}}); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("a full disk: %v", err)
	}
	if n := len(o.Next()); n != 2 {
		t.Errorf("%d messages to send, want 2", n)
	}
	_ = o.file.Close()
	o.file = good // the disk has room again
	for _, name := range []string{"b", "c"} {
		if err := o.Add(api.Message{At: epoch, Saved: &api.Saved{Manifest: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if o, err = Open(dir, "j.1"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	var got []string
	for _, m := range o.Next() {
		if m.Saved != nil {
			got = append(got, fmt.Sprintf("%d%s", m.Seq, m.Saved.Manifest))
		}
	}
	if s := strings.Join(got, " "); s != "2a 3b 4c" {
		t.Errorf("after a restart %s wait, want 2a 3b 4c", s)
	}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
