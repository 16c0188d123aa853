package reader_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/reader"
)

// written describes a documented kind of bill: its header, and a row with the placeholders N (number of the row), COST,
// CUR and TYPE. The types are what the kind calls usage, tax, a refund and a credit; "": it has none.
type written struct {
	kind, header, row          string
	usage, tax, refund, credit string
	comma                      bool // numbers have a decimal comma
}

var documented = []written{
	{"AWS CUR 2.0", "bill_billing_period_start_date,bill_billing_period_end_date,bill_payer_account_id,line_item_line_item_type,line_item_unblended_cost," +
		"line_item_currency_code,line_item_usage_start_date,line_item_usage_end_date,line_item_product_code,line_item_usage_account_id,line_item_resource_id,product,resource_tags",
		`2026-10-01 00:00:00.000,2026-11-01 00:00:00.000,111122223333,TYPE,COST,CUR,2026-10-03 0N:00:00.000,2026-10-03 1N:00:00.000,AmazonEC2,111122223333,i-N,"{""product_name"":""Amazon EC2""}","{""user_scrimp_job"":""j""}"`,
		"Usage", "Tax", "Refund", "Credit", false},
	{"AWS CUR", "bill/BillingPeriodStartDate,bill/PayerAccountId,lineItem/LineItemType,lineItem/UnblendedCost,lineItem/CurrencyCode," +
		"lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ProductCode,lineItem/UsageAccountId,lineItem/ResourceId,resourceTags/user:scrimp-job",
		"2026-10-01T00:00:00Z,111122223333,TYPE,COST,CUR,2026-10-03T0N:00:00Z,2026-10-03T1N:00:00Z,AmazonEC2,111122223333,i-N,j", "Usage", "Tax", "Refund", "Credit", false},
	{"GCP billing export", "billing_account_id,service.description,sku.id,sku.description,usage_start_time,usage_end_time,cost,currency,invoice.month,cost_type,labels,credits",
		`01A-B,Compute Engine,SKU-N,Core running,2026-10-03 0N:00:00 UTC,2026-10-03 1N:00:00 UTC,COST,CUR,202610,TYPE,"[{""key"":""scrimp-job"",""value"":""j""}]",[]`, "regular", "tax", "adjustment", "", false},
	{"OCI costs", "lineItem/referenceNo,lineItem/tenantId,lineItem/intervalUsageStart,lineItem/intervalUsageEnd,product/service,product/resourceId,cost/myCost,cost/currencyCode,lineItem/isCorrection,tags/scrimp-job",
		"ref-N,ocid1.tenancy,2026-10-03T0N:00Z,2026-10-03T1N:00Z,COMPUTE,ocid1.instance.N,COST,CUR,false,j", "", "", "", "", false},
	{"Azure EA costs", "BillingAccountId,BillingPeriodStartDate,BillingPeriodEndDate,Date,ChargeType,MeterCategory,MeterId,MeterName,SubscriptionId,ResourceId,CostInBillingCurrency,BillingCurrencyCode,Tags",
		`8608480,10/01/2026,10/31/2026,10/13/2026,TYPE,Virtual Machines,m-N,NC24,s-1,/subscriptions/s/vm-N,COST,CUR,"""scrimp-job"": ""j"""`, "Usage", "Tax", "Refund", "Credit", false},
	{"Azure MCA costs", "billingAccountId;billingProfileId;invoiceId;date;Gebührentyp (chargeType);Zählerkategorie (meterCategory);meterId;meterName;SubscriptionId;resourceId;costInBillingCurrency;costInUsd;billingCurrency;tags",
		`8608480;p;T1;13.10.2026;TYPE;Virtual Machines;m-N;NC24;s-1;/subscriptions/s/vm-N;COST;;CUR;`, "Verbrauch", "Steuer", "Erstattung", "Gutschrift", true},
	{"FOCUS 1.0", "BillingAccountId,BillingPeriodStart,BillingPeriodEnd,BilledCost,EffectiveCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceCategory,ServiceName,ProviderName,ResourceId,Tags",
		`acct,2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,COST,COST,CUR,2026-10-03T0N:00:00Z,2026-10-03T1N:00:00Z,TYPE,Compute,VM,AWS,i-N,"{""scrimp-job"":""j""}"`, "Usage", "Tax", "Adjustment", "Credit", false},
	{"FOCUS 1.4", "BillingAccountId,BillingPeriodStart,BillingPeriodEnd,BilledCost,EffectiveCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceCategory,ServiceName,ServiceProviderName,HostProviderName,InvoiceDetailId,ResourceId,Tags",
		`acct,2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,COST,COST,CUR,2026-10-03T0N:00:00Z,2026-10-03T1N:00:00Z,TYPE,Compute,VM,AWS,Metal,,i-N,"{""scrimp-job"":""j""}"`, "Usage", "Tax", "Adjustment", "Credit", false},
}

