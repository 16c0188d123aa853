package storage

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxVictims bounds the files that a plan deletes.
const MaxVictims = 100_000

// A Planner adds up files and applies rules to them.
type Planner struct {
	now    time.Time
	places []Place
	rules  []Rule
	prices Prices

	usage   map[usageKey]*Usage
	tiers   map[moveKey]*tierSum
	stays   map[Reason]*Stay
	victims []Victim
	newest  map[string]newest    // by place and run
	units   map[string]time.Time // by place and checkpoint folder: the last use of any part
	changed map[string]time.Time // by place and checkpoint folder: the last change of any part
	census  map[string]Census    // by place and checkpoint folder: what lies in it
	whole   map[string]Reason    // by place and checkpoint folder: why it stays as a whole
	covers  []map[string]uint64  // by place: folders, and the tier rules that apply to all files below them
}

// newest is the file of a run's checkpoints that changed last.
type newest struct {
	changed time.Time
	file    string
}

type usageKey struct {
	place int
	kind  Kind
	class string
}

type moveKey struct {
	rule, place int
	class       string
}

// tierSum adds up the files that a tier rule may move.
type tierSum struct {
	files, bytes, billed int64
	small, smallBytes    int64 // that the new class costs more for
}

// NewPlanner returns a planner without files.
func NewPlanner(now time.Time, places []Place, rules []Rule, prices Prices) *Planner {
	p := &Planner{now: now, places: places, rules: rules, prices: prices, usage: map[usageKey]*Usage{},
		tiers: map[moveKey]*tierSum{}, stays: map[Reason]*Stay{}, newest: map[string]newest{},
		units: map[string]time.Time{}, changed: map[string]time.Time{}, whole: map[string]Reason{},
		census: map[string]Census{}}
	for range places {
		p.covers = append(p.covers, map[string]uint64{})
	}
	return p
}

// Add adds a file.
func (p *Planner) Add(f File) {
	kind := KindOf(f.Path)
	class := cmp.Or(f.Class, DefaultClass(p.places[f.Place].Store))
	p.cover(f, kind)
	if unit, _ := unitOf(f.Path); unit != f.Path {
		p.census[key(f.Place, unit)] = p.census[key(f.Place, unit)].With(f.Path)
	}
	if kind == Checkpoints {
		p.mark(f)
	}
	if f.Again {
		return
	}
	p.count(f, kind, class)
	rule, reason := p.match(f, kind)
	if reason != "" {
		p.stay(reason, f.Disk())
		return
	}
	if p.rules[rule].Action == Delete {
		reason = p.delete(f, kind, rule)
	} else {
		reason = p.tier(f, class, rule)
	}
	if reason != "" {
		p.stay(reason, f.Disk())
	}
}

func (p *Planner) count(f File, kind Kind, class string) {
	key := usageKey{f.Place, kind, class}
	u := p.usage[key]
	if u == nil {
		u = &Usage{Place: f.Place, Kind: kind, Class: class}
		p.usage[key] = u
	}
	u.Files++
	if f.Used.After(u.Used) {
		u.Used = f.Used
	}
	u.Bytes += f.Disk()
	if p.now.Sub(f.Used) >= unusedSpan {
		u.Unused += f.Disk()
	}
}

func (p *Planner) stay(r Reason, bytes int64) {
	s := p.stays[r]
	if s == nil {
		s = &Stay{Reason: r}
		p.stays[r] = s
	}
	s.Files++
	s.Bytes += bytes
}

// key returns a key of a path in a place.
func key(place int, path string) string { return string(rune('0'+place)) + path }

// mark notes the times of a checkpoint and of its run.
func (p *Planner) mark(f File) {
	unit, run := unitOf(f.Path)
	later := func(m map[string]time.Time, k string, t time.Time) {
		if t.After(m[k]) {
			m[k] = t
		}
	}
	if k := key(f.Place, run); f.Changed.After(p.newest[k].changed) {
		p.newest[k] = newest{f.Changed, f.Path}
	}
	if unit != f.Path {
		later(p.units, key(f.Place, unit), f.Used)
		later(p.changed, key(f.Place, unit), f.Changed)
		if why := untouchable(f); why != "" { // without a part, the rest is of no use
			p.whole[key(f.Place, unit)] = why
		}
	}
}

