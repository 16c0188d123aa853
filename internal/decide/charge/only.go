package charge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// OnlyBy lists what Only selects charges by: columns of Table, the kind of the job, a tag as KEY or KEY=VALUE, and the
// scope of a budget.
var OnlyBy = []string{"team", "project", "user", "job", "attempt", "group", "provider", "region", "machine", "instance",
	"category", "use", "confidence", byRule, "currency", "kind", byTag, byScope}

const (
	byTag   = "tag"
	byScope = "scope"
	byRule  = "rule"
)

// Reconciled is the value of rule that selects everything that was booked from bills.
const Reconciled = "bill"

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

// OnlyOf returns the selection of parameters by name: the charges that have each of their values. An empty one selects
// all.
func OnlyOf(q map[string][]string) (o Only) {
	for _, name := range OnlyBy {
		for _, value := range q[name] {
			if value != "" {
				o.wants = append(o.wants, wantOf(name, value))
			}
		}
	}
	return o
}

// MostExcept bounds the values that Except leaves out.
const MostExcept = 100

// Except returns the selection without the charges that have one of the values, each written as NAME=VALUE. It returns
// an error if there are more than MostExcept or one has no name of OnlyBy.
func (o Only) Except(list []string) (Only, error) {
	if len(list) > MostExcept {
		return o, fmt.Errorf("%d values are left out, and %d is the most", len(list), MostExcept)
	}
	o.wants = slices.Clone(o.wants)
	for _, text := range list {
		name, value, _ := strings.Cut(text, "=")
		if value == "" || !slices.Contains(OnlyBy, name) {
			return o, fmt.Errorf("%.60q is not NAME=VALUE", text)
		}
		has := wantOf(name, value)
		o.wants = append(o.wants, func(c *Charge) bool { return !has(c) })
	}
	return o, nil
}

// ParseOnly returns the selection of a request's parameters, or a SpanError. With rented, it selects the machines that
// the function returns.
func ParseOnly(q map[string][]string, rented func() map[string]bool) (Only, error) {
	first := func(name string) string {
		if list := q[name]; len(list) > 0 {
			return list[0]
		}
		return ""
	}
	only, err := OnlyOf(q).Except(q["except"])
	if err != nil {
		return only, &SpanError{Field: "except", Err: err,
			Fix: fmt.Sprintf("write NAME=VALUE, at most %d times, with a NAME such as job or team", MostExcept)}
	}
	switch first("rented") {
	case "":
	case "1":
		on := rented()
		only.wants = append(only.wants, func(c *Charge) bool { return on[c.Owner.Instance] })
	default:
		return only, &SpanError{Field: "rented", Err: errors.New("it is not 1"), Fix: "write 1, or leave it out"}
	}
	return only, nil
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
	case byRule:
		if value == Reconciled {
			return func(c *Charge) bool { return ledger.Reconciles(c.Rule) }
		}
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
