package bill

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
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
	found := resources{at: map[string]int{}}
	b.Stranger = found.add
	file := filepath.Join(t.TempDir(), "bill.csv")
	line := func(cost, id, sku string) string {
		return cost + ",USD,2026-10-01T00:00:00Z,2026-10-01T10:00:00Z,Usage,machine,Compute,EC2,AWS," + id + ",a,10,Hours," + sku + "\n"
	}
	text := billHead + line("25", "i-ours", "p5.48xlarge") + line("30", "i-strange", "p5.48xlarge") + line("12.5", "i-strange", "p5.48xlarge") +
		line("7", "i-other", "m5.large") + line("-3", "i-credit", "p5.48xlarge")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	if _, err := readInto(t.Context(), file, nil, b, func(*bill.Line) {}); err != nil {
		t.Fatal(err)
	}
	list, err := found.findings()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %+v", err, list)
	}
	f := list[0]
	if f.About != "i-strange" || f.Cost.String() != "42.5" || f.Waste.String() != "42.5" || f.Monthly != nil || f.Saving != nil || f.Action != waste.Stop ||
		f.Kind != waste.BillLine {
		t.Errorf("%+v", f)
	}
	unclear := resources{at: map[string]int{}}
	unclear.add(reconcile.Alone{Resource: "x", Amount: b.Finish().Totals[0].File, Currency: "USD", Why: "several machines of scrimp have this type at that time"})
	if list, err := unclear.findings(); err != nil || list[0].Action != waste.Keep || list[0].Saving != nil || list[0].Waste != nil {
		t.Errorf("%v %+v", err, list)
	}
}

// A bill of 2,500 lines without a machine gives as many findings, more than the comparison lists.
func TestWaste_ReadsEveryLineOfALongBill(t *testing.T) {
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	b, found := reconcile.New(begin, begin.AddDate(0, 0, 15)), resources{at: map[string]int{}}
	b.Stranger = found.add
	b.Own(reconcile.Machine{Instance: "i-ours", Type: "p5.48xlarge", Currency: "USD", Begin: begin, End: begin.Add(10 * time.Hour)})
	billed, _ := decimal.Parse("2")
	for n := range 2500 {
		b.Row(bill.Row{Lines: []bill.Line{{At: n + 2, Category: bill.Compute, SKU: "p5.48xlarge", Resource: fmt.Sprint("i-strange-", n),
			Start: begin, End: begin.Add(time.Hour), Currency: "USD", Billed: billed}}})
	}
	list, err := found.findings()
	if listed := len(b.Finish().NeverOurs); err != nil || len(list) != 2500 || listed != 1000 {
		t.Errorf("%v: %d findings, and %d lines are listed", err, len(list), listed)
	}
}

