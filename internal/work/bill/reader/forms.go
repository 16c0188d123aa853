package reader

import "slices"

// aws is the Cost and Usage Report: version 2.0, and the previous one with columns named like lineItem/UnblendedCost.
var aws = &form{
	provider: "AWS",
	marks: [][]string{{"lineitemlineitemtype"}, {"lineitemunblendedcost"}, {"lineitemusagestartdate"},
		{"lineitemproductcode"}, {"lineitemcurrencycode"}, {"lineitemusageaccountid"}},
	fields: map[field][]string{
		fieldBilled: {"lineitemunblendedcost"}, fieldCurrency: {"lineitemcurrencycode"},
		fieldStart: {"lineitemusagestartdate"}, fieldEnd: {"lineitemusageenddate"}, fieldType: {"lineitemlineitemtype"},
		fieldAccount: {"billpayeraccountid"}, fieldInvoice: {"billinvoiceid"},
		fieldPeriodStart: {"billbillingperiodstartdate"}, fieldPeriodEnd: {"billbillingperiodenddate"},
		fieldService: {"productproductname", "lineitemproductcode"}, fieldSKU: {"productsku", "pricingratecode"},
		fieldGroup: {"lineitemproductcode"},
		fieldUsage: {"lineitemusagetype"}, fieldDescription: {"lineitemlineitemdescription"},
		fieldRegion:   {"productregioncode", "productregion", "lineitemavailabilityzone"},
		fieldResource: {"lineitemresourceid"},
		fieldQuantity: {"lineitemusageamount"}, fieldUnit: {"pricingunit"}, fieldUnitPrice: {"lineitemunblendedrate"},
		fieldList: {"pricingpublicondemandcost"}, fieldEffective: {"savingsplansavingsplaneffectivecost"},
		fieldReserved: {"reservationeffectivecost"}, fieldTags: {"resourcetags"}, fieldJob: tagJob, fieldAttempt: tagAttempt,
		fieldCommitment: {"reservationreservationarn"},
		fieldUnusedPlan: {"savingsplantotalcommitmenttodate"}, fieldUsedPlan: {"savingsplanusedcommitment"},
		fieldUnusedUpfront: {"reservationunusedamortizedupfrontfeeforbillingperiod"},
		fieldUnusedFee:     {"reservationunusedrecurringfee"},
	},
	line: awsLine,
	name: func(_ func(string) bool, raw []string) string {
		if slices.Contains(raw, "lineItem/LineItemType") || slices.Contains(raw, "lineItem/UnblendedCost") {
			return "AWS CUR"
		}
		return "AWS CUR 2.0"
	},
}

