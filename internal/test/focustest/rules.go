// Package focustest checks FOCUS files against rules of the specification, which it states a second time,
// independently of the code that writes the files.
package focustest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
)

// columns lists the columns added by versions 1.2, 1.3 and 1.4.
var columns = map[string]string{
	"1.2": "AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingAccountType BillingCurrency " +
		"BillingPeriodEnd BillingPeriodStart CapacityReservationId CapacityReservationStatus ChargeCategory ChargeClass " +
		"ChargeDescription ChargeFrequency ChargePeriodEnd ChargePeriodStart CommitmentDiscountCategory " +
		"CommitmentDiscountId CommitmentDiscountName CommitmentDiscountQuantity CommitmentDiscountStatus " +
		"CommitmentDiscountType CommitmentDiscountUnit ConsumedQuantity ConsumedUnit ContractedCost ContractedUnitPrice " +
		"EffectiveCost InvoiceId InvoiceIssuerName ListCost ListUnitPrice PricingCategory PricingCurrency " +
		"PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost PricingCurrencyListUnitPrice PricingQuantity " +
		"PricingUnit ProviderName PublisherName RegionId RegionName ResourceId ResourceName ResourceType ServiceCategory " +
		"ServiceName ServiceSubcategory SkuId SkuMeter SkuPriceDetails SkuPriceId SubAccountId SubAccountName " +
		"SubAccountType Tags",
	"1.3": "+ AllocatedMethodDetails AllocatedMethodId AllocatedResourceId AllocatedResourceName AllocatedTags " +
		"ContractApplied HostProviderName ServiceProviderName",
	"1.4": "- ProviderName PublisherName + InvoiceDetailId CommitmentProgramEligibilityDetails",
}

// Columns returns the columns of a version of the specification, sorted.
func Columns(version string) (list []string) {
	for _, v := range []string{"1.2", "1.3", "1.4"} {
		add := true
		for _, name := range strings.Fields(columns[v]) {
			switch {
			case name == "+" || name == "-":
				add = name == "+"
			case add:
				list = append(list, name)
			default:
				list = slices.DeleteFunc(list, func(n string) bool { return n == name })
			}
		}
		if v == version {
			break
		}
	}
	slices.Sort(list)
	return list
}

// File holds the totals of a FOCUS file.
type File struct {
	Rows    int
	Cost    *big.Rat            // of BilledCost
	By      map[string]*big.Rat // of BilledCost, by the columns given to Read
	Columns []string
}

// Read reads a CSV file of a version and returns up to twenty violations of rules by rows. It sums the cost by the
// named columns; the keys join their values with commas.
func Read(from io.Reader, version string, by ...string) (f File, broken []string, err error) {
	in := csv.NewReader(from)
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil {
		return f, nil, err
	}
	f = File{Cost: new(big.Rat), By: map[string]*big.Rat{}, Columns: slices.Clone(head)}
	broken = header(f.Columns, version)
	seen := map[string]string{} // a service name has one category
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return f, broken, nil
		}
		if err != nil {
			return f, broken, err
		}
		f.Rows++
		r := row{}
		for i, name := range f.Columns {
			r[name] = record[i]
		}
		if len(broken) < 20 {
			for _, why := range r.broken(version, seen) {
				broken = append(broken, fmt.Sprintf("row %d: %s", f.Rows, why))
			}
		}
		cost, ok := new(big.Rat).SetString(r["BilledCost"])
		if !ok {
			return f, broken, fmt.Errorf("row %d: BilledCost is %q", f.Rows, r["BilledCost"])
		}
		f.Cost.Add(f.Cost, cost)
		key := make([]string, len(by))
		for i, name := range by {
			key[i] = r[name]
		}
		if k := strings.Join(key, ","); f.By[k] == nil {
			f.By[k] = cost
		} else {
			f.By[k].Add(f.By[k], cost)
		}
	}
}

