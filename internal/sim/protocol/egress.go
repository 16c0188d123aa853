package protocol

import (
	"fmt"
	"math/big"
	"slices"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick/multizone"
	"scrimp/internal/work/sheet"
)

// fares holds the file's price of a gigabyte between regions.
type fares struct {
	n     sheet.Node
	one   *big.Rat                       // between any two
	table map[string]map[string]*big.Rat // from, to; "default" stands for all others
	where map[string]sheet.Node
}

// checkpoint reads the checkpoint's sizes, the duration of a move, and the prices of a gigabyte.
func (r *reader) checkpoint(n sheet.Node) fares {
	const fix = "write checkpoint: {gb: [50], usd_per_gb: 0.02, move_time: 90s}"
	if !n.There() {
		n.Wrong("is missing", fix)
		return fares{}
	}
	f := n.Fields("gb", "usd_per_gb", "move_time")
	empty := true
	for _, g := range oneOrMore(f["gb"], fix) {
		v, ok := g.Decimal()
		if !ok {
			continue
		}
		if g.IsPercent() {
			g.Wrong("is a percentage", "write gigabytes")
		}
		if v.Cmp(big.NewRat(1_000_000, 1)) > 0 {
			g.Wrong("is more than 1000000", "write gigabytes")
		}
		empty = empty && v.Sign() == 0
		r.gb = append(r.gb, v)
	}
	switch m := f["move_time"]; {
	case m.There():
		r.p.MoveTime, _ = span(m, 0, maxDeadline)
	case !empty:
		m.Wrong("is missing", "write how much longer a restart takes in another region, such as move_time: 90s")
	}
	out := fares{n: f["usd_per_gb"]}
	switch {
	case !out.n.There():
		if out.one = new(big.Rat); !empty {
			out.n.Wrong("is missing", "write dollars for a gigabyte between regions, such as usd_per_gb: 0.02")
		}
	case out.n.IsMapping():
		out.table, out.where = map[string]map[string]*big.Rat{}, map[string]sheet.Node{}
		for _, from := range out.n.All() {
			out.where[from.Name] = from.Node
			r.knows(from.Name)
			out.table[from.Name] = r.faresFrom(from.Node)
		}
	default:
		out.one, _ = out.n.Price(money.USD)
	}
	return out
}

// faresFrom reads the prices of a gigabyte from one region by the region that it goes to. A single price is the
// default.
func (r *reader) faresFrom(n sheet.Node) map[string]*big.Rat {
	row := map[string]*big.Rat{}
	if !n.IsMapping() {
		if v, ok := n.Price(money.USD); ok {
			row["default"] = v
		}
		return row
	}
	for _, to := range n.All() {
		r.knows(to.Name)
		if v, ok := to.Price(money.USD); ok {
			row[to.Name] = v
		}
	}
	return row
}

func (r *reader) knows(region string) {
	if region != "default" {
		r.known = append(r.known, region)
	}
}

// of returns the price of a gigabyte from one region to another, or false if the file does not give it.
func (f fares) of(from, to string) (*big.Rat, bool) {
	if f.table == nil {
		return f.one, f.one != nil
	}
	for _, a := range []string{from, "default"} {
		row := f.table[a]
		for _, b := range []string{to, "default"} {
			if v, ok := row[b]; ok {
				return v, true
			}
		}
	}
	return nil, false
}

// egress prices each size of the checkpoint on each route within a group.
func (r *reader) egress(f fares) {
	for _, gb := range r.gb {
		size, _ := gb.Float64()
		c := multizone.Checkpoint{GB: size}
		if f.table == nil {
			c.Carry, _ = sheet.Amount(new(big.Rat).Mul(gb, f.one))
		}
		for _, group := range r.p.Groups {
			for _, a := range group {
				for _, b := range group {
					if a.Region != b.Region && !r.route(&c, f, zonechoice.Fare{From: a.Region, To: b.Region}, gb) {
						return
					}
				}
			}
		}
		r.p.Checkpoints = append(r.p.Checkpoints, c)
	}
}

// route prices one route and reports whether the file gives a price for it.
func (r *reader) route(c *multizone.Checkpoint, f fares, way zonechoice.Fare, gb *big.Rat) bool {
	per, ok := f.of(way.From, way.To)
	if gb.Sign() == 0 {
		per, ok = new(big.Rat), true // no transfer
	}
	if !ok {
		at := f.n
		if row, there := f.where[way.From]; there {
			at = row
		}
		at.Wrong(fmt.Sprintf("says nothing of %s to %s, which are in one group", way.From, way.To),
			fmt.Sprintf("add %s: {%s: DOLLARS} (default stands for all other regions)", way.From, way.To))
		return false
	}
	sum := new(big.Rat).Mul(gb, per)
	if sum.Cmp(big.NewRat(maxMove, 1)) > 0 {
		f.n.Wrong(fmt.Sprintf("makes a move from %s to %s cost %s dollars", way.From, way.To, sum.FloatString(2)),
			fmt.Sprintf("write prices by which a move costs at most %d", maxMove))
		return false
	}
	way.Cost, _ = sheet.Amount(sum)
	if f.table != nil && !slices.Contains(c.Egress, way) {
		c.Egress = append(c.Egress, way)
	}
	return true
}
