//go:build !local

package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// termsName is the file in an engine's folder with the costs of reservations.
const termsName = "aws-reservations.json"

// ahead is the period for which a reservation without an end counts as paid.
const ahead = 10 * 365 * 24 * time.Hour

// ClosedFor is how long a reservation is listed after its end, so that the ledger can make its last posting.
const ClosedFor = 30 * 24 * time.Hour

// terms holds what must survive a restart of the server about reservations. EC2 provides everything else.
type terms struct {
	Of map[market.OfferID]*Contract `json:"of"`

	path string // empty: only in memory
}

// Contract holds a reservation's hourly cost, since when, and its earlier cost. It is kept for good: its offer's name
// must not be given to another reservation, because the ledger identifies it by that.
type Contract struct {
	Reservation string        `json:"reservation"`
	Count       int           `json:"count"`
	Block       bool          `json:"block,omitempty"`
	Rate        money.Rate    `json:"rate"`           // per hour of all machines, used or not
	Paid        *money.Amount `json:"paid,omitempty"` // for all of a block
	From        time.Time     `json:"from"`
	Until       time.Time     `json:"until"`
	Over        bool          `json:"over,omitempty"`
	Before      money.Amount  `json:"before"`
	Machine     money.Rate    `json:"machine"` // per hour of one of its machines
	Offer       market.Offer  `json:"offer"`
	// Outside holds machines that were ordered in the reservation and ran outside, as on-demand, by id.
	Outside map[string]*outside `json:"outside,omitempty"`
}

// outside is a machine that EC2 bills in addition to the reservation that it was ordered in.
type outside struct {
	From time.Time  `json:"from"`
	To   time.Time  `json:"to,omitzero"` // zero: it continues
	Rate money.Rate `json:"rate"`
}

// Stray is a machine that is outside the reservation that it was ordered in.
type Stray struct {
	ID, Reservation, Kind string
	From                  time.Time
	Ended                 time.Time // zero: it runs
}

// readTerms reads what a server has stored. A read-only instance writes nothing.
func readTerms(h *engine.Host, name string) (*terms, error) {
	t := &terms{Of: map[market.OfferID]*Contract{}}
	if h.Dir == "" {
		return t, nil
	}
	path := filepath.Join(h.Dir, "engines", name, termsName)
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, t)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w: move it away to count the costs of reservations from now on", path, err)
	}
	if t.Of == nil {
		t.Of = map[market.OfferID]*Contract{}
	}
	if !h.Trial {
		t.path = path
	}
	return t, nil
}

func (t *terms) write() error {
	if t.path == "" {
		return nil
	}
	text, err := json.Marshal(t)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(t.path), 0o700)
	}
	if err == nil {
		err = durable.Replace(t.path, text)
	}
	if err != nil {
		return fmt.Errorf("store the costs of reservations: %w", err)
	}
	return nil
}

// by returns the contract of a reservation and its offer's name; nil if there is none.
func (t *terms) by(reservation string) (market.OfferID, *Contract) {
	for _, id := range slices.Sorted(maps.Keys(t.Of)) {
		if c := t.Of[id]; c.Reservation == reservation {
			return id, c
		}
	}
	return "", nil
}

// perHour returns the hourly price of one of count machines, cut off.
func perHour(paid money.Amount, count int, span time.Duration) money.Rate {
	return market.Term{Count: count, To: span, Paid: paid}.Rate()
}

// reservation returns the terms of the contract's offer at a time. besides is the additional hourly cost of use: disk
// and address.
func (c *Contract) reservation(now time.Time, besides money.Rate, team string) market.Reservation {
	r := market.Reservation{Count: c.Count, From: c.From, Until: c.Until, Before: c.Before, Marginal: besides, Team: team}
	switch {
	case c.Paid != nil:
		r.Paid = *c.Paid
	case c.Until.After(c.From):
		r.Paid = c.Rate.Until(c.Until.Sub(c.From))
	}
	if c.Rate == 0 && c.Paid == nil { // another account's: only use costs
		r.Marginal += c.Machine
	}
	for _, o := range c.Outside { // a sum has no order
		to := o.To
		if to.IsZero() {
			to = now
		}
		if to.After(o.From) {
			r.Before = r.Before.Add(o.Rate.Until(to.Sub(o.From)))
		}
	}
	return r
}

// settle records what reservations have cost so far if their terms have changed.
func (b *Book) settle(x *stock.Stock, all []Held, now time.Time, outside []Stray) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed, listed := false, map[string]bool{}
	for n := range all {
		h := &all[n]
		listed[h.ID] = true
		if h.Unfit == "" {
			changed = b.contracts(x, h, now) || changed
		}
	}
	for _, c := range b.terms.Of {
		if !c.Over && !listed[c.Reservation] { // EC2 no longer lists it, or it is not wanted any more
			c.ends(now)
			changed = true
		}
	}
	changed = b.strays(x, outside) || changed
	if !changed {
		return nil
	}
	return b.terms.write()
}

// ends ends a contract at a time. An upfront payment stays paid.
func (c *Contract) ends(at time.Time) {
	c.Over = true
	if c.Paid == nil && at.Before(c.Until) {
		c.Until = at
	}
}

