package plan

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"scrimp/internal/lib/money"
)

// Class is a set of jobs with the same requirements, whatever their deadlines, budgets and ladders. They share one
// list of suitable offers, sorted by price, so a decision sorts nothing.
type Class struct {
	need     Need // without its ladder
	listings *Listings
	version  uint64 // version of the listings that the class has caught up with

	fit    []candidate // listings that suit the class at their current price, in the order of compare
	known  []known     // by number of the listing
	counts tally       // count of the other listings by reason, in no order
	others []*Listing  // first other listings by ID; nil: not computed yet

	// The providers of the candidates, and of the non-preemptible ones; nil: not computed yet.
	providers, nonPreemptible []string
}

// candidate is a listing that suits a class.
type candidate struct {
	perWork float64
	speed   float64 // of the work on it
	*Listing
	way     int // way to do the work on it: 0 is the job's own, then the variants
	units   int // processors or accelerators on it: see Need.Units
	spot    bool
	prepaid bool
	reads   money.Amount // for reading the inputs there, once for each machine
}

// known is the knowledge of a class about a listing.
type known struct {
	perWork float64
	why     Reason // why it does not suit the class; empty: it is a candidate
}

// NewClass returns the class of jobs with the given need. It ignores the ladder.
func NewClass(s *Listings, n Need) *Class {
	n.Ladder = nil
	c := &Class{need: n, listings: s}
	c.rebuild()
	return c
}

// Concerns reports whether l suits the class, or did when the class was last used.
func (c *Class) Concerns(l *Listing) bool {
	if l.number < len(c.known) && c.known[l.number].why == "" {
		return true
	}
	_, why := c.weigh(l)
	return why == ""
}

// Weighed returns roughly how many listings a decision for the class weighs.
func (c *Class) Weighed() int { return min(len(c.fit), mostOptions) }

// Providers returns the providers of suitable offers, and those of non-preemptible ones, in no order. Callers must
// not change the slices.
func (c *Class) Providers() (all, nonPreemptible []string) {
	c.follow()
	if c.providers != nil {
		return c.providers, c.nonPreemptible
	}
	c.providers, c.nonPreemptible = make([]string, 0, 4), nil
	for n := range c.fit {
		x := &c.fit[n]
		if p := x.Offer.Provider; !slices.Contains(c.providers, p) {
			c.providers = append(c.providers, p)
		}
		if p := x.Offer.Provider; !x.spot && !slices.Contains(c.nonPreemptible, p) {
			c.nonPreemptible = append(c.nonPreemptible, p)
		}
	}
	return c.providers, c.nonPreemptible
}

// Listings returns the market that the class follows.
func (c *Class) Listings() *Listings { return c.listings }

// compare orders by price per unit of work, then by ID.
func (a *candidate) compare(b *candidate) int {
	if a.perWork != b.perWork {
		return cmp.Compare(a.perWork, b.perWork)
	}
	return strings.Compare(string(a.Offer.ID), string(b.Offer.ID))
}

// follow catches up with changes in the market.
func (c *Class) follow() {
	s := c.listings
	behind := s.version - c.version
	switch {
	case behind == 0:
		return
	case behind > uint64(min(len(s.changes), keptChanges)):
		c.rebuild()
		return
	}
	for _, l := range s.changes[uint64(len(s.changes))-behind:] {
		c.update(l)
	}
	c.version = s.version
}

// rebuild sorts the whole market.
func (c *Class) rebuild() {
	s := c.listings
	c.version, c.others, c.providers = s.version, nil, nil
	c.fit, c.counts = c.fit[:0], c.counts[:0]
	c.known = append(c.known[:0], make([]known, len(s.all))...)
	for _, l := range s.all {
		x, why := c.weigh(l)
		c.known[l.number] = known{x.perWork, why}
		if why == "" {
			c.fit = append(c.fit, x)
		} else {
			c.counts.add(why, 1)
		}
	}
	slices.SortFunc(c.fit, func(a, b candidate) int { return a.compare(&b) })
}

