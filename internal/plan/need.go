package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
)

// Need is what the job asks of a machine. Zero fields ask for nothing.
type Need struct {
	Asks
	MaxRate  money.Rate `json:"max_price,omitempty"` // 0: no limit
	Critical bool       `json:"critical,omitempty"`  // never on what can be taken away
	// Variants are other ways to do the same work, which ask for other machines.
	Variants []Variant `json:"variants,omitempty"`
	// Ladder, where there is one, says what is tried first, and what later.
	Ladder []Rung `json:"ladder,omitempty"`

	plain bool // the market has no accelerators at all, as a machine of one's own without one
}

// Asks is what one way of doing the work asks of a machine.
type Asks struct {
	CPUs         int               `json:"cpus,omitempty"`
	Memory       int64             `json:"memory_bytes,omitempty"`
	Accelerator  string            `json:"accelerator,omitempty"` // "": none needed
	Accelerators int               `json:"accelerators,omitempty"`
	Zones        []string          `json:"zones,omitempty"` // zones or regions
	Capacity     []market.Capacity `json:"capacity,omitempty"`
}

// Variant is one of them.
type Variant struct {
	Name string `json:"name"`
	Asks
	// Throughput is work a second against the job's own way, on the machine of which
	// the offer states its speed; 0: 1.
	Throughput float64 `json:"throughput,omitempty"`
}

// Rung is a step of a ladder. It allows what it names; empty fields allow all.
type Rung struct {
	Capacity []market.Capacity `json:"capacity,omitempty"`
	Zones    []string          `json:"zones,omitempty"`
	Use      string            `json:"use,omitempty"` // a variant; "": the job's own way
	MaxRate  money.Rate        `json:"max_price,omitempty"`
	// For is how long nothing may be had here before the next rung is tried too; and
	// how long this one rests after Failures.
	For time.Duration `json:"for_ns,omitempty"`
	// Failures is how many losses and refusals here make the job leave this rung
	// alone for a while; 0: none do.
	Failures int `json:"failures,omitempty"`
}

// Standing is where a job stands on a rung.
type Standing struct {
	Failures int       `json:"failures,omitempty"` // since it last rested
	Rests    time.Time `json:"rests,omitzero"`     // until then
}

// rest is how long a rung rests that does not say.
const rest = 30 * time.Minute

// Rest is how long the rung rests after its failures.
func (r Rung) Rest() time.Duration { return cmp.Or(r.For, rest) }

// Open says which rungs are allowed now to a job that has had no machine for a
// time, and when that changes next by time alone (zero: never). The first is open;
// each next one opens when the one before has been open for its time without a
// machine to be had, rests after its failures, or names neither.
func Open(ladder []Rung, stand []Standing, now time.Time, without time.Duration) (open []bool, next time.Time) {
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	open = make([]bool, len(ladder))
	opens := true
	patience := time.Duration(0)
	for i, r := range ladder {
		if !opens {
			break
		}
		var s Standing
		if i < len(stand) {
			s = stand[i]
		}
		rests := now.Before(s.Rests)
		open[i] = !rests
		patience += r.For
		switch {
		case rests:
			sooner(s.Rests)
		case r.For > 0:
			if opens = without >= patience; !opens {
				sooner(now.Add(patience - without))
			}
		case r.Failures > 0:
			opens = false
		}
	}
	return open, next
}

// fit returns why o can never do for the job (or not on this rung yet) and false,
// or the way of doing the work that is fastest on it, and true: 0 is the job's
// own, then the variants.
func (n *Need) fit(open []bool, o *Option) (way int, why Reason, ok bool) {
	way = -1
	for i := range len(n.Variants) + 1 {
		asks, speed := n.way(i)
		reason, fits := asks.unfit(o, n.plain)
		switch {
		case !fits:
		case !o.Quote.Priced:
			reason, fits = Unpriced, false
		case n.MaxRate > 0 && o.Quote.Rate > n.MaxRate:
			reason, fits = OverPrice, false
		case n.Critical && o.Offer.Capacity == market.Spot:
			reason, fits = WrongKind, false
		case len(n.Ladder) > 0 && !n.allowed(i, open, o):
			reason, fits = LaterRung, false
		}
		switch {
		case fits && way < 0:
			way = i
		case fits:
			if _, best := n.way(way); speed > best {
				way = i
			}
		case why == "" || reason == LaterRung:
			why = reason
		}
	}
	return way, why, way >= 0
}