// match returns the first rule about a file, or why none changes it.
func (p *Planner) match(f File, kind Kind) (rule int, why Reason) {
	why = NoRule
	for i, r := range p.rules {
		switch {
		case !r.matches(kind, f.Path):
		case r.OlderThan > 0 && p.now.Sub(f.Used) < r.OlderThan:
			why = TooYoung
		case r.Action == Keep:
			return i, KeepRule
		default:
			return i, ""
		}
	}
	return 0, why
}

// early reports whether the class of a file is paid for some time still.
func (p *Planner) early(f File) bool {
	x, ok := p.prices.Of(p.places[f.Place].Store, f.Class)
	return ok && p.now.Sub(f.Changed) < time.Duration(x.LeastDays)*day
}

// untouchable returns why no rule may delete a file.
func untouchable(f File) Reason {
	switch {
	case f.Held != "":
		return f.Held
	case !utf8.ValidString(f.Path):
		return OddName
	case f.Linked:
		return HardLink
	}
	return ""
}

// delete adds a file to those that the plan removes, or returns why it stays.
func (p *Planner) delete(f File, kind Kind, rule int) Reason {
	unit, _ := unitOf(f.Path)
	if why := untouchable(f); why != "" {
		return why
	}
	switch {
	case p.early(f):
		return LeastDuration
	case kind == Checkpoints && chosen(unit):
		return Chosen
	case len(p.victims) == MaxVictims:
		return PlanFull
	}
	p.victims = append(p.victims, Victim{File: f, Kind: kind, Rule: rule})
	return ""
}

// tier adds a file to those that a rule moves, or returns why it stays.
func (p *Planner) tier(f File, class string, rule int) Reason {
	r, store := p.rules[rule], p.places[f.Place].Store
	to, known := p.prices.Of(store, r.Class)
	_, knownNow := p.prices.Of(store, class)
	switch {
	case store == Local:
		return NoClasses
	case strings.EqualFold(class, r.Class):
		return AlreadyThere
	case f.Held != "" && (!f.HeldOnly || isOffline(store, r.Class)):
		return f.Held
	case p.early(f):
		return LeastDuration
	case !known || !knownNow || to.Month == nil || to.Retrieval == nil || to.Moves == nil:
		return PriceUnknown
	}
	k := moveKey{rule, f.Place, class}
	s := p.tiers[k]
	if s == nil {
		s = &tierSum{}
		p.tiers[k] = s
	}
	if store == "aws" && f.Bytes < p.least(r, store, class) {
		s.small++
		s.smallBytes += f.Bytes
		return ""
	}
	s.files++
	s.bytes += f.Bytes
	s.billed += max(f.Bytes, to.LeastBytes)
	return ""
}

func isOffline(store, class string) bool {
	return slices.ContainsFunc(offline, func(o string) bool { return strings.EqualFold(o, store+"/"+class) })
}

// Finish returns what was added up.
func (p *Planner) Finish() Result {
	var out Result
	p.settle()
	for _, u := range p.usage {
		if x, ok := p.prices.Of(p.places[u.Place].Store, u.Class); ok && x.Month != nil {
			u.Month = cost(u.Bytes, x.Month)
		} else {
			out.Unknown += u.Files
		}
		out.Usage = append(out.Usage, *u)
	}
	slices.SortFunc(out.Usage, func(a, b Usage) int {
		return cmp.Or(a.Place-b.Place, slices.Index(Kinds, a.Kind)-slices.Index(Kinds, b.Kind),
			strings.Compare(a.Class, b.Class))
	})
	out.Moves = append(p.deletions(), p.movings()...)
	slices.SortFunc(out.Moves, func(a, b Move) int {
		return cmp.Or(a.Rule-b.Rule, a.Place-b.Place, strings.Compare(a.Class, b.Class))
	})
	for _, r := range Reasons {
		if s := p.stays[r]; s != nil {
			out.Stays = append(out.Stays, *s)
		}
	}
	for i, v := range p.victims {
		if _, run := unitOf(v.Path); v.Kind == Checkpoints {
			p.victims[i].Newer = p.newest[key(v.Place, run)].file
		}
	}
	slices.SortFunc(p.victims, func(a, b Victim) int {
		return cmp.Or(a.Place-b.Place, strings.Compare(a.Path, b.Path))
	})
	out.Victims, out.Folders = p.victims, p.folders()
	return out
}

// together is the span in which the parts of one checkpoint are written. Files of several machines may stand side by
// side.
const together = time.Hour

