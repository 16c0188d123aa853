package server

import (
	"net/http"
	"os"

	"scrimp/client"
	"scrimp/internal/api"
	"scrimp/internal/api/convert"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

func (s *Server) clockNow() api.MarketClock {
	return api.MarketClock{Name: s.clock.Name, Speed: s.clock.Speed, Now: s.control.Now()}
}

func (s *Server) getServer(w http.ResponseWriter, r *http.Request) {
	v := api.Server{Shared: s.wide, Version: s.opts.Version, Build: s.opts.Build, PID: os.Getpid(), Dir: s.opts.Dir,
		Started: s.started.UTC(), Market: s.clockNow(), Engines: s.engineList()}
	readState := func(f func(*core.Machine)) { s.control.Read(f) }
	if s.control.Full() != nil { // nobody would be answered until there is room
		readState = s.control.ReadUncommitted
	}
	readState(func(m *core.Machine) {
		v.Events, v.Undecided = m.Seq(), len(m.State().AllUndecided())
		for _, a := range m.Accounts(m.Now()) {
			if auth.CallerOf(r).Role(a.Team) >= identity.Viewer {
				v.Jobs, v.Live = v.Jobs+a.Jobs(), v.Live+a.Open
			}
		}
	})
	if !auth.Rules(auth.CallerOf(r)) { // where it lives is its owner's business
		v.PID, v.Dir = 0, ""
		for n := range v.Engines {
			v.Engines[n].Agents, v.Engines[n].Error = "", ""
		}
	}
	reply.JSON(w, v)
}

func (s *Server) postStop(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.StopServer](w, r, 1<<16)
	if !ok {
		return
	}
	if err := s.gate.Propose(r, ""); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	s.now.Store(b.Now)
	w.WriteHeader(http.StatusNoContent)
	s.stop(errStopped)
}

func (s *Server) getMarket(w http.ResponseWriter, _ *http.Request) {
	v := api.Market{Clock: s.clockNow()}
	type sold struct {
		offer market.Offer
		core.Listing
	}
	var list []sold
	s.control.Read(func(m *core.Machine) {
		held := m.SpotHeld(v.Clock.Now)
		for o, l := range m.Sale() {
			l.Hazard.Served += held[o.ID]
			list = append(list, sold{o, l})
		}
	})
	for _, l := range list { // while nobody waits
		v.Offers = append(v.Offers, api.Listing{Offer: convert.To[client.Offer](l.offer),
			Quote: convert.To[client.Quote](l.Quote), Hazard: convert.To[client.Hazard](l.Hazard)})
	}
	reply.JSON(w, v)
}
