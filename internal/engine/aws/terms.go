//go:build !local

package aws

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
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// termsName is the file in an engine's folder that says what reservations have cost.
const termsName = "aws-reservations.json"

// ahead is how far ahead a reservation without an end counts as paid for.
const ahead = 10 * 365 * 24 * time.Hour

// closedFor is how long a reservation is listed after its end: the ledger's last posting is made meanwhile.
const closedFor = 30 * 24 * time.Hour

// terms are what has to survive the server of reservations. Of everything else EC2 has what is known.
type terms struct {
	Of map[market.OfferID]*contract `json:"of"`

	path string // "": it is kept in memory
}

// contract is what a reservation costs by the hour, since when, and what it had cost before. One is kept for good: its
// offer's name is not given to another reservation, since the ledger knows it by that.
type contract struct {
	Reservation string        `json:"reservation"`
	Count       int           `json:"count"`
	Block       bool          `json:"block,omitempty"`
	Rate        money.Rate    `json:"rate"`           // of an hour of all machines, whether they are used or not
	Paid        *money.Amount `json:"paid,omitempty"` // for all of a block
	From        time.Time     `json:"from"`
	Until       time.Time     `json:"until"`
	Over        bool          `json:"over,omitempty"`
	Before      money.Amount  `json:"before"`
	Machine     money.Rate    `json:"machine"` // of an hour of one of its machines
	Offer       market.Offer  `json:"offer"`
	// Outside are machines that were ordered in it and have run outside, as on demand, by their ids.
	Outside map[string]*outside `json:"outside,omitempty"`
}

// outside is a machine that EC2 bills beside the reservation that it was ordered in.
type outside struct {
	From time.Time  `json:"from"`
	To   time.Time  `json:"to,omitzero"` // zero: it goes on
	Rate money.Rate `json:"rate"`
}

// readTerms reads what a server has kept. One that is opened to be looked at writes nothing.
func readTerms(h *engine.Host, name string) (*terms, error) {
	t := &terms{Of: map[market.OfferID]*contract{}}
	if h.Dir == "" {
		return t, nil
	}
	path := filepath.Join(h.Dir, "engines", name, termsName)
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, t)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w: move it away to count what reservations cost anew from now on", path, err)
	}
	if t.Of == nil {
		t.Of = map[market.OfferID]*contract{}
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
		return fmt.Errorf("keep what reservations cost: %w", err)
	}
	return nil
}

// by is the contract of a reservation and its offer's name; nil: there is none.
func (t *terms) by(reservation string) (market.OfferID, *contract) {
	for _, id := range slices.Sorted(maps.Keys(t.Of)) {
		if c := t.Of[id]; c.Reservation == reservation {
			return id, c
		}
	}
	return "", nil
}

// perHour is what an hour of one of count machines costs, cut off.
func perHour(paid money.Amount, count int, span time.Duration) money.Rate {
	return market.Term{Count: count, To: span, Paid: paid}.Rate()
}

