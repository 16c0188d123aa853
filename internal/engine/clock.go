package engine

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Clock converts wall time to market time, which runs Speed times as fast. The zero Clock is wall time.
type Clock struct {
	Name   string    `json:"name"`   // name of the market; may be empty
	Wall   time.Time `json:"wall"`   // a moment in wall time
	Market time.Time `json:"market"` // the same moment in market time
	Speed  float64   `json:"speed"`  // market seconds per wall second
}

// ToMarket returns the market time at wall time t.
func (c Clock) ToMarket(t time.Time) time.Time {
	if c.Speed == 0 || t.IsZero() {
		return t.UTC()
	}
	return c.Market.Add(c.passes(t.Round(0).Sub(c.Wall))).UTC()
}

// ToWall returns the wall time at market time t.
func (c Clock) ToWall(t time.Time) time.Time {
	if c.Speed == 0 {
		return t.UTC()
	}
	return c.Wall.Add(c.Shrink(t.Sub(c.Market))).UTC()
}

// Stretch converts a wall span to the market span that passes meanwhile, limited to ten years, the
// longest span in an event: on a fast market a week can be centuries.
func (c Clock) Stretch(d time.Duration) time.Duration { return min(c.passes(d), quantity.Decade) }

// passes returns the market span that passes in a wall span.
func (c Clock) passes(d time.Duration) time.Duration {
	if c.plain() { // avoid rounding
		return d
	}
	return time.Duration(quantity.Int(float64(d) * c.Speed))
}

// Shrink converts a market span to the wall span that it takes.
func (c Clock) Shrink(d time.Duration) time.Duration {
	if c.plain() {
		return d
	}
	return time.Duration(quantity.Int(float64(d) / c.Speed))
}

// plain reports whether market time runs at wall speed.
func (c Clock) plain() bool { return c.Speed == 1 || c.Speed == 0 }

// From converts a time by another clock to a time by this one. Two markets opened one after the
// other have different clocks. Zero stays zero.
func (c Clock) From(other Clock, t time.Time) time.Time {
	if t.IsZero() || c == other {
		return t
	}
	return c.ToMarket(other.ToWall(t))
}

// Common returns the clock of a server with these engines: that of the first engine that has one. A
// market whose time does not run at wall speed must be the only engine, because the others' prices
// and deadlines use wall time.
func Common(engines []Engine) (Clock, error) {
	var common Clock
	for _, e := range engines {
		if !e.Clock.plain() && len(engines) > 1 {
			return common, fmt.Errorf("engine %s: its market runs at speed %g, and other engines use wall time: "+
				"open it with a market of speed 1, or leave the others out", e.Name, e.Clock.Speed)
		}
		if common.Speed == 0 {
			common = e.Clock
		}
	}
	if common.Speed == 0 {
		common = Clock{Wall: time.Unix(0, 0).UTC(), Market: time.Unix(0, 0).UTC(), Speed: 1}
	}
	return common, nil
}

// clocks converts times from one clock to another.
type clocks struct{ to, from Clock }

func (c clocks) same() bool { return c.to == c.from }

func (c clocks) time(t time.Time) time.Time { return c.to.From(c.from, t) }

func (c clocks) instance(i Instance) Instance {
	i.Launched, i.Ended, i.Bill = c.time(i.Launched), c.time(i.Ended), c.lines(i.Bill)
	return i
}

func (c clocks) instances(list []Instance) []Instance {
	if c.same() {
		return list
	}
	list = slices.Clone(list)
	for n := range list {
		list[n] = c.instance(list[n])
	}
	return list
}

func (c clocks) lines(lines []Line) []Line {
	if c.same() || lines == nil {
		return lines
	}
	lines = slices.Clone(lines)
	for n := range lines {
		lines[n].From, lines[n].To = c.time(lines[n].From), c.time(lines[n].To)
	}
	return lines
}

func (c clocks) sale(offers []market.Offer, quotes []market.Quote) ([]market.Offer, []market.Quote) {
	if c.same() {
		return offers, quotes
	}
	offers, quotes = slices.Clone(offers), slices.Clone(quotes)
	for n := range offers {
		r := &offers[n].Reserved
		r.From, r.Until = c.time(r.From), c.time(r.Until)
	}
	for n := range quotes {
		quotes[n].At = c.time(quotes[n].At)
	}
	return offers, quotes
}
