package placement

import (
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// AlikeTiming reports whether all providers have the default timing.
func AlikeTiming(c *state.Config) bool {
	for _, t := range c.Providers {
		if t != c.Timing() {
			return false
		}
	}
	return true
}

// shares reports whether several tasks may share a machine of the provider.
func shares(c *state.Config, provider string) bool { return c.TimingOf(provider).Seats > 1 }

// SharesAlike reports whether both configurations let the same providers share machines.
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

// TimingOf returns the timing of the machine's provider.
func (mk *Market) TimingOf(on *state.Machine) state.Timing { return mk.Config().TimingOf(on.Provider) }

// timingAt returns the timing of the offer's provider.
func (mk *Market) timingAt(id market.OfferID) state.Timing {
	if l := mk.State.Listing(id); l != nil {
		return mk.Config().TimingOf(l.Offer().Provider)
	}
	return mk.Config().Timing()
}

// detects returns how long a loss can go unnoticed wherever j may run: the longest detection time of the providers
// of suitable offers and of the provider of its machine. grant is the longest time that providers take to grant a
// non-preemptible machine; the guard acts that much earlier.
func (mk *Market) detects(j *state.Job) (detect, grant time.Duration) {
	if mk.OneTiming {
		return mk.Config().Detect, mk.Config().GrantWait
	}
	all, nonPreemptible := mk.Class(j).Providers()
	for _, p := range all {
		detect = max(detect, mk.Config().TimingOf(p).Detect)
	}
	for _, p := range nonPreemptible {
		grant = max(grant, mk.Config().TimingOf(p).GrantWait)
	}
	switch a := j.Live(); {
	case a != nil:
		detect = max(detect, mk.TimingOf(a.Machine()).Detect)
	case len(all) == 0: // no offer suits it yet
		detect, grant = mk.Config().Detect, mk.Config().GrantWait
	}
	return detect, grant
}