// The lines of a bill belong to no team, so that --team cannot select among them.
func TestWaste_RefusesATeamWithABill(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"--team", "vision", "--bill", "b.csv"}, "--team vision and --bill"},
		{[]string{"--team", "vision"}, ""}, {[]string{"--bill", "b.csv"}, ""}, {[]string{"--team", "(none)", "--bill", "b.csv"}, ""}, {nil, ""}} {
		cmd := (&app{&command.App{}}).wasteCmd()
		must.Do(t, cmd.ParseFlags(c.args))
		err := cmd.PreRunE(cmd, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

// Apply says of an id that is no finding whether it was applied, by whom and when.
func TestWasteApply_NamesWhoAppliedAnID(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `[{"id":"w-1","at":"2026-10-02T03:04:05Z","who":"ann"},{"id":"w-1","at":"2026-10-03T03:04:05Z","who":"op"}]`)
	}))
	defer site.Close()
	client := &command.Client{Client: api.New(site.URL, "", nil), Base: site.URL}
	for id, want := range map[string]string{"w-1": "already applied, at 2026-10-03 03:04 UTC by op", "w-2": `no finding "w-2"`} {
		if err := gone(t.Context(), client, id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A recommendation about scrimp's own machine is one to keep, one about a finding names it, and a bill gives the cost of the
// others.
func TestWaste_ReadsRecommendationsBesideItsOwn(t *testing.T) {
	dir := t.TempDir()
	hub, bills := filepath.Join(dir, "hub.csv"), filepath.Join(dir, "bill.csv")
	text := "action_type,currency_code,current_resource_type,estimated_monthly_savings_before_discount,recommendation_id,region,resource_arn\n"
	for _, id := range []string{"i-ours", "i-idle", "i-other"} {
		text += "Stop,USD,Ec2Instance,73,a,us-east-1,arn:aws:ec2:us-east-1:1:instance/" + id + "\n"
	}
	must.Do(t, os.WriteFile(hub, []byte(text), 0o600))
	line := func(cost, id string) string {
		return cost + ",USD,2026-10-01T00:00:00Z,2026-10-01T10:00:00Z,Usage,machine,Compute,EC2,AWS," + id + ",a,10,Hours,m5.large\n"
	}
	must.Do(t, os.WriteFile(bills, []byte(billHead+line("25", "arn:aws:ec2:us-east-1:1:instance/i-other")+line("0.5", "i-other")+line("9", "i-x")), 0o600))
	list, err := readAdvice(t.Context(), []string{hub}, []string{bills})
	must.Do(t, err)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `[{"instance":"i-ours","job":"train"},{"instance":"i-idle"}]`)
	}))
	defer site.Close()
	client := &command.Client{Client: api.New(site.URL, "", nil), Base: site.URL}
	must.Do(t, known(t.Context(), client, list, api.Waste{Findings: []api.WasteFinding{{ID: "w-1", About: "i-idle"}}}))
	for _, x := range []struct {
		action           waste.Action
		says, does, paid string
	}{{waste.Keep, "of job train", "scrimp machines", ""}, {waste.Keep, "finds it too: w-1", "scrimp waste apply w-1", ""},
		{waste.Stop, "", "aws ec2 stop-instances --instance-ids i-other", "25.5"}} {
		r := list[0]
		list = list[1:]
		billed := ""
		if r.Billed != nil {
			billed = r.Billed.String()
		}
		if r.Action != x.action || !strings.Contains(r.Scrimp, x.says) || !strings.Contains(r.Command, x.does) || billed != x.paid {
			t.Errorf("%+v, billed %q", r, billed)
		}
	}
}

// A resource whose rows have no tags is a finding, unless it is already one, the bill has no column of tags, or its row is outside
// the span; of very many, the dearest have one each. Their costs add up.
func TestWaste_UntaggedResourcesOfABill(t *testing.T) {
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	line := func(cost, id, at, tags string) string {
		return cost + ",USD," + at + "T00:00:00Z," + at + "T12:00:00Z,Usage,machine,Compute,EC2,AWS," + id + ",a,10,Hours,m5.large" + tags + "\n"
	}
	head := strings.TrimSuffix(billHead, "\n")
	tagged := head + ",Tags\n" + line("5", "i-bare", "2026-10-02", ",{}") + line("7", "i-bare", "2026-10-05", ",") +
		line("9", "i-tagged", "2026-10-02", `,"{""team"":""a""}"`) + line("3", "i-known", "2026-10-02", ",") + line("4", "i-late", "2026-11-02", ",") +
		line("-1", "i-credit", "2026-10-02", ",")
	for n := range 150 {
		tagged += line("2", fmt.Sprint("i-many-", n), "2026-10-02", ",")
	}
	found := func(text string) []waste.Finding {
		file := filepath.Join(t.TempDir(), "bill.csv")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		loose := untagged{since: begin, until: begin.AddDate(0, 1, 0), by: map[resourceIn]*untaggedCost{}}
		_, err := readInto(t.Context(), file, nil, reconcile.New(begin, begin.AddDate(0, 1, 0)), loose.add)
		must.Do(t, err)
		known := resources{list: []waste.Finding{{About: "i-known"}}}
		list, err := loose.findings(&known)
		must.Do(t, err)
		return list
	}
	list := found(tagged)
	sum, byAbout := 0.0, map[string]waste.Finding{}
	for _, f := range list {
		sum, byAbout[f.About] = sum+f.Cost.Float(), f
		if f.Kind != waste.Untagged || f.Action != waste.Keep || !f.Waste.IsZero() || f.Saving != nil {
			t.Errorf("%+v", f)
		}
	}
	if bare := byAbout["i-bare"]; len(list) != 101 || sum != 5+7+150*2 || bare.Cost.String() != "12" ||
		bare.Monthly == nil || bare.Monthly.Float() < 102.8 || bare.Monthly.Float() > 102.9 || // 12 · 30 / 3.5
		byAbout["51 other resources"].Cost.String() != "102" {
		t.Errorf("%d findings, %v, %+v", len(list), sum, bare)
	}
	if list := found(billHead + line("5", "i-bare", "2026-10-02", "")); len(list) != 0 {
		t.Errorf("without a column of tags: %+v", list)
	}
}
