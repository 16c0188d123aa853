package storage

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"scrimp/internal/work/storage/lifecycle"
)

const (
	maxFolders  = 200_000 // remembered of a place
	maxTiers    = 64      // tier rules of a plan
	maxPrefixes = 100     // of a rule
)

// tierBits returns, for a file, the tier rules that a lifecycle configuration may apply to it: those before the first
// rule that keeps it.
func (p *Planner) tierBits(f File, kind Kind) (bits uint64) {
	n := 0
	store := p.places[f.Place].Store
	for _, r := range p.rules {
		tier := r.Action == Tier
		if r.matches(kind, f.Path) {
			if r.Action == Keep {
				break
			}
			if tier && n < maxTiers && (f.Held == "" || f.HeldOnly && !isOffline(store, r.Class)) {
				bits |= 1 << n
			}
		}
		if tier {
			n++
		}
	}
	return bits
}

// cover notes the rules that apply to all objects of each folder.
func (p *Planner) cover(f File, kind Kind) {
	if p.places[f.Place].Store == Local {
		return
	}
	bits, folders := p.tierBits(f, kind), p.covers[f.Place]
	for dir := path.Dir(f.Path); ; dir = path.Dir(dir) {
		if before, ok := folders[dir]; ok {
			folders[dir] = before & bits
		} else if len(folders) < maxFolders {
			folders[dir] = bits
		}
		if dir == "." || dir == "/" {
			return
		}
	}
}

// prefixes returns the outermost folders of a place in which a tier rule applies to every object.
func (p *Planner) prefixes(place, rule int) (list []string) {
	n := 0
	for _, r := range p.rules[:rule] {
		if r.Action == Tier {
			n++
		}
	}
	if n >= maxTiers {
		return nil
	}
	folders := p.covers[place]
	r := p.rules[rule]
	has := func(dir string) bool {
		if dir == "." { // later objects at the top may be of any kind
			return folders[dir]&(1<<n) != 0 && r.Kind == "" && r.Under == ""
		}
		return folders[dir]&(1<<n) != 0 && strings.HasPrefix(dir+"/", r.Under)
	}
	for dir := range folders {
		if !has(dir) || dir != "." && has(path.Dir(dir)) {
			continue
		}
		name := dir + "/"
		if dir == "." {
			name = ""
		}
		list = append(list, p.places[place].Prefix+name)
	}
	slices.Sort(list)
	return list
}

// ErrNoTransition means that no tier rule saves money in a bucket of the wanted provider.
var ErrNoTransition = errors.New("no tier rule saves money in a folder that holds nothing else")

// Lifecycle returns the transitions of a bucket for the tier rules that save money, for the lifecycle configuration of
// its provider. Call it after Finish. Deletions are not part of it: a bucket's lifecycle knows no checkpoints and no
// live jobs.
func (p *Planner) Lifecycle(place int, moves []Move) (list []lifecycle.Transition, err error) {
	seen := map[int]bool{}
	for _, m := range moves {
		r := p.rules[m.Rule]
		if m.Place != place || m.Why != "" || r.Action != Tier || seen[m.Rule] {
			continue
		}
		seen[m.Rule] = true
		days := int(r.OlderThan / day)
		class, err := p.classOf(m)
		if err != nil {
			return nil, err
		}
		if least := leastAge[p.places[place].Store+"/"+strings.ToUpper(r.Class)]; days < least {
			return nil, fmt.Errorf("rule %d: %s takes objects from %d days on: write older_than: %dd", m.Rule+1, r.Class,
				least, least)
		}
		all := p.prefixes(place, m.Rule)
		if len(all) > maxPrefixes {
			return nil, fmt.Errorf("rule %d: its files are in %d folders: store them below at most %d, or give the rule "+
				"under: FOLDER", m.Rule+1, len(all), maxPrefixes)
		}
		if len(all) > 0 {
			list = append(list, lifecycle.Transition{Rule: m.Rule + 1, Prefixes: all, Days: days,
				Class: class, Least: m.Least})
		}
	}
	if len(list) == 0 {
		return nil, ErrNoTransition
	}
	return list, nil
}

// classes lists the storage classes to which a lifecycle configuration can move objects.
var classes = map[string][]string{
	"aws": {"STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"},
	"gcp": {"NEARLINE", "COLDLINE", "ARCHIVE"}, "azure": {"Cool", "Cold", "Archive"},
}

// classOf returns the class of a move's rule as its provider writes it.
func (p *Planner) classOf(m Move) (string, error) {
	known, class := classes[p.places[m.Place].Store], p.rules[m.Rule].Class
	i := slices.IndexFunc(known, func(c string) bool { return strings.EqualFold(c, class) })
	if i < 0 {
		return "", fmt.Errorf("rule %d: class: %s is no storage class that objects can move to: write one of %s", m.Rule+1,
			class, strings.Join(known, ", "))
	}
	return known[i], nil
}
