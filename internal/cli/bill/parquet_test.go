//go:build !local

package bill

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"scrimp/internal/cli/command"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"

	"github.com/parquet-go/parquet-go"
)

// cur is a row of CUR 2.0 as AWS writes it to Parquet: costs as binary fractions, native timestamps, tags in a map.
type cur struct {
	Currency string            `parquet:"line_item_currency_code"`
	Type     string            `parquet:"line_item_line_item_type"`
	Code     string            `parquet:"line_item_product_code"`
	Account  string            `parquet:"line_item_usage_account_id"`
	Start    time.Time         `parquet:"line_item_usage_start_date,timestamp(millisecond)"`
	End      time.Time         `parquet:"line_item_usage_end_date,timestamp(microsecond)"`
	Cost     float64           `parquet:"line_item_unblended_cost"`
	List     *float64          `parquet:"pricing_public_on_demand_cost,optional"`
	Amount   int64             `parquet:"line_item_usage_amount,decimal(3:18)"`
	Usage    string            `parquet:"line_item_usage_type"`
	Tags     map[string]string `parquet:"resource_tags"`
}

// gcp is a row of Google's export.
type gcp struct {
	Start   time.Time `parquet:"usage_start_time,timestamp(microsecond)"`
	Service struct {
		Description string `parquet:"description"`
	} `parquet:"service"`
	SKU struct {
		ID          string `parquet:"id"`
		Description string `parquet:"description"`
	} `parquet:"sku"`
	Cost     float64  `parquet:"cost"`
	Currency string   `parquet:"currency"`
	CostType string   `parquet:"cost_type"`
	Credits  []credit `parquet:"credits,list"`
	Labels   []label  `parquet:"labels,list"`
}

type credit struct {
	Name   string  `parquet:"name"`
	Amount float64 `parquet:"amount"`
	Type   string  `parquet:"type"`
}

type label struct {
	Key   string `parquet:"key"`
	Value string `parquet:"value"`
}

func written[T any](t *testing.T, rows []T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.MaxRowsPerRowGroup(2))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

