package plan

import (
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// typed is a job on one spot machine while another, three times as fast, is available: the work left, the held
// machine, and how long the other has been up.
func typed(left time.Duration, held string, up time.Duration, fast money.Rate) (Job, []Listing) {
	job := Job{Progress: policy.Progress{
		Now: now, Began: now.Add(-time.Hour), Deadline: now.Add(20 * time.Hour), Left: left, Known: true,
		Restart: 3 * time.Minute, Detect: time.Minute,
	}, Held: market.OfferID(held), HeldRate: 600_000_000_000}
	watch := onezone.Watch{Known: true, Whole: true, Up: true, Since: now.Add(-up)}
	option := func(id string, c market.Capacity, speed float64, rate money.Rate) Listing {
		return Listing{
			Offer: market.Offer{ID: market.OfferID(id), Capacity: c, Speed: speed, CPUs: 1, Zone: "z", Region: "r"},
			Quote: market.Quote{Offer: market.OfferID(id), Rate: rate, Priced: true, Available: true}, Watch: watch,
		}
	}
	return job, []Listing{
		option("slow", market.Spot, 1, 600_000_000_000), option("fast", market.Spot, 3, fast),
		option(
			"slow-od",
			market.OnDemand,
			1,
			2_000_000_000_000,
		), option("fast-od", market.OnDemand, 3, 3_500_000_000_000),
	}
}

func TestFaster_MovesWhenSavingsExceedTwoRestarts(t *testing.T) {
	for _, c := range []struct {
		name string
		left time.Duration
		held string
		up   time.Duration
		fast money.Rate
		want market.OfferID
	}{
		{"hours of work are left", 10 * time.Hour, "slow", 2 * time.Hour, 1_000_000_000_000, "fast"},
		{"minutes are left", 12 * time.Minute, "slow", 2 * time.Hour, 1_000_000_000_000, "slow"},
		{"it costs more for the work", 10 * time.Hour, "slow", 2 * time.Hour, 1_900_000_000_000, "slow"},
		{"it saves less than two restarts while it lasts", 10 * time.Hour, "slow", 0, 1_750_000_000_000, "slow"},
		{"the same, and it has stood for two days", 10 * time.Hour, "slow", 48 * time.Hour, 1_650_000_000_000, "fast"},
		{"the slower one costs less for the work", 10 * time.Hour, "fast", 48 * time.Hour, 1_900_000_000_000, "fast"},
	} {
		job, options := typed(c.left, c.held, c.up, c.fast)
		if c.held == "fast" {
			job.HeldRate = c.fast
		}
		if d := decide(job, options); d.Take != c.want {
			t.Errorf("%s: %s is taken (%s), not %s", c.name, d.Take, d.Why, c.want)
		}
	}
}

func TestFaster_OnlyUnderDefaultPolicy(t *testing.T) {
	for _, rule := range policy.Rules {
		job, options := typed(10*time.Hour, "slow", 2*time.Hour, 1_000_000_000_000)
		job.Rule = rule
		d := decide(job, options)
		if moved := d.Take == "fast"; moved != (rule == policy.Default) {
			t.Errorf("%s: %s is taken (%s)", rule, d.Take, d.Why)
		}
	}
}
