package plan

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// Class is the jobs that ask for the same, whatever their deadlines, budgets and ladders:
// they share one list of what does for them, in the order of price, so that a decision
// sorts nothing.
type Class struct {
	need     Need // without a ladder
	listings *Listings
	version  uint64 // of the listings, that it follows

	fit    []candidate // what does the work at its present price, in the order of compare
	known  []known     // by number of the listing
	counts tally       // of the others by reason, in no order
	others []*Listing  // the first of the others by ID; nil: to be looked up

	providers, firm []string // of the candidates, and of those that are not interrupted; nil: to be looked up
}

// candidate is a listing that does for a class.
type candidate struct {
	perWork float64
	speed   float64 // of the work on it
	*Listing
	way     int // of doing the work on it: 0 the job's own, then the variants
	spot    bool
	prepaid bool
}

// known is what a class knows of a listing.
type known struct {
	perWork float64
	why     Reason // it does not do; "": it is a candidate
}

// NewClass returns the class of jobs with that need, its ladder aside.
func NewClass(s *Listings, n Need) *Class {
	n.Ladder = nil
	c := &Class{need: n, listings: s}
	c.rebuild()
	return c
}

// Concerns reports whether l does for the class, or did when the class was used last.
func (c *Class) Concerns(l *Listing) bool {
	if l.number < len(c.known) && c.known[l.number].why == "" {
		return true
	}
	_, why := c.weigh(l)
	return why == ""
}

// Weighed is about how many listings a decision for the class weighs.
func (c *Class) Weighed() int { return min(len(c.fit), mostOptions) }

// Providers are those that sell what does for the class, and of them those that sell
// machines that are not interrupted; in no order. They are the class's own.
func (c *Class) Providers() (all, firm []string) {
	c.follow()
	if c.providers != nil {
		return c.providers, c.firm
	}
	c.providers, c.firm = make([]string, 0, 4), nil
	for n := range c.fit {
		x := &c.fit[n]
		if p := x.Offer.Provider; !slices.Contains(c.providers, p) {
			c.providers = append(c.providers, p)
		}
		if p := x.Offer.Provider; !x.spot && !slices.Contains(c.firm, p) {
			c.firm = append(c.firm, p)
		}
	}
	return c.providers, c.firm
}

// Listings is the market that it follows.
func (c *Class) Listings() *Listings { return c.listings }

// compare orders by the price of the work, then by ID.
func (a *candidate) compare(b *candidate) int {
	if a.perWork != b.perWork {
		return cmp.Compare(a.perWork, b.perWork)
	}
	return strings.Compare(string(a.Offer.ID), string(b.Offer.ID))
}

// follow takes over what changed in the market since.
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

// update moves one listing to where it belongs now.
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

// unseen marks a listing that came since.
const unseen Reason = "unseen"

func (c *Class) find(x *candidate) (int, bool) {
	return slices.BinarySearchFunc(c.fit, x, func(a candidate, x *candidate) int { return a.compare(x) })
}

// weigh returns l as a candidate, or why it is none.
func (c *Class) weigh(l *Listing) (candidate, Reason) {
	way, why, ok := c.need.fit(nil, l)
	x := candidate{Listing: l, way: way, spot: l.spot(), prepaid: l.prepaid()}
	if !ok {
		return x, cmp.Or(why, NoOffer)
	}
	x.speed = c.need.speed(way, l)
	x.perWork = l.perWork(x.speed)
	return x, ""
}

// perWork is the price of an hour of work on a machine of speed 1, for ranking only.
func (l *Listing) perWork(speed float64) float64 {
	if l.prepaid() {
		return l.Offer.Reserved.Marginal.Float() / speed
	}
	return l.Quote.Rate.Float() / speed
}

// shownOthers is how many of what does not do are looked up: those that are shown, and
// one more, for the held machine may be among them.
const shownOthers = mostShown + 1

// firstOthers are the first of those that do not do, by ID: before all others those that
// fail by their price only.
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

// Key is the same for jobs of the same class, and for no others.
func (n *Need) Key() string {
	b := n.key(make([]byte, 0, 64))
	b = binary.AppendVarint(b, int64(n.MaxRate))
	b = binary.AppendVarint(b, int64(n.Machines))
	if n.Critical {
		b = append(b, 1)
	}
	for i := range n.Variants { // in their order: the first that is as fast is taken
		v := &n.Variants[i]
		b = v.key(append(b, 2))
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v.Throughput))
	}
	return string(b)
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