// contracts updates the contract of a reservation and reports whether it changed. The caller holds mu.
func (b *Book) contracts(x *stock.Stock, h *Held, now time.Time) bool {
	machine, paid, priced := h.Rate(x)
	_, c := b.terms.by(h.ID)
	if c == nil && (!priced || h.Over(now)) {
		return false // its price is unknown, or it ended before it was known
	}
	want := Contract{Reservation: h.ID, Count: h.Count, Block: h.Block, Machine: machine, From: h.From, Until: h.Usable()}
	if want.Until.IsZero() {
		want.Until = now.Add(ahead)
	}
	switch {
	case h.never():
		want.Until = want.From
	case h.Block:
		want.Paid = &paid
	case h.Ours:
		want.Rate = machine.Times(h.Count)
	}
	if c == nil {
		if !h.Block && want.From.Before(now) {
			want.From = now // its earlier cost is on bills that scrimp has not seen
		}
		id := b.nameOf(h)
		want.Offer = b.OfferOf(x, h, id)
		b.terms.Of[id] = &want
		return true
	}
	return c.renew(&want, h, now, priced)
}

// expire ends the contract with its reservation, which costs nothing if it never began.
func (c *Contract) expire(h *Held, now time.Time) {
	if end := h.Usable(); !end.IsZero() && end.Before(now) {
		now = end
	}
	if h.never() {
		c.Paid, c.Rate = nil, 0
	}
	c.ends(now)
}

// renew applies the wanted terms from now on, and reports whether they differ.
func (c *Contract) renew(want *Contract, h *Held, now time.Time, priced bool) bool {
	switch {
	case c.Over:
		return false
	case h.Over(now):
		c.expire(h, now)
		return true
	case !priced: // the price was known, and an unknown price now does not change it
		return false
	case c.Block:
		same := *c.Paid == *want.Paid && c.Count == want.Count && c.Until.Equal(want.Until) && c.From.Equal(want.From)
		c.Paid, c.Count, c.From, c.Until, c.Machine = want.Paid, want.Count, want.From, want.Until, want.Machine
		return !same
	}
	endless := h.Until.IsZero() && c.Until.Sub(now) > ahead/2
	sameEnd := endless || c.Until.Equal(want.Until)
	if sameEnd && c.Count == want.Count && c.Rate == want.Rate && c.Machine == want.Machine {
		return false
	}
	old := *c
	old.Outside = nil // counted separately
	if now.After(c.From) {
		r := old.reservation(now, 0, "")
		c.Before, c.From = r.Committed(now), now
	}
	c.Count, c.Rate, c.Machine, c.Until = want.Count, want.Rate, want.Machine, want.Until
	return true
}

// strays records machines that were ordered in a reservation and are outside it, which EC2 bills as on-demand, and
// reports whether anything is new. The caller holds mu.
func (b *Book) strays(x *stock.Stock, machines []Stray) (changed bool) {
	for _, s := range machines {
		_, c := b.terms.by(s.Reservation)
		if c == nil {
			continue
		}
		if c.Outside == nil {
			c.Outside = map[string]*outside{}
		}
		o := c.Outside[s.ID]
		if o == nil {
			o = &outside{From: s.From, Rate: x.Listed[s.Kind].Rate}
			c.Outside[s.ID], changed = o, true
		}
		if !s.Ended.IsZero() && !o.To.Equal(s.Ended) {
			o.To, changed = s.Ended, true
		}
	}
	return changed
}

// nameOf returns the name of a reservation's offer: the plain one for the first of its type and zone. The caller
// holds mu.
func (b *Book) nameOf(h *Held) market.OfferID {
	plain := stock.OfferID(b.Engine, h.Zone, h.Kind, market.Reserved)
	if b.terms.Of[plain] == nil {
		return plain
	}
	return stock.OfferID(b.Engine, h.Zone, h.Kind+"@"+h.ID, market.Reserved)
}

// OfferOf returns a reservation's offer without its price.
func (b *Book) OfferOf(x *stock.Stock, h *Held, id market.OfferID) market.Offer {
	k := x.Types[slices.IndexFunc(x.Types, func(k stock.Type) bool { return k.Name == h.Kind })]
	return market.Offer{ID: id, Provider: b.Engine, Region: b.With.Region, Zone: h.Zone, Machine: h.Kind,
		Capacity: market.Reserved, CPUs: k.CPUs, Memory: k.Memory, Accelerator: k.Accelerator, Accelerators: k.Accelerators,
		Currency: money.USD}
}

// Sold returns the terms of a contract's offer.
func (b *Book) Sold(c *Contract, now time.Time, besides money.Rate,
	set *setting.Reservation) market.Reservation {
	team := ""
	if set == nil {
		set = b.With.SettingOf(c.Reservation)
	}
	if set != nil {
		team = set.Team
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.reservation(now, besides, team)
}

// Until returns when a reservation ends or ended; zero if it has no known end.
func (b *Book) Until(reservation string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, c := b.terms.by(reservation); reservation != "" && c != nil && !c.Until.After(b.Now()) {
		return c.Until
	}
	return time.Time{}
}

// Contracted returns the contract of a reservation and the name of its offer; the contract is nil if it has no price.
func (b *Book) Contracted(h *Held) (market.OfferID, *Contract) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, c := b.terms.by(h.ID)
	if c == nil {
		id = b.nameOf(h)
	}
	return id, c
}

// Contracts returns all contracts by the names of their offers.
func (b *Book) Contracts() map[market.OfferID]*Contract {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.terms.Of)
}

// MachineRate returns the hourly cost of a machine in a reservation; false if it is unknown.
func (b *Book) MachineRate(x *stock.Stock, l *List, reservation string) (money.Rate, bool) {
	b.mu.Lock()
	_, c := b.terms.by(reservation)
	b.mu.Unlock()
	if c != nil {
		return c.Machine, true
	}
	for n := range l.All {
		if h := &l.All[n]; h.ID == reservation {
			rate, _, ok := h.Rate(x)
			return rate, ok
		}
	}
	return 0, false
}