// azure is the cost export of an Enterprise Agreement, a Microsoft Customer Agreement, or pay-as-you-go.
var azure = &form{
	provider: "Microsoft Azure",
	marks: [][]string{{"metercategory", "zählerkategorie", "kategoriederverbrauchseinheit", "catégorieducompteur",
		"catégoriedecompteur"},
		{"meterid", "iddeverbrauchseinheit", "idducompteur", "zählerid"},
		{"costinbillingcurrency", "pretaxcost", "cost", "extendedcost", "kosten", "coût"},
		{"subscriptionid", "subscriptionguid", "abonnementid", "idabonnement", "iddabonnement"},
		{"metername", "zählername", "namederverbrauchseinheit", "nomducompteur"}},
	fields: map[field][]string{
		fieldBilled:   {"costinbillingcurrency", "pretaxcost", "cost", "extendedcost", "kosten", "coût"},
		fieldCurrency: {"billingcurrency", "billingcurrencycode", "currency", "currencycode", "währung", "devise"},
		fieldStart:    {"date", "usagedatetime", "usagedate", "datum"},
		fieldType:     {"chargetype", "gebührentyp", "typedefrais"},
		fieldAccount: {"billingaccountid", "abrechnungskontoid", "idducomptedefacturation", "billingprofileid",
			"subscriptionid", "subscriptionguid", "abonnementid", "idabonnement", "iddabonnement"},
		fieldProfile: {"billingprofileid", "abrechnungsprofilid", "idduprofildefacturation"},
		fieldInvoice: {"invoiceid"}, fieldPeriodStart: {"billingperiodstartdate"}, fieldPeriodEnd: {"billingperiodenddate"},
		fieldService: {"metercategory", "zählerkategorie", "kategoriederverbrauchseinheit", "catégorieducompteur",
			"catégoriedecompteur", "servicefamily", "consumedservice"},
		fieldGroup: {"servicefamily", "consumedservice"}, fieldSKU: {"meterid", "zählerid", "idducompteur"},
		fieldUsage:       {"metername", "zählername", "namederverbrauchseinheit", "nomducompteur"},
		fieldDescription: {"productname", "product", "metersubcategory"},
		fieldRegion:      {"resourcelocation", "ressourcenstandort", "meterregion"},
		fieldResource:    {"resourceid", "instanceid", "instancename", "ressourcenid", "idderessource"},
		fieldQuantity:    {"quantity", "usagequantity", "consumedquantity", "menge", "quantité"},
		fieldUnit:        {"unitofmeasure", "maßeinheit"}, fieldUnitPrice: {"effectiveprice", "unitprice", "resourcerate"},
		fieldList: {"paygcostinbillingcurrency"}, fieldTags: {"tags"}, fieldJob: tagJob, fieldAttempt: tagAttempt,
		fieldCommitment: {"benefitid", "reservationid"}, fieldPricing: {"pricingmodel"},
	},
	line: azureLine,
	name: func(has func(string) bool, _ []string) string {
		switch {
		case has("billingprofileid") && (has("costinusd") || has("paygcostinbillingcurrency")):
			return "Azure MCA costs"
		case has("usagedatetime"):
			return "Azure pay-as-you-go costs"
		}
		return "Azure EA costs"
	},
}

// gcp is the billing export to BigQuery, standard or with resources, saved as JSON lines or CSV.
var gcp = &form{
	provider: "Google Cloud",
	marks: [][]string{{"usagestarttime"}, {"servicedescription", "serviceid"}, {"skudescription", "skuid"}, {"currency"},
		{"cost"}, {"costtype", "invoicemonth", "exporttime"}},
	fields: map[field][]string{
		fieldBilled: {"cost"}, fieldCurrency: {"currency"}, fieldStart: {"usagestarttime"}, fieldEnd: {"usageendtime"},
		fieldType: {"costtype"}, fieldAccount: {"billingaccountid"}, fieldInvoice: {"invoicemonth"},
		fieldService: {"servicedescription", "serviceid"}, fieldSKU: {"skuid"}, fieldUsage: {"skudescription"},
		fieldDescription: {"skudescription"}, fieldRegion: {"locationregion", "locationlocation"},
		fieldResource: {"resourceglobalname", "resourcename"}, fieldQuantity: {"usageamount"}, fieldUnit: {"usageunit"},
		fieldUnitPrice: {"priceeffectiveprice"}, fieldList: {"costatlist"}, fieldEffective: {"cost"}, fieldTags: {"labels"},
		fieldJob: tagJob, fieldAttempt: tagAttempt, fieldCredits: {"credits"},
	},
	line: gcpLine,
	name: func(has func(string) bool, _ []string) string {
		if has("resourceglobalname") || has("resourcename") {
			return "GCP billing export with resources"
		}
		return "GCP billing export"
	},
}

// oci is Oracle's cost report.
var oci = &form{
	provider: "Oracle Cloud",
	marks: [][]string{{"lineitemintervalusagestart"}, {"costmycost"}, {"costcurrencycode"}, {"productservice"},
		{"lineitemreferenceno"}},
	fields: map[field][]string{
		fieldBilled: {"costmycost"}, fieldCurrency: {"costcurrencycode"}, fieldStart: {"lineitemintervalusagestart"},
		fieldEnd: {"lineitemintervalusageend"}, fieldAccount: {"lineitemtenantid"}, fieldService: {"productservice"},
		fieldSKU: {"costproductsku"}, fieldUsage: {"productdescription"}, fieldDescription: {"productdescription"},
		fieldRegion: {"productregion"}, fieldResource: {"productresourceid"}, fieldQuantity: {"usagebilledquantity"},
		fieldUnit: {"costbillingunitreadable"}, fieldUnitPrice: {"costmyunitprice", "costunitprice"},
		fieldEffective: {"costmycost"}, fieldClass: {"lineitemiscorrection"}, fieldJob: tagJob, fieldAttempt: tagAttempt,
	},
	line: ociLine,
	name: func(func(string) bool, []string) string { return "OCI costs" },
}

