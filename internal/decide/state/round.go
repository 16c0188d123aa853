package state

import (
	"time"

	"scrimp/internal/decide/plan/round"
	"scrimp/internal/market"
)

// RoundProposed: a round that began after the event Base proposes moves. Again is when time alone
// could change what it found; zero: never.
type RoundProposed struct {
	Base   uint64        `json:"base"`
	Groups []round.Group `json:"groups,omitempty"`
	Again  time.Time     `json:"again,omitzero"`
}

// Kind implements Body.
func (RoundProposed) Kind() string { return "round_proposed" }

// Facts about rounds.
type (
	// JobPlaced: a round moves a job: to seats of Offer, which are kept for it until By, or, where
	// that is "", out of its seat. No round moves it again before Rests.
	JobPlaced struct {
		Job   string         `json:"job"`
		Offer market.OfferID `json:"offer,omitempty"`
		Nodes int            `json:"nodes,omitempty"`
		By    time.Time      `json:"by,omitzero"`
		Rests time.Time      `json:"rests,omitzero"`
	}
	// JobPinned: the guard has taken the machine that the job asks for. No round moves it
	// before it has saved there.
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

// placing is what the newest round that moved a job has decided about it.
type placing struct {
	Epoch int            `json:"epoch,omitempty"` // of the job then: what it asked for since is another matter
	Offer market.OfferID `json:"offer,omitempty"`
	Nodes int            `json:"nodes,omitempty"`
	By    time.Time      `json:"by,omitzero"`
	Rests time.Time      `json:"rests,omitzero"`
}

// pin is that of the guard, on the request of that epoch.
type pin struct {
	Epoch int       `json:"epoch,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

func (s *State) applyRound(f Fact) {
	switch f := f.(type) {
	case JobPlaced:
		r := s.touched(f.Job).runs()
		r.Placing = placing{Epoch: r.Epoch, Offer: f.Offer, Nodes: f.Nodes, By: f.By, Rests: f.Rests}
	case JobPinned:
		r := s.touched(f.Job).runs()
		r.Pin = pin{Epoch: r.Epoch, Since: s.now}
	}
}

// Kept is the offer of which seats are kept for the job at t, and how many; "": of none. It
// leaves its machine for them, or they are still being left for it.
func (j *Job) Kept(t time.Time) (offer market.OfferID, nodes int) {
	p := &j.run().Placing
	if p.Offer == "" || p.Epoch != j.Epoch() || j.r.State.Over() || j.r.State == Paused || !t.Before(p.By) {
		return "", 0
	}
	return p.Offer, p.Nodes
}

// Rests is until when no round moves the job; zero: none ever did.
func (j *Job) Rests() time.Time { return j.run().Placing.Rests }

// Pinned reports whether the guard has taken the machine of the job, and it has not saved there yet.
func (j *Job) Pinned() bool {
	p, a := &j.run().Pin, j.Attempt()
	if p.Since.IsZero() || p.Epoch != j.Epoch() {
		return false
	}
	return a == nil || a.Epoch() != p.Epoch || a.Live() && !a.LastSave().After(p.Since)
}
