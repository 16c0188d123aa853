package agent

import (
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/wire/api"
)

// A file of messages that a crash tore or a disk damaged is read as far as it goes, and what is said then has a number of its own.
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
		o, err := openOutbox(dir, "j.1")
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
