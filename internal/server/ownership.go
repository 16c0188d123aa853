package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// undecidedMachines lists the machines whose ownership is undecided; an empty instance selects all of them.
func (s *Server) undecidedMachines(instance string) []api.Undecided {
	clock, now, list := s.control.Clock(), s.control.Now(), []api.Undecided{}
	s.control.Read(func(m *core.Machine) {
		for _, w := range m.State().AllUndecided() {
			if instance != "" && instance != w.Instance {
				continue
			}
			u := api.Undecided{Instance: w.Instance, Offer: string(w.Offer), Job: w.Job, Ended: true}
			if i := m.State().Instance(w.Instance); i != nil && i.Disowned() {
				cost := i.Cost(now)
				u.Ended, u.Since, u.Cost, u.Currency = false, clock.ToWall(i.From()), &cost, i.Machine().Currency
			}
			list = append(list, u)
		}
	})
	return list
}

// beginLimit bounds how long a request waits for the first event of a starting server.
const beginLimit = 10 * time.Second

// ownershipKnown waits until the server knows whether machines await a decision. If that takes too long, it answers 503
// and returns false.
func (s *Server) ownershipKnown(w http.ResponseWriter, r *http.Request) bool {
	limited, cancel := context.WithTimeout(r.Context(), beginLimit)
	defer cancel()
	select {
	case <-s.control.Begun():
		return true
	case <-limited.Done():
		reply.Problem(w, http.StatusServiceUnavailable, "this server begins", "ask again in a second", nil)
		return false
	}
}

func (s *Server) getUndecided(w http.ResponseWriter, r *http.Request) {
	if s.ownershipKnown(w, r) {
		reply.JSON(w, s.undecidedMachines(""))
	}
}

// postDecide adopts or releases machines of an earlier incarnation.
func (s *Server) postDecide(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Ownership](w, r)
	if !ok || !s.ownershipKnown(w, r) {
		return
	}
	list := s.undecidedMachines(b.Instance)
	switch {
	case len(list) == 0 && b.Instance != "":
		reply.FieldProblem(w, http.StatusNotFound, "instance", fmt.Sprintf("machine %s does not wait for a decision",
			b.Instance),
			"scrimp adopt lists those that do", nil)
		return
	case len(list) == 0:
		reply.JSON(w, list)
		return
	}
	auth.CallOf(r).Act.Detail = "release"
	if b.Adopt {
		auth.CallOf(r).Act.Detail = "adopt"
	}
	e := s.gate.Event(r, core.OwnershipDecided{Instance: b.Instance, Adopt: b.Adopt})
	if err := s.gate.Propose(r, b.Instance, e); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	reply.JSON(w, list)
}
