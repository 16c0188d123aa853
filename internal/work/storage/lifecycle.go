package storage

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
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

// A transition is a rule of a lifecycle configuration.
type transition struct {
	id       string
	prefixes []string
	days     int
	class    string
	least    int64 // smaller objects stay
}

// Lifecycle stores, by the name that users give.
var lifecycles = map[string]string{"s3": "aws", "gcs": "gcp", "azure": "azure"}

// LifecycleFormats lists the formats of lifecycle configurations.
var LifecycleFormats = []string{"s3", "s3-xml", "gcs", "azure"}

// ErrNoTransition means that no tier rule saves money in a bucket of the wanted provider.
var ErrNoTransition = errors.New("no tier rule saves money in a folder that holds nothing else")

// Lifecycle returns the lifecycle configuration of a bucket for the tier rules that save money. Call it after Finish.
// Deletions are not part of it: a bucket's lifecycle knows no checkpoints and no live jobs.
func (p *Planner) Lifecycle(format string, place int, moves []Move) ([]byte, error) {
	store := lifecycles[strings.TrimSuffix(format, "-xml")]
	if p.places[place].Store != store {
		return nil, fmt.Errorf("--lifecycle %s: %s is no bucket of that provider", format, p.places[place].Name)
	}
	list, err := p.transitions(place, moves)
	if err != nil {
		return nil, err
	}
	switch format {
	case "s3":
		return indented(s3JSON(list))
	case "s3-xml":
		text, err := xml.MarshalIndent(s3XML(list), "", "  ")
		return append([]byte(xml.Header), append(text, '\n')...), err
	case "gcs":
		return indented(gcsJSON(list))
	}
	return indented(azureJSON(list, p.places[place]))
}

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

func (p *Planner) transitions(place int, moves []Move) (list []transition, err error) {
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
			return nil, fmt.Errorf("rule %d: its files are in %d folders: store them below at most %d, or write under:",
				m.Rule+1, len(all), maxPrefixes)
		}
		if len(all) > 0 {
			list = append(list, transition{fmt.Sprintf("scrimp-%d", m.Rule+1), all, days, class, m.Least})
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

type object = map[string]any

func s3JSON(list []transition) any {
	rules := []object{}
	for _, t := range list {
		for i, prefix := range t.prefixes {
			filter := object{"Prefix": prefix}
			if t.least > 0 {
				filter = object{"And": object{"Prefix": prefix, "ObjectSizeGreaterThan": t.least - 1}}
			}
			rules = append(rules, object{"ID": fmt.Sprintf("%s-%d", t.id, i+1), "Status": "Enabled", "Filter": filter,
				"Transitions": []object{{"Days": t.days, "StorageClass": t.class}}})
		}
	}
	return object{"Rules": rules}
}

type s3Rule struct {
	ID     string `xml:"ID"`
	Filter struct {
		Prefix *string `xml:"Prefix,omitempty"`
		And    *s3And  `xml:"And,omitempty"`
	} `xml:"Filter"`
	Status     string `xml:"Status"`
	Transition struct {
		Days  int    `xml:"Days"`
		Class string `xml:"StorageClass"`
	} `xml:"Transition"`
}

type s3And struct {
	Prefix string `xml:"Prefix"`
	Least  int64  `xml:"ObjectSizeGreaterThan"`
}

type s3Configuration struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LifecycleConfiguration"`
	Rules   []s3Rule `xml:"Rule"`
}

func s3XML(list []transition) (c s3Configuration) {
	for _, t := range list {
		for i, prefix := range t.prefixes {
			r := s3Rule{ID: fmt.Sprintf("%s-%d", t.id, i+1), Status: "Enabled"}
			if t.least > 0 {
				r.Filter.And = &s3And{prefix, t.least - 1}
			} else {
				r.Filter.Prefix = &prefix
			}
			r.Transition.Days, r.Transition.Class = t.days, t.class
			c.Rules = append(c.Rules, r)
		}
	}
	return c
}

// gcsPrefixes bounds the prefixes of one condition.
const gcsPrefixes = 50

func gcsJSON(list []transition) any {
	rules := []object{}
	for _, t := range list {
		for part := range slices.Chunk(t.prefixes, gcsPrefixes) {
			condition := object{"age": t.days}
			if part[0] != "" {
				condition["matchesPrefix"] = part
			}
			rules = append(rules, object{"action": object{"type": "SetStorageClass", "storageClass": t.class},
				"condition": condition})
		}
	}
	return object{"rule": rules}
}

// azurePrefixes bounds the prefixes of one rule.
const azurePrefixes = 10

func azureJSON(list []transition, place Place) any {
	container := strings.TrimPrefix(place.Name, "azblob://")
	container, _, _ = strings.Cut(container, "?")
	container, _, _ = strings.Cut(container, "/")
	rules := []object{}
	for _, t := range list {
		n := 0
		for part := range slices.Chunk(t.prefixes, azurePrefixes) {
			n++
			var match []string
			for _, prefix := range part {
				match = append(match, container+"/"+prefix)
			}
			rules = append(rules, object{"name": fmt.Sprintf("%sx%d", strings.ReplaceAll(t.id, "-", ""), n), "enabled": true, "type": "Lifecycle",
				"definition": object{"filters": object{"blobTypes": []string{"blockBlob"}, "prefixMatch": match},
					"actions": object{"baseBlob": object{"tierTo" + t.class: object{
						"daysAfterModificationGreaterThan": t.days}}}}})
		}
	}
	return object{"rules": rules}
}
