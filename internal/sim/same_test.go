package sim

import (
	"testing"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// shadow follows a life by its log alone.
type shadow struct {
	t    *testing.T
	s    *state.State // from the beginning of the log
	snap *state.State // from the newest snapshot
	n    int
}

// follow applies a record and compares three states: the machine's own, that of the whole log, and that of a snapshot
// and the rest of the log.
func (h *shadow) follow(seed uint64, m *core.Machine, e core.Event, out core.Outcome) {
	if out.Nothing {
		return
	}
	text, err := state.EncodeFacts(out.Facts)
	must.Do(h.t, err)
	facts, err := state.DecodeFacts(text)
	must.Do(h.t, err)
	h.s.Replay(m.Seq(), e, facts, out.Postings)
	h.snap.Replay(m.Seq(), e, facts, out.Postings)
	live, log, later := hash(h.t, m.State()), hash(h.t, h.s), hash(h.t, h.snap)
	if live != log || live != later {
		h.t.Fatalf("seed %d, event %d (%s): the state is %x, by the log %x, by a snapshot %x", seed, m.Seq(), e.Body.Kind(), live, log, later)
	}
	if h.n++; h.n%17 == 0 {
		b, err := m.Snapshot()
		must.Do(h.t, err)
		if h.snap, err = state.Restore(b); err != nil {
			h.t.Fatal(err)
		}
	}
}

func hash(t *testing.T, s *state.State) ledger.Hash {
	t.Helper()
	h, err := s.Hash()
	must.Do(t, err)
	return h
}

// At every event of a life the state is the same, whether the rules made it, the log's facts alone, or a snapshot and
// the facts after it.
func TestState_EqualsItsLogAtEveryEvent(t *testing.T) {
	events := 0
	for seed := range uint64(lane.Pick(2, 50)) {
		w := drawn(seed, FaultNone)
		w.faults.Crash = 0 // only durable steps happen
		h := &shadow{t: t, s: state.New(), snap: state.New()}
		w.watch = func(e core.Event, out core.Outcome) { h.follow(seed, w.m, e, out) }
		w.live()
		events += h.n
	}
	if events < lane.Pick(200, 5_000) {
		t.Errorf("only %d events were followed", events)
	}
}