// update moves one listing to its new position.
func (c *Class) update(l *Listing) {
	for len(c.known) <= l.number {
		c.known = append(c.known, known{why: unseen})
	}
	was := c.known[l.number]
	x, why := c.weigh(l)
	if was.why == "" {
		at, _ := c.find(&candidate{perWork: was.perWork, Listing: l})
		c.fit = slices.Delete(c.fit, at, at+1)
	} else if was.why != unseen {
		c.counts.add(was.why, -1)
	}
	c.known[l.number] = known{x.perWork, why}
	if why == "" {
		at, _ := c.find(&x)
		c.fit = slices.Insert(c.fit, at, x)
	} else {
		c.counts.add(why, 1)
	}
	if was.why != "" || why != "" {
		c.others, c.providers = nil, nil
	}
}

// unseen marks a listing that was added later.
const unseen Reason = "unseen"

func (c *Class) find(x *candidate) (int, bool) {
	return slices.BinarySearchFunc(c.fit, x, func(a candidate, x *candidate) int { return a.compare(x) })
}

// weigh returns l as a candidate, or the reason why it is none.
func (c *Class) weigh(l *Listing) (candidate, Reason) {
	way, why, ok := c.need.fit(nil, l)
	x := candidate{Listing: l, way: way, spot: l.spot(), prepaid: l.prepaid()}
	if !ok {
		return x, cmp.Or(why, NoOffer)
	}
	x.units = c.need.Units(way, l, false)
	x.speed = c.need.speedOn(way, l, x.units)
	x.perWork = l.perWork(x.speed)
	x.reads, _ = c.need.ReadCost(&l.Offer) // known, because l fits
	return x, ""
}

// perWork is the price of an hour of work on a machine of speed 1, for ranking only.
func (l *Listing) perWork(speed float64) float64 {
	if l.prepaid() {
		return l.Offer.Reserved.Marginal.Float() / speed
	}
	return l.Quote.Rate.Float() / speed
}

// shownOthers is the number of unsuitable listings to look up: those that are shown, and one more because the held
// machine may be among them.
const shownOthers = mostShown + 1

// firstOthers returns the first unsuitable listings by ID. Those that fail only by their price come first.
func (c *Class) firstOthers() []*Listing {
	if c.others != nil || len(c.fit) == len(c.listings.all) {
		return c.others
	}
	for _, byPrice := range []bool{true, false} {
		for _, l := range c.listings.all {
			why := c.known[l.number].why
			if why == "" || byPrice != (why == Unpriced || why == OverPrice) {
				continue
			}
			if len(c.others) == shownOthers {
				break
			}
			c.others = append(c.others, l)
		}
	}
	return c.others
}

// Key is equal for jobs of the same class, and for no others.
func (n *Need) Key() string {
	b := n.key(make([]byte, 0, 64))
	b = binary.AppendVarint(b, int64(n.MaxRate))
	b = binary.AppendVarint(b, int64(n.Machines))
	if n.Critical {
		b = append(b, 1)
	}
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(n.Parallel))
	for i := range n.Variants { // Order matters: the first of equally fast variants is used.
		v := &n.Variants[i]
		b = v.key(append(b, 2))
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v.Throughput))
	}
	return string(n.readsKey(b))
}

func (n *Requirements) key(b []byte) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendVarint(b, int64(n.CPUs))
	b = binary.AppendVarint(b, n.Memory)
	text(n.Accelerator)
	text(n.Image)
	for _, count := range []int64{int64(n.Accelerators), int64(n.MaxCPUs), n.MaxMemory, int64(n.MaxAccelerators)} {
		b = binary.AppendVarint(b, count)
	}
	b = binary.AppendUvarint(b, uint64(len(n.Zones)))
	for _, z := range n.Zones {
		text(z)
	}
	b = binary.AppendUvarint(b, uint64(len(n.Engines)))
	for _, e := range n.Engines {
		text(e)
	}
	b = binary.AppendUvarint(b, uint64(len(n.Capacity)))
	for _, c := range n.Capacity {
		text(string(c))
	}
	return n.Footprint.key(b)
}
