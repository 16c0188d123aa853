package charge_test

import (
	"errors"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// A cell that a spreadsheet would take for a formula begins with a quote; amounts stay numbers.
func TestTable_IsExactAndNoFormula(t *testing.T) {
	var table charge.Table
	c := charge.Charge{Begin: begin, End: begin.Add(90 * time.Minute), Amount: money.Picos(-1_500_000_000_001), Currency: "USD",
		Timed: true, Time: 90 * time.Minute, Price: ledger.PriceOf(1e12, true), Use: ledger.Idle, Corrects: true,
		Owner: ledger.Owner{Team: "=1+1", Project: "-2+3", Job: "@a", Instance: "+i"}}
	got := map[string]string{}
	for i, cell := range table.Row(nil, c) {
		got[table.Header()[i]] = cell
	}
	for name, want := range map[string]string{"team": "'=1+1", "project": "'-2+3", "job": "'@a", "instance": "'+i",
		"cost": "-1.500000000001", "hours": "-1.5", "price_per_hour": "1", "list_price_per_hour": "", "use": "idle"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestParseSpan_NamesTheFieldAndTheFix(t *testing.T) {
	for _, bad := range [][3]string{{"7d", "", "since"}, {"", "2026-10-01T00:30:00Z", "until"}, {"2026-10", "2026-09", "until"},
		{"2026-10", "2026-10-01", "until"}, {"0001-01", "", "since"}} {
		_, err := charge.ParseSpan(bad[0], bad[1])
		if wrong, ok := errors.AsType[*charge.SpanError](err); !ok || wrong.Field != bad[2] || wrong.Fix == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s, err := charge.ParseSpan("2026-10", "2026-10-15T08:00:00+02:00")
	if err != nil || s.Since.Format(time.RFC3339) != "2026-10-01T00:00:00Z" || s.Until.Format(time.RFC3339) != "2026-10-15T06:00:00Z" {
		t.Error(s, err)
	}
}
