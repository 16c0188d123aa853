package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/work/reconcile"
)

// billsPage shows the kept bills, the exports that the server fetches, and the comparison of a month with the ledger.
type billsPage struct {
	client.Bills
	Now     time.Time
	Month   string
	Compare *trueup.Comparison // nil: there is no bill of the month
	Gaps    []reconcile.Gap
	Lists   []billList
	More    int     // gaps beyond those shown
	Barred  bool    // the reader does not see all teams
	Remove  *action // nil: the reader may not remove bills
}

// billList is a list of lines or machines without a partner.
type billList struct {
	Name string
	Of   []reconcile.Alone
	More int
}

// shownGaps bounds each list of the page.
const shownGaps = 50

func (p *billsPage) twin() string {
	if p.Month == "" {
		return "/v1/bills"
	}
	return "/v1/bills/reconcile?" + url.Values{"month": {p.Month}}.Encode()
}

// command returns the equivalent command.
func (p *billsPage) command() string {
	if p.Month == "" {
		return "scrimp bill list"
	}
	return commandOf("scrimp reconcile", url.Values{"month": {p.Month}}, "month")
}

func billsOf(v *visit) (any, error) {
	p := &billsPage{Now: v.now, Month: v.r.URL.Query().Get("month")}
	err := v.get("/v1/bills", &p.Bills)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusForbidden {
		p.Barred = true
		return p, nil
	}
	if a, _ := actionOf("remove-bill"); atLeast(v.role(client.Everywhere), a.least) {
		p.Remove = &a
	}
	if err != nil || p.Month == "" {
		return p, err
	}
	var c trueup.Comparison
	err = v.get(p.twin(), &c)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Compare = &c
	p.Gaps = slices.DeleteFunc(c.Gaps, func(g reconcile.Gap) bool { return g.Gap.Sign() == 0 })
	p.More = len(p.Gaps)
	p.Gaps = p.Gaps[:min(len(p.Gaps), shownGaps)]
	p.More -= len(p.Gaps)
	for _, l := range []billList{{Name: "Billed, without a machine", Of: c.NeverOurs},
		{Name: "Ours, not billed yet", Of: c.NotBilled}, {Name: "Of other months", Of: c.Others}} {
		if len(l.Of) > 0 {
			l.More = max(0, len(l.Of)-shownGaps)
			l.Of = l.Of[:len(l.Of)-l.More]
			p.Lists = append(p.Lists, l)
		}
	}
	return p, nil
}

// Terminal returns the command that removes a bill.
func (*billsPage) Terminal(b client.Bill) string {
	text := "scrimp bill remove"
	for _, word := range []string{b.Provider, b.Account, b.Month} {
		text += " " + shellWord(word)
	}
	return text + " --yes"
}

// Ours returns the address of the ledger's side of the comparison, or of one machine: costs of machines in the month
// without what bills have booked.
func (p *billsPage) Ours(instance string) string {
	return without(also(p.ofMachines(), "instance", instance), "rule", []string{charge.Reconciled})
}

// Booked returns the address of what bills have booked for machines in the month.
func (p *billsPage) Booked() string { return also(p.ofMachines(), "rule", charge.Reconciled) }

func (p *billsPage) ofMachines() string {
	at, err := time.Parse("2006-01", p.Month)
	if err != nil {
		return "" // the API has refused it
	}
	return without(monthPostings(at), "instance", []string{charge.None})
}

// Why lists the parts of a gap in table order.
func (p *billsPage) Why(g reconcile.Gap) (list []string) {
	for _, name := range reconcile.Parts {
		if a := g.Parts[name]; a.Sign() != 0 {
			list = append(list, string(name)+" "+a.String())
		}
	}
	return list
}
