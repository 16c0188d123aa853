// Package focus writes charges as rows of FOCUS, the FinOps Open Cost and Usage Specification (focus.finops.org):
// the CostAndUsage data set of versions 1.2 to 1.4.
package focus

import (
	"fmt"
	"slices"
)

// Version is a version of the specification times ten: 12 is 1.2.
type Version int

// The supported versions.
const (
	V12 Version = 12
	V13 Version = 13
	V14 Version = 14
)

// Versions lists the supported versions for messages.
const Versions = "1.2, 1.3 or 1.4"

// ParseVersion reads a version such as "1.2". An empty text means the oldest, which most tools read.
func ParseVersion(text string) (Version, error) {
	if text == "" {
		return V12, nil
	}
	for _, v := range []Version{V12, V13, V14} {
		if v.String() == text {
			return v, nil
		}
	}
	return 0, fmt.Errorf("FOCUS %.20q is not known: write %s", text, Versions)
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", int(v)/10, int(v)%10) }

// Kind is the type of a column's values.
type Kind int

// The kinds of columns. Decimals are written in full; times as RFC 3339 in UTC, to the second.
const (
	Text Kind = iota
	Decimal
	Time
	JSON
)

// Level is the feature level of a column in the specification.
type Level int

// The levels; Custom marks scrimp's own columns, whose names start with x_.
const (
	Mandatory Level = iota
	Conditional
	Recommended
	Custom
)

// Column is one column of a row.
type Column struct {
	Name  string
	Level Level
	Kind  Kind
	Null  bool // it may be null
	// From and To are the first and the last version with the column.
	From, To Version
	fill     func(*row) string // an empty text is null
}

// Columns returns the columns of a version in row order: by name, scrimp's own last.
func Columns(v Version) (list []Column) {
	for _, c := range slices.Concat(standard, own) {
		if c.From <= v && v <= c.To {
			list = append(list, c)
		}
	}
	return list
}

// none fills a column that only an imported bill could fill.
func none(*row) string { return "" }

// ofUsage leaves a column null in rows of tax, credits and commitments, which have no price of their own.
func ofUsage(fill func(*row) string) func(*row) string {
	return func(r *row) string {
		if r.chargeCategory() != usage {
			return ""
		}
		return fill(r)
	}
}

// standard lists the columns of the specification, by name.
var standard = []Column{
	{"AllocatedMethodDetails", Recommended, JSON, true, V13, V14, (*row).allocatedDetails},
	{"AllocatedMethodId", Conditional, Text, true, V13, V14, (*row).allocatedMethod},
	{"AllocatedResourceId", Conditional, Text, true, V13, V14, (*row).allocatedResource},
	{"AllocatedResourceName", Conditional, Text, true, V13, V14, (*row).allocatedName},
	// AllocatedTags may not repeat what Tags has, and Tags has all tags of the task.
	{"AllocatedTags", Conditional, JSON, true, V13, V14, none},
	{"AvailabilityZone", Recommended, Text, true, V12, V14, func(r *row) string { return ID("zone", r.Zone) }},
	{"BilledCost", Mandatory, Decimal, false, V12, V14, (*row).cost},
	{"BillingAccountId", Mandatory, Text, false, V12, V14, (*row).account},
	{"BillingAccountName", Mandatory, Text, true, V12, V14, (*row).account},
	{"BillingAccountType", Conditional, Text, true, V12, V14, func(*row) string { return "Installation" }},
	{"BillingCurrency", Mandatory, Text, false, V12, V14, func(r *row) string { return string(r.Currency) }},
	{"BillingPeriodEnd", Mandatory, Time, false, V12, V14, (*row).monthEnd},
	{"BillingPeriodStart", Mandatory, Time, false, V12, V14, (*row).month},
	{"CapacityReservationId", Conditional, Text, true, V12, V14, none},
	{"CapacityReservationStatus", Conditional, Text, true, V12, V14, none},
	{"ChargeCategory", Mandatory, Text, false, V12, V14, (*row).chargeCategory},
	{"ChargeClass", Mandatory, Text, true, V12, V14, (*row).class},
	{"ChargeDescription", Mandatory, Text, true, V12, V14, (*row).description},
	{"ChargeFrequency", Recommended, Text, false, V12, V14, (*row).frequency},
	{"ChargePeriodEnd", Mandatory, Time, false, V12, V14, (*row).end},
	{"ChargePeriodStart", Mandatory, Time, false, V12, V14, (*row).begin},
	{"CommitmentDiscountCategory", Conditional, Text, true, V12, V14, none},
	{"CommitmentDiscountId", Conditional, Text, true, V12, V14, none},
	{"CommitmentDiscountName", Conditional, Text, true, V12, V14, none},
	{"CommitmentDiscountQuantity", Conditional, Decimal, true, V12, V14, none},
	{"CommitmentDiscountStatus", Conditional, Text, true, V12, V14, none},
	{"CommitmentDiscountType", Conditional, Text, true, V12, V14, none},
	{"CommitmentDiscountUnit", Conditional, Text, true, V12, V14, none},
	{"CommitmentProgramEligibilityDetails", Conditional, JSON, true, V14, V14, none},
	{"ConsumedQuantity", Conditional, Decimal, true, V12, V14, (*row).consumed},
	{"ConsumedUnit", Conditional, Text, true, V12, V14, (*row).unit},
	{"ContractApplied", Conditional, JSON, true, V13, V14, none},
	{"ContractedCost", Mandatory, Decimal, false, V12, V14, (*row).cost},
	{"ContractedUnitPrice", Conditional, Decimal, true, V12, V14, (*row).price},
	{"EffectiveCost", Mandatory, Decimal, false, V12, V14, (*row).cost},
	{"HostProviderName", Mandatory, Text, false, V13, V14, (*row).provider},
	{"InvoiceDetailId", Conditional, Text, true, V14, V14, none},
	{"InvoiceId", Conditional, Text, true, V12, V14, none},
	{"InvoiceIssuerName", Mandatory, Text, false, V12, V14, (*row).provider},
	{"ListCost", Mandatory, Decimal, false, V12, V14, (*row).listCost},
	{"ListUnitPrice", Conditional, Decimal, true, V12, V14, (*row).listPrice},
	{"PricingCategory", Conditional, Text, true, V12, V14, ofUsage((*row).pricingCategory)},
	{"PricingCurrency", Conditional, Text, true, V12, V14, func(r *row) string { return string(r.Currency) }},
	{"PricingCurrencyContractedUnitPrice", Conditional, Decimal, true, V12, V14, (*row).price},
	{"PricingCurrencyEffectiveCost", Conditional, Decimal, true, V12, V14, (*row).cost},
	{"PricingCurrencyListUnitPrice", Conditional, Decimal, true, V12, V14, (*row).listPrice},
	{"PricingQuantity", Mandatory, Decimal, true, V12, V14, (*row).quantity},
	{"PricingUnit", Mandatory, Text, true, V12, V14, (*row).unit},
	{"ProviderName", Mandatory, Text, false, V12, V13, (*row).provider},
	{"PublisherName", Mandatory, Text, false, V12, V13, (*row).provider},
	{"RegionId", Conditional, Text, true, V12, V14, func(r *row) string { return RegionID(r.Region) }},
	{"RegionName", Conditional, Text, true, V12, V14, func(r *row) string { return RegionID(r.Region) }},
	{"ResourceId", Conditional, Text, true, V12, V14, func(r *row) string { return ID("instance", r.Owner.Instance) }},
	{"ResourceName", Conditional, Text, true, V12, V14, none},
	{"ResourceType", Conditional, Text, true, V12, V14, (*row).resourceType},
	{"ServiceCategory", Mandatory, Text, false, V12, V14, func(r *row) string { return r.service.category }},
	{"ServiceName", Mandatory, Text, false, V12, V14, func(r *row) string { return r.service.name }},
	{"ServiceProviderName", Mandatory, Text, false, V13, V14, (*row).provider},
	{"ServiceSubcategory", Recommended, Text, false, V12, V14, func(r *row) string { return r.service.subcategory }},
	{"SkuId", Conditional, Text, true, V12, V14, ofUsage((*row).sku)},
	{"SkuMeter", Conditional, Text, true, V12, V14, ofUsage(func(r *row) string { return r.service.meter })},
	{"SkuPriceDetails", Conditional, JSON, true, V12, V14, ofUsage((*row).priceDetails)},
	{"SkuPriceId", Conditional, Text, true, V12, V14, ofUsage((*row).priceID)},
	{"SubAccountId", Conditional, Text, true, V12, V14, func(r *row) string { return ID("project", r.Owner.Project) }},
	{"SubAccountName", Conditional, Text, true, V12, V14, func(r *row) string { return ID("project", r.Owner.Project) }},
	{"SubAccountType", Conditional, Text, true, V12, V14, (*row).subAccountType},
	{"Tags", Conditional, JSON, true, V12, V14, (*row).tags},
}

// own lists scrimp's own columns.
var own = []Column{
	{"x_Job", Custom, Text, true, V12, V14, func(r *row) string { return ID("job", r.Owner.Job) }},
	{"x_Attempt", Custom, Text, true, V12, V14, func(r *row) string { return ID("attempt", r.Owner.Attempt) }},
	{"x_Group", Custom, Text, true, V12, V14, func(r *row) string { return ID("group", r.Owner.Group) }},
	{"x_Part", Custom, Text, true, V12, V14, func(r *row) string { return ID("part", r.Owner.Part) }},
	{"x_Team", Custom, Text, true, V12, V14, func(r *row) string { return ID("team", r.Owner.Team) }},
	{"x_User", Custom, Text, true, V12, V14, func(r *row) string { return ID("user", r.User) }},
	{"x_Outcome", Custom, Text, true, V12, V14, func(r *row) string { return string(r.Use) }},
	{"x_Confidence", Custom, Text, true, V12, V14, func(r *row) string { return string(r.Confidence()) }},
	{"x_PriceVersion", Custom, Text, true, V12, V14, none}, // the ledger does not store it
	{"x_Rule", Custom, Text, true, V12, V14, func(r *row) string { return ID("rule", r.Rule) }},
	{"x_ListPriceSource", Custom, Text, true, V12, V14, (*row).listPriceSource},
}
