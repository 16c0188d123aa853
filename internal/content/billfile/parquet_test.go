//go:build !local

package billfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
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

// A bill in Parquet counts once beside its copy in CSV or in JSON lines, and has the same lines as they.
func TestSet_CountsParquetBesideItsCopiesOnce(t *testing.T) {
	lane.Component(t, "whole")
	hour := time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC)
	list := 98.0
	var written bytes.Buffer
	w := parquet.NewGenericWriter[cur](&written)
	_, err := w.Write([]cur{
		{"USD", "Usage", "AmazonEC2", "1", hour, hour.Add(time.Hour), 29.5, &list, 1500, "SpotUsage:p5.48xlarge",
			map[string]string{"user_scrimp_job": "vision-7", "user_n": "1"}},
		{"USD", "Tax", "AmazonEC2", "1", hour, hour.Add(time.Hour), 0.0000001, nil, -1000, "", nil},
	})
	must.Do(t, errors.Join(err, w.Close()))
	csv := "line_item_usage_account_id,line_item_currency_code,line_item_line_item_type,line_item_product_code," +
		"line_item_usage_start_date,line_item_usage_end_date,line_item_unblended_cost,pricing_public_on_demand_cost," +
		"line_item_usage_amount,line_item_usage_type,resource_tags\n" +
		"1,USD,Usage,AmazonEC2,2026-10-05 08:00:00.000,2026-10-05T09:00:00Z,29.5000,98.0,1.5,SpotUsage:p5.48xlarge," +
		`"{""user_n"": ""1"", ""user_scrimp_job"": ""vision-7""}"` + "\n" +
		"1,USD,Tax,AmazonEC2,2026-10-05T08:00:00Z,2026-10-05T11:00:00+02:00,1.0E-7,,-1,,{}\n"
	lines := `{"line_item_usage_account_id":"1","line_item_currency_code":"USD","line_item_line_item_type":"Usage",` +
		`"line_item_product_code":"AmazonEC2","line_item_usage_start_date":"2026-10-05T08:00:00Z",` +
		`"line_item_usage_end_date":"2026-10-05T09:00:00.000Z","line_item_unblended_cost":29.50,` +
		`"pricing_public_on_demand_cost":98,"line_item_usage_amount":1.500,"line_item_usage_type":"SpotUsage:p5.48xlarge",` +
		`"resource_tags":{"user_scrimp_job":"vision-7","user_n":1}}` + "\n" +
		`{"line_item_usage_account_id":"1","line_item_currency_code":"USD","line_item_line_item_type":"Tax",` +
		`"line_item_product_code":"AmazonEC2","line_item_usage_start_date":"2026-10-05 08:00","pricing_public_on_demand_cost":null,` +
		`"line_item_usage_end_date":"2026-10-05 09:00","line_item_unblended_cost":1e-7,"line_item_usage_amount":-1}` + "\n"
	texts := []string{csv, written.String(), lines}
	var set Set
	contents := map[string]bool{}
	for n, text := range texts {
		file := File{Name: fmt.Sprint(n), Path: filepath.Join(t.TempDir(), "bill")}
		must.Do(t, os.WriteFile(file.Path, []byte(text), 0o600))
		_, err := set.Add(t.Context(), file, "")
		must.Do(t, err)
		var all []bill.Row
		_, _, err = Rows(t.Context(), file, nil, func(row bill.Row) error {
			for i := range row.Lines {
				row.Lines[i].At, row.Lines[i].Untagged = 0, false // neither belongs to what the server compares
			}
			all = append(all, row)
			return nil
		})
		must.Do(t, err)
		b, err := json.Marshal(all)
		must.Do(t, err)
		contents[string(b)] = true
	}
	if len(set.Files) != 1 || set.Overlap != 0 || len(contents) != 1 {
		t.Errorf("%d files, %d repetitions, %d contents: %v", len(set.Files), set.Overlap, len(contents), contents)
	}
}
