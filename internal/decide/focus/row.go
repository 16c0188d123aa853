package focus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/market"
)

// row is a charge with the values derived for its columns.
type row struct {
	charge.Charge
	service service
	tagged  string // Tags as JSON
	amounts
}

// Writer writes rows of one version.
type Writer struct {
	columns []Column
	known   map[tagged]string // cache of the tags as JSON, since most rows repeat those of an earlier row
}

// tagged is the cache key of a row's tags; own is the text of the job's own tags.
type tagged struct{ team, project, environment, model, group, part, job, attempt, user, kind, own string }

// mostTagged bounds the cache of a Writer.
const mostTagged = 2000

// NewWriter returns a writer for a version.
func NewWriter(v Version) *Writer { return &Writer{Columns(v), map[tagged]string{}} }

// Header returns the names of the columns.
func (w *Writer) Header() (names []string) {
	for _, c := range w.columns {
		names = append(names, c.Name)
	}
	return names
}

// Row appends the values of a charge to room; an empty value is null.
func (w *Writer) Row(room []string, c charge.Charge) []string {
	r := &row{Charge: c, service: serviceOf(c.Category), amounts: amountsOf(&c)}
	r.tagged = w.tags(r)
	for _, column := range w.columns {
		text := column.fill(r)
		if column.Kind == Text {
			text = ID("text", text) // any part may need it
		}
		room = append(room, text)
	}
	return room
}

// service describes a category of cost in FOCUS terms. Each name belongs to one category.
type service struct{ category, subcategory, name, meter, resource string }

var services = map[ledger.Category]service{
	ledger.Compute:  {"Compute", "Virtual Machines", "Machines", "Machine Time", "Virtual Machine"},
	ledger.Storage:  {"Storage", "Block Storage", "Disks", "Disk Space", "Disk"},
	ledger.Transfer: {"Networking", "Network Connectivity", "Data Transfer", "Data Sent", "Network"},
	ledger.Image:    {"Storage", "Other (Storage)", "Machine Images", "Image Space", "Machine Image"},
	ledger.Address:  {"Networking", "Network Infrastructure", "Public Addresses", "Address Time", "Address"},
	ledger.Fixed:    {"Compute", "Other (Compute)", "Reserved Machines", "Reserved Time", "Reservation"},
	ledger.Overhead: {"Management and Governance", "Other (Management and Governance)", "Overhead", "Overhead", "Machine"},
}

func serviceOf(c ledger.Category) service {
	if s, known := services[c]; known {
		return s
	}
	return service{"Other", "Other (Other)", "Other", "Other", "Other"}
}

