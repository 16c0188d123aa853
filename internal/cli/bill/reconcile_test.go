package bill

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
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
	must.Do(t, owned(&table, b.Own))
	file := filepath.Join(t.TempDir(), "bill.csv")
	text := "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ChargeDescription,ServiceCategory,ServiceName,ProviderName,ResourceId,BillingAccountId,PricingQuantity,PricingUnit,SkuId\n" +
		"25,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Usage,p5,Compute,EC2,AWS,i-1,a,10,Hours,p5.48xlarge\n" +
		"2.5,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Tax,VAT,Compute,EC2,AWS,i-1,a,,,\n" +
		"x,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Usage,p5,Compute,EC2,AWS,i-2,a,10,Hours,p5.48xlarge\n"
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	unread, err := readInto(t.Context(), file, nil, b, func(*bill.Line) {})
	v := b.Finish()
	if err != nil || unread != 1 || v.Unread != 1 || len(v.Gaps) != 1 {
		t.Fatalf("%d %v %+v", unread, err, v)
	}
	g := v.Gaps[0]
	if g.Job != "1e5" || g.Gap.String() != "7.5" || g.Parts[reconcile.Price].String() != "5" || g.Parts[reconcile.Tax].String() != "2.5" || len(g.Parts) != 2 {
		t.Errorf("%+v", g)
	}
	must.Do(t, os.WriteFile(file, []byte("a,b\n1,2\n"), 0o600))
	if _, err := readInto(t.Context(), file, nil, b, func(*bill.Line) {}); err == nil {
		t.Error("what is no bill is taken")
	}
}

// A caller who sees one team cannot compare a bill: another team's machines would have no partner. Nothing is read.
func TestReconcile_RefusesCallersWhoDoNotSeeAllTeams(t *testing.T) {
	for _, c := range []struct {
		grants string
		all    bool
	}{{`[{"team":"*","role":"viewer"}]`, true}, {`[{"team":"vision","role":"viewer"},{"team":"*","role":"admin"}]`, true},
		{`[{"team":"vision","role":"admin"}]`, false}, {`[]`, false}} {
		asked := 0
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/me" {
				_, _ = fmt.Fprintf(w, `{"user":"vi","best":"viewer","grants":%s}`, c.grants)
				return
			}
			asked++
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound) // no costs yet
			_, _ = fmt.Fprint(w, `{"title":"no costs","status":404}`)
		}))
		file := filepath.Join(t.TempDir(), "bill.csv")
		must.Do(t, os.WriteFile(file, []byte(billHead), 0o600))
		client, a := &command.Client{Client: api.New(site.URL, "", nil), Base: site.URL}, &app{}
		_, _, err := a.reconcile(t.Context(), client, "2026-10", []string{file})
		_, also := a.addBills(t.Context(), client, &api.Waste{Until: time.Unix(1e9, 0)}, []string{file})
		site.Close()
		if (err == nil) != c.all || (also == nil) != c.all || c.all != (asked == 2) {
			t.Errorf("%s: %v, %v, and the costs were read %d times", c.grants, err, also, asked)
		}
	}
}

// A kept bill with an unread row fails as a file does, also if the amount of the row is known.
func TestReconcile_KeptBillWithAnUnreadRowExitsWithOne(t *testing.T) {
	for unread, failed := range map[int]bool{0: false, 1: true} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"month":"2026-10","rows_without_amount":0,"unread_rows":%d}`, unread)
		}))
		client := &command.Client{Client: api.New(site.URL, "", nil), Base: site.URL}
		a := &app{&command.App{Out: io.Discard, Err: io.Discard}}
		err := a.reconcileKept(t.Context(), client, "2026-10", false)
		if site.Close(); errors.Is(err, command.Failed) != failed {
			t.Errorf("%d unread rows: %v", unread, err)
		}
	}
}
