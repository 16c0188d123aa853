package placement

import (
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// AlikeTiming reports whether all providers behave alike in time.
func AlikeTiming(c *state.Config) bool {
	for _, t := range c.Providers {
		if t != c.Timing() {
			return false
		}
	}
	return true
}

// shares reports whether several tasks may have parts of a machine of the provider.
func shares(c *state.Config, provider string) bool { return c.TimingOf(provider).Seats > 1 }

// SharesAlike reports whether every provider shares its machines by both configurations or by none.
func SharesAlike(a, b *state.Config) bool {
	for _, c := range []*state.Config{a, b} {
		for provider := range c.Providers {
			if shares(a, provider) != shares(b, provider) {
				return false
			}
		}
	}
	return (a.Seats > 1) == (b.Seats > 1)
}

// TimingOf is how the provider of a machine behaves.
func (mk *Market) TimingOf(on *state.Machine) state.Timing { return mk.Config().TimingOf(on.Provider) }

// timingAt is how the provider of an offer behaves.
func (mk *Market) timingAt(id market.OfferID) state.Timing {
	if l := mk.State.Listing(id); l != nil {
		return mk.Config().TimingOf(l.Offer().Provider)
	}
	return mk.Config().Timing()
}

// detects is how long a loss can go unnoticed wherever j may be: the longest of the
// providers that sell what does for it, and of the one whose machine it has. grant is the
// longest that those take to grant it a machine which is not interrupted: its guard acts so
// much earlier.
func (mk *Market) detects(j *state.Job) (detect, grant time.Duration) {
	if mk.OneTiming {
		return mk.Config().Detect, mk.Config().GrantWait
	}
	all, firm := mk.Class(j).Providers()
	for _, p := range all {
		detect = max(detect, mk.Config().TimingOf(p).Detect)
	}
	for _, p := range firm {
		grant = max(grant, mk.Config().TimingOf(p).GrantWait)
	}
	switch a := j.Live(); {
	case a != nil:
		detect = max(detect, mk.TimingOf(a.Machine()).Detect)
	case len(all) == 0: // nothing does for it yet
		detect, grant = mk.Config().Detect, mk.Config().GrantWait
	}
	return detect, grant
}
