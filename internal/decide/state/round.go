package state

import (
	"time"

	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/market"
)

// RoundProposed: a round that started after event Base proposes moves. Again is the next time at which the passing
// of time alone could change its result; zero: never.
type RoundProposed struct {
	Base   uint64         `json:"base"`
	Groups []assign.Group `json:"groups,omitempty"`
	Again  time.Time      `json:"again,omitzero"`
}

// Kind implements Body.
func (RoundProposed) Kind() string { return "round_proposed" }

// Facts about rounds.
type (
	// JobPlaced: a round moves a job. If Offer is set, seats of Offer are reserved for it until By; if Offer is
	// empty, it leaves its seat. No round moves it again before Rests.
	JobPlaced struct {
		Job   string         `json:"job"`
		Offer market.OfferID `json:"offer,omitempty"`
		Nodes int            `json:"nodes,omitempty"`
		By    time.Time      `json:"by,omitzero"`
		Rests time.Time      `json:"rests,omitzero"`
	}
	// JobPinned: the guard gives the job the machine that it requests. No round moves the job before it has saved
	// there.
	JobPinned struct {
		Job string `json:"job"`
	}
)

// Fact implements Fact.
func (JobPlaced) Fact() string { return "job_placed" }

// Fact implements Fact.
func (JobPinned) Fact() string { return "job_pinned" }

func init() {
	reads[JobPlaced]()
	reads[JobPinned]()
}

// placing is the decision of the newest round that moved the job.
type placing struct {
	// epoch of the job at that time; later requests are independent of it
	Epoch int            `json:"epoch,omitempty"`
	Offer market.OfferID `json:"offer,omitempty"`
	Nodes int            `json:"nodes,omitempty"`
	By    time.Time      `json:"by,omitzero"`
	Rests time.Time      `json:"rests,omitzero"`
}

// pin is set by the guard on the request with that epoch.
type pin struct {
	Epoch int       `json:"epoch,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

func (s *State) applyRound(f Fact) {
	switch f := f.(type) {
	case JobPlaced:
		r := s.touched(f.Job).runs()
		r.Placing = placing{Epoch: r.Epoch, Offer: f.Offer, Nodes: f.Nodes, By: f.By,
			Rests: later(r.Placing.Rests, f.Rests)} // a placement that no move made must not shorten what one set
	case JobPinned:
		r := s.touched(f.Job).runs()
		r.Pin = pin{Epoch: r.Epoch, Since: s.now}
	}
}

// Kept returns the offer and number of seats reserved for the job at t, or "". The job leaves its machine for them,
// or others are still leaving them.
func (j *Job) Kept(t time.Time) (offer market.OfferID, nodes int) {
	p := &j.run().Placing
	if p.Offer == "" || p.Epoch != j.Epoch() || j.r.State.Over() || j.r.State == Paused || !t.Before(p.By) {
		return "", 0
	}
	return p.Offer, p.Nodes
}

// Rests is the time until which no round or consolidation moves the job; zero: none ever did.
func (j *Job) Rests() time.Time { return j.run().Placing.Rests }

// Pinned reports whether the guard chose the job's machine and the job has not saved there yet.
func (j *Job) Pinned() bool {
	p, a := &j.run().Pin, j.Attempt()
	if p.Since.IsZero() || p.Epoch != j.Epoch() {
		return false
	}
	return a == nil || a.Epoch() != p.Epoch || a.Live() && !a.LastSave().After(p.Since)
}
