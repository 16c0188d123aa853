package bill

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/work/reconcile"
	"scrimp/internal/work/waste"
)

const billHead = "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ChargeDescription,ServiceCategory," +
	"ServiceName,ProviderName,ResourceId,BillingAccountId,PricingQuantity,PricingUnit,SkuId\n"

// Lines without a partner become a finding for each resource; those that are matched, not scrimp's, credited or only
// unclear do not become one to stop.
func TestWaste_BillLinesWithoutAPartnerAreFindings(t *testing.T) {
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	b := reconcile.New(begin, begin.AddDate(0, 0, 15))
	b.Own(reconcile.Machine{Instance: "i-ours", Type: "p5.48xlarge", Currency: "USD", Begin: begin, End: begin.Add(10 * time.Hour)})
	file := filepath.Join(t.TempDir(), "bill.csv")
	line := func(cost, id, sku string) string {
		return cost + ",USD,2026-10-01T00:00:00Z,2026-10-01T10:00:00Z,Usage,machine,Compute,EC2,AWS," + id + ",a,10,Hours," + sku + "\n"
	}
	text := billHead + line("25", "i-ours", "p5.48xlarge") + line("30", "i-strange", "p5.48xlarge") + line("12.5", "i-strange", "p5.48xlarge") +
		line("7", "i-other", "m5.large") + line("-3", "i-credit", "p5.48xlarge")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readInto(t.Context(), file, b); err != nil {
		t.Fatal(err)
	}
	list, err := linesOf(b.Finish().NeverOurs)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %+v", err, list)
	}
	f := list[0]
	if f.About != "i-strange" || f.Cost.String() != "42.5" || f.Needless.String() != "42.5" || f.Monthly != nil || f.Saving != nil || f.Action != waste.Stop ||
		f.Kind != waste.BillLine {
		t.Errorf("%+v", f)
	}
	unclear := []reconcile.Alone{{Resource: "x", Amount: b.Finish().Totals[0].File, Currency: "USD", Why: "several machines of scrimp have this type at that time"}}
	if list, err := linesOf(unclear); err != nil || list[0].Action != waste.Keep || list[0].Saving != nil || list[0].Needless != nil {
		t.Errorf("%v %+v", err, list)
	}
}
