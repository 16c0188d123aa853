package plan

import (
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Decide takes a machine only if its accelerators, or its own memory if it has none, hold the model. On a shared
// machine the work requests as many accelerators as that takes. An unknown memory is not refused.
func TestFootprint_ModelGoesWhereItFits(t *testing.T) {
	sells := func(kind string, count int, memory size.Bytes) *Listing {
		return &Listing{Offer: market.Offer{ID: "o", CPUs: 8, Memory: memory, Accelerator: kind, Accelerators: count, Speed: 1,
			Currency: money.USD, Capacity: market.OnDemand}, Quote: market.Quote{Offer: "o", Priced: true, Available: true, Rate: 1}}
	}
	f := Footprint{Machine: 60e9, Cards: []Card{{1, 60e9}, {4, 20e9}}} // A100-SXM-40GB: 4; A100-SXM-80GB: 1; L4 (24 GB): 4; T4: none
	open := Need{Requirements: Requirements{Footprint: f}}
	few := Need{Requirements: Requirements{Accelerator: "A100", Accelerators: 1, MaxAccelerators: 2, Footprint: f}}
	cpus := Need{Requirements: Requirements{CPUs: 2, Footprint: f}}
	smaller := open
	smaller.Variants = []Variant{{Name: "lora", Requirements: Requirements{Footprint: Footprint{Cards: []Card{{1, 12e9}}}}}}
	for _, c := range []struct {
		name string
		need Need
		on   *Listing
		way  int
		why  Reason
		gpus int // of a shared machine
	}{
		{"one holds it", open, sells("A100-SXM-80GB", 1, 1), 0, "", 0},
		{"one does not", open, sells("A100-SXM-40GB", 1, 1<<40), -1, DoesNotFit, 0},
		{"two do not", open, sells("L4", 2, 1<<40), -1, DoesNotFit, 0},
		{"four do", open, sells("L4", 4, 1), 0, "", 0},
		{"none does", open, sells("T4", 16, 1), -1, DoesNotFit, 0},
		{"of some A100: one may have 80 GB", open, sells("A100", 1, 1), 0, "", 0},
		{"another spelling of 40 GB", open, sells("NVIDIA A100-SXM4-40GB", 1, 1), -1, DoesNotFit, 0},
		{"no V100 has more than 32 GB", open, sells("V100", 1, 1), -1, DoesNotFit, 0},
		{"four V100 of 16 GB", open, sells("V100-16GB", 4, 1), -1, DoesNotFit, 0},
		{"of a kind that nobody knows", open, sells("X1", 1, 1), 0, "", 0},
		{"without, large enough", open, sells("", 0, 60e9), 0, "", 0},
		{"without, too small", open, sells("", 0, 60e9-1), -1, DoesNotFit, 0},
		{"four hold it, and two are allowed", few, sells("A100-SXM-40GB", 2, 1), -1, DoesNotFit, 0},
		{"one of two", few, sells("A100-SXM-80GB", 2, 1), 0, "", 1},
		{"four of eight beside two processors", cpus, sells("L4", 8, 1), 0, "", 4},
		{"another way holds it", smaller, sells("T4", 1, 1), 1, "", 0},
	} {
		way, why, _ := c.need.fit(nil, c.on)
		if way != c.way || way < 0 && why != c.why {
			t.Errorf("%s: way %d, %q", c.name, way, why)
		}
		if got := c.need.Holds(&c.on.Offer); got != (way >= 0) {
			t.Errorf("%s: held: %v", c.name, got)
		}
		if way < 0 {
			continue
		}
		if _, memory, gpus := c.need.AsksOf(&c.on.Offer); c.gpus > 0 && gpus != c.gpus || memory > 0 && c.on.Offer.Accelerators > 0 {
			t.Errorf("%s: it has %d accelerators and %d bytes of a machine that is shared", c.name, gpus, memory)
		}
	}
	if _, memory, _ := cpus.AsksOf(&market.Offer{CPUs: 8, Memory: 1 << 40}); memory != 60e9 {
		t.Errorf("of a shared machine without accelerators it has %d bytes", memory)
	}
	if few.Holds(&sells("", 0, 1<<40).Offer) || few.Holds(&sells("H100-SXM-80GB", 2, 1).Offer) {
		t.Error("a machine holds it that has not the accelerators which the job asks for")
	}
	if got, want := (Footprint{Machine: 2500e9}).String(), "2500.0 GB of memory"; got != want {
		t.Errorf("it is said as %q, want %q", got, want)
	}
	if plain := (Need{}); open.Key() == plain.Key() || open.Key() == smaller.Key() || !classWide(DoesNotFit) {
		t.Error("jobs that take different memory are of one class")
	}
	if got := smaller.LeastFootprint().String(); got != "12.0 GB of memory on one accelerator" {
		t.Errorf("the least is %q", got)
	}
	if got, want := f.String(), "60.0 GB of memory on one accelerator, 20.0 GB on each of 4, or 60.0 GB on a machine without"; got != want {
		t.Errorf("it is said as %q, want %q", got, want)
	}
}
