package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
)

// Need lists a job's requirements of a machine. Zero fields require nothing.
type Need struct {
	Requirements
	Machines int        `json:"machines,omitempty"`  // machines at once, at least; 0: one
	MaxRate  money.Rate `json:"max_price,omitempty"` // 0: no limit
	Critical bool       `json:"critical,omitempty"`  // never on spot
	// Parallel is the share of the work, by its time on the lower end of a range of processors or accelerators, that
	// more of them make faster: see Gain. 0: nothing shows that they do.
	Parallel float64 `json:"parallel,omitempty"`
	// Variants are other ways to do the same work, with other requirements.
	Variants []Variant `json:"variants,omitempty"`
	// Ladder orders the alternatives to try; it may be empty.
	Ladder []Rung `json:"ladder,omitempty"`
	// Reads are the inputs whose place is known.
	Reads []Read `json:"reads,omitempty"`
}

// Requirements is what one way of doing the work requires of a machine.
type Requirements struct {
	CPUs         int      `json:"cpus,omitempty"`
	Memory       int64    `json:"memory_bytes,omitempty"`
	Accelerator  string   `json:"accelerator,omitempty"` // empty: none needed
	Accelerators int      `json:"accelerators,omitempty"`
	Zones        []string `json:"zones,omitempty"` // zones or regions
	// Engines restricts the job to engines or their zones (lab, slurm/gpu); empty: all.
	Engines  []string          `json:"engines,omitempty"`
	Capacity []market.Capacity `json:"capacity,omitempty"`
	// Image is the container image of the work; empty: the machine's own.
	Image string `json:"image,omitempty"`
	// Upper limits of the job's resources; 0: no limit.
	MaxCPUs         int   `json:"max_cpus,omitempty"`
	MaxMemory       int64 `json:"max_memory_bytes,omitempty"`
	MaxAccelerators int   `json:"max_accelerators,omitempty"`
	// Footprint is the memory need of the machine or of its accelerators.
	Footprint Footprint `json:"footprint,omitzero"`
}

// Variant is another way to do the work.
type Variant struct {
	Name string `json:"name"`
	Requirements
	// Throughput is the work per second relative to the job's own way, on the machine for which the offer states
	// its speed; 0: 1.
	Throughput float64 `json:"throughput,omitempty"`
}

// Rung is a step of a ladder. It allows the listed values; empty fields allow everything.
type Rung struct {
	Capacity []market.Capacity `json:"capacity,omitempty"`
	Zones    []string          `json:"zones,omitempty"`
	Use      string            `json:"use,omitempty"` // variant; empty: the job's own way
	MaxRate  money.Rate        `json:"max_price,omitempty"`
	// For is how long nothing may be available on this rung before the next one is tried too. It is also how long
	// this rung rests after Failures.
	For time.Duration `json:"for_ns,omitempty"`
	// Failures is the number of losses and refusals after which the job leaves this rung alone for a while; 0: it
	// never does.
	Failures int `json:"failures,omitempty"`
}

// FallbackState is the state of a job on one rung.
type FallbackState struct {
	Failures int       `json:"failures,omitempty"` // since it last rested
	Rests    time.Time `json:"rests,omitzero"`     // end of its rest
}

// rest is how long a rung rests by default.
const rest = 30 * time.Minute

// Rest returns how long the rung rests after its failures.
func (r Rung) Rest() time.Duration { return cmp.Or(r.For, rest) }