func header(names []string, version string) (broken []string) {
	n := len(names)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			broken = append(broken, name+" is there twice")
		}
		if strings.HasPrefix(name, "x_") {
			if n = min(n, i); !custom.MatchString(name) {
				broken = append(broken, name+" is not x_ and a name in PascalCase")
			}
		} else if i > n {
			broken = append(broken, name+" comes after a column that begins with x_")
		}
	}
	if got := slices.Sorted(slices.Values(names[:n])); !slices.Equal(got, Columns(version)) {
		broken = append(broken, fmt.Sprintf("the columns of %s are %v, not %v", version, Columns(version), got))
	}
	return broken
}

type row map[string]string

// never lists the columns that are never empty.
var never = strings.Fields("BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd " +
	"BillingPeriodStart ChargeCategory ChargeDescription ChargeFrequency ChargePeriodEnd ChargePeriodStart " +
	"ContractedCost EffectiveCost InvoiceIssuerName ListCost ServiceCategory ServiceName ServiceSubcategory " +
	"BillingAccountType PricingCurrency")

// priced lists the columns that are never empty in rows of usage, and are null in rows of tax. The specification lets
// them be null in corrections that are credits or adjustments; scrimp leaves them null there.
var priced = strings.Fields("ContractedUnitPrice ListUnitPrice PricingQuantity PricingUnit PricingCategory " +
	"ConsumedQuantity ConsumedUnit SkuId SkuPriceId PricingCurrencyContractedUnitPrice PricingCurrencyListUnitPrice " +
	"SkuMeter")

