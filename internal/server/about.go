package server

import (
	"context"
	"net/http"
	"os"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

func (s *Server) clockNow() api.MarketClock {
	return api.MarketClock{Name: s.clock.Name, Speed: s.clock.Speed, Now: s.control.Now()}
}

// charges returns the server's own prices of transferring data. Where its file is not readable, which is logged, only
// the built-in ones hold.
func (s *Server) charges() catalog.Catalog {
	c, err := feed.Charges(s.opts.Dir)
	if err != nil {
		s.opts.Log.Error("own prices of transfer do not count", "error", err)
	}
	return c
}

func (s *Server) getServer(w http.ResponseWriter, r *http.Request) {
	v := api.Server{Shared: s.wide, Version: s.opts.Version, Build: s.opts.Build, PID: os.Getpid(), Dir: s.opts.Dir,
		Listens: s.listens,
		Started: s.started.UTC(), Market: s.clockNow(), Engines: s.engineList(),
		RetainS: max(0, s.old.Span).Seconds(), RetainOutputsS: max(0, s.old.OutputSpan).Seconds()}
	for _, x := range s.charges().Own {
		v.Charges = append(v.Charges, client.Charge{Provider: x.Provider, What: x.What, Price: x.Price, Currency: x.Currency})
	}
	readState := func(f func(*core.Machine)) { s.control.Read(f) }
	if s.control.Full() != nil { // with a full disk, a committed read would block until there is room
		readState = s.control.ReadUncommitted
	}
	readState(func(m *core.Machine) {
		v.Events, v.Undecided = m.Seq(), len(m.State().AllUndecided())
		v.Jobs, v.Live = m.Count(func(team string) bool { return auth.CallerOf(r).Role(team) >= identity.Viewer })
	})
	if !auth.Rules(auth.CallerOf(r)) { // only admins may see where the server runs
		v.PID, v.Dir, v.Listens = 0, "", ""
		for n := range v.Engines {
			v.Engines[n].Agents, v.Engines[n].Error, v.Engines[n].Joined = "", "", nil
		}
	} else {
		s.addExports(r.Context(), v.Engines)
	}
	reply.JSON(w, v)
}

// addExports adds the exports that the server fetches to their engines.
func (s *Server) addExports(ctx context.Context, engines []api.Engine) {
	list, err := s.exports.List(ctx)
	if err != nil {
		s.opts.Log.Warn("cannot read the list of fetched bills", "error", err)
	}
	for i := range list {
		for n := range engines {
			if engines[n].Name == list[i].Engine {
				engines[n].Bills = &list[i]
			}
		}
	}
}

// stopPatience bounds the wait for the log to record a stop request. A crowded machine needs seconds for it.
const stopPatience = 20 * time.Second

func (s *Server) postStop(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.StopServer](w, r)
	if !ok {
		return
	}
	// With a full disk the log cannot record the request; the server stops anyway.
	ctx, cancel := context.WithTimeout(r.Context(), stopPatience)
	defer cancel()
	if err := s.gate.Propose(r.WithContext(ctx), ""); err != nil && s.control.Full() == nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	s.now.Store(b.Now)
	w.WriteHeader(http.StatusNoContent)
	s.stop(errStopped)
}

// firstPrices bounds how long a request for the market waits for engines that have not answered since the
// server started.
const firstPrices = 30 * time.Second

func (s *Server) getMarket(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), firstPrices)
	defer cancel()
	s.control.Priced(ctx)
	v := api.Market{Clock: s.clockNow()}
	type sold struct {
		offer market.Offer
		core.Listing
		inUse int
		frees []time.Time
	}
	var list []sold
	s.control.Read(func(m *core.Machine) {
		held := m.SpotHeld(v.Clock.Now)
		for o, l := range m.Sale() {
			l.Hazard.Served += held[o.ID]
			used, frees := m.Frees(&o, v.Clock.Now)
			list = append(list, sold{o, l, used, frees})
		}
	})
	for _, l := range list { // outside the lock
		v.Offers = append(v.Offers, api.Listing{Offer: convert.To[client.Offer](l.offer),
			Quote: convert.To[client.Quote](l.Quote), Hazard: convert.To[client.Hazard](l.Hazard), InUse: l.inUse,
			Frees: l.frees, Cools: l.Cools, CoolsFor: l.CoolsFor})
	}
	for _, e := range s.control.Engines() {
		if e.Configured && e.Err != nil {
			why := "an administrator sees why with scrimp engine test " + e.Name
			if auth.Rules(auth.CallerOf(r)) { // an error of a provider may name accounts and addresses
				why = e.Err.Error()
			}
			v.Away = append(v.Away, client.AwayEngine{Name: e.Name, Error: why})
		} else {
			v.Away = append(v.Away, s.awayMachines(e.Name)...)
		}
	}
	reply.JSON(w, v)
}