// settle keeps files of checkpoints that are, as a whole, the newest of their run or too young.
func (p *Planner) settle() {
	p.victims = slices.DeleteFunc(p.victims, func(v Victim) bool {
		if v.Kind != Checkpoints {
			return false
		}
		unit, run := unitOf(v.Path)
		changed, used, whole := v.Changed, v.Used, Reason("")
		if unit != v.Path {
			k := key(v.Place, unit)
			changed, used, whole = p.changed[k], p.units[k], p.whole[k]
		}
		switch {
		case whole != "":
			p.stay(whole, v.Disk())
		case !changed.Before(p.newest[key(v.Place, run)].changed.Add(-together)):
			p.stay(Newest, v.Disk())
		case p.now.Sub(used) < p.rules[v.Rule].OlderThan:
			p.stay(TooYoung, v.Disk())
		default:
			return false
		}
		return true
	})
}

func (p *Planner) deletions() (list []Move) {
	at := map[moveKey]int{}
	for _, v := range p.victims {
		k := moveKey{v.Rule, v.Place, cmp.Or(v.Class, DefaultClass(p.places[v.Place].Store))}
		i, ok := at[k]
		if !ok {
			i = len(list)
			at[k] = i
			list = append(list, Move{Rule: k.rule, Place: k.place, Class: k.class})
		}
		list[i].Files++
		list[i].Bytes += v.Disk()
	}
	for i := range list {
		if x, ok := p.prices.Of(p.places[list[i].Place].Store, list[i].Class); ok && x.Month != nil {
			list[i].Saved = cost(list[i].Bytes, x.Month)
		}
	}
	return list
}

// movings judges each tier rule over the stay of its files in the new class: storage for at least the minimum
// duration, reads and the move itself.
func (p *Planner) movings() (list []Move) {
	for k, s := range p.tiers {
		if s.small > 0 {
			x := p.stays[TooSmall]
			if x == nil {
				x = &Stay{Reason: TooSmall}
				p.stays[TooSmall] = x
			}
			x.Files, x.Bytes = x.Files+s.small, x.Bytes+s.smallBytes
		}
		if s.files == 0 {
			continue
		}
		r, store := p.rules[k.rule], p.places[k.place].Store
		from, _ := p.prices.Of(store, k.class)
		to, _ := p.prices.Of(store, r.Class)
		m := Move{Rule: k.rule, Place: k.place, Class: k.class, Files: s.files, Bytes: s.bytes,
			Once: new(big.Rat).Mul(big.NewRat(s.files, 1000), to.Moves)}
		if store == "aws" {
			m.Least = p.least(r, store, k.class)
		}
		rate := p.rates(r, from, to)
		saved := cost(s.bytes, rate.now)
		saved.Sub(saved, cost(s.billed, rate.then))
		saved.Sub(saved, cost(s.bytes, rate.reads))
		saved.Sub(saved, m.Once)
		m.Saved = saved.Quo(saved, rate.months)
		if m.Saved.Sign() <= 0 {
			m.Why = CostsMore
		}
		list = append(list, m)
	}
	return list
}

// rates are the costs of a gigabyte over the whole stay.
type rates struct {
	now, then, reads *big.Rat
	months           *big.Rat // of the stay
}

func (p *Planner) rates(r Rule, from, to Price) rates {
	days := int64(stay(p.rules, r) / day)
	x := rates{months: months(days)}
	x.now = new(big.Rat).Mul(from.Month, x.months)
	x.then = new(big.Rat).Mul(to.Month, months(max(days, int64(to.LeastDays))))
	x.reads = new(big.Rat).Mul(big.NewRat(days, 365), r.Reads)
	x.reads.Mul(x.reads, to.Retrieval)
	return x
}

// least returns the size from which on the move of an object pays. S3 can leave smaller ones where they are.
func (p *Planner) least(r Rule, store, class string) int64 {
	from, _ := p.prices.Of(store, class)
	to, _ := p.prices.Of(store, r.Class)
	x := p.rates(r, from, to)
	margin := new(big.Rat).Sub(x.now, x.then)
	margin.Sub(margin, x.reads)
	if margin.Sign() <= 0 {
		return to.LeastBytes // the move costs more for every size, and movings says so
	}
	v := new(big.Rat).Quo(new(big.Rat).Mul(to.Moves, big.NewRat(1e6, 1)), margin)
	size := new(big.Int).Quo(v.Num(), v.Denom())
	if !size.IsInt64() || size.Int64() > 1<<50 {
		return 1 << 50
	}
	return max(to.LeastBytes, size.Int64()+1)
}
