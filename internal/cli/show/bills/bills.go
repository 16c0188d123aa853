package bills

import (
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Bills formats the kept bills, the closed months, and the exports that the server fetches.
func Bills(v api.Bills, p show.Place) string {
	if len(v.Bills)+len(v.Closed)+len(v.Exports) == 0 {
		return draw.Wrap("", "No bills: scrimp bill import FILE keeps one.", p.Columns())
	}
	var rows [][]string
	for _, b := range v.Bills {
		state := "open"
		if b.Closed {
			state = "closed"
		}
		rows = append(rows, []string{b.Month, show.Clean(b.Provider), show.Clean(b.Account), fmt.Sprint(b.Lines),
			billTotals(b.Totals), b.Imported.UTC().Format("2006-01-02"), show.Clean(b.By), state})
	}
	var s strings.Builder
	if len(rows) > 0 {
		s.WriteString(draw.Grid([]draw.Column{{Name: "MONTH"}, {Name: "PROVIDER", Key: true}, {Name: "ACCOUNT"},
			{Name: "LINES", Right: true, Leaves: 2}, {Name: "TOTAL", Right: true}, {Name: "IMPORTED", Leaves: 3},
			{Name: "BY", Leaves: 1}, {Name: "STATE"}}, rows, p.Columns()))
	}
	for _, m := range v.Closed {
		if !slices.ContainsFunc(v.Bills, func(b api.Bill) bool { return b.Month == m.Month }) {
			fmt.Fprintf(&s, "%s has no bill and is closed, by %s\n", m.Month, show.Clean(m.By))
		}
	}
	for _, e := range v.Exports {
		s.WriteString(show.BillExport(e, p))
	}
	return s.String()
}

// billTotals formats the sums of a bill, to the last digit.
func billTotals(list []api.BillTotal) string {
	var all []string
	for _, t := range list {
		amount, err := decimal.Parse(t.Amount)
		if err != nil {
			all = append(all, "?")
			continue
		}
		all = append(all, billed(amount, t.Currency))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

// accountOf names the provider and the account of a bill.
func accountOf(b api.Bill) string {
	if b.Account == "" {
		return show.Clean(b.Provider) + ", no account"
	}
	return show.Clean(b.Provider) + " of " + show.Clean(b.Account)
}

// ImportedBills says what an import changed.
func ImportedBills(list []api.ImportedBill, p show.Place) string {
	var s strings.Builder
	for _, b := range list {
		text := fmt.Sprintf("%s %s: %s, %s", b.Month, accountOf(b.Bill), draw.Count(b.Lines, "line"), billTotals(b.Totals))
		switch b.Result {
		case "same":
			text += ". It was imported before, and nothing changed."
		case "replaced":
			text += ". It replaces a bill of " + billTotals(b.Before) + "."
		default:
			text += ". It is new."
		}
		if b.Unread > 0 {
			text += fmt.Sprintf(" %s could not be read.", draw.Count(b.Unread, "row"))
		}
		s.WriteString(draw.Wrap("", text, p.Columns()))
	}
	return s.String()
}

// RemovedBill says what a removal has removed, or would remove.
func RemovedBill(b api.RemovedBill, p show.Place) string {
	text := fmt.Sprintf("%s %s: %s, %s. ", b.Month, accountOf(b.Bill),
		draw.Count(b.Lines, "line"), billTotals(b.Totals))
	if !b.Removed {
		return draw.Wrap("", text+"Nothing is removed yet: add --yes.", p.Columns())
	}
	text += "It is removed. The ledger keeps what was booked of it: scrimp reconcile --month " + b.Month +
		" --book reverses that."
	if first := b.Since.UTC().Format("2006-01"); first < b.Month {
		text += " It had charges of earlier months, the first of " + first + ": book those again too."
	}
	return draw.Wrap("", text, p.Columns())
}

// ReconcileKept formats the comparison of the kept bills with the ledger, and what is booked.
func ReconcileKept(v trueup.Comparison, p show.Place) string {
	var s strings.Builder
	s.WriteString(Reconcile(v.Answer, p))
	s.WriteString("\n")
	for _, b := range v.Booking {
		p.Fact(&s, "booked before", "%s", money.Short(b.Before, b.Currency))
		name := "to book"
		if v.Booked {
			name = "booked now"
		}
		p.Fact(&s, name, "%s, %s", money.Short(b.Amount, b.Currency), draw.Count(b.Count, "part"))
	}
	if len(v.Booking) == 0 {
		p.Fact(&s, "to book", "nothing")
	}
	for _, w := range v.Waits {
		s.WriteString(draw.Wrap("", fmt.Sprintf("%s waits: %s.", show.Clean(w.Instance), show.Clean(w.Why)), p.Columns()))
	}
	open := slices.ContainsFunc(v.Booking, func(b trueup.Booking) bool { return b.Count > 0 })
	switch {
	case v.Closed:
		s.WriteString(draw.Wrap("", v.Month+" is closed: nothing can be booked for it.", p.Columns()))
	case open && !v.Booked:
		s.WriteString(draw.Wrap("", "Nothing is booked: --book does it.", p.Columns()))
	}
	return s.String()
}