// stamp formats a moment for FOCUS, in whole seconds.
func stamp(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

func (r *row) begin() string    { return stamp(r.Begin) }
func (r *row) month() string    { return stamp(charge.Month(r.Begin)) }
func (r *row) monthEnd() string { return stamp(charge.NextMonth(r.Begin)) }

// end is at least one second after begin, as FOCUS requires an end after the start.
func (r *row) end() string {
	begin, end := r.Begin.Truncate(time.Second), r.End.Truncate(time.Second)
	if !end.After(begin) {
		end = begin.Add(time.Second)
	}
	return stamp(end)
}

func (r *row) account() string  { return ID("account", cmp.Or(r.Owner.Tenant, ledger.DefaultTenant)) }
func (r *row) provider() string { return ProviderID(r.Provider) }

// class is null for a correction that was booked before the month's end: its month is not invoiced yet.
func (r *row) class() string {
	if r.Corrects && !r.Booked.Before(charge.NextMonth(r.Begin)) {
		return "Correction"
	}
	return ""
}

// usage is the category of all charges but tax, credits and commitments.
const usage = "Usage"

// chargeCategory returns the category of the charge. The ledger has other categories than usage only as corrections
// to a provider's bill.
func (r *row) chargeCategory() string {
	part, _ := ledger.Extra(r.Rule)
	return cmp.Or(map[string]string{"tax": "Tax", "credit": "Credit", "commitment": "Adjustment"}[part], usage)
}

func (r *row) frequency() string {
	if r.chargeCategory() != usage {
		return "One-Time"
	}
	return "Usage-Based"
}

func (r *row) description() string {
	text := r.sku()
	if r.Capacity != "" {
		text += " " + string(r.Capacity)
	}
	if place := cmp.Or(r.Zone, r.Region); place != "" {
		text += " in " + place
	}
	if r.Owner.Job != "" {
		text += " for job " + r.Owner.Job
	}
	if r.Rule != "" {
		return fmt.Sprintf("%s: %s (%s)", text, r.Use, r.Rule)
	}
	return fmt.Sprintf("%s: %s", text, r.Use)
}

func (r *row) resourceType() string {
	if r.Owner.Instance == "" {
		return ""
	}
	return r.service.resource
}

func (r *row) sku() string { return SkuID(cmp.Or(r.SKU, r.service.name)) }

// priceID identifies a line of the price sheet: it is the same for the same machine and capacity. Machine time
// charged by a rule, such as a minimum, has the line of the machine, because the rule charges its price.
func (r *row) priceID() string {
	by := cmp.Or(string(r.Capacity), "any")
	if !r.machine() {
		by = cmp.Or(r.Rule, "charge")
	}
	return PriceID(r.Provider, r.Region, r.sku(), by)
}

// machine reports whether the charge is for a machine.
func (r *row) machine() bool { return r.Category == ledger.Compute || r.Category == ledger.Fixed }

// PriceID identifies a price by provider, region, SKU and how it was bought. Its parts have the same form as in
// their own columns.
func PriceID(provider, region, sku, by string) string {
	return ProviderID(provider) + "/" + cmp.Or(RegionID(region), "-") + "/" + SkuID(sku) + "/" + by
}

// ProviderID returns the name of a provider as all files write it.
func ProviderID(name string) string { return ID("provider", cmp.Or(name, "unknown")) }

// RegionID returns the name of a region as all files write it.
func RegionID(name string) string { return ID("region", name) }

// SkuID returns the name of a machine type as all files write it.
func SkuID(name string) string { return ID("sku", name) }

// priceDetails describes the machine of a price. Rows with the same priceID have the same details.
func (r *row) priceDetails() string {
	if r.SKU == "" || !r.machine() {
		return ""
	}
	v := struct {
		InstanceType string
		GpuCount     int    `json:",omitempty"`
		Capacity     string `json:"x_Capacity,omitempty"`
	}{r.SKU, r.Accelerators, string(r.Capacity)}
	return text(v)
}

func (r *row) pricingCategory() string {
	switch {
	case r.Category == ledger.Fixed || r.Capacity == market.Reserved:
		return "Committed"
	case r.Capacity == market.Spot:
		return "Dynamic"
	case r.Capacity == market.OnDemand:
		return "Standard"
	}
	return "Other"
}

func (r *row) subAccountType() string {
	if r.Owner.Project == "" {
		return ""
	}
	return "Project"
}

func (r *row) listPriceSource() string {
	if r.chargeCategory() != usage {
		return ""
	}
	if r.priced && r.ListPrice.Known {
		return "on-demand"
	}
	return "agreed" // the public price is unknown, so no saving is reported
}

func (r *row) tags() string { return r.tagged }

// tags returns tagsOf(r), cached.
func (w *Writer) tags(r *row) string {
	o := &r.Owner
	k := tagged{o.Team, o.Project, o.Environment, o.ModelVersion, o.Group, o.Part, o.Job, o.Attempt, r.User, r.Kind,
		ledger.TagText(o.Tags)}
	text, known := w.known[k]
	if !known {
		if len(w.known) >= mostTagged {
			clear(w.known)
		}
		text = tagsOf(r)
		w.known[k] = text
	}
	return text
}

// tagsOf returns the job's tags and the owner of the cost as JSON. On a conflict the job's own tag wins.
func tagsOf(r *row) string {
	o := &r.Owner
	tags := map[string]string{"team": o.Team, "project": o.Project, "environment": o.Environment,
		"model_version": o.ModelVersion, "group": o.Group, "trial": o.Part, "job": o.Job, "attempt": o.Attempt,
		"user": r.User, "kind": r.Kind}
	maps.DeleteFunc(tags, func(_, v string) bool { return v == "" })
	maps.Copy(tags, o.Tags)
	if len(tags) == 0 {
		return ""
	}
	return text(tags)
}

// text marshals a value of scrimp's own types, which cannot fail.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("focus: " + err.Error())
	}
	return string(b)
}

func (r *row) allocatedMethod() string {
	if !r.Shared {
		return ""
	}
	return "share-of-machine"
}

func (r *row) allocatedResource() string {
	if !r.Shared {
		return ""
	}
	return ID("task", r.Owner.Task)
}

// allocatedName is never empty where allocatedResource is not.
func (r *row) allocatedName() string {
	if !r.Shared {
		return ""
	}
	return cmp.Or(ID("job", r.Owner.Job), r.allocatedResource())
}

// allocatedDetails states which share of its machine the task pays for, if known.
func (r *row) allocatedDetails() string {
	if !r.Shared || r.Whole == 0 || !r.Timed {
		return ""
	}
	return text(map[string]any{"Elements": []any{map[string]any{
		"AllocatedRatio": json.Number(ratio(r.Part, r.Whole)), "UsageUnit": hours,
		"UsageQuantity": json.Number(r.consumed())}}})
}

func (r *row) cost() string      { return r.amounts.cost }
func (r *row) quantity() string  { return r.amounts.quantity }
func (r *row) consumed() string  { return r.amounts.consumed }
func (r *row) unit() string      { return r.amounts.unit }
func (r *row) price() string     { return r.amounts.price }
func (r *row) listPrice() string { return r.amounts.listPrice }
func (r *row) listCost() string  { return r.amounts.listCost }
