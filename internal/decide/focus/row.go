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

// row is a charge on its way into columns.
type row struct {
	charge.Charge
	service service
	tagged  string // Tags as JSON
	amounts
}

// Writer makes rows of one version.
type Writer struct {
	columns []Column
	known   map[tagged]string // tags of attempts as JSON: most rows have those of a row before
}

// tagged is what tags are made of, except the job's own tags, whose text is kept separately.
type tagged struct{ team, project, environment, model, group, part, job, attempt, user, kind, own string }

// mostTagged bounds the tags that a Writer keeps.
const mostTagged = 2000

// NewWriter makes rows of that version.
func NewWriter(v Version) *Writer { return &Writer{Columns(v), map[tagged]string{}} }

// Header is the names of the columns.
func (w *Writer) Header() (names []string) {
	for _, c := range w.columns {
		names = append(names, c.Name)
	}
	return names
}

// Row appends the values of a charge to room; "" is null.
func (w *Writer) Row(room []string, c charge.Charge) []string {
	r := &row{Charge: c, service: serviceOf(c.Category), amounts: amountsOf(&c)}
	r.tagged = w.tags(r)
	for _, column := range w.columns {
		text := column.fill(r)
		if column.Kind == Text {
			text = ID("text", text) // whatever it is made of
		}
		room = append(room, text)
	}
	return room
}

// service is what a category of cost is in the words of FOCUS. Each name has one category.
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

// stamp writes a moment as FOCUS wants it, without parts of seconds.
func stamp(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

func (r *row) begin() string    { return stamp(r.Begin) }
func (r *row) month() string    { return stamp(charge.Month(r.Begin)) }
func (r *row) monthEnd() string { return stamp(charge.NextMonth(r.Begin)) }

// end is after the beginning also where less than a second lies between.
func (r *row) end() string {
	begin, end := r.Begin.Truncate(time.Second), r.End.Truncate(time.Second)
	if !end.After(begin) {
		end = begin.Add(time.Second)
	}
	return stamp(end)
}

func (r *row) account() string  { return ID("account", cmp.Or(r.Owner.Tenant, ledger.DefaultTenant)) }
func (r *row) provider() string { return ProviderID(r.Provider) }

func (r *row) class() string {
	if r.Corrects {
		return "Correction"
	}
	return ""
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

// priceID is the line of the price sheet: the same as long as the same is bought in the same way. Machine time that a
// rule charges, such as a minimum, has the line of the machine: the rule charges its price.
func (r *row) priceID() string {
	by := cmp.Or(string(r.Capacity), "any")
	if r.Category != ledger.Compute && r.Category != ledger.Fixed {
		by = cmp.Or(r.Rule, "charge")
	}
	return PriceID(r.Provider, r.Region, r.sku(), by)
}

// PriceID names a price by what is bought: provider, region, SKU, and how it is bought. Its parts are named as in the
// columns of their own.
func PriceID(provider, region, sku, by string) string {
	return ProviderID(provider) + "/" + cmp.Or(RegionID(region), "-") + "/" + SkuID(sku) + "/" + by
}

// ProviderID is the name of a provider, in every file that has one.
func ProviderID(name string) string { return ID("provider", cmp.Or(name, "unknown")) }

// RegionID is the name of a region.
func RegionID(name string) string { return ID("region", name) }

// SkuID is the name of a type of machine.
func SkuID(name string) string { return ID("sku", name) }

func (r *row) priceDetails() string {
	if r.SKU == "" {
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
	if r.priced && r.ListPrice.Known {
		return "on-demand"
	}
	return "agreed" // nobody knows the public price, so none is saved
}

func (r *row) tags() string { return r.tagged }

// tags are those of tagsOf.
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

// tagsOf are the job's tags and whose the cost is. A tag of the job keeps its name.
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

// text is a value as JSON. Values of our own types are always JSON.
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

func (r *row) allocatedName() string {
	if !r.Shared {
		return ""
	}
	return ID("job", r.Owner.Job)
}

func (r *row) allocatedTags() string {
	if !r.Shared {
		return ""
	}
	return r.tagged
}

// allocatedDetails say which share of its machine the task pays for, where that is known.
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
