package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/work/bill"
)

// partner finds the machine of a line: by the provider's ID, then by scrimp's tags, then by time and type. Without one
// it gives the reason, if the line claims to be scrimp's.
func (b *Books) partner(l *bill.Line) (f *found, by, why string) {
	id := l.Resource[strings.LastIndexAny(l.Resource, "/:")+1:]
	for _, name := range []string{l.Resource, id} {
		if !b.instances[name] {
			continue
		}
		if m := b.machines[key{name, l.Currency}]; m != nil {
			return m, "id", ""
		}
		b.alien(name, l)
		return nil, "", fmt.Sprintf("scrimp accounts for this machine in another currency than %s: no rate is known",
			l.Currency)
	}
	for _, tag := range []string{l.Attempt, l.Job} {
		if f, why = b.tagged(l, tag); f != nil {
			return f, "tag", ""
		} else if why != "" {
			return nil, "", why
		}
	}
	if l.Job != "" || l.Attempt != "" {
		return nil, "", "its tag names a job of which no machine is known in this time"
	}
	if l.Category != bill.Compute {
		return nil, "", ""
	}
	list := b.alike(l)
	switch {
	case len(list) == 0:
		return nil, "", ""
	case l.Resource != "":
		return nil, "", "a machine of a type that scrimp rented at that time, and its id is none of scrimp's"
	case len(list) > 1:
		return nil, "", "several machines of scrimp have this type at that time"
	}
	return list[0], "time", ""
}

// tagged returns the machine of the job or attempt; among several, the one with the line's type and time.
func (b *Books) tagged(l *bill.Line, tag string) (f *found, why string) {
	if tag == "" {
		return nil, ""
	}
	list := slices.DeleteFunc(slices.Clone(b.jobs[tag]), func(f *found) bool { return f.Currency != l.Currency })
	switch {
	case len(list) == 0 && len(b.jobs[tag]) > 0:
		for _, f := range b.jobs[tag] {
			b.alien(f.Instance, l)
		}
		return nil, fmt.Sprintf("scrimp accounts for %s in another currency than %s: no rate is known", tag, l.Currency)
	case l.Resource != "" && l.Category == bill.Compute && len(list) > 0:
		return nil, "its tag names " + tag + ", and its id is none of that job's machines"
	case len(list) > 1:
		list = slices.DeleteFunc(list, func(f *found) bool { return !f.at(l) || !ofType(l, f.Type) })
		if len(list) != 1 {
			return nil, "its tag names " + tag + ", which has several machines"
		}
	}
	if len(list) == 1 {
		return list[0], ""
	}
	return nil, ""
}

// at reports whether the line overlaps the machine's time.
func (f *found) at(l *bill.Line) bool { return l.Start.Before(f.End) && l.End.After(f.Begin) }

// alien remembers that a machine has a line in another currency than its account's.
func (b *Books) alien(instance string, l *bill.Line) {
	if b.has(l) {
		b.foreign[instance] = l.Currency
	}
}

func ofType(l *bill.Line, name string) bool {
	return names(l.SKU, name) || names(l.Description, name)
}

// names reports whether the text contains the whole name: m5 is no part of m5.large, nor n1-standard-1 of
// n1-standard-16.
func names(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	for from := 0; name != ""; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		at += from
		before, after := reversed(text[:at]), text[at+len(name):]
		if !goesOn(before) && !goesOn(after) {
			return true
		}
		from = at + 1
	}
	return false
}

// reversed returns the last two bytes of a text, the last one first.
func reversed(s string) string {
	switch n := len(s); n {
	case 0, 1:
		return s
	default:
		return string([]byte{s[n-1], s[n-2]})
	}
}

// goesOn reports whether the text beside a name belongs to it: a letter or digit, or one behind a point or hyphen.
func goesOn(s string) bool {
	if s != "" && strings.IndexByte(".-_", s[0]) >= 0 {
		s = s[1:]
	}
	return s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= '0' && s[0] <= '9')
}

// alike returns the machines with the line's type, time and currency.
func (b *Books) alike(l *bill.Line) (list []*found) {
	for name, all := range b.types {
		if !ofType(l, name) {
			continue
		}
		for _, f := range all {
			if f.Currency == l.Currency && f.at(l) {
				list = append(list, f)
			}
		}
	}
	return list
}

// Unclear reports whether the line may well be of a machine of scrimp's, and only its partner is not known: it is in
// another currency, or several machines could be it.
func (a *Alone) Unclear() bool {
	return strings.HasPrefix(a.Why, "scrimp accounts for ") || strings.Contains(a.Why, "several machines")
}
