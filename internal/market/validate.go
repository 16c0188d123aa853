package market

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/lib/quantity"
)

// A market runs between minMarketSpeed and maxSpeed times as fast as the wall clock, and a machine is between minSpeed
// and maxSpeed times as fast as the reference machine of a job's work: on a slower one no simulation of the job would
// end.
const (
	maxSpeed       = 1e6
	minMarketSpeed = 1e-3
	minSpeed       = 1e-6
)

// Validate returns the first error by offer and field, with its fix.
func (t Trace) Validate() error {
	switch {
	case !(t.Speed >= minMarketSpeed && t.Speed <= maxSpeed): // also rejects NaN
		return wrong("speed", "%v is not between 0.001 and 1,000,000: write 1 for real time", t.Speed)
	case t.Repeat > quantity.Decade:
		return wrong("repeat", "%v is above ten years: leave it out for a market that does not repeat", t.Repeat)
	case t.Repeat < 0:
		return wrong("repeat", "%v is negative: leave it out for a market that does not repeat", t.Repeat)
	case t.Currency == "":
		return wrong("currency", "missing: name it, such as USD")
	case len(t.Lines) == 0:
		return wrong("offers", "none: a market sells something")
	}
	seen := map[OfferID]bool{}
	for i, l := range t.Lines {
		if seen[l.Offer.ID] {
			return &Fault{Line: i, Entry: -1, text: fmt.Sprintf("offers: %s stands twice: put its prices and spans into one",
				l.Offer.ID)}
		}
		seen[l.Offer.ID] = true
		err := l.validate(t.Repeat)
		if l.Offer.Currency != t.Currency {
			err = wrong("currency", "%q in a market of %s: a trace has one currency", l.Offer.Currency, t.Currency)
		}
		if err != nil {
			f := &Fault{Line: i, Entry: -1, text: fmt.Sprintf("offer %s: %v", l.Offer.ID, err)}
			if at, ok := errors.AsType[*fieldError](err); ok {
				f.Field = at.field
			}
			if e, ok := errors.AsType[*entry](err); ok {
				f.Entry = e.n
			}
			return f
		}
	}
	return nil
}

// Fault is an error in one line of a trace with its location, because a file may have thousands of spans.
type Fault struct {
	Line  int    // index in the trace
	Field string // of its offer; empty for the whole offer
	Entry int    // index in a list field; -1 for the field itself
	text  string
}

func (f *Fault) Error() string { return f.text }

// fieldError is an error in a field of an offer or a quote.
type fieldError struct{ field, text string }

func (e *fieldError) Error() string { return e.field + ": " + e.text }

func wrong(field, format string, values ...any) error {
	return &fieldError{field, fmt.Sprintf(format, values...)}
}

// entry is an error in an entry of a list.
type entry struct {
	n int
	error
}

func (e *entry) Unwrap() error { return e.error }

// Validate returns the first field that is invalid for any seller, because plans and bills use it. Unknown fields stay
// empty.
func (o Offer) Validate() error {
	switch {
	case o.ID == "":
		return wrong("id", "missing: an offer is bought by its name")
	case o.Capacity != Spot && o.Capacity != OnDemand && o.Capacity != Reserved:
		return wrong("capacity", "%q is none of spot, on-demand, reserved", o.Capacity)
	case !o.Currency.Valid():
		return wrong("currency", "%q is no code of three letters, such as USD", o.Currency)
	}
	if err := o.validateCounts(); err != nil {
		return err
	}
	if o.Speed != 0 && !(o.Speed >= minSpeed && o.Speed <= maxSpeed) { // also what is not a number
		return wrong("speed", "%v is not between 0.000001 and 1,000,000: leave it out where it is unknown", o.Speed)
	}
	for _, s := range []struct {
		field string
		span  time.Duration
	}{
		{"notice", o.Notice}, {"boot", o.Boot}, {"max_lifetime", o.MaxLifetime},
		{"billing.minimum", o.Billing.Minimum}, {"billing.free_if_interrupted_within", o.Billing.FreeIfInterruptedWithin},
	} {
		if s.span < 0 {
			return wrong(s.field, "%v is negative: leave it out where there is none", s.span)
		}
		if s.span > quantity.Decade {
			return wrong(s.field, "%v is above ten years: leave it out where there is none", s.span)
		}
	}
	return nil
}

