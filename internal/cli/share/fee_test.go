package share

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A price a month is read with or without its unit; what would be misread is refused with the field.
func TestFee_ReadsAPriceAMonth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shares.yaml")
	if err := os.WriteFile(file, []byte("vision: 60\nspeech: 40\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
