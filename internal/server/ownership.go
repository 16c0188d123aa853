package server

import (
	"fmt"
	"net/http"

	"scrimp/internal/api"
	"scrimp/internal/core"
)

// disowned are the machines of an earlier incarnation that nobody has decided about.
func disowned(m *core.Machine) []*core.Instance {
	st := m.State()
	if !st.Undecided() {
		return nil
	}
	var list []*core.Instance
	for _, i := range st.Instances() {
		if i.Disowned() {
			list = append(list, i)
		}
	}
	return list
}

// undecided is how people see those of them that are asked for; "" is all.
func (s *Server) undecided(instance string) []api.Undecided {
	clock, now, list := s.control.Clock(), s.control.Now(), []api.Undecided{}
	s.control.Read(func(m *core.Machine) {
		for _, i := range disowned(m) {
			if instance == "" || instance == i.ID() {
				list = append(list, api.Undecided{
					Instance: i.ID(), Offer: i.Machine().Offer, Job: i.Job(), Since: clock.ToWall(i.From()),
					Cost: i.Cost(now), Currency: i.Machine().Currency,
				})
			}
		}
	})
	return list
}

func (s *Server) getUndecided(w http.ResponseWriter, _ *http.Request) { answer(w, s.undecided("")) }

// postDecide adopts or releases machines of an earlier incarnation.
func (s *Server) postDecide(w http.ResponseWriter, r *http.Request) {
	b, ok := read[api.Ownership](w, r, 1<<16)
	if !ok {
		return
	}
	list := s.undecided(b.Instance)
	switch {
	case len(list) == 0 && b.Instance != "":
		fieldProblem(w, http.StatusNotFound, "instance", fmt.Sprintf("machine %s does not wait for a decision", b.Instance),
			"scrimp adopt lists those that do", nil)
		return
	case len(list) == 0:
		answer(w, list)
		return
	}
	callOf(r).act.Detail = "release"
	if b.Adopt {
		callOf(r).act.Detail = "adopt"
	}
	e := core.Event{
		At: s.control.Now(), Schema: core.Schema, Tenant: "default", Actor: actor(callerOf(r).User),
		Body: core.OwnershipDecided{Instance: b.Instance, Adopt: b.Adopt},
	}
	if err := s.tell(r, b.Instance, e); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	answer(w, list)
}
