package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

var update = flag.Bool("update", false, "rewrite the golden files, and the kept log where there is none")

// line is one event of a kept log with its facts and postings.
type line struct {
	Event    json.RawMessage  `json:"event"`
	Facts    json.RawMessage  `json:"facts,omitempty"`
	Postings []ledger.Posting `json:"postings,omitempty"`
}

const keptLog = "testdata/log-2.jsonl"

// TestReplay_KeptLogGivesSameState applies recorded facts, independently of today's policy, and compares the hash of the state and
// the outcome of the jobs.
func TestReplay_KeptLogGivesSameState(t *testing.T) {
	if _, err := os.Stat(keptLog); *update && err != nil { // an existing log is never overwritten
		w := Run(6, FaultNone)
		var b bytes.Buffer
		for _, l := range w.log {
			text, err := json.Marshal(line{l.event, l.facts, l.postings})
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
	s := state.New()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		r, err := (&logged{event: l.Event, facts: l.Facts}).back()
		if err != nil {
			t.Fatal(err)
		}
		s.Replay(s.Seq()+1, r.event, r.facts, l.Postings)
	}
	hash, err := s.Hash()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("state %x\n", hash)
	for _, j := range s.Jobs() {
		got += fmt.Sprintf("%s %s %s %d attempts %v\n", j.ID(), j.State(), j.Why(), len(j.Attempts()), j.Settled())
	}
	want, err := os.ReadFile("testdata/log-2.golden")
	if os.IsNotExist(err) && *update {
		want, err = []byte(got), os.WriteFile("testdata/log-2.golden", []byte(got), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the log replays to\n%swant\n%s", got, want)
	}
}