// reservation is the contract as it is sold at a time. besides is what an hour of use costs more: disk and address.
func (c *contract) reservation(now time.Time, besides money.Rate, team string) market.Reservation {
	r := market.Reservation{Count: c.Count, From: c.From, Until: c.Until, Before: c.Before, Marginal: besides, Team: team}
	switch {
	case c.Paid != nil:
		r.Paid = *c.Paid
	case c.Until.After(c.From):
		r.Paid = c.Rate.Until(c.Until.Sub(c.From))
	}
	if c.Rate == 0 && c.Paid == nil { // another account's: it costs what it is used
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

// settle keeps what reservations have cost by now where they are others since.
func (d *Driver) settle(x *index, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed, listed := false, map[string]bool{}
	for n := range x.held {
		h := &x.held[n]
		listed[h.id] = true
		if h.unfit == "" {
			changed = d.contracts(x, h, now) || changed
		}
	}
	for _, c := range d.terms.Of {
		if !c.Over && !listed[c.Reservation] { // EC2 lists it no more, or it is not wanted any more
			c.ends(now)
			changed = true
		}
	}
	changed = d.strays(x) || changed
	if !changed {
		return nil
	}
	return d.terms.write()
}

// ends makes a contract end at a time. What was paid up front stays paid.
func (c *contract) ends(at time.Time) {
	c.Over = true
	if c.Paid == nil && at.Before(c.Until) {
		c.Until = at
	}
}

// contracts brings the contract of a reservation up to date, and reports whether anything of it changed. The caller
// holds mu.
func (d *Driver) contracts(x *index, h *held, now time.Time) bool {
	machine, paid, priced := h.rate(x)
	_, c := d.terms.by(h.id)
	if c == nil && (!priced || h.over(now)) {
		return false // nobody says what it costs, or it was over before it was known
	}
	want := contract{Reservation: h.id, Count: h.count, Block: h.block, Machine: machine, From: h.from, Until: h.usable()}
	if want.Until.IsZero() {
		want.Until = now.Add(ahead)
	}
	switch {
	case h.never():
		want.Until = want.From
	case h.block:
		want.Paid = &paid
	case h.ours:
		want.Rate = machine.Times(h.count)
	}
	if c == nil {
		if !h.block && want.From.Before(now) {
			want.From = now // what it cost before is on bills that scrimp has not seen
		}
		id := d.nameOf(h)
		want.Offer = d.offerOf(x, h, id)
		d.terms.Of[id] = &want
		return true
	}
	return c.renew(&want, h, now, priced)
}

// renew makes a contract the one that is wanted from now on, and reports whether it is another one.
func (c *contract) renew(want *contract, h *held, now time.Time, priced bool) bool {
	switch {
	case c.Over:
		return false
	case h.over(now):
		at := now
		if end := h.usable(); !end.IsZero() && end.Before(now) {
			at = end
		}
		if h.never() {
			c.Paid, c.Rate = nil, 0
		}
		c.ends(at)
		return true
	case !priced: // it was, and what is not known now is what it was
		return false
	case c.Block:
		same := *c.Paid == *want.Paid && c.Count == want.Count && c.Until.Equal(want.Until) && c.From.Equal(want.From)
		c.Paid, c.Count, c.From, c.Until, c.Machine = want.Paid, want.Count, want.From, want.Until, want.Machine
		return !same
	}
	endless := h.until.IsZero() && c.Until.Sub(now) > ahead/2
	sameEnd := endless || c.Until.Equal(want.Until)
	if sameEnd && c.Count == want.Count && c.Rate == want.Rate && c.Machine == want.Machine {
		return false
	}
	old := *c
	old.Outside = nil // they are counted beside
	if now.After(c.From) {
		r := old.reservation(now, 0, "")
		c.Before, c.From = r.Committed(now), now
	}
	c.Count, c.Rate, c.Machine, c.Until = want.Count, want.Rate, want.Machine, want.Until
	return true
}

// strays notes the machines that were ordered in a reservation and are not in it, which EC2 bills as on demand, and
// reports whether there is anything new. The caller holds mu.
func (d *Driver) strays(x *index) (changed bool) {
	for id, s := range d.seen {
		if s.named == "" || s.left.IsZero() {
			continue
		}
		_, c := d.terms.by(s.named)
		if c == nil {
			continue
		}
		if c.Outside == nil {
			c.Outside = map[string]*outside{}
		}
		o := c.Outside[id]
		if o == nil {
			o = &outside{From: s.left, Rate: x.Listed[s.kind].Rate}
			c.Outside[id], changed = o, true
		}
		if s.i.State == engine.Ended && !o.To.Equal(s.i.Ended) {
			o.To, changed = s.i.Ended, true
		}
	}
	return changed
}

// nameOf is the name of a reservation's offer: the plain one for the first of its type and zone. The caller holds mu.
func (d *Driver) nameOf(h *held) market.OfferID {
	plain := d.offerID(h.zone, h.kind, market.Reserved)
	if d.terms.Of[plain] == nil {
		return plain
	}
	return d.offerID(h.zone, h.kind+"@"+h.id, market.Reserved)
}
