package market

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// Builtin returns a built-in market: "calm" or "stormy". Prices are proportional to those of a small cloud machine, and
// not any provider's.
func Builtin(name string, cpus int, memory size.Bytes) (Trace, error) {
	switch name {
	case "calm":
		return Generate(Params{Name: name, Zones: 2, CPUs: cpus, Memory: memory, MedianUp: 20 * time.Hour,
			MedianDown: 10 * time.Minute, Notice: 2 * time.Minute, Length: 30 * 24 * time.Hour}, 1), nil
	case "stormy":
		return Generate(Params{Name: name, Zones: 2, CPUs: cpus, Memory: memory, MedianUp: 30 * time.Minute,
			MedianDown: 20 * time.Minute, Notice: 30 * time.Second, Length: 30 * 24 * time.Hour}, 1), nil
	}
	return Trace{}, fmt.Errorf("market %q is neither a file nor one of calm, stormy", name)
}

// Params describe a generated market.
type Params struct {
	Name       string
	Zones      int
	CPUs       int
	Memory     size.Bytes
	MedianUp   time.Duration // of a spot period
	MedianDown time.Duration // between two periods
	Notice     time.Duration // wall time
	Length     time.Duration // after which it repeats
}

// Generate draws a market. Spot periods are heavy-tailed (Weibull with shape 0.6: the hazard falls with age, as in the
// public spot traces), and prices change by up to a tenth at each period. Generate is deterministic in seed.
func Generate(p Params, seed uint64) Trace {
	rng := rand.New(rand.NewPCG(seed, 0x6d61726b6574))
	t := Trace{Name: p.Name, Currency: money.USD, Speed: 1, Repeat: p.Length}
	draw := func(median time.Duration) time.Duration {
		u := max(rng.Float64(), 1e-9)
		d := float64(median) * math.Pow(-math.Log(u)/math.Ln2, 1/0.6)
		return max(time.Minute, time.Duration(d).Truncate(time.Second))
	}
	for z := range p.Zones {
		zone := fmt.Sprintf("zone-%c", 'a'+z)
		offer := Offer{
			Provider: "local", Region: "local", Zone: zone, Machine: "this", Capacity: Spot, CPUs: p.CPUs,
			Memory: p.Memory, Speed: 1,
			Notice: p.Notice, Currency: money.USD, Billing: Billing{Minimum: time.Minute},
		}
		offer.ID = ID(offer)
		line := TraceLine{Offer: offer}
		rate := money.Rate(30_000_000_000 + rng.Int64N(6_000_000_000))
		for at := time.Duration(0); ; {
			up := draw(p.MedianUp)
			if at+up >= p.Length-time.Minute {
				line.Available = append(line.Available, Span{From: at, To: p.Length, Notice: p.Notice})
				line.Price = append(line.Price, Price{At: at, Rate: rate})
				break
			}
			line.Available = append(line.Available, Span{From: at, To: at + up, Notice: p.Notice})
			line.Price = append(line.Price, Price{At: at, Rate: rate})
			rate = min(max(rate*money.Rate(95+rng.IntN(11))/100, 25_000_000_000), 40_000_000_000)
			at += up + draw(p.MedianDown)
			if at >= p.Length-2*time.Minute {
				break
			}
		}
		firm := offer
		firm.Capacity, firm.Notice = OnDemand, 0
		firm.ID = ID(firm)
		t.Lines = append(t.Lines, line, TraceLine{Offer: firm, Price: []Price{{Rate: 100_000_000_000}}})
	}
	return t
}

// ID returns the name of an offer: provider/zone/machine/capacity.
func ID(o Offer) OfferID {
	return OfferID(o.Provider + "/" + o.Zone + "/" + o.Machine + "/" + string(o.Capacity))
}