func TestShow_ReadsParquet(t *testing.T) {
	lane.Component(t, "whole")
	hour := time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC)
	list := 98.32
	rows := []cur{
		{"USD", "Usage", "AmazonEC2", "1", hour, hour.Add(time.Hour), 29.5012345678, &list, 1500, "SpotUsage:p5.48xlarge",
			map[string]string{"user_scrimp_job": "vision-7", "user_scrimp_attempt": "vision-7.2"}},
		{"USD", "Tax", "AmazonEC2", "1", hour, hour.Add(time.Hour), 0.1, nil, -1, "", nil},
		{"USD", "Usage", "AmazonEC2", "1", hour, hour.Add(time.Hour), 1e-9, nil, 1, "EBS:VolumeUsage.gp3", map[string]string{"a": "b"}},
	}
	_, text, err := shows(t, "cur.parquet", written(t, rows))
	must.Do(t, err)
	for _, want := range []string{`"kind":"AWS CUR 2.0"`, `"file_total":"29.601234568800`[:23], `"rows":3`, `"list_cost":{"sum":"98.32","unknown_lines":2}`,
		`"with_job_tag":{"name":"job","lines":1,"billed":"29.5012345678"}`, `{"name":"storage","lines":1,"billed":"0.000000001"}`,
		`"file_total":"29.6012345688"`, `"start":"2026-10-05T08:00:00Z","end":"2026-10-05T09:00:00Z"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	g := gcp{Start: hour, Cost: 2.5, Currency: "EUR", CostType: "regular",
		Credits: []credit{{"promotion", -0.25, "PROMOTION"}, {"committed", -1, "COMMITTED_USAGE_DISCOUNT"}},
		Labels:  []label{{"team", "lm"}, {"scrimp-job", "lm-9"}}}
	g.Service.Description, g.SKU.ID, g.SKU.Description = "Compute Engine", "A", "A3 Instance Core running"
	_, text, err = shows(t, "gcp.parquet", written(t, []gcp{g}))
	must.Do(t, err)
	for _, want := range []string{`"kind":"GCP billing export"`, `"file_total":"1.25"`, `"credits":"-0.25"`,
		`{"name":"commitment","lines":1,"billed":"-1"}`, `"with_job_tag":{"name":"job","lines":3,"billed":"1.25"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// Damage anywhere in a Parquet file leads to an error or a problem, and never ends the program.
func TestShow_SurvivesDamagedParquet(t *testing.T) {
	lane.Component(t, "whole")
	hour := time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC)
	row := cur{"USD", "Usage", "AmazonEC2", "1", hour, hour.Add(time.Hour), 1.5, nil, 1, "BoxUsage", nil}
	whole := written(t, []cur{row, row, row})
	for i := 4; i < len(whole); i += 7 {
		b := bytes.Clone(whole)
		b[i] ^= 0x55
		_, _, _ = shows(t, "x.parquet", b)
	}
	for _, b := range [][]byte{whole[:len(whole)/2], []byte("PAR1"), []byte("PAR1PAR1PAR1")} {
		if _, text, err := shows(t, "x.parquet", b); err == nil || !strings.Contains(err.Error(), "x.parquet: ") || text != "" {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// mca is a row of Azure's export for a Microsoft Customer Agreement.
type mca struct {
	Account  string    `parquet:"billingAccountId"`
	Profile  string    `parquet:"billingProfileId"`
	Date     time.Time `parquet:"date,timestamp(nanosecond)"`
	Type     string    `parquet:"chargeType"`
	Category string    `parquet:"meterCategory"`
	Meter    string    `parquet:"meterId"`
	Name     string    `parquet:"meterName"`
	Sub      string    `parquet:"SubscriptionId"`
	Cost     *float64  `parquet:"costInBillingCurrency,optional"`
	USD      float32   `parquet:"costInUsd"`
	Currency string    `parquet:"billingCurrency"`
	Tags     string    `parquet:"tags"`
}

// Faulty rows of a Parquet file are listed with their reasons, and the total stays the file's.
func TestShow_NamesFaultsInParquet(t *testing.T) {
	lane.Component(t, "whole")
	day := time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC)
	var rows []mca
	add := func(name string, cost float64, edit func(*mca)) {
		r := mca{"8608480", "EU", day, "Usage", "Virtual Machines", "m-" + name, "NC24", "s-1", &cost, 1, "EUR", `"scrimp-job": "j"`}
		if edit != nil {
			edit(&r)
		}
		rows = append(rows, r)
	}
	for i := range 250 { // more than a batch, in many row groups
		add(string(rune('a'+i%26))+string(rune('a'+i/26)), 0.001, nil)
	}
	add("credit", -2.5, func(r *mca) { r.Type = "Credit" })
	add("other profile", 4, func(r *mca) { r.Profile, r.Currency = "US", "USD" })
	faults := map[string]func(*mca){
		"the row is the same as line 3":                   func(r *mca) { *r = rows[2] },
		"costInBillingCurrency: the cell is empty":        func(r *mca) { r.Cost = nil },
		`costInBillingCurrency: \"NaN\" is not a number`:  func(r *mca) { *r.Cost = math.NaN() },
		`costInBillingCurrency: \"+Inf\" is not a number`: func(r *mca) { *r.Cost = math.Inf(1) },
		"is beyond 1000000000000":                         func(r *mca) { *r.Cost = 1e18 },
		"the row is in USD, and other rows of its":        func(r *mca) { r.Currency = "USD" },
		"is no currency such as USD":                      func(r *mca) { r.Currency = "Euro" },
	}
	for name, edit := range faults {
		add(name, 8, edit)
	}
	_, text, err := shows(t, "mca.parquet", written(t, rows))
	if !errors.Is(err, command.Failed) {
		t.Fatalf("%v: %s", err, text)
	}
	for name := range faults {
		if !strings.Contains(text, name) {
			t.Errorf("no %s in %s", name, text)
		}
	}
	// 250 × 0.001 - 2.5, and of the faults the repeated row and 1e18; the rows in USD are apart.
	for _, want := range []string{`"kind":"Azure MCA costs"`, `"rows":259`, `"currency":"EUR","file_total":"999999999999999997.751","billed":"-2.25"`,
		`"currency":"USD","file_total":"12","billed":"4"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	type noCost struct {
		Date     time.Time `parquet:"date,timestamp(millisecond)"`
		Category string    `parquet:"meterCategory"`
		Meter    string    `parquet:"meterId"`
		Name     string    `parquet:"meterName"`
		Sub      string    `parquet:"SubscriptionId"`
		Currency string    `parquet:"billingCurrency"`
	}
	_, _, err = shows(t, "x.parquet", written(t, []noCost{{day, "a", "b", "c", "d", "EUR"}}))
	if err == nil || !strings.Contains(err.Error(), "has no column CostInBillingCurrency") {
		t.Errorf("without a cost: %v", err)
	}
}