// validateCounts returns the first count of the offer that no machine and no market has.
func (o *Offer) validateCounts() error {
	switch {
	case !quantity.Count.AllowsInt(int64(o.CPUs)) || !quantity.Bytes.AllowsInt(int64(o.Memory)):
		return wrong("cpus", "%d and %v of memory: leave out what is unknown, and give at most %.0f and 8 PiB", o.CPUs,
			o.Memory, quantity.Count.Most)
	case o.Accelerators < 0 || (o.Accelerators == 0) != (o.Accelerator == ""):
		return wrong("accelerator", "%d of %q: give a number and a name, or neither", o.Accelerators, o.Accelerator)
	case !quantity.Count.AllowsInt(int64(o.Accelerators)):
		return wrong("accelerators", "%d: no machine has as many", o.Accelerators)
	case o.Machines < 0:
		return wrong("machines", "%d is negative: leave it out where it is unknown", o.Machines)
	case !quantity.Count.AllowsInt(int64(o.Machines)):
		return wrong("machines", "%d: give at most %.0f, or leave it out", o.Machines, quantity.Count.Most)
	}
	return nil
}

// Validate returns an error in the quote: an unknown price is not Priced, a prepaid machine may cost zero, and prices
// are not negative.
func (q Quote) Validate() error {
	switch {
	case q.Offer == "":
		return wrong("offer", "missing: a price is of something")
	case q.Priced && q.Rate < 0:
		return wrong("price", "%v is below zero: leave it out where it is unknown", q.Rate)
	case q.Priced && !quantity.Price.Allows(q.Rate.Float()):
		return wrong("price", "%v is above %.0f an hour: correct it", q.Rate, quantity.Price.Most)
	}
	return nil
}

func (l TraceLine) validate(repeat time.Duration) error {
	if err := l.validateOffer(); err != nil {
		return err
	}
	switch {
	case l.Reserved.Count != 0 || l.Offer.Reserved.Count != 0:
		return l.validateTerm()
	case len(l.Price) == 0:
		return wrong("price", "missing: an unknown price is not zero")
	case l.Price[0].At != 0:
		return wrong("price", "the first is at %v: begin at 0s", l.Price[0].At)
	case l.Offer.Capacity != Spot && l.Available != nil:
		return wrong("available", "only spot comes and goes: leave it out")
	}
	if err := l.Offer.Validate(); err != nil {
		return err
	}
	if err := l.validatePrices(repeat); err != nil {
		return err
	}
	return l.validateSpans(repeat)
}

// validateOffer checks the fields that a trace's offer needs; Offer.Validate checks the others.
func (l TraceLine) validateOffer() error {
	o := l.Offer
	switch {
	case o.Zone == "":
		return wrong("zone", "missing: name the zone it is in")
	case o.Machine == "":
		return wrong("machine", "missing: name the machine type")
	case strings.ContainsAny(o.Zone+o.Machine+o.Provider, "/ \t\n"):
		return wrong("zone", "%q and machine %q: a name has no slash and no space, for both are part of the offer's",
			o.Zone, o.Machine)
	case o.Capacity != Spot && o.Capacity != OnDemand && o.Capacity != Reserved:
		return wrong("capacity", "%q is none of spot, on-demand, reserved", o.Capacity)
	case o.ID != ID(o):
		return wrong("id", "the zone, machine and capacity make it %s", ID(o))
	case o.CPUs <= 0:
		return wrong("cpus", "%d is not positive", o.CPUs)
	case o.Memory <= 0:
		return wrong("memory", "missing: give it with its unit, such as 8GiB")
	}
	return nil
}