func (w *written) fill(n int, cost, currency, kind string) string {
	if w.comma {
		cost = strings.ReplaceAll(cost, ".", ",")
	}
	return strings.NewReplacer("N", fmt.Sprint(n), "COST", cost, "CUR", currency, "TYPE", kind).Replace(w.row)
}

// Every kind of bill with planted faults: each faulty row is listed with its reason and no other, and the total is that
// of the file to the last digit, however the file is packed.
func TestKinds_NameEachPlantedFaultAndKeepTheTotal(t *testing.T) {
	for _, w := range documented {
		rows, total := []string{}, new(big.Rat)
		add := func(row, cost string) {
			rows = append(rows, row)
			if v, ok := new(big.Rat).SetString(cost); ok {
				total.Add(total, v)
			}
		}
		for n := range 6 {
			add(w.fill(n, "1.0000000001", "USD", w.usage), "1.0000000001")
		}
		want := map[bill.Category]int{}
		for kind, c := range map[string]bill.Category{w.tax: bill.Tax, w.refund: bill.Refund, w.credit: bill.Credit} {
			if kind != "" {
				add(w.fill(7, "-0.7500000002", "USD", kind), "-0.7500000002")
				want[c]++
			}
		}
		add(w.fill(8, "-2.25", "USD", w.usage), "-2.25")
		faults := map[int]string{}
		plant := func(row, cost, why string) {
			add(row, cost)
			faults[len(rows)+1] = why
		}
		plant(rows[2], "1.0000000001", "the same as line 4")
		plant(w.fill(9, "5.5", "EUR", w.usage), "", "in EUR, and other rows of its account are in USD")
		plant(w.fill(9, "5.5", "Dollar", w.usage), "5.5", "is no currency")
		plant(w.fill(9, "123456789012345678.1", "USD", w.usage), "123456789012345678.1", "beyond")
		plant(w.fill(9, "one", "USD", w.usage), "", "is not a number")
		plant(w.fill(9, "", "USD", w.usage), "", "empty")
		torn := w.fill(9, "3.5", "USD", w.usage)
		separator := strings.LastIndexAny(torn[:len(torn)-1], ",;")
		if at := strings.LastIndex(torn, `,"`); at > 0 {
			separator = at
		}
		plant(torn[:separator], "3.5", "the row is torn")
		add(w.fill(9, "0.125", "USD", w.usage), "0.125")
		text := w.header + "\n" + strings.Join(rows, "\n") + "\n"
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write([]byte(text))
		must.Do(t, err)
		must.Do(t, z.Close())
		for form, file := range map[string]string{"plain": text, "BOM": "\ufeff" + text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "gzip": packed.String(),
			"no newline at the end": strings.TrimSuffix(text, "\n")} {
			name := w.kind + " " + form
			s, lines, problems := readAll(t, name, strings.NewReader(file), bill.Default())
			if s.Kind != w.kind {
				t.Errorf("%s is %s", name, s.Kind)
			}
			sum, seen := new(big.Rat), map[bill.Category]int{}
			for _, l := range lines {
				v, _ := new(big.Rat).SetString(l.Billed.String())
				sum.Add(sum, v)
				seen[l.Category]++
				if l.Currency != "USD" || !l.Month().Equal(time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)) {
					t.Errorf("%s: line %d is in %s of %v", name, l.At, l.Currency, l.Month())
				}
			}
			for _, p := range problems {
				if why := faults[p.Line]; why == "" || !strings.Contains(p.Reason, why) {
					t.Errorf("%s: line %d: %s, want %q", name, p.Line, p.Reason, why)
				}
				if v, ok := new(big.Rat).SetString(p.Amount.Value.String()); ok && p.Amount.Known && p.Currency != "EUR" {
					sum.Add(sum, v)
				}
			}
			if len(problems) != len(faults) || len(lines)+len(problems) != len(rows) {
				t.Errorf("%s: %d lines and %d problems of %d rows with %d faults: %+v", name, len(lines), len(problems), len(rows), len(faults), problems)
			}
			if sum.Cmp(total) != 0 {
				t.Errorf("%s: the total is %s, not %s", name, sum.FloatString(12), total.FloatString(12))
			}
			for c, n := range want {
				if seen[c] != n {
					t.Errorf("%s: %d lines of %s, want %d", name, seen[c], c, n)
				}
			}
		}
	}
}

