package prediction

import (
	"testing"

	api "scrimp/client"
	"scrimp/internal/server/forecast"
)

// A plan waits for an engine that was not polled yet, even if another one has offers, but not for one that does not
// answer.
func TestPolled_WaitsForEachEngine(t *testing.T) {
	sells := api.Market{Offers: []api.Listing{onDemand("local", "a", 1)}}
	away := api.Market{Away: []api.AwayEngine{{Name: "lab", Error: "no route to host"}}}
	for _, c := range []struct {
		name string
		m    api.Market
		lab  string
		want bool
	}{
		{"nobody has said anything", api.Market{}, forecast.NotAsked, false},
		{"another one sells", sells, forecast.NotAsked, false},
		{"all were polled", sells, "answers", true},
		{"it does not answer", away, "away", true},
		{"all answer and sell nothing", api.Market{}, "answers", false},
	} {
		v := api.Server{Engines: []api.Engine{{Name: "local", State: "answers"}, {Name: "lab", State: c.lab}}}
		if got := Polled(c.m, v); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