func (l TraceLine) validateSpans(repeat time.Duration) error {
	for i, s := range l.Available {
		switch {
		case s.To > quantity.Decade || s.Notice > quantity.Decade:
			return &entry{i, wrong("available", "the span from %v to %v, with a notice of %v, ends after ten years",
				s.From, s.To, s.Notice)}
		case s.From < 0:
			return &entry{i, wrong("available", "the span from %v begins before the market: begin at 0s", s.From)}
		case s.To <= s.From:
			return &entry{i, wrong("available", "the span from %v to %v ends before it begins", s.From, s.To)}
		case s.Notice < 0:
			return &entry{i, wrong("available", "the notice of %v is negative: write 0s for none", s.Notice)}
		case i > 0 && s.From < l.Available[i-1].From:
			return &entry{i, wrong("available", "the span from %v comes after the one from %v: sort them by time", s.From,
				l.Available[i-1].From)}
		case i > 0 && s.From < l.Available[i-1].To:
			return &entry{i, wrong("available", "the span from %v overlaps the one before it, to %v: join them", s.From,
				l.Available[i-1].To)}
		case repeat > 0 && s.To > repeat:
			return &entry{i, wrong("available", "the span to %v goes past the repetition after %v", s.To, repeat)}
		}
	}
	return nil
}

func (l TraceLine) validateTerm() error {
	switch r := l.Reserved; {
	case l.Offer.Reserved.Count != 0:
		return wrong("reserved", "a trace counts it from the market's opening")
	case l.Offer.Capacity != Reserved:
		return wrong("reserved", "of %s capacity: write capacity: reserved", l.Offer.Capacity)
	case r.Count < 0:
		return wrong("reserved", "count: %d is not above zero", r.Count)
	case r.From < 0 || r.To <= r.From:
		return wrong("reserved", "from %v until %v: it begins with the market or later, and ends after that", r.From, r.To)
	case r.To > quantity.Decade:
		return wrong("reserved", "until %v is above ten years: give at most 87600h", r.To)
	case !quantity.Count.AllowsInt(int64(r.Count)):
		return wrong("reserved", "count: %d: give at most %.0f", r.Count, quantity.Count.Most)
	case !quantity.Dollars.Allows(max(0, r.Paid.Float())):
		return wrong("reserved", "paid: %v is above %.0f: correct it", r.Paid, quantity.Dollars.Most)
	case r.Paid.Float() > quantity.Price.Most*float64(r.Count)*(r.To-r.From).Hours():
		return wrong("reserved", "paid: %v is more than %.0f for an hour of a machine: correct it", r.Paid,
			quantity.Price.Most)
	case r.Paid.Sign() < 0:
		return wrong("reserved", "paid: %v is below zero: write 0 for what costs nothing more", r.Paid)
	case l.Available != nil:
		return wrong("available", "what is reserved can be had from its beginning to its end: leave it out")
	}
	return l.Offer.Validate()
}

func (l TraceLine) validatePrices(repeat time.Duration) error {
	for i, p := range l.Price {
		switch {
		case p.Rate <= 0:
			return &entry{i, wrong("price", "%v at %v is not above zero", p.Rate, p.At)}
		case !quantity.Price.Allows(p.Rate.Float()):
			return &entry{i, wrong("price", "%v at %v is above %.0f an hour: correct it", p.Rate, p.At, quantity.Price.Most)}
		case p.At > quantity.Decade:
			return &entry{i, wrong("price", "the one at %v comes after ten years: no market file is as long", p.At)}
		case i > 0 && p.At <= l.Price[i-1].At:
			return &entry{i, wrong("price", "%v does not come after %v: sort them by time, one for each", p.At,
				l.Price[i-1].At)}
		case repeat > 0 && p.At >= repeat:
			return &entry{i, wrong("price", "the one at %v is never reached: the market repeats after %v", p.At, repeat)}
		}
	}
	return nil
}
