package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"scrimp/internal/core"
)

var update = flag.Bool("update", false, "write the log of this release; an older log is never rewritten")

// line is one event of a kept log, with what replay must lead to.
type line struct {
	Event     json.RawMessage `json:"event"`
	Decisions json.RawMessage `json:"decisions"`
	Head      string          `json:"head"` // of the chain of postings after the event
}

const keptLog = "testdata/log-1.jsonl"

// TestTheLogOfEachReleaseReplaysForEver applies recorded decisions, whatever
// the policy of today would decide, and compares jobs, postings and balances.
func TestTheLogOfEachReleaseReplaysForEver(t *testing.T) {
	if _, err := os.Stat(keptLog); *update && err != nil { // one that is there is never written again
		w := Run(6, PlantNone)
		var b bytes.Buffer
		m := core.New()
		for _, l := range w.log {
			e, d := decode(t, l.event, l.decisions)
			m.Replay(e, d)
			text, err := json.Marshal(line{l.event, l.decisions, fmt.Sprintf("%x", m.Head("default"))})
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(text, '\n'))
		}
		if err := os.WriteFile(keptLog, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(keptLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m := core.New()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		e, d := decode(t, l.Event, l.Decisions)
		m.Replay(e, d)
		if head := fmt.Sprintf("%x", m.Head("default")); head != l.Head {
			t.Fatalf("after event %d (%s) the postings are not those of the release that wrote the log", n, e.Body.Kind())
		}
	}
	jobs := ""
	for j := range m.Jobs() {
		jobs += fmt.Sprintf("%s %s %s %d attempts %v\n", j.ID, j.State, j.Why, len(j.Attempts), j.Settled)
	}
	want, err := os.ReadFile("testdata/log-1.golden")
	if os.IsNotExist(err) && *update {
		want, err = []byte(jobs), os.WriteFile("testdata/log-1.golden", []byte(jobs), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if jobs != string(want) {
		t.Errorf("the log replays to\n%swant\n%s", jobs, want)
	}
}

func decode(t *testing.T, event, decisions json.RawMessage) (core.Event, []core.Decision) {
	t.Helper()
	var e core.Event
	var d []core.Decision
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(decisions, &d); err != nil {
		t.Fatal(err)
	}
	return e, d
}