// Cheapest is the price of the machine, of those that are for sale now, on which the
// work costs the least, and how fast the work is done there; false where none does.
// Spot counts as if nobody took it.
func (n *Need) Cheapest(options []Option) (rate money.Rate, speed float64, ok bool) {
	need := *n
	need.plain = isPlain(options)
	for i := range options {
		o := &options[i]
		if !o.Quote.Available {
			continue
		}
		way, _, fits := need.fit(nil, o)
		if !fits {
			continue
		}
		_, faster := need.way(way)
		pace := float64(cmp.Or(max(o.Offer.Speed, 0), 1) * faster)
		if !ok || o.Quote.Rate.Float()*speed < rate.Float()*pace {
			rate, speed, ok = o.Quote.Rate, pace, true
		}
	}
	return rate, speed, ok
}

// LeastGPUs is how many accelerators a machine must have that does the work in any way.
func (n *Need) LeastGPUs() int {
	least := n.gpus()
	for i := range n.Variants {
		least = min(least, n.Variants[i].gpus())
	}
	return least
}

func (n *Asks) gpus() int {
	if n.Accelerator == "" {
		return n.Accelerators
	}
	return max(n.Accelerators, 1)
}

// way is one way to do the work, and how fast.
func (n *Need) way(i int) (*Asks, float64) {
	if i == 0 {
		return &n.Asks, 1
	}
	v := &n.Variants[i-1]
	return &v.Asks, cmp.Or(v.Throughput, 1)
}

// Faster is how many times as fast the variant does the work; "" is the job's own way.
func (n *Need) Faster(variant string) float64 {
	for i := range n.Variants {
		if n.Variants[i].Name == variant {
			return cmp.Or(n.Variants[i].Throughput, 1)
		}
	}
	return 1
}

// allowed reports whether an open rung allows o for that way of doing the work.
func (n *Need) allowed(way int, open []bool, o *Option) bool {
	name := ""
	if way > 0 {
		name = n.Variants[way-1].Name
	}
	for i, r := range n.Ladder {
		if open != nil && (i >= len(open) || !open[i]) {
			continue
		}
		if r.Use == name && (len(r.Capacity) == 0 || slices.Contains(r.Capacity, o.Offer.Capacity)) &&
			(len(r.Zones) == 0 || in(r.Zones, o.Offer)) && (r.MaxRate == 0 || o.Quote.Rate <= r.MaxRate) {
			return true
		}
	}
	return false
}

// RungOf is the first rung that allows the offer for the variant, or -1.
func (n *Need) RungOf(o market.Offer, rate money.Rate, variant string) int {
	for i, r := range n.Ladder {
		if r.Use == variant && (len(r.Capacity) == 0 || slices.Contains(r.Capacity, o.Capacity)) && (len(r.Zones) == 0 || in(r.Zones, o)) && (r.MaxRate == 0 || rate <= r.MaxRate) {
			return i
		}
	}
	return -1
}

func in(zones []string, o market.Offer) bool {
	return slices.Contains(zones, o.Zone) || slices.Contains(zones, o.Region)
}

// unfit returns why a machine of the offer can never do the work this way, and
// false, or true where it can. Where the whole market is plain, nobody heeds the
// accelerator.
func (n *Asks) unfit(o *Option, plain bool) (Reason, bool) {
	switch {
	case o.Offer.CPUs < n.CPUs, int64(o.Offer.Memory) < n.Memory:
		return TooSmall, false
	case n.Accelerator != "" && !plain && (!strings.EqualFold(o.Offer.Accelerator, n.Accelerator) || o.Offer.Accelerators < max(n.Accelerators, 1)):
		return WrongGPU, false
	case len(n.Zones) > 0 && !in(n.Zones, o.Offer):
		return WrongPlace, false
	case len(n.Capacity) > 0 && !slices.Contains(n.Capacity, o.Offer.Capacity):
		return WrongKind, false
	}
	return "", true
}
