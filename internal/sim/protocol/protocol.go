// Package protocol reads the files that define a benchmark with several zones: the jobs, the groups of zones, the
// on-demand prices, and what a policy sees.
package protocol

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick/multizone"
	"scrimp/internal/work/sheet"
)

// Limits of a protocol. They keep the optimum's sums below 2^61 picodollars (2.3 million dollars).
const (
	maxPrice    = 1000 // dollars an hour
	maxDeadline = 1000 * time.Hour
	maxTicks    = 100_000
	maxZones    = 64 // in a group
	maxSettings = 10_000
	maxMove     = 100_000 // dollars
)

// Read parses a protocol. Its error lists all problems with file, line, field and fix.
func Read(file string, text []byte) (*multizone.Protocol, error) {
	s, root := sheet.Open(file, text)
	r := reader{p: &multizone.Protocol{Sights: []multizone.Sight{multizone.SeesAll, multizone.SeesOne}}}
	f := root.Fields("tick", "jobs", "restart", "checkpoint", "on_demand", "sight", "look", "guard", "groups", "regions")
	r.tick(f["tick"])
	for _, n := range oneOrMore(f["restart"], "write how long a restart takes, such as restart: [3m, 12m]") {
		if d, ok := span(n, 0, maxDeadline); ok {
			r.p.Restarts = append(r.p.Restarts, d)
		}
	}
	r.regions(f["regions"])
	r.sights(f)
	if n := f["guard"]; n.There() {
		if r.p.Latch = n.Word("keep", "latch") == "latch"; n.Text() == "" {
			n.Wrong("is empty", "write keep or latch")
		}
	}
	routes := r.checkpoint(f["checkpoint"])
	r.groups(f["groups"], f["on_demand"])
	r.jobs(f["jobs"])
	if s.Err() == nil {
		r.egress(routes)
	}
	n := len(r.p.Jobs) * len(r.p.Restarts) * len(r.p.Checkpoints) * len(r.p.Sights) * len(r.p.Groups)
	if n > maxSettings {
		root.Wrong(fmt.Sprintf("has %d combinations of group, job, restart, size and sight", n),
			fmt.Sprintf("write at most %d: split the file", maxSettings))
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	return r.p, nil
}

// A reader parses one protocol.
type reader struct {
	p     *multizone.Protocol
	named map[string]string // regions by zone, as given in the file
	known []string          // regions of the table of transfers
	gb    []*big.Rat
}

// oneOrMore returns the items of a list, or a single value as the only one.
func oneOrMore(n sheet.Node, fix string) []sheet.Node {
	if !n.There() {
		n.Wrong("is missing", fix)
		return nil
	}
	if !n.IsList() {
		return []sheet.Node{n}
	}
	list := n.List()
	if len(list) == 0 {
		n.Wrong("is empty", fix)
	}
	return list
}

// span reads a duration with its unit, from least to most.
func span(n sheet.Node, least, most time.Duration) (time.Duration, bool) {
	text := n.Text()
	if text == "0" {
		text = "0s"
	}
	d, err := spec.ParseDuration(text)
	if err != nil || d < least || d > most || d%time.Millisecond != 0 {
		n.Wrong(fmt.Sprintf("is %.40q", text),
			fmt.Sprintf("write a time with its unit, such as 90s or 1h30m, from %v to %v in whole milliseconds", least, most))
		return 0, false
	}
	return d, true
}

func (r *reader) tick(n sheet.Node) {
	if !n.There() {
		n.Wrong("is missing", "write how long a tick of the files is, such as tick: 195s")
		return
	}
	r.p.Tick, _ = span(n, time.Second, 24*time.Hour)
}

// regions reads the zones of each region, for zones whose names do not tell their region.
func (r *reader) regions(n sheet.Node) {
	r.named = map[string]string{}
	for _, region := range n.All() {
		for _, z := range oneOrMore(region.Node, "write the zones of the region") {
			name := z.Required("write the name of a zone")
			if at, ok := r.named[name]; ok && at != region.Name {
				z.Wrong(fmt.Sprintf("%s is in region %s already", name, at), "name each zone once")
			}
			r.named[name] = region.Name
		}
	}
}

// sights reads what a policy sees, and what it may try if it sees nothing.
func (r *reader) sights(f map[string]sheet.Node) {
	if n := f["sight"]; n.There() {
		r.p.Sights = nil
		for _, s := range oneOrMore(n, "write A, B or C") {
			sight := multizone.Sight(s.Word(string(multizone.SeesAll), string(multizone.SeesOne), string(multizone.SeesNone)))
			if s.Text() == "" {
				s.Wrong("is empty", "write A, B or C")
			}
			if slices.Contains(r.p.Sights, sight) {
				s.Wrong(fmt.Sprintf("%s is there twice", sight), "write each sight once")
				continue
			}
			r.p.Sights = append(r.p.Sights, sight)
		}
	}
	n := f["look"]
	if !n.There() {
		if slices.Contains(r.p.Sights, multizone.SeesNone) {
			n.Wrong("is missing, and sight C needs it", "write look: {fee: 60s, per_tick: 1}, or per_tick: any")
		}
		return
	}
	look := n.Fields("fee", "per_tick")
	if fee := look["fee"]; !fee.There() {
		fee.Wrong("is missing", "write for how long a machine is billed that is tried and not taken, such as fee: 60s")
	} else {
		r.p.Fee, _ = span(fee, 0, 24*time.Hour)
	}
	r.p.PerTick = 1
	if per := look["per_tick"]; per.There() {
		switch {
		case per.Text() == "any":
			r.p.PerTick = 0
		case per.Whole(1, maxZones, 0) > 0:
			r.p.PerTick = per.Whole(1, maxZones, 1)
		}
	}
}

// jobs reads the jobs and checks them against the tick and the restarts.
func (r *reader) jobs(n sheet.Node) {
	const fix = "write jobs as a list such as - {work: 48h, deadline: 52h}"
	if !n.There() {
		n.Wrong("is missing", fix)
		return
	}
	for _, item := range oneOrMore(n, fix) {
		f := item.Fields("work", "deadline")
		s, ok := multizone.Size{}, true
		for _, t := range []struct {
			name string
			to   *time.Duration
		}{{"work", &s.Work}, {"deadline", &s.Deadline}} {
			if !f[t.name].There() {
				f[t.name].Wrong("is missing", fix)
				ok = false
				continue
			}
			var read bool
			*t.to, read = span(f[t.name], time.Second, maxDeadline)
			ok = ok && read
		}
		if !ok || r.p.Tick <= 0 {
			continue
		}
		ticks := int64(s.Deadline / r.p.Tick)
		if ticks > maxTicks {
			f["deadline"].Wrong(fmt.Sprintf("is %d ticks away", ticks), fmt.Sprintf("write at most %d ticks", maxTicks))
		}
		for _, d := range r.p.Restarts {
			if need := s.Work + d; need > time.Duration(ticks)*r.p.Tick {
				f["deadline"].Wrong(fmt.Sprintf("leaves %d whole ticks, and %v of work after a restart of %v need %v", ticks,
					s.Work, d, need), "write a later deadline or less work")
				break
			}
		}
		r.p.Jobs = append(r.p.Jobs, s)
	}
}

// region returns a zone's region: the one that the file gives, or the region of the transfer table that the zone's name
// begins with, or the one in the zone's name.
func (r *reader) region(zone string) string {
	if at, ok := r.named[zone]; ok {
		return at
	}
	best := ""
	for _, k := range r.known {
		rest, ok := strings.CutPrefix(zone, k)
		if !ok || len(k) <= len(best) || rest != "" && digit(k[len(k)-1]) && digit(rest[0]) {
			continue
		}
		best = k
	}
	if best != "" {
		return best
	}
	return multizone.Region(zone)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// groups reads the groups of zones and the on-demand price of each zone.
func (r *reader) groups(n, prices sheet.Node) {
	price := r.onDemand(prices)
	for _, g := range oneOrMore(n, "write groups of zones, such as groups: [[us-east-1a, us-west-2a]]") {
		var group []zonechoice.Zone
		for _, z := range oneOrMore(g, "write the zones of the group") {
			zone := zonechoice.Zone{Name: z.Required("write the name of a zone")}
			if zone.Name == "" {
				continue
			}
			if slices.ContainsFunc(group, func(o zonechoice.Zone) bool { return o.Name == zone.Name }) {
				z.Wrong(zone.Name+" is in the group already", "name each zone of a group once")
			}
			zone.Region = r.region(zone.Name)
			for _, key := range []string{zone.Name, zone.Region, "default"} {
				if p, ok := price[key]; ok {
					zone.OnDemand = p
					break
				}
			}
			if zone.OnDemand == 0 && price != nil {
				z.Wrong(fmt.Sprintf("%s has no on-demand price", zone.Name),
					fmt.Sprintf("add on_demand.%s, on_demand.%s or on_demand.default", zone.Name, zone.Region))
			}
			group = append(group, zone)
		}
		if len(group) > maxZones {
			g.Wrong(fmt.Sprintf("has %d zones", len(group)), fmt.Sprintf("write at most %d", maxZones))
		}
		r.p.Groups = append(r.p.Groups, group)
	}
}

// onDemand reads the prices by zone, by region, and the default. It returns nil if there are none.
func (r *reader) onDemand(n sheet.Node) map[string]money.Rate {
	const fix = "write dollars an hour by zone or region, such as on_demand: {default: 3.06}"
	switch {
	case !n.There():
		n.Wrong("is missing", fix)
		return nil
	case !n.IsMapping():
		rate, ok := rateOf(n)
		if !ok {
			return nil
		}
		return map[string]money.Rate{"default": rate}
	}
	out := map[string]money.Rate{}
	for _, f := range n.All() {
		if rate, ok := rateOf(f.Node); ok {
			out[f.Name] = rate
		} else {
			return nil
		}
	}
	return out
}

func rateOf(n sheet.Node) (money.Rate, bool) {
	v, ok := n.Price(money.USD)
	if !ok {
		return 0, false
	}
	if v.Sign() <= 0 || v.Cmp(big.NewRat(maxPrice, 1)) > 0 {
		n.Wrong("is no price above zero and up to 1000", "write dollars an hour, such as 3.06")
		return 0, false
	}
	rate, err := money.ParseRate(v.FloatString(12))
	return rate, err == nil && rate > 0
}
