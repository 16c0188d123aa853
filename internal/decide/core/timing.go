package core

import (
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// alikeTiming reports whether all providers behave alike in time.
func alikeTiming(c *state.Config) bool {
	for _, t := range c.Providers {
		if t != c.Timing() {
			return false
		}
	}
	return true
}

// shares reports whether several tasks may have parts of a machine of the provider.
func shares(c *state.Config, provider string) bool { return c.TimingOf(provider).Seats > 1 }

// sharesAlike reports whether every provider shares its machines by both configurations or by none.
func sharesAlike(a, b *state.Config) bool {
	for _, c := range []*state.Config{a, b} {
		for provider := range c.Providers {
			if shares(a, provider) != shares(b, provider) {
				return false
			}
		}
	}
	return (a.Seats > 1) == (b.Seats > 1)
}

// timingOf is how the provider of a machine behaves.
func (m *Machine) timingOf(on *state.Machine) state.Timing { return m.cfg().TimingOf(on.Provider) }

// timingAt is how the provider of an offer behaves.
func (m *Machine) timingAt(id market.OfferID) state.Timing {
	if l := m.s.Listing(id); l != nil {
		return m.cfg().TimingOf(l.Offer().Provider)
	}
	return m.cfg().Timing()
}

// detects is how long a loss can go unnoticed wherever j may be: the longest of the
// providers that sell what does for it, and of the one whose machine it has. grant is the
// longest that those take to grant it a machine which is not interrupted: its guard acts so
// much earlier.
func (m *Machine) detects(j *Job) (detect, grant time.Duration) {
	if m.oneTiming {
		return m.cfg().Detect, m.cfg().GrantWait
	}
	all, firm := m.class(j).Providers()
	for _, p := range all {
		detect = max(detect, m.cfg().TimingOf(p).Detect)
	}
	for _, p := range firm {
		grant = max(grant, m.cfg().TimingOf(p).GrantWait)
	}
	switch a := j.Live(); {
	case a != nil:
		detect = max(detect, m.timingOf(a.Machine()).Detect)
	case len(all) == 0: // nothing does for it yet
		detect, grant = m.cfg().Detect, m.cfg().GrantWait
	}
	return detect, grant
}
