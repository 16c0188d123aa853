package server

import (
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// getMachines lists the machines that may still cost money: those of the teams that the caller sees. A caller
// who sees all teams also gets the machines that belong to none.
func (s *Server) getMachines(w http.ResponseWriter, r *http.Request) {
	c := auth.CallerOf(r)
	list := []api.Machine{}
	s.control.Read(func(m *core.Machine) {
		now := s.control.Now()
		if m.Now().After(now) {
			now = m.Now() // as the export of costs counts
		}
		for _, i := range m.State().Instances() {
			if !i.Live() && !i.Lost() {
				continue
			}
			sees := func(team string) bool { return c.Role(team) >= identity.Viewer }
			v := rented(m, i, now, s.control.Clock().ToWall, sees)
			if !sees(v.Team) {
				continue
			}
			if own, known := ownPart(m.State(), i, now, sees); known && !sees(identity.Everywhere) {
				v.Own = &own
			}
			list = append(list, v)
		}
	})
	reply.JSON(w, list)
}

// rented converts a machine for the API, at a market time; wall converts market times to wall times. Of the jobs that
// share the machine it names those whose team the caller sees.
func rented(m *core.Machine, i *state.Instance, now time.Time, wall func(time.Time) time.Time,
	sees func(team string) bool,
) api.Machine {
	on := i.Machine()
	v := api.Machine{Instance: i.ID(), Engine: on.Provider, Offer: string(on.Offer), Type: on.Type, Zone: on.Zone,
		Image: on.Image, State: stateOf(i), Since: wall(i.From()), SinceMarket: i.From(),
		Rate: i.PresentRate(), Cost: i.Cost(now), Currency: on.Currency,
		Served: len(i.Served()) + len(i.Seats())}
	seated := m.State().SeatedAll(i) // empty while a gang has only part of its machines
	if n := slices.IndexFunc(seated, func(a *state.Attempt) bool { return sees(teamOf(m, a)) }); n > 0 {
		seated = seated[n:] // the caller sees none of those before it
	}
	if len(seated) > 0 {
		a := seated[0]
		v.Job, v.Attempt = a.Job(), a.ID()
		if k := a.On(i.ID()); a.Nodes() > 1 && k != nil {
			v.Node, v.Nodes = k.Rank(), a.Nodes()
		}
	} else if len(i.Seats()) > 0 {
		v.Job, v.Attempt = m.State().JobOf(i.Seats()[0].Attempt).ID(), i.Seats()[0].Attempt
		if a, ok := m.Allocation(v.Attempt); ok {
			v.Nodes = a.Nodes()
		}
		if v.State == client.MachineRunning {
			v.State = client.MachineWaiting
		}
	}
	for _, a := range seated[min(1, len(seated)):] {
		if sees(teamOf(m, a)) {
			v.Beside = append(v.Beside, a.Job())
		}
	}
	if j, ok := m.Job(v.Job); ok {
		v.User, v.Team = j.User(), j.Terms().Owner.Team
	}
	if idle, ok := i.Idle(); ok {
		cost := idle.Posted.Add(i.Cost(now)).Sub(i.Posted())
		v.User, v.Team = idle.User, idle.Owner.Team
		v.IdleSince, v.IdleUntil, v.IdleUntilMarket, v.IdleCost = wall(idle.From), wall(idle.Keep), idle.Keep, &cost
	}
	return v
}

// ownPart returns what tasks and idle time of teams that the caller sees have cost of a machine; false if a job that
// had it is not in memory any more, or its gang is incomplete.
func ownPart(s *state.State, i *state.Instance, now time.Time, sees func(team string) bool,
) (sum money.Amount, known bool) {
	attempts := slices.Clone(i.Served())
	for _, seat := range i.Seats() {
		attempts = append(attempts, seat.Attempt)
	}
	for _, id := range attempts {
		j, a := s.JobOf(id), s.AttemptOf(id)
		if j == nil || a == nil || a.On(i.ID()) == nil {
			return sum, false
		}
		if sees(j.Terms().Owner.Team) {
			sum = sum.Add(a.On(i.ID()).Cost(now))
		}
	}
	for _, idle := range i.Idles() {
		if !sees(idle.Owner.Team) {
			continue
		}
		if sum = sum.Add(idle.Posted); idle.Until.IsZero() {
			sum = sum.Add(i.Cost(now)).Sub(i.Posted())
		}
	}
	return sum, true
}

// teamOf returns the team of the job of an attempt.
func teamOf(m *core.Machine, a *state.Attempt) string {
	if j, ok := m.Job(a.Job()); ok {
		return j.Terms().Owner.Team
	}
	return ""
}

// stateOf returns what a machine is doing.
func stateOf(i *state.Instance) client.MachineState {
	idle, waits := i.Idle()
	switch phase := i.Phase(); {
	case i.Lost() || !i.Missing().IsZero():
		return client.MachineMissing
	case i.Release() != "":
		return client.MachineReleasing
	case waits && idle.Clean.IsZero():
		return client.MachineCleaning
	case waits:
		return client.MachineIdle
	case phase == state.Provisioning:
		return client.MachineStarting
	case phase == state.Draining:
		return client.MachineSaving
	}
	return client.MachineRunning
}