// Open returns which rungs are open to a job that has had no machine for the given time, and when that next changes
// by time alone (zero: never). The first rung is open. Each next one opens when the one before was open for its
// time without an available machine, rests after its failures, or names neither.
func Open(ladder []Rung, stand []FallbackState, now time.Time, without time.Duration) (open []bool, next time.Time) {
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
		var s FallbackState
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

// fit returns the fastest way to do the work on l (0 is the job's own, then the variants) and true. Otherwise it
// returns why l does not suit the job, or not on this rung yet, and false.
func (n *Need) fit(open []bool, l *Listing) (way int, why Reason, ok bool) {
	way = -1
	for i := range len(n.Variants) + 1 {
		reason := n.unfit(i, open, l)
		switch {
		case reason == "" && way < 0:
			way = i
		case reason == "":
			_, best := n.way(way)
			if _, speed := n.way(i); speed > best {
				way = i
			}
		case why == "" || reason == LaterRung:
			why = reason
		}
	}
	return way, why, way >= 0
}

// Fits reports whether and how fast l does the work. l need not be for sale here.
func (n *Need) Fits(l *Listing) (speed float64, ok bool) {
	way, _, ok := n.fit(nil, l)
	if !ok {
		return 0, false
	}
	return n.speed(way, l), true
}

// unfit returns why l does not suit that way of doing the work, or "".
func (n *Need) unfit(way int, open []bool, l *Listing) Reason {
	asks, _ := n.way(way)
	if why := asks.unfit(l); why != "" {
		return why
	}
	switch most := l.Offer.AtOnce(); {
	case most > 0 && n.Machines > most:
		return TooFew
	case !l.Quote.Priced:
		return Unpriced
	case n.MaxRate > 0 && l.Quote.Rate > n.MaxRate:
		return OverPrice
	case n.Critical && l.spot():
		return WrongKind
	case !n.readable(&l.Offer):
		return UnknownFare
	case len(n.Ladder) > 0 && !n.allowed(way, open, l):
		return LaterRung
	}
	return ""
}

// speed returns the speed of the work on l, done that way.
func (n *Need) speed(way int, l *Listing) float64 {
	return n.speedOn(way, l, n.Units(way, l, false))
}

// LeastGPUs returns the smallest number of accelerators that any way of doing the work needs.
func (n *Need) LeastGPUs() int {
	least := n.gpus()
	for i := range n.Variants {
		least = min(least, n.Variants[i].gpus())
	}
	return least
}

// RequirementsOf returns the requirements of a variant; "" is the job's own way.
func (n *Need) RequirementsOf(variant string) *Requirements {
	for i := range n.Variants {
		if n.Variants[i].Name == variant {
			return &n.Variants[i].Requirements
		}
	}
	return &n.Requirements
}

// GPUs returns how many accelerators a machine must have.
func (n *Requirements) GPUs() int { return n.gpus() }

func (n *Requirements) gpus() int {
	if n.Accelerator == "" {
		return n.Accelerators
	}
	return max(n.Accelerators, 1)
}

// way returns one way to do the work, and its relative speed.
func (n *Need) way(i int) (*Requirements, float64) {
	if i == 0 {
		return &n.Requirements, 1
	}
	v := &n.Variants[i-1]
	return &v.Requirements, cmp.Or(v.Throughput, 1)
}

// Faster returns the relative speed of a variant; "" is the job's own way.
func (n *Need) Faster(variant string) float64 {
	for i := range n.Variants {
		if n.Variants[i].Name == variant {
			return cmp.Or(n.Variants[i].Throughput, 1)
		}
	}
	return 1
}

// allowed reports whether an open rung allows l for that way of doing the work.
func (n *Need) allowed(way int, open []bool, l *Listing) bool {
	name := ""
	if way > 0 {
		name = n.Variants[way-1].Name
	}
	for i := range n.Ladder {
		if (open == nil || i < len(open) && open[i]) && n.Ladder[i].allows(&l.Offer, l.Quote.Rate, name) {
			return true
		}
	}
	return false
}

// RungOf returns the first rung that allows the offer for the variant, or -1.
func (n *Need) RungOf(o market.Offer, rate money.Rate, variant string) int {
	for i := range n.Ladder {
		if n.Ladder[i].allows(&o, rate, variant) {
			return i
		}
	}
	return -1
}

func (r *Rung) allows(o *market.Offer, rate money.Rate, variant string) bool {
	return r.Use == variant && (len(r.Capacity) == 0 || slices.Contains(r.Capacity, o.Capacity)) &&
		(len(r.Zones) == 0 || in(r.Zones, o)) && (r.MaxRate == 0 || rate <= r.MaxRate)
}

func in(zones []string, o *market.Offer) bool {
	return slices.Contains(zones, o.Zone) || slices.Contains(zones, o.Region)
}

// unfit returns why a machine of the offer can never do the work this way, or "".
func (n *Requirements) unfit(l *Listing) Reason {
	o := &l.Offer
	switch why := n.equip(l); {
	case why != "":
		return why
	case !n.there(o):
		return WrongPlace
	case len(n.Capacity) > 0 && !slices.Contains(n.Capacity, o.Capacity):
		return WrongKind
	}
	return ""
}

// there reports whether the job may run where the offer is.
func (n *Requirements) there(o *market.Offer) bool {
	sells := func(engine string) bool { return Sells(engine, o) }
	return (len(n.Zones) == 0 || in(n.Zones, o)) && (len(n.Engines) == 0 || slices.ContainsFunc(n.Engines, sells))
}

// Sells reports whether the engine, or the zone of an engine (name/zone), sells the offer.
func Sells(engine string, o *market.Offer) bool {
	name, zone, part := strings.Cut(engine, "/")
	return name == o.Provider && (!part || zone == o.Zone)
}

// equip returns why an offer is not equipped for the work, or "".
func (n *Requirements) equip(l *Listing) Reason {
	o := &l.Offer
	switch {
	case o.CPUs < n.CPUs, int64(o.Memory) < n.Memory:
		return TooSmall
	case !n.accelerated(o):
		return WrongGPU
	case !n.holds(o):
		return DoesNotFit
	case n.exceeded(o) && (!l.shared || !n.isPart(o)):
		return TooLarge
	case n.Image != "" && !o.Images:
		return NoImages
	}
	return ""
}

// accelerated reports whether a machine of the offer has the required accelerators.
func (n *Requirements) accelerated(o *market.Offer) bool {
	return n.Accelerator == "" || n.is(o) && o.Accelerators >= n.gpus()
}

// is reports whether the offer's accelerators match the required name by the catalogue's rules: A100 is every A100,
// A100-80GB only those with 80 GB.
func (n *Requirements) is(o *market.Offer) bool {
	return strings.EqualFold(o.Accelerator, n.Accelerator) || accelerator.Matches(n.Accelerator, o.Accelerator)
}

// exceeded reports whether a machine of the offer has more than the job may have.
func (n *Requirements) exceeded(o *market.Offer) bool {
	return n.MaxCPUs > 0 && o.CPUs > n.MaxCPUs || n.MaxMemory > 0 && int64(o.Memory) > n.MaxMemory ||
		n.MaxAccelerators > 0 && o.Accelerators > n.MaxAccelerators
}

// isPart reports whether the job gets only a portion of a shared machine of the offer: the least that it requests.
// A job that requests all of something gets the whole machine.
func (n *Requirements) isPart(o *market.Offer) bool {
	cpus, memory, gpus := n.AsksOf(o)
	return (cpus > 0 || memory > 0 || gpus > 0) &&
		cpus < o.CPUs && memory < int64(o.Memory) && (o.Accelerators == 0 || gpus < o.Accelerators)
}

// Equipped reports whether l has what some way of doing the work needs, whatever its price, place and capacity.
func (n *Need) Equipped(l *Listing) bool {
	for i := range len(n.Variants) + 1 {
		if asks, _ := n.way(i); asks.equip(l) == "" {
			return true
		}
	}
	return false
}

// Holds reports whether a machine of o has the accelerators that some way of doing the work needs, and holds its
// model.
func (n *Need) Holds(o *market.Offer) bool {
	for i := range len(n.Variants) + 1 {
		if asks, _ := n.way(i); asks.accelerated(o) && asks.holds(o) {
			return true
		}
	}
	return false
}

// Imaged reports whether machines of o run the image that some way of doing the work needs.
func (n *Need) Imaged(o *market.Offer) bool {
	if o.Images || n.Image == "" {
		return true
	}
	return slices.ContainsFunc(n.Variants, func(v Variant) bool { return v.Image == "" })
}

// Large reports whether o has the processors and the memory that some way of doing the work needs.
func (n *Need) Large(o *market.Offer) bool {
	for i := range len(n.Variants) + 1 {
		if asks, _ := n.way(i); o.CPUs >= asks.CPUs && int64(o.Memory) >= asks.Memory {
			return true
		}
	}
	return false
}

// Accelerated reports whether o has the accelerators that some way of doing the work needs.
func (n *Need) Accelerated(o *market.Offer) bool {
	for i := range len(n.Variants) + 1 {
		if asks, _ := n.way(i); asks.accelerated(o) {
			return true
		}
	}
	return false
}
