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
		b.foreign[name] = l.Currency
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

func ofType(l *bill.Line, name string) bool {
	name = strings.ToLower(name)
	return name != "" && (strings.Contains(strings.ToLower(l.SKU), name) ||
		strings.Contains(strings.ToLower(l.Description), name))
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
