package bill

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/reconcile"
)

// reconcile matches the server's table with a bill: hours, price and names arrive, and the gap is the bill's excess.
func TestReconcile_ComparesServersTableWithBill(t *testing.T) {
	begin := time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC)
	two, _ := money.ParseRate("2")
	cost, _ := money.Parse("20")
	c := charge.Charge{Begin: begin, End: begin.Add(10 * time.Hour), Amount: cost, Currency: money.USD, Category: ledger.Compute, Use: ledger.Useful,
		SKU: "p5.48xlarge", Timed: true, Time: 10 * time.Hour, Price: ledger.PriceOf(two, true),
		Owner: ledger.Owner{Job: "1e5", Attempt: "1e5.1", Instance: "i-1"}}
	var table bytes.Buffer
	out := csv.NewWriter(&table)
	_ = out.WriteAll([][]string{charge.Table{}.Header(), charge.Table{}.Row(nil, c)})
	month := charge.Month(begin)
	b := reconcile.New(month, charge.NextMonth(month))
	if err := owned(&table, b.Own); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bill.csv")
	text := "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ChargeDescription,ServiceCategory,ServiceName,ProviderName,ResourceId,BillingAccountId,PricingQuantity,PricingUnit,SkuId\n" +
		"25,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Usage,p5,Compute,EC2,AWS,i-1,a,10,Hours,p5.48xlarge\n" +
		"2.5,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Tax,VAT,Compute,EC2,AWS,i-1,a,,,\n" +
		"x,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Usage,p5,Compute,EC2,AWS,i-2,a,10,Hours,p5.48xlarge\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	unread, err := readInto(t.Context(), file, b)
	v := b.Finish()
	if err != nil || unread != 1 || v.Unread != 1 || len(v.Gaps) != 1 {
		t.Fatalf("%d %v %+v", unread, err, v)
	}
	g := v.Gaps[0]
	if g.Job != "1e5" || g.Gap.String() != "7.5" || g.Parts[reconcile.Price].String() != "5" || g.Parts[reconcile.Tax].String() != "2.5" || len(g.Parts) != 2 {
		t.Errorf("%+v", g)
	}
	if err := os.WriteFile(file, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readInto(t.Context(), file, b); err == nil {
		t.Error("what is no bill is taken")
	}
}
