package pages

import (
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/charge"
	"scrimp/internal/lib/money"
)

// exported is the address of all charges, as a file.
const exported = "/data/export/costs"

// postingsOf returns the address of the charges with these values in their columns, as a file. An empty value selects
// all.
func postingsOf(pairs ...string) string { return also(exported, pairs...) }

// also returns the address of those charges of an address that have these values, too; "" if the address is empty.
func also(address string, pairs ...string) string {
	to, query, _ := strings.Cut(address, "?")
	of, err := url.ParseQuery(query)
	if address == "" || err != nil {
		return ""
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			of.Set(pairs[i], pairs[i+1])
		}
	}
	if len(of) == 0 {
		return to
	}
	return to + "?" + of.Encode()
}

// namedIn returns the address of those charges of an address that costs by a property list under a name; "": there is
// none.
func namedIn(address, by, name string) string {
	param, value := paramOf(by, name)
	if param == "" {
		return ""
	}
	return also(address, param, value)
}

// without returns the address of the charges of an address that have none of these names of a property; "": there is
// none.
func without(address, by string, names []string) string {
	to, query, _ := strings.Cut(address, "?")
	of, err := url.ParseQuery(query)
	if address == "" || err != nil || len(names) > charge.MostExcept {
		return ""
	}
	for _, name := range names {
		param, value := paramOf(by, name)
		if param == "" {
			return ""
		}
		of.Add("except", param+"="+value)
	}
	return to + "?" + of.Encode()
}

// paramOf returns the parameter and the value that select the charges that costs by a property list under a name; "":
// nothing selects them.
func paramOf(by, name string) (param, value string) {
	if name == "" {
		name = charge.None
	}
	key, isTag := strings.CutPrefix(by, "tag:")
	switch by {
	case "environment", "model_version":
		key, isTag = by, true
	case "sku":
		by = "machine"
	}
	switch {
	case isTag:
		return "tag", key + "=" + name
	case !slices.Contains(charge.OnlyBy, by):
		return "", ""
	}
	return by, name
}

// bookedSince returns a time as the export reads it; "": the beginning.
func bookedSince(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// budgetPostings returns the address of what is spent of a limit in its window, in market time.
func budgetPostings(now time.Time, l client.Limit) string {
	begin := budget.Window(l.Window).Begin(now)
	return postingsOf("booked", bookedSince(&begin), "scope", l.Scope)
}

// sumOf is amount with a link to the postings that it sums, unless it is zero, unknown or has no address.
func sumOf(c money.Currency, v any, address string) template.HTML {
	a, known := amountOf(v)
	if address == "" || !known || a.IsZero() {
		return amount(c, v)
	}
	open := `<a class="sum" href="` + template.HTMLEscapeString(also(address, "currency", string(c))) +
		`" title="the postings that it sums, as CSV">`
	return template.HTML(open) + amount(c, v) + "</a>"
}

// sumsOf is sumOf for a sum in each currency.
func sumsOf(of sums, address string) template.HTML {
	var list []string
	for _, l := range of.Lines() {
		list = append(list, string(sumOf(l.Currency, l.Amount, address)))
	}
	if len(list) == 0 {
		return `<span class="none">$0</span>`
	}
	return template.HTML(strings.Join(list, " + "))
}
