package groups

import "testing"

func TestParseIndexes(t *testing.T) {
	for text, want := range map[string]struct {
		x      Indexes
		atOnce int
	}{
		"0-0":                  {Indexes{0, 1, 1}, 1},
		"0-99":                 {Indexes{0, 1, 100}, 100},
		"0-99%8":               {Indexes{0, 1, 100}, 8},
		"0-98:2":               {Indexes{0, 2, 50}, 50},
		"1-10:4%2":             {Indexes{1, 4, 3}, 2},
		"0-3%9999999":          {Indexes{0, 1, 4}, 4},
		"0-9999":               {Indexes{0, 1, 10_000}, 1000},
		"999999999-1000000000": {Indexes{999_999_999, 1, 2}, 2},
	} {
		x, atOnce, err := ParseIndexes(text)
		if err != nil || x != want.x || atOnce != want.atOnce {
			t.Errorf("%s: %+v, %d, %v; want %+v", text, x, atOnce, err, want)
		}
		if last := x.Index(x.Members - 1); last < x.From || last > MaxIndex {
			t.Errorf("%s ends at %d", text, last)
		}
	}
	for _, text := range []string{"", "5", "a-b", "3-1", "-1-5", "0-5:0", "0-5%0", "0-10000", "0-1000000001", "0-99999999999999999999",
		"0-5%", "0-5:", "0,1,2", "0-5 ", "٠-٩", "0-5%8%9", "0-5%8:2"} {
		if x, atOnce, err := ParseIndexes(text); err == nil {
			t.Errorf("%q is %+v, %d at once", text, x, atOnce)
		}
	}
}

func FuzzParseIndexes(f *testing.F) {
	f.Add("0-99:3%8")
	f.Fuzz(func(t *testing.T, text string) {
		x, atOnce, err := ParseIndexes(text)
		if err != nil {
			return
		}
		if x.Members < 1 || x.Members > MaxMembers || x.Step < 1 || x.From < 0 || x.Index(x.Members-1) > MaxIndex || atOnce < 1 || atOnce > x.Members {
			t.Errorf("%q is %+v, %d at once", text, x, atOnce)
		}
	})
}
