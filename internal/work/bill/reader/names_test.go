package reader

import (
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
)

// A row without a provider, or whose names no bill may have, is listed with its column, its line and its amount. A file
// without a column of providers is the bill of an unknown one.
func TestReader_ListsRowsThatBelongToNoBill(t *testing.T) {
	long := strings.Repeat("x", bill.MostName+1)
	for names, reason := range map[string]string{"AWS,a": "", ",a": "ProviderName: the cell is empty", long + ",a": "ProviderName: ",
		"AWS," + long: "BillingAccountId: "} {
		text := "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceCategory,ProviderName,BillingAccountId\n" +
			"1.5,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Usage,Compute," + names + "\n"
		r, err := New("x", strings.NewReader(text), bill.Default())
		must.Do(t, err)
		row, err := r.Next()
		must.Do(t, err)
		switch p := row.Problem; {
		case reason == "" && (p != nil || row.Lines[0].Provider != "AWS"):
			t.Errorf("%s: %+v", names, row)
		case reason != "" && (p == nil || !strings.HasPrefix(p.Reason, reason) || p.Amount.Value.String() != "1.5" || p.Line != 2):
			t.Errorf("%.20s: %+v", names, row)
		}
	}
	r, err := New("x", strings.NewReader("BilledCost,BillingCurrency,ChargePeriodStart,ChargeCategory,ServiceCategory\n1,USD,2026-10-02,Usage,Compute\n"), bill.Default())
	must.Do(t, err)
	if row, err := r.Next(); err != nil || row.Problem != nil || row.Lines[0].Provider != noProvider || row.Lines[0].Check() != nil {
		t.Errorf("%+v, %v", row, err)
	}
}
