package state

import (
	"strings"
	"time"

	"scrimp/internal/market"
)

// Backoff is how long nothing of a scope is asked for, because it refused.
type Backoff struct {
	Tries int       `json:"tries,omitempty"` // refusals in a row
	Until time.Time `json:"until"`
	Trial string    `json:"trial,omitempty"` // the allocation that tries it again; others wait for its answer
	// Detail is what was said when it refused, or what else it is left alone for; "": nobody said
	Detail string `json:"detail,omitempty"`
}

// unanswered is until when an offer is left alone that an allocation tries again: until
// there is an answer.
var unanswered = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// lasts is until when nothing is asked for.
func (b *Backoff) lasts() time.Time {
	if b.Trial != "" {
		return unanswered
	}
	return b.Until
}

// ScopeKey is the key of a scope of refusals that the machine lies in.
func ScopeKey(scope Scope, m *Machine) string {
	switch scope {
	case ZoneScope:
		return "zone/" + m.Provider + "/" + m.Zone
	case PoolScope:
		return "pool/" + m.Provider + "/" + m.Type + "/" + string(m.Capacity)
	case AccountScope:
		return "account/" + m.Provider
	case OfferScope:
	}
	return "offer/" + string(m.Offer)
}

// scopes are all of them.
var scopes = [...]Scope{OfferScope, ZoneScope, PoolScope, AccountScope}

// lies reports whether the offer is in the scope of that key.
func lies(o *market.Offer, key string) bool {
	rest := func(part string) bool {
		var ok bool
		key, ok = strings.CutPrefix(key, part)
		return ok
	}
	switch {
	case rest("zone/"):
		return rest(o.Provider) && rest("/") && key == o.Zone
	case rest("pool/"):
		return rest(o.Provider) && rest("/") && rest(o.Machine) && rest("/") && key == string(o.Capacity)
	case rest("account/"):
		return key == o.Provider
	}
	return rest("offer/") && key == string(o.ID)
}

// Backoff is that of a scope's key.
func (s *State) Backoff(key string) Backoff { return s.backoffs[key] }

// setBackoff changes the back-off of a scope, and with it that of each offer that lies
// there; the zero back-off removes it.
func (s *State) setBackoff(key string, b Backoff) {
	old := s.backoffs[key]
	if b == (Backoff{}) {
		delete(s.backoffs, key)
	} else {
		s.backoffs[key] = b
	}
	if old.Trial != "" {
		s.trials--
	}
	if b.Trial != "" {
		s.trials++
	}
	was, is := old.lasts(), b.lasts()
	if was.Equal(is) {
		return
	}
	change := func(l *Listing) {
		switch {
		case is.After(l.r.Backoff):
			l.r.Backoff = is
		case l.r.Backoff.Equal(was):
			s.cools(l)
		}
	}
	if id, ok := strings.CutPrefix(key, "offer/"); ok {
		if l := s.offers[market.OfferID(id)]; l != nil {
			change(l)
		}
		return
	}
	for _, l := range s.sale {
		if lies(&l.r.Offer, key) {
			change(l)
		}
	}
}

// cools finds until when an offer is left alone from the scopes in which it lies.
func (s *State) cools(l *Listing) {
	l.r.Backoff = time.Time{}
	if len(s.backoffs) == 0 {
		return
	}
	m := MachineOf(&l.r.Offer)
	for _, scope := range scopes {
		b := s.backoffs[ScopeKey(scope, &m)]
		if at := b.lasts(); at.After(l.r.Backoff) {
			l.r.Backoff = at
		}
	}
}

// Cooling is until when nothing may be asked for from the offer, because something of
// it refused, or waits for the answer of one that tries; false: it may.
func (s *State) Cooling(l *Listing) (until time.Time, ok bool) {
	if until = l.r.Backoff; until.Equal(unanswered) {
		until = s.Retry(until)
	}
	return until, until.After(s.now)
}

// CoolsFor is why nothing may be asked for from the offer, as whoever refused has it; "": nobody said.
func (s *State) CoolsFor(l *Listing) (why string) {
	m, longest := MachineOf(&l.r.Offer), time.Time{}
	for _, scope := range scopes {
		if b := s.backoffs[ScopeKey(scope, &m)]; b.lasts().After(longest) {
			why, longest = b.Detail, b.lasts()
		}
	}
	return why
}

// Retry is when something may be asked again that is left alone until then, or where
// somebody tries, when the answer may be there.
func (s *State) Retry(at time.Time) time.Time {
	if next := s.now.Add(max(s.cfg.CoolOff, time.Nanosecond)); s.trials > 0 && next.Before(at) {
		return next
	}
	return at
}

// Trying reports whether the allocation tries something that refused before.
func (s *State) Trying(a *Allocation) bool {
	for _, scope := range scopes {
		if b, known := s.backoffs[ScopeKey(scope, &a.r.Machine)]; known && b.Trial == a.r.ID {
			return true
		}
	}
	return false
}
