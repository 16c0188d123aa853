package share

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// A price a month is read with or without its unit; what would be misread is refused with the field.
func TestFee_ReadsAPriceAMonth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shares.yaml")
	must.Do(t, os.WriteFile(file, []byte("vision: 60\nspeech: 40\n"), 0o600))
	for _, c := range []struct {
		amount string
		flags  feeFlags
		want   string // amount, since, spread and shares, or the start of the error
	}{
		{"$200/month", feeFlags{currency: "USD", since: "2026-11-01", spread: "even"}, "200 2026-11 even"},
		{"99.50", feeFlags{currency: "EUR", since: "2026-01", spread: "fixed:" + file}, "99.5 2026-01 fixed speech=40 vision=60"},
		{"0", feeFlags{currency: "USD"}, "0"},
		{"$5", feeFlags{currency: "EUR"}, "AMOUNT"}, {"5/year", feeFlags{currency: "USD"}, "AMOUNT"},
		{"5", feeFlags{currency: "USD", since: "2026-11-15"}, "--since"},
		{"5", feeFlags{currency: "USD", spread: "even:x"}, "--spread"}, {"5", feeFlags{currency: "USD", spread: "fixed"}, "--spread"},
	} {
		f, err := c.flags.fee("x", c.amount)
		got := strings.Join(strings.Fields(f.Amount.String()+" "+f.Since+" "+f.Spread+" "+strings.Join(f.Shares, " ")), " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want+" ") && !strings.HasPrefix(got, c.want+":")) {
			t.Errorf("%s %+v: %s, want %s", c.amount, c.flags, got, c.want)
		}
	}
}

// The answer says in which months a fee counts, and which amount it replaces there.
func TestFeeDone_SaysTheMonthsAndWhatItReplaces(t *testing.T) {
	usd := func(since, until string, dollars int64) api.Fee {
		return api.Fee{Name: "x", Amount: money.Picos(dollars * 1e12), Currency: money.USD, Since: since, Until: until}
	}
	for _, c := range []struct {
		fee    api.Fee
		before []api.Fee
		want   string
	}{
		{usd("", "", 5), nil, "The fee x costs $5.00 in every month, past months included."},
		{usd("2026-11", "2026-11", 5), nil, "The fee x costs $5.00 in 2026-11 only."},
		{usd("2026-11", "", 5), []api.Fee{usd("", "2026-10", 7), usd("2026-11", "", 6)}, "The fee x costs $5.00 in every month from 2026-11 on. There it replaces $6.00 a month."},
		{usd("2026-11", "", 0), []api.Fee{usd("", "", 7)}, "The fee x ends before 2026-11."},
	} {
		if got := feeDone(c.fee, c.before); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	if got := spending.Fixed([]api.Fee{usd("", "2026-10", 7), usd("2026-11", "", 6)}, now, show.Place{}); got !=
		"Fixed costs of 2026-11, which the table leaves out: x $6.00. scrimp chargeback divides them.\n" {
		t.Errorf("%q", got)
	}
}
