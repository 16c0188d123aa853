package multizone

import (
	"reflect"
	"testing"
	"time"
)

// A drawn market is deterministic and has the documented properties.
func TestDrawnMarket_HasDocumentedProperties(t *testing.T) {
	for seed := range uint64(5) {
		p, w := DrawnMarket(Mixed, seed, 2, 30*time.Hour)
		q, v := DrawnMarket(Mixed, seed, 2, 30*time.Hour)
		if !reflect.DeepEqual(p, q) || !reflect.DeepEqual(w, v) {
			t.Fatalf("seed %d draws two markets", seed)
		}
		if n := len(p.Groups[4]); n != 13 || len(w) != 2 || len(w[0].Zones) != 13 {
			t.Errorf("%d zones in the largest group, %d windows", n, len(w))
		}
		low, high := p.Groups[4][0].OnDemand, p.Groups[4][0].OnDemand
		for _, z := range p.Groups[4] {
			low, high = min(low, z.OnDemand), max(high, z.OnDemand)
			for k, spot := range w[0].Zones[z.Name].Price {
				if share := spot.Float() / z.OnDemand.Float(); share < 0.149 || share > 0.851 {
					t.Fatalf("seed %d: spot of %s at tick %d is %.3f of on-demand", seed, z.Name, k, share)
				}
			}
		}
		if high.Float() > 1.36*low.Float() {
			t.Errorf("seed %d: on-demand from %v to %v", seed, low, high)
		}
		if four, sixteen := up(w, 4), up(w, 16); four <= sixteen {
			t.Errorf("seed %d: 4 machines can be had in %d ticks, 16 in %d", seed, four, sixteen)
		}
	}
	if f := DrawnFares(1000).Egress.Moving("us-central1", "europe-west4", DrawnFares(0).Carry); f.String() != "80" {
		t.Errorf("1,000 GB to Europe cost %v", f)
	}
}

// up counts the ticks with at least the given number of machines.
func up(windows []Window, nodes int) (n int) {
	AtLeast(windows, nodes)
	for _, z := range windows[0].Zones {
		for _, is := range z.Up {
			if is {
				n++
			}
		}
	}
	return n
}