// focus is FOCUS of any provider and version.
var focus = &form{
	marks: [][]string{{"billedcost"}, {"billingcurrency"}, {"chargeperiodstart"}, {"chargecategory"}, {"servicecategory"},
		{"effectivecost"}, {"billingperiodstart"}},
	fields: map[field][]string{
		fieldBilled: {"billedcost"}, fieldCurrency: {"billingcurrency"}, fieldStart: {"chargeperiodstart"},
		fieldEnd: {"chargeperiodend"}, fieldType: {"chargecategory"},
		fieldProvider: {"serviceprovidername", "providername", "publishername", "invoiceissuername"},
		fieldAccount:  {"billingaccountid"}, fieldInvoice: {"invoiceid", "xinvoiceid"},
		fieldPeriodStart: {"billingperiodstart"}, fieldPeriodEnd: {"billingperiodend"}, fieldService: {"servicename"},
		fieldGroup: {"servicecategory"}, fieldSKU: {"skuid"},
		fieldUsage:       {"xusagetype", "skumeter", "xskumetername", "servicesubcategory"},
		fieldDescription: {"chargedescription"}, fieldRegion: {"regionid", "region"}, fieldResource: {"resourceid"},
		fieldQuantity: {"pricingquantity", "consumedquantity", "usagequantity"},
		fieldUnit:     {"pricingunit", "consumedunit", "usageunit"}, fieldUnitPrice: {"contractedunitprice", "listunitprice"},
		fieldList: {"listcost"}, fieldEffective: {"effectivecost"}, fieldTags: {"tags"}, fieldJob: tagJob,
		fieldAttempt: tagAttempt, fieldCommitment: {"commitmentdiscountid"},
		fieldPricing: {"commitmentdiscountstatus", "pricingcategory"}, fieldClass: {"chargeclass"},
	},
	line: focusLine,
	name: focusName,
}

// focusName returns the provider, as far as its own columns (x_, oci_) show it, and the version, from the columns that
// each version added.
func focusName(has func(string) bool, _ []string) string {
	whose := ""
	for _, own := range []struct{ name, column string }{
		{"AWS ", "xservicecode"}, {"AWS ", "xusagetype"}, {"Azure ", "xskumetercategory"}, {"Azure ", "xbillingprofileid"},
		{"GCP ", "xexporttime"}, {"GCP ", "xcosttype"}, {"OCI ", "ocireferencenumber"}, {"OCI ", "ocicompartmentid"},
		{"scrimp's ", "xattempt"}} {
		if whose == "" && has(own.column) {
			whose = own.name
		}
	}
	version := "1.0"
	for _, v := range []struct {
		version string
		columns []string
	}{
		{"1.4", []string{"invoicedetailid", "commitmentprogrameligibilitydetails"}},
		{"1.3", []string{"serviceprovidername", "hostprovidername", "allocatedmethodid", "contractapplied"}},
		{"1.2", []string{"invoiceid", "pricingcurrency", "subaccounttype", "billingaccounttype"}},
		{"1.1", []string{"skumeter", "skupricedetails", "capacityreservationid", "servicesubcategory"}},
	} {
		if version == "1.0" && slices.ContainsFunc(v.columns, has) {
			version = v.version
		}
	}
	if version == "1.3" && has("serviceprovidername") && !has("providername") && !has("publishername") {
		version = "1.4" // which removed both
	}
	return whose + "FOCUS " + version
}
