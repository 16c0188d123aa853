package charge

import (
	"slices"
	"strings"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// OnlyBy lists what Only selects charges by: columns of Table, the kind of the job, a tag as KEY or KEY=VALUE, and the
// scope of a budget.
var OnlyBy = []string{"team", "project", "user", "job", "attempt", "group", "provider", "region", "machine", "instance",
	"category", "use", "currency", "kind", byTag, byScope}

const (
	byTag   = "tag"
	byScope = "scope"
)

// Names of charges without a value: of the time of idle machines, which has no job, of the unused part of a
// reservation, and of any other.
const (
	None   = "(none)"
	Idle   = "(idle machines)"
	Unused = "(reserved, unused)"
)

// NoValue returns the name of charges without a value of a property: one that only jobs have, or another.
func NoValue(ofJobs, idle bool, rule string) string {
	switch {
	case rule == state.ReservedRule:
		return Unused
	case idle && ofJobs:
		return Idle
	}
	return None
}

// Only selects charges; the zero Only selects all.
type Only struct{ wants []func(*Charge) bool }

// OnlyOf returns the selection of parameters, which get returns by name. An empty one selects all.
func OnlyOf(get func(name string) string) (o Only) {
	for _, name := range OnlyBy {
		if value := get(name); value != "" {
			o.wants = append(o.wants, wantOf(name, value))
		}
	}
	return o
}

// wantOf returns whether a charge has the value of a parameter.
func wantOf(name, value string) func(*Charge) bool {
	switch name {
	case byScope:
		return func(c *Charge) bool { return budget.Scope(value).Holds(c.Owner, c.User) }
	case byTag:
		key, value, has := strings.Cut(value, "=")
		label := func(c *Charge) string { return c.Owner.Labels()[key] }
		if !has {
			return func(c *Charge) bool { return label(c) != "" }
		}
		return isNamed(label, false, value)
	}
	of := func(c *Charge) string { return c.Kind }
	if at := slices.IndexFunc(cells, func(c cell) bool { return c.header == name }); at >= 0 {
		of = cells[at].of
	}
	return isNamed(of, name == "job" || name == "kind", value)
}

// isNamed returns whether a charge has a value, or none under that name.
func isNamed(of func(*Charge) string, ofJobs bool, value string) func(*Charge) bool {
	return func(c *Charge) bool {
		if text := of(c); text != "" {
			return text == value
		}
		return value == NoValue(ofJobs, ledger.Posting{Owner: c.Owner}.Idles(), c.Rule)
	}
}

// All reports whether all charges are selected.
func (o Only) All() bool { return len(o.wants) == 0 }

// Has reports whether the charge is selected.
func (o Only) Has(c *Charge) bool {
	return !slices.ContainsFunc(o.wants, func(has func(*Charge) bool) bool { return !has(c) })
}
