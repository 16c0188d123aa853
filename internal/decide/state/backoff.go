package state

import (
	"strings"
	"time"

	"scrimp/internal/market"
)

// Backoff keeps scrimp from requesting anything in a scope for a time, after a refusal there.
type Backoff struct {
	Tries int       `json:"tries,omitempty"` // refusals in a row
	Until time.Time `json:"until"`
	Trial string    `json:"trial,omitempty"` // allocation that tests the scope again; others wait for its answer
	// Detail is the message of the refusal, or another reason to back off; empty: none given.
	Detail string `json:"detail,omitempty"`
}

// unanswered is the end of a backoff while an allocation tests the scope: it lasts until there is an answer.
var unanswered = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// lasts returns the end of the backoff.
func (b *Backoff) lasts() time.Time {
	if b.Trial != "" {
		return unanswered
	}
	return b.Until
}

// ScopeKey returns the key of the scope that contains the machine.
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

// scopes lists all scopes.
var scopes = [...]Scope{OfferScope, ZoneScope, PoolScope, AccountScope}

// lies reports whether the scope with the given key contains the offer.
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

// Backoff returns the backoff of a scope's key.
func (s *State) Backoff(key string) Backoff { return s.backoffs[key] }

// setBackoff changes the backoff of a scope and of each offer in it. The zero Backoff removes it.
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

// backoffOf returns the backoff of the machine's scope and its key, if there is one.
func (s *State) backoffOf(scope Scope, m *Machine) (key string, b Backoff, known bool) {
	if len(s.backoffs) == 0 {
		return "", Backoff{}, false
	}
	key = ScopeKey(scope, m)
	b, known = s.backoffs[key]
	return key, b, known
}

// cools computes the end of an offer's backoff from the scopes that contain it.
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

// Cooling returns until when nothing may be requested from the offer, because a scope of it refused or an
// allocation is testing it. ok is false if requests are allowed.
func (s *State) Cooling(l *Listing) (until time.Time, ok bool) {
	if until = l.r.Backoff; until.Equal(unanswered) {
		until = s.Retry(until)
	}
	return until, until.After(s.now)
}

// CoolsFor returns the reason for the backoff, in the words of whoever refused, or "".
func (s *State) CoolsFor(l *Listing) (why string) {
	m, longest := MachineOf(&l.r.Offer), time.Time{}
	for _, scope := range scopes {
		if b := s.backoffs[ScopeKey(scope, &m)]; b.lasts().After(longest) {
			why, longest = b.Detail, b.lasts()
		}
	}
	return why
}

// Retry returns when a request that is backed off until at may be tried again. While an allocation tests a scope,
// that is when its answer may have come.
func (s *State) Retry(at time.Time) time.Time {
	if next := s.now.Add(max(s.cfg.CoolOff, time.Nanosecond)); s.trials > 0 && next.Before(at) {
		return next
	}
	return at
}

// Trying reports whether the allocation tests a scope that refused before.
func (s *State) Trying(a *Allocation) bool {
	for _, scope := range scopes {
		if _, b, known := s.backoffOf(scope, &a.r.Machine); known && b.Trial == a.r.ID {
			return true
		}
	}
	return false
}
