package awstest

import (
	"math/big"
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

// A Line is the cost of one thing. Instances pay by the second from running to shutting-down, for at least 60
// seconds. Spot pays the price of each moment, and nothing if the cloud interrupts it in its first hour; volumes and
// public addresses are paid in any case. Sources: "Instance lifecycle" (billing by state) and "Billing for
// interrupted Spot Instances", EC2 User Guide, read 2026-11; "Amazon EBS pricing" and "Amazon VPC pricing", by the
// second with a minimum of 60 seconds, a month of 30 days.
type Line struct {
	Kind     string // instance, volume, address; reservation: unused reserved capacity; block: a whole block
	ID       string
	Instance string // instance of the volume or address
	Type     string
	Zone     string
	Region   string
	Spot     bool
	From, To time.Time // To is now if it is open
	Open     bool      // it has not ended
	Seconds  int64     // billed seconds
	Free     string    // why it is free
	USD      *big.Rat  // exact
	Tags     map[string]string
}

// Prices in every region, in USD: a GB of a volume type for a month of 30 days, and below a public address for an
// hour.
var gbMonth = map[string]*big.Rat{"gp3": big.NewRat(8, 100), "gp2": big.NewRat(10, 100), "io1": big.NewRat(125, 1000),
	"io2": big.NewRat(125, 1000), "st1": big.NewRat(45, 1000), "sc1": big.NewRat(15, 1000), "standard": big.NewRat(5, 100)}

var (
	month       = big.NewRat(30*24*3600, 1)
	addressHour = big.NewRat(5, 1000)
)

// least is the minimum charge, in seconds.
const least = 60

// Bill returns the costs of everything so far.
func (s *Server) Bill() (list []Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.advance(now)
	all := slices.Concat(s.ended, s.instances)
	slices.SortFunc(all, func(a, b *instance) int { return a.seq - b.seq })
	for _, i := range all {
		if !i.running.IsZero() {
			list = append(list, s.billInstance(i, now)...)
		}
	}
	list = append(list, s.billReserved(all, now)...)
	volumes := slices.Concat(s.deleted, s.volumes)
	slices.SortFunc(volumes, func(a, b *volume) int { return a.seq - b.seq })
	for _, v := range volumes {
		if v.instance != nil && v.instance.neverRan() {
			continue
		}
		l := Line{Kind: "volume", ID: v.id, Instance: v.maker, Type: v.typ, Zone: v.zone, Region: v.region, From: v.created,
			Tags: v.tags}
		l.span(v.deleted, now)
		l.USD = new(big.Rat).Mul(gbMonth[v.typ], big.NewRat(l.Seconds*int64(v.gb), 1))
		l.USD.Quo(l.USD, month)
		list = append(list, l)
	}
	return list
}

func (l *Line) span(end, now time.Time) {
	l.To, l.Open = end, end.IsZero()
	if l.Open {
		l.To = now
	}
	l.Seconds = max(least, int64(l.To.Sub(l.From)/time.Second))
}

func (s *Server) billInstance(i *instance, now time.Time) []Line {
	l := Line{Kind: "instance", ID: i.id, Instance: i.id, Type: i.typ.Name, Zone: i.zone.Name, Region: i.region,
		Spot: i.request != nil, From: i.running, Tags: i.tags}
	l.span(i.billed, now)
	if i.held != nil { // a reservation bills each second once, so no minimum applies
		l.Seconds = int64(l.To.Sub(l.From) / time.Second)
	}
	sum := new(big.Int) // 1e-12 USD per hour × seconds
	h := []catalog.Step{{Pico: s.onDemand(i.typ, i.region)}}
	if l.Spot {
		h = s.spotHistory(i.typ.Name, i.zone.Name)
	}
	for at, end := l.From, l.From.Add(time.Duration(l.Seconds)*time.Second); at.Before(end); {
		next := end
		for _, p := range h {
			if p.From.After(at) && p.From.Before(next) {
				next = p.From
			}
		}
		part := new(big.Int).Mul(big.NewInt(catalog.PriceAt(h, at)), big.NewInt(int64(next.Sub(at)/time.Second)))
		sum.Add(sum, part)
		at = next
	}
	l.USD = new(big.Rat).SetFrac(sum, big.NewInt(3600*1e12))
	if i.byCloud && l.To.Sub(l.From) < time.Hour {
		l.Free, l.Seconds, l.USD = "interrupted in the first hour", 0, new(big.Rat)
	}
	if i.spec.block {
		l.Free, l.Seconds, l.USD = "of a Capacity Block, which is paid up front", 0, new(big.Rat)
	}
	if i.public == "" {
		return []Line{l}
	}
	a := Line{Kind: "address", ID: i.public, Instance: i.id, Zone: l.Zone, Region: l.Region, From: i.running, Tags: i.tags}
	a.span(i.billed, now)
	a.USD = new(big.Rat).Mul(addressHour, big.NewRat(a.Seconds, 3600))
	return []Line{l, a}
}
