package server

import (
	"fmt"
	"net/http"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// undecided is how people see those of them that are asked for; "" is all.
func (s *Server) undecided(instance string) []api.Undecided {
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

func (s *Server) getUndecided(w http.ResponseWriter, _ *http.Request) { reply.JSON(w, s.undecided("")) }

// postDecide adopts or releases machines of an earlier incarnation.
func (s *Server) postDecide(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Ownership](w, r, 1<<16)
	if !ok {
		return
	}
	list := s.undecided(b.Instance)
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
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	reply.JSON(w, list)
}
