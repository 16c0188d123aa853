package charge

import "slices"

// OnlyBy lists the columns of Table that Only selects charges by.
var OnlyBy = []string{"team", "project", "user", "job", "group", "provider", "region", "machine", "category"}

// None selects charges without a value in the column.
const None = "(none)"

// Only selects charges by their owner or place; the zero Only selects all.
type Only struct{ wants []want }

type want struct {
	of    func(*Charge) string
	value string
}

// OnlyOf returns the selection of parameters, which get returns by name. An empty one selects all.
func OnlyOf(get func(name string) string) (o Only) {
	for _, c := range cells {
		value := get(c.header)
		if value == "" || !slices.Contains(OnlyBy, c.header) {
			continue
		}
		if value == None {
			value = ""
		}
		o.wants = append(o.wants, want{c.of, value})
	}
	return o
}

// All reports whether all charges are selected.
func (o Only) All() bool { return len(o.wants) == 0 }

// Has reports whether the charge is selected.
func (o Only) Has(c *Charge) bool {
	return !slices.ContainsFunc(o.wants, func(w want) bool { return w.of(c) != w.value })
}