var allowed = map[string][]string{
	"ChargeCategory":  {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
	"ChargeClass":     {"", "Correction"},
	"ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
	"PricingCategory": {"", "Standard", "Dynamic", "Committed", "Other"},
	"ServiceCategory": {"AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases",
		"Developer Tools", "Multicloud", "Identity", "Integration", "Internet of Things", "Management and Governance",
		"Media", "Migration", "Mobile", "Networking", "Security", "Storage", "Web", "Other"},
	"ServiceSubcategory": {"Virtual Machines", "Other (Compute)", "Block Storage", "Other (Storage)",
		"Network Connectivity", "Network Infrastructure", "Other (Management and Governance)", "Other (Other)"},
}

var (
	number   = regexp.MustCompile(`^-?[0-9]+\.[0-9]+$`)
	moment   = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	custom   = regexp.MustCompile(`^x_([A-Z][a-z0-9]*)+$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
	decimals = regexp.MustCompile(`Cost$|UnitPrice$|Quantity$`)
	times    = regexp.MustCompile(`PeriodStart$|PeriodEnd$`)
	names    = regexp.MustCompile(`Id$|Name$|^x_`)
)

func (r row) broken(version string, seen map[string]string) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	r.forms(say)
	for _, name := range required(version) {
		if r[name] == "" {
			say("%s is null", name)
		}
	}
	for _, name := range priced {
		if usage := r["ChargeCategory"] == "Usage"; usage != (r[name] != "") {
			say("%s is %q in a row of %s", name, r[name], r["ChargeCategory"])
		}
	}
	if len(list) > 0 {
		return list // what follows computes with them
	}
	r.money(say)
	r.periods(say)
	r.relations(version, seen, say)
	return list
}

// forms returns which values do not have the form of their column: no number, no moment, or none of the allowed values.
func (r row) forms(say func(string, ...any)) {
	for name, value := range r {
		switch {
		case value == "":
		case decimals.MatchString(name) && !number.MatchString(value):
			say("%s is %q", name, value)
		case times.MatchString(name) && !moment.MatchString(value):
			say("%s is %q", name, value)
		case names.MatchString(name) && !strings.ContainsFunc(value, func(c rune) bool { return c >= 'A' }):
			say("%s is %q, which a loader takes for a number", name, value)
		}
		if is, ok := allowed[name]; ok && !slices.Contains(is, value) {
			say("%s is %q", name, value)
		}
	}
}

// required lists the columns that have a value in every row of a version.
func required(version string) []string {
	always := slices.Clone(never)
	if version == "1.2" || version == "1.3" {
		always = append(always, "ProviderName", "PublisherName")
	}
	if version != "1.2" {
		always = append(always, "ServiceProviderName", "HostProviderName")
	}
	return always
}

func (r row) rat(name string) *big.Rat {
	v, _ := new(big.Rat).SetString(r[name]) // checked before
	return v
}

// nano rounds to 1e-9, half away from zero.
func nano(v *big.Rat) string {
	if text := v.FloatString(9); text != "-0.000000000" {
		return text
	}
	return "0.000000000"
}

func (r row) money(say func(string, ...any)) {
	if r["ChargeCategory"] != "Usage" {
		r.unpriced(say)
		return
	}
	for price, cost := range map[string]string{"ContractedUnitPrice": "ContractedCost", "ListUnitPrice": "ListCost"} {
		product := new(big.Rat).Mul(r.rat(price), r.rat("PricingQuantity"))
		if nano(product) != nano(r.rat(cost)) {
			say("%s %s × %s is not %s", price, r[price], r["PricingQuantity"], r[cost])
		}
		if r.rat(price).Sign() < 0 {
			say("%s is %s", price, r[price])
		}
	}
	for _, same := range [][2]string{{"BilledCost", "EffectiveCost"}, {"BilledCost", "PricingCurrencyEffectiveCost"},
		{"ContractedUnitPrice", "PricingCurrencyContractedUnitPrice"}, {"ListUnitPrice", "PricingCurrencyListUnitPrice"},
		{"BillingCurrency", "PricingCurrency"}, {"BilledCost", "ContractedCost"}, {"PricingUnit", "ConsumedUnit"}} {
		if r[same[0]] != r[same[1]] {
			say("%s is %s, %s is %s", same[0], r[same[0]], same[1], r[same[1]])
		}
	}
	if !currency.MatchString(r["BillingCurrency"]) {
		say("BillingCurrency is %q", r["BillingCurrency"])
	}
	// Time and price may differ by the last digit of the ledger.
	off := new(big.Rat).Sub(r.rat("PricingQuantity"), r.rat("ConsumedQuantity"))
	off.Mul(off.Abs(off), r.rat("ContractedUnitPrice"))
	if off.Cmp(big.NewRat(1, 1e7)) > 0 {
		say("%s were consumed and %s priced", r["ConsumedQuantity"], r["PricingQuantity"])
	}
}

// unpriced checks the amounts of a row of tax, a credit or an adjustment. A refund of tax is negative and a cancelled
// credit positive, so that neither sign is wrong.
func (r row) unpriced(say func(string, ...any)) {
	for _, name := range []string{"EffectiveCost", "ContractedCost", "ListCost", "PricingCurrencyEffectiveCost"} {
		if r[name] != r["BilledCost"] {
			say("BilledCost is %s, %s is %s", r["BilledCost"], name, r[name])
		}
	}
	if r["SkuPriceDetails"] != "" || r["ChargeFrequency"] == "Usage-Based" {
		say("a row of %s has price details %s and is %s", r["ChargeCategory"], r["SkuPriceDetails"], r["ChargeFrequency"])
	}
}

func (r row) periods(say func(string, ...any)) {
	at := func(name string) time.Time {
		t, err := time.Parse(time.RFC3339, r[name])
		if err != nil {
			say("%s: %v", name, err)
		}
		return t
	}
	begin, end := at("ChargePeriodStart"), at("ChargePeriodEnd")
	from, to := at("BillingPeriodStart"), at("BillingPeriodEnd")
	if !begin.Before(end) || begin.Before(from) || end.After(to) {
		say("the charge is of %v to %v, in the period of %v to %v", begin, end, from, to)
	}
	if from.Day() != 1 || !from.Truncate(24*time.Hour).Equal(from) || !from.AddDate(0, 1, 0).Equal(to) {
		say("%v to %v is no month", from, to)
	}
}
