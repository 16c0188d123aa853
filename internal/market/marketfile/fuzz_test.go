package marketfile_test

import (
	"testing"

	"scrimp/internal/market/marketfile"
)

// Any market file or recorded trace is read or refused, and one that is read can be written and read again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"name: a\nspeed: 1\noffers:\n  - machine: m\n    price: 0.1\n", "offers: [{machine: m, price: [[0s, 1], [1h, 2]]}]", "offers: &a [*a]",
		"a: &a [x,x]\nb: &b [*a,*a]\noffers: *b", "offers: [{price: {}}]", `{"metadata":{"gap_seconds":600},"data":[0,1,1,0],"prices":[0.1]}`,
		`{"SpotPriceHistory":[{"SpotPrice":"0.1","Timestamp":"2026-01-01T00:00:00Z","AvailabilityZone":"a"}]}`,
		"zone,start_tick,ticks,available\na,0,5,1\n", "zone,start_tick,ticks,available\na,0,9223372036854775807,1\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := marketfile.Parse("m.yaml", text); err == nil {
			if _, err := marketfile.Parse("m.yaml", marketfile.Encode(m, "")); err != nil {
				t.Errorf("what is read of %q and written cannot be read: %v", text, err)
			}
		}
		m := v100
		m.Name = "m"
		if _, err := m.Import([]marketfile.Source{{Name: "trace", Text: text}}); err != nil {
			return
		}
	})
}
