package reports

import (
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/incident"
	"scrimp/internal/decide/ledger"
)

// IncidentRow converts a charge for the detection of incidents. A charge without a period has the whole hour of its
// booking; the part after now is cut off, or what goes on now would seem to have ended.
func IncidentRow(c *charge.Charge, now time.Time) incident.Row {
	o := &c.Owner
	r := incident.Row{Begin: c.Begin, End: c.End, Amount: c.Amount, Currency: c.Currency, Category: c.Category, Use: c.Use,
		Price: c.Price, Machine: c.Timed && (c.Category == ledger.Compute || c.Category == ledger.Fixed),
		Team: o.Team, Project: o.Project, Group: o.Group, Job: o.Job, Attempt: o.Attempt, Instance: o.Instance,
		Provider: c.Provider, Region: c.Region, SKU: c.SKU, Capacity: string(c.Capacity), Planned: c.Planned}
	if o.Group == "" {
		r.Series = c.Name
	}
	if r.End.After(now) && !r.Begin.After(now) {
		r.End = now
	}
	return r
}
