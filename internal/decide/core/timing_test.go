package core

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// twoProviders returns a hall with two providers, each with an on-demand and a spot machine.
func twoProviders(t *testing.T, quick, slow state.Timing) *hall {
	h := newHall(t, 3)
	cfg := DefaultConfig()
	cfg.Providers = map[string]state.Timing{"quick": quick, "slow": slow}
	h.tell(Configured{Config: cfg})
	h.quotes("quick", 4)
	h.quotes("slow", 8)
	return h
}

func (h *hall) quotes(provider string, cpus int) {
	var b MarketSeen
	for _, c := range []market.Capacity{market.Spot, market.OnDemand} {
		o := market.Offer{Provider: provider, Region: "r", Zone: "z", Machine: "m", CPUs: cpus, Memory: 1 << 30, Capacity: c,
			Currency: money.USD, Speed: 1}
		o.ID = market.ID(o)
		rate := money.Rate(1e12)
		if c == market.OnDemand {
			rate = 3e12
		}
		b.Offers = append(b.Offers, o)
		b.Quotes = append(b.Quotes, market.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true, At: h.at})
	}
	h.tell(b)
}

var (
	quick = state.Timing{Detect: 20 * time.Second, BootLimit: 5 * time.Minute}
	slow  = state.Timing{Detect: 4 * time.Minute, BootLimit: 2 * time.Hour, Consistency: time.Hour, GrantWait: 3 * time.Hour}
)

// The deadline guard allows for the longest grant wait and the longest detection of a loss among the offers that suit
// the job, and no others.
func TestGuard_CountsTheLongestGrantWait(t *testing.T) {
	h := twoProviders(t, quick, slow)
	h.submit("small", 2, 1) // both providers have one that fits
	h.submit("large", 6, 1) // only the slow provider has one that fits
	h.tell(JobSubmitted{Job: "spot", Terms: Terms{Name: "spot", Currency: money.USD, Nodes: 1, Saves: true,
		Need: plan.Need{Requirements: plan.Requirements{CPUs: 6, Capacity: []market.Capacity{market.Spot}}}}})
	reserve := func(job string) (time.Duration, time.Duration) {
		p := h.decider.Progress(h.step.State.Job(job), 1)
		return p.Reserve - p.Restart, p.Detect
	}
	for job, want := range map[string][2]time.Duration{
		"small": {3 * time.Hour, 4 * time.Minute}, "large": {3 * time.Hour, 4 * time.Minute}, "spot": {0, 4 * time.Minute},
	} {
		if grant, detect := reserve(job); grant != want[0] || detect != want[1] {
			t.Errorf("%s: the guard keeps back %v and %v, want %v", job, grant, detect, want)
		}
	}
	h = twoProviders(t, quick, quick)
	h.submit("small", 2, 1)
	if p := h.decider.Progress(h.step.State.Job("small"), 1); p.Reserve != p.Restart || p.Detect != 20*time.Second {
		t.Errorf("with quick providers only the guard keeps back %v besides %v, and %v", p.Reserve, p.Restart, p.Detect)
	}
}

// The limits on a missing inventory entry and on a boot are those of the machine's own provider.
func TestTimeouts_ArePerProvider(t *testing.T) {
	h := twoProviders(t, quick, slow)
	from := h.at
	for job, offer := range map[string]market.OfferID{"a": "quick/z/m/spot", "b": "slow/z/m/spot"} {
		cpus := map[string]int{"a": 2, "b": 6}[job]
		h.submit(job, cpus, 1)
		l := h.step.State.Job(job).Asked()
		if l == nil || job == "b" && l.Offer() != offer {
			t.Fatalf("%s asks for %v", job, l)
		}
		h.tell(LaunchDone{Launch: l.ID(), Instance: "i-" + job, Offer: l.Offer(), Rate: 1e12, From: from})
	}
	first := h.step.State.Instance("i-a").Machine().Provider
	h.at = h.at.Add(time.Minute)
	for _, p := range []string{"quick", "slow"} {
		h.tell(InventorySeen{Provider: p, AsOf: h.at})
	}
	if b := h.step.State.Instance("i-b"); b == nil || !b.Live() {
		t.Error("the slow provider's list lacks a machine for a minute, and it is given up")
	}
	if a := h.step.State.Instance("i-a"); first == "quick" && a != nil && a.Live() {
		t.Error("the quick provider's list lacks a machine, and it is not given up")
	}
	for range 200 {
		h.at = h.at.Add(30 * time.Second)
		h.tell(Tick{})
		if why := h.step.State.Instance("i-b").Release(); why != "" && h.at.Sub(from) < 2*time.Hour {
			t.Fatalf("given back after %v: %s", h.at.Sub(from), why)
		}
	}
	h.at = from.Add(2*time.Hour + time.Minute)
	h.tell(Tick{})
	if why := h.step.State.Instance("i-b").Release(); why != "boot_limit" {
		t.Errorf("after its boot limit the machine is released for %q", why)
	}
}

// The core does not take offers of a removed provider until it is configured and quotes again. A machine that runs
// there continues, and the action that ends it names the provider.
func TestRemovedProvider_OffersNothing(t *testing.T) {
	h := twoProviders(t, quick, slow)
	h.submit("b", 6, 1)
	h.tell(LaunchDone{Launch: "b.1", Instance: "i", Offer: "slow/z/m/spot", Rate: 1e12, From: h.at})
	cfg := *h.step.Config()
	cfg.Providers = map[string]state.Timing{"quick": quick}
	h.tell(Configured{Config: cfg})
	h.launched = nil
	h.submit("c", 6, 1)
	for o, l := range h.Sale() {
		if l.Quote.Available != (o.Provider == "quick") {
			t.Errorf("%s can be had: %v", o.ID, l.Quote.Available)
		}
	}
	if i := h.step.State.Instance("i"); len(h.launched) > 0 || !i.Live() || i.Release() != "" {
		t.Errorf("launched %v; its machine is live %v, released for %q", h.launched, i.Live(), i.Release())
	}
	out := h.Step(Event{At: h.at, Schema: Schema, Tenant: "default", Body: JobEnded{Job: "b"}})
	ends := Action(Terminate{Instance: "i", Provider: "slow", Attempt: "b.1", Why: "cancelled_by_user"})
	if !slices.Contains(out.Actions, ends) {
		t.Errorf("to end its machine: %+v", out.Actions)
	}
	cfg.Providers = map[string]state.Timing{"quick": quick, "slow": slow}
	h.tell(Configured{Config: cfg})
	h.quotes("slow", 8)
	if len(h.launched) != 1 || h.launched[0] != "c" {
		t.Errorf("back again, launched are %v", h.launched)
	}
}