// Every column that a bill needs is named if it is missing.
func TestKinds_NameTheMissingColumn(t *testing.T) {
	for _, w := range documented {
		mark := ","
		if strings.Contains(w.header, ";") {
			mark = ";"
		}
		for _, needed := range []string{"CUR", "COST"} {
			header, row := strings.Split(w.header, mark), strings.Split(strings.NewReplacer(`"`, "").Replace(w.row), mark)
			for i := len(header) - 1; i >= 0; i-- {
				if row[i] == needed {
					header[i] = "nothing"
				}
			}
			text := strings.Join(header, mark) + "\n" + w.fill(1, "1.5", "USD", w.usage) + "\n"
			_, err := reader.New("x", strings.NewReader(text), bill.Default())
			if err == nil || !strings.Contains(err.Error(), "has no column") {
				t.Errorf("%s without %s: %v", w.kind, needed, err)
			}
		}
	}
}

// Charges of October on Google's invoice of November belong to the bill of November: they do not replace October's.
func TestGoogle_BillsALateChargeInTheMonthOfItsInvoice(t *testing.T) {
	google := documented[2]
	late := strings.Replace(google.fill(1, "1.5", "USD", "regular"), "202610", "202611", 1)
	_, lines, problems := readAll(t, "x", strings.NewReader(google.header+"\n"+late+"\n"), bill.Default())
	if len(problems) > 0 || len(lines) != 1 || lines[0].Month().Month() != time.November || lines[0].Start.Month() != time.October {
		t.Errorf("%+v %+v", lines, problems)
	}
	bad := strings.Replace(google.fill(1, "1.5", "USD", "regular"), "202610", "October", 1)
	if _, _, problems := readAll(t, "x", strings.NewReader(google.header+"\n"+bad+"\n"), bill.Default()); len(problems) != 1 ||
		!strings.Contains(problems[0].Reason, "is no month such as 202610") || problems[0].Amount.Value.String() != "1.5" {
		t.Errorf("%+v", problems)
	}
}

// Under a Microsoft Customer Agreement, each billing profile has its own invoices and currency: one file may have two,
// and a row in the currency of another profile is a fault.
func TestAzure_BillingProfilesHaveTheirOwnCurrency(t *testing.T) {
	mca := documented[5]
	text := "\ufeff" + mca.header + "\r\n"
	for n, c := range []struct{ profile, cost, currency string }{{"EU", "1.5", "EUR"}, {"US", "2.25", "USD"}, {"EU", "-0.5", "EUR"},
		{"/providers/Microsoft.Billing/billingAccounts/8608480/billingProfiles/US", "4", "USD"}, {"US", "8", "EUR"}, {"EU", "16", "USD"},
		{"", "32", "GBP"}, {"8608480", "64", "GBP"}, {"US", "128", "USD"}, {"EU", "256", "EUR"}} {
		row := strings.Replace(mca.fill(n, c.cost, c.currency, "Verbrauch"), ";p;", ";"+c.profile+";", 1)
		text += row + "\r\n"
	}
	s, lines, problems := readAll(t, "x", strings.NewReader(text), bill.Default())
	got := map[string]string{}
	for _, total := range s.Totals {
		got[string(total.Currency)] = total.Billed.String() + " + " + total.Unread.String()
	}
	if want := map[string]string{"EUR": "257 + 8", "USD": "134.25 + 16", "GBP": "96 + 0"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the totals are %v, want %v", got, want)
	}
	accounts := map[string]bool{}
	for _, l := range lines {
		accounts[l.Account+" "+string(l.Currency)] = true
	}
	if fmt.Sprint(accounts) != fmt.Sprint(map[string]bool{"8608480/EU EUR": true, "8608480/US USD": true, "8608480 GBP": true}) {
		t.Errorf("the accounts are %v", accounts)
	}
	if len(problems) != 2 || problems[0].Line != 6 || problems[1].Line != 7 || !strings.Contains(problems[0].Reason, "is in EUR, and other rows") {
		t.Errorf("%+v", problems)
	}
}
