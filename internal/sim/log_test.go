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
	"scrimp/internal/test/must"
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
			must.Do(t, err)
			b.Write(append(text, '\n'))
		}
		must.Do(t, os.WriteFile(keptLog, b.Bytes(), 0o644))
	}
	f, err := os.Open(keptLog)
	must.Do(t, err)
	defer func() { _ = f.Close() }()
	s := state.New()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		must.Do(t, json.Unmarshal(lines.Bytes(), &l))
		r, err := (&logged{event: l.Event, facts: l.Facts}).back()
		must.Do(t, err)
		s.Replay(s.Seq()+1, r.event, r.facts, l.Postings)
	}
	hash, err := s.Hash()
	must.Do(t, err)
	got := fmt.Sprintf("state %x\n", hash)
	for _, j := range s.Jobs() {
		got += fmt.Sprintf("%s %s %s %d attempts %v\n", j.ID(), j.State(), j.Why(), len(j.Attempts()), j.Settled())
	}
	want, err := os.ReadFile("testdata/log-2.golden")
	if os.IsNotExist(err) && *update {
		want, err = []byte(got), os.WriteFile("testdata/log-2.golden", []byte(got), 0o644)
	}
	must.Do(t, err)
	if got != string(want) {
		t.Errorf("the log replays to\n%swant\n%s", got, want)
	}
}
