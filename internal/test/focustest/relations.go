package focustest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

func (r row) relations(version string, seen map[string]string, say func(string, ...any)) {
	one := func(key, value string) {
		if is, known := seen[key]; known && is != value {
			say("%s has %s and %s", key, is, value)
		}
		seen[key] = value
	}
	one("service "+r["ServiceName"], r["ServiceCategory"])
	one("subcategory "+r["ServiceSubcategory"], r["ServiceCategory"])
	if r["SkuPriceId"] != "" {
		one("price "+r["SkuPriceId"], r["SkuId"])
		// Own machines of one name may differ in their GPUs.
		one("details of price "+r["SkuPriceId"], gpus.ReplaceAllString(r["SkuPriceDetails"], ""))
	}
	provider := r["ServiceProviderName"]
	if version == "1.2" {
		provider = r["ProviderName"]
	}
	if r["InvoiceIssuerName"] != provider {
		say("the provider is %q and the invoice is %q's", provider, r["InvoiceIssuerName"])
	}
	for _, both := range [][2]string{{"RegionId", "RegionName"}, {"SubAccountId", "SubAccountName"},
		{"SubAccountId", "SubAccountType"}, {"BillingAccountId", "BillingAccountType"}, {"ResourceId", "ResourceType"},
		{"AllocatedMethodId", "AllocatedResourceId"}, {"AllocatedResourceId", "AllocatedResourceName"},
		{"PricingQuantity", "PricingUnit"}, {"ConsumedQuantity", "ConsumedUnit"}} {
		if (r[both[0]] == "") != (r[both[1]] == "") {
			say("%s is %q, %s is %q", both[0], r[both[0]], both[1], r[both[1]])
		}
	}
	for _, needs := range [][2]string{{"SkuMeter", "SkuId"}, {"SkuPriceDetails", "SkuPriceId"},
		{"PricingCategory", "SkuPriceId"}, {"ConsumedQuantity", "SkuPriceId"},
		{"ResourceName", "ResourceId"}, {"AllocatedTags", "AllocatedMethodId"},
		{"AllocatedMethodDetails", "AllocatedMethodId"}, {"CapacityReservationStatus", "CapacityReservationId"},
		{"CommitmentDiscountCategory", "CommitmentDiscountId"}, {"CommitmentDiscountName", "CommitmentDiscountId"},
		{"CommitmentDiscountQuantity", "CommitmentDiscountId"}, {"CommitmentDiscountStatus", "CommitmentDiscountId"},
		{"CommitmentDiscountType", "CommitmentDiscountId"}, {"CommitmentDiscountUnit", "CommitmentDiscountQuantity"}} {
		if r[needs[0]] != "" && r[needs[1]] == "" {
			say("%s is %q without %s", needs[0], r[needs[0]], needs[1])
		}
	}
	r.objects(say)
}

var gpus = regexp.MustCompile(`"GpuCount":[0-9]+,?`)

// properties are those that the specification defines for SkuPriceDetails; those in amounts are numbers.
var (
	properties = strings.Fields("CoreCount DiskMaxIops DiskSpace DiskType GpuCount InstanceType InstanceSeries " +
		"MemorySize NetworkMaxIops NetworkMaxThroughput OperatingSystem Redundancy StorageClass")
	amounts = strings.Fields("CoreCount DiskMaxIops DiskSpace GpuCount MemorySize NetworkMaxIops " +
		"NetworkMaxThroughput")
)

// objects checks the columns that hold JSON objects.
func (r row) objects(say func(string, ...any)) {
	tags, own := keys(r["Tags"], "Tags", say), keys(r["AllocatedTags"], "AllocatedTags", say)
	for name := range own {
		if _, twice := tags[name]; twice {
			say("the tag %s is in Tags and in AllocatedTags", name)
		}
	}
	for name, v := range keys(r["SkuPriceDetails"], "SkuPriceDetails", say) {
		_, is := v.(float64)
		if !strings.HasPrefix(name, "x_") && (!slices.Contains(properties, name) || is != slices.Contains(amounts, name)) {
			say("SkuPriceDetails has %s: %v", name, v)
		}
	}
	if r["AllocatedMethodDetails"] == "" {
		return
	}
	var v struct {
		Elements []struct {
			AllocatedRatio, UsageQuantity *float64
			UsageUnit                     string
		}
	}
	if err := json.Unmarshal([]byte(r["AllocatedMethodDetails"]), &v); err != nil || len(v.Elements) == 0 {
		say("AllocatedMethodDetails is %s: %v", r["AllocatedMethodDetails"], err)
	}
	for _, e := range v.Elements {
		if e.AllocatedRatio == nil || *e.AllocatedRatio < 0 || *e.AllocatedRatio > 1 ||
			e.UsageQuantity != nil && e.UsageUnit == "" {
			say("AllocatedMethodDetails is %s", r["AllocatedMethodDetails"])
		}
	}
}

// keys reads an object of keys and values. It complains about a key that comes twice, and a value that is an object or
// a list.
func keys(text, column string, say func(string, ...any)) map[string]any {
	if text == "" {
		return nil
	}
	in, all := json.NewDecoder(strings.NewReader(text)), map[string]any{}
	if first, err := in.Token(); err != nil || first != json.Delim('{') {
		say("%s is no JSON object: %q", column, text)
		return nil
	}
	for in.More() {
		var value any
		name, err := in.Token()
		if err == nil {
			err = in.Decode(&value)
		}
		key, _ := name.(string)
		_, twice := all[key]
		switch value.(type) {
		case map[string]any, []any:
			twice = true
		}
		if all[key] = value; err != nil || twice {
			say("%s is %q, at %v: %v", column, text, name, err)
			return all
		}
	}
	return all
}
