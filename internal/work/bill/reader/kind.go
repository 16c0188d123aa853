package reader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/record"
)

// field is the meaning of a column.
type field int

// Fields of a row. A field without a column in a kind of bill is unknown.
const (
	fieldBilled field = iota
	fieldCurrency
	fieldStart
	fieldEnd
	fieldType     // usage, tax, credit, …
	fieldProvider // if the file has several
	fieldAccount
	fieldProfile // part of an account with its own invoices and currency
	fieldInvoice
	fieldPeriodStart
	fieldPeriodEnd
	fieldService
	fieldGroup // category of the service, in FOCUS terms
	fieldSKU
	fieldUsage // what was used, in the provider's words
	fieldDescription
	fieldRegion
	fieldResource
	fieldQuantity
	fieldUnit
	fieldUnitPrice
	fieldList
	fieldEffective
	fieldTags
	fieldJob
	fieldAttempt
	fieldCommitment // ID of a reservation or savings plan
	fieldPricing    // on-demand, spot, reserved
	fieldClass      // Correction
	fieldCredits    // JSON list of deductions
	fieldUnusedPlan // AWS: unused cost of a savings plan and a reservation
	fieldUsedPlan
	fieldUnusedUpfront
	fieldUnusedFee
	fieldReserved // AWS: effective cost of usage that a reservation covers
	fields
)

// fieldNames names the fields that a file may lack, for messages.
var fieldNames = map[field]string{fieldList: "list cost", fieldEffective: "effective cost", fieldTags: "tags",
	fieldResource: "resource id"}

// columns holds the index of each field in a row, -1 for none.
type columns [fields]int

// form is a kind of bill: the columns that identify it, and the meaning of its columns. The first existing column of a
// list counts. Names are keys: lower-case letters and digits only, so lineItem/UnblendedCost equals
// line_item_unblended_cost.
type form struct {
	provider string
	marks    [][]string // identifying columns, each with its other names
	fields   map[field][]string
	// line handles the specifics of a row, and returns further lines in it.
	line func(*row, *bill.Line) []bill.Line
	name func(has func(key string) bool, raw []string) string
}

// needed lists the required fields of a bill.
var needed = []field{fieldBilled, fieldCurrency, fieldStart}

// tagJob and tagAttempt list the columns of tags with a column of their own.
var (
	tagJob     = []string{"resourcetagsuserscrimpjob", "tagsscrimpjob", "xjob"}
	tagAttempt = []string{"resourcetagsuserscrimpattempt", "tagsscrimpattempt", "xattempt"}
)

var forms = []*form{aws, azure, gcp, oci, focus}

// Kinds lists the supported kinds, for messages.
const Kinds = "AWS CUR 2.0, AWS CUR, Azure EA or MCA costs, a GCP billing export, OCI costs, or FOCUS 1.0 to 1.4"

var errNoBill = errors.New("the file is no bill that scrimp reads: it has not the columns of " + Kinds)

// recognise finds the kind of the file from its columns, and the index of each field.
func (r *Reader) recognise() error {
	var seen map[string]bool // columns of JSON lines with a value; nil for a table, which names all of its columns
	if _, isJSON := r.from.(*record.Objects); isJSON {
		r.header, seen = r.names()
	}
	places := map[string]int{}
	twice := map[string]bool{}
	for i, name := range r.header {
		k := record.Key(name)
		if _, is := places[k]; is && k != "" {
			twice[k] = true
			continue
		}
		places[k] = i
	}
	best := 0
	for _, f := range forms {
		if n := f.matches(places); n > best {
			r.form, best = f, n
		}
	}
	if r.form == nil || best*2 < len(r.form.marks) {
		return errNoBill
	}
	has := func(k string) bool { _, ok := places[k]; return ok }
	r.kind = r.form.name(func(k string) bool { return has(k) && (seen == nil || seen[k]) }, r.header)
	var lacks []string
	for f := range fields {
		r.at[f] = -1
		aliases := r.form.fields[f]
		if at := slices.IndexFunc(aliases, has); at >= 0 {
			r.at[f] = places[aliases[at]]
			if twice[aliases[at]] {
				return fmt.Errorf("it is %s, but the column %s is there twice: remove one", r.kind, r.header[r.at[f]])
			}
		} else if slices.Contains(needed, f) {
			lacks = append(lacks, r.form.asWritten(aliases[0]))
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("it looks like %s, but has no column %s: export it with this column", r.kind,
			strings.Join(lacks, ", nor "))
	}
	return nil
}

func (f *form) matches(places map[string]int) (n int) {
	for _, names := range f.marks {
		if slices.ContainsFunc(names, func(k string) bool { _, ok := places[k]; return ok }) {
			n++
		}
	}
	return n
}

// asWritten returns the provider's spelling of a column, if known.
func (f *form) asWritten(k string) string {
	if name, ok := written[k]; ok {
		return name
	}
	return k
}

var written = map[string]string{"lineitemunblendedcost": "line_item_unblended_cost",
	"lineitemcurrencycode": "line_item_currency_code", "lineitemusagestartdate": "line_item_usage_start_date",
	"costinbillingcurrency": "CostInBillingCurrency", "billingcurrency": "BillingCurrency", "date": "Date",
	"usagestarttime": "usage_start_time", "billedcost": "BilledCost", "chargeperiodstart": "ChargePeriodStart",
	"costmycost": "cost/myCost", "serviceprovidername": "ServiceProviderName", "providername": "ProviderName",
	"billingaccountid": "BillingAccountId", "billpayeraccountid": "bill_payer_account_id",
	"costcurrencycode":           "cost/currencyCode",
	"lineitemintervalusagestart": "lineItem/intervalUsageStart"}

// names returns the columns of JSON lines: those of the sampled rows and all of the kind, because an export omits
// fields without a value. seen has the first kind only.
func (r *Reader) names() (list []string, seen map[string]bool) {
	seen = map[string]bool{}
	for _, c := range r.ahead {
		for name := range c.Object {
			seen[name] = true
		}
	}
	best, most := forms[0], 0
	places := map[string]int{}
	for name := range seen {
		places[name] = 0
		list = append(list, name)
	}
	for _, f := range forms {
		if n := f.matches(places); n > most {
			best, most = f, n
		}
	}
	for f, aliases := range best.fields {
		found := slices.ContainsFunc(aliases, func(k string) bool { return seen[k] })
		if len(aliases) > 0 && f != fieldProvider && !slices.Contains(needed, f) && !found {
			list = append(list, aliases[0])
		}
	}
	slices.Sort(list)
	return list, seen
}
