package state_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A copy of a job stays as it was, whatever happens meanwhile.
func TestJobCopy_IgnoresLaterEvents(t *testing.T) {
	s, seq, begin := state.New(), uint64(0), time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration, b state.Body, postings []ledger.Posting, facts ...state.Fact) {
		seq++
		s.Replay(seq, state.Event{At: begin.Add(after), Tenant: "default", Body: b}, facts, postings)
	}
	quote := func(after time.Duration, rate money.Rate) state.MarketSeen {
		return state.MarketSeen{
			Offers: []market.Offer{{ID: "o", Provider: "p", Capacity: market.Spot, Speed: 1}},
			Quotes: []market.Quote{{Offer: "o", At: begin.Add(after), Rate: rate, Priced: true, Available: true}},
		}
	}
	at(0, quote(0, 1e12), nil)
	at(0, state.JobSubmitted{Job: "j", Terms: state.Terms{Name: "j"}}, nil, state.JobQueued{Job: "j"})
	machine := state.Machine{Offer: "o", Provider: "p", Capacity: market.Spot, Speed: 1}
	at(0, state.Tick{}, nil, state.AllocationRequested{Job: "j", Nodes: 1, Machine: machine, Rate: 1e12})
	asked := s.Job("j").Copy()
	at(0, state.LaunchDone{Launch: "j.1", Instance: "i", Offer: "o", Rate: 1e12, From: begin}, nil,
		state.AllocationGranted{Allocation: "j.1", Instance: "i"}, state.AttemptBegan{Attempt: "j.1"})
	at(time.Minute, state.AttemptStarted{Attempt: "j.1", Message: 1}, nil, state.TaskStarted{Attempt: "j.1"})
	runs := s.Job("j").Copy()
	cost := runs.Spent(begin.Add(time.Hour))

	at(30*time.Minute, quote(30*time.Minute, 9e12), nil)
	at(40*time.Minute, state.Progressed{Attempt: "j.1", Message: 2, Step: 100}, nil)
	at(50*time.Minute, state.Tick{}, nil, state.InstanceReleased{Instance: "i", Why: "test"})
	posted := ledger.Posting{Amount: money.Picos(7), Phase: ledger.Accrued, To: ledger.Cost(ledger.Compute, ledger.Useful),
		Owner: ledger.Owner{Tenant: "default", Attempt: "j.1", Task: "j.1/0"}}
	at(time.Hour, state.Tick{}, []ledger.Posting{posted})

	if asked.Asked() == nil || asked.Asked().Phase() != state.Pending || len(asked.Attempts()) != 0 {
		t.Errorf("%+v: it asks for a machine", asked.Asked())
	}
	a := runs.Attempt()
	if a.Releasing() || a.Step() != 0 || a.Rate() != 1e12 || len(a.Uses()) != 0 || !a.Posted().IsZero() {
		t.Errorf("it is at step %d, at %v, releasing %v, %v", a.Step(), a.Rate(), a.Releasing(), a.Uses())
	}
	if now := runs.Spent(begin.Add(time.Hour)); now != cost || cost != money.Rate(1e12).Until(time.Hour) {
		t.Errorf("it cost %v by then, and now %v", cost, now)
	}
	live := s.Job("j").Attempt()
	if !live.Releasing() || live.Step() != 100 || live.Rate() != 9e12 || live.Posted() != money.Picos(7) {
		t.Error("nothing has changed meanwhile: the test shows nothing")
	}
	if runs.Same(s.Job("j"), false) || !s.Job("j").Same(s.Job("j").Copy(), true) {
		t.Error("a job is the same as its copy, until it changes")
	}
}
