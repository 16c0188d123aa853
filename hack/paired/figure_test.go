package main

import (
	"math"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

func TestRatioOf_DividesNowByBaseInTheBestRounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		higher bool
		base   Samples
		now    Samples
		want   float64
		ok     bool
	}{
		{"a rate: the highest of each", true, Samples{80, 100}, Samples{90, 50}, 0.9, true},
		{"a time: the lowest of each", false, Samples{2, 4}, Samples{3, 9}, 1.5, true},
		{"nothing in base", false, nil, Samples{3}, 0, false},
		{"nothing now", false, Samples{3}, nil, 0, false},
		{"base is zero", false, Samples{0}, Samples{3}, 0, false},
	} {
		got, ok := Row{Figure: Figure{Higher: c.higher}, Base: c.base, Now: c.now}.RatioOf()
		if ok != c.ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestMedian_IsTheMiddle(t *testing.T) {
	for _, c := range []struct {
		s    Samples
		want float64
	}{{Samples{3}, 3}, {Samples{9, 1, 2}, 2}, {Samples{4, 1, 3, 10}, 3.5}} {
		if got, ok := c.s.Median(); !ok || got != c.want {
			t.Errorf("%v: %v, want %v", c.s, got, c.want)
		}
	}
	if _, ok := (Samples{}).Median(); ok {
		t.Error("no rounds have a median")
	}
}

func TestVerdict_MissesALimitOnItsOwnSideOnly(t *testing.T) {
	rate, time := Figure{Higher: true, Ratio: 0.8}, Figure{Ratio: 1.25}
	most := Figure{Most: 20}
	both := Figure{Ratio: 0.5, Most: 20}
	for _, c := range []struct {
		name      string
		f         Figure
		base, now Samples
		failed    bool
		want      Verdict
	}{
		{"a rate at the floor", rate, Samples{100}, Samples{80}, false, OK},
		{"a rate under it", rate, Samples{100}, Samples{79}, false, Missed},
		{"a rate that doubled", rate, Samples{100}, Samples{200}, false, OK},
		{"a time at the ceiling", time, Samples{4}, Samples{5}, false, OK},
		{"a time over it", time, Samples{4}, Samples{5.1}, false, Missed},
		{"a time that fell", time, Samples{4}, Samples{1}, false, OK},
		{"at the most", most, Samples{90}, Samples{20}, false, OK},
		{"over the most, and less than base", most, Samples{90}, Samples{21}, false, Missed},
		{"the most needs no base", most, nil, Samples{21}, false, Missed},
		{"nothing now", most, Samples{21}, nil, false, Unknown},
		{"half of base and over the most", both, Samples{90}, Samples{40}, false, Missed},
		{"under the most and over half of base", both, Samples{20}, Samples{19}, false, Missed},
		{"under both", both, Samples{40}, Samples{19}, false, OK},
		{"over the most, without base", both, nil, Samples{21}, false, Missed},
		{"under the most, without base", both, nil, Samples{19}, false, Unknown},
		{"no limit", Figure{}, Samples{1}, Samples{9}, false, NoLimit},
		{"it failed", Figure{}, Samples{1}, nil, true, Failed},
	} {
		if got := (Row{c.f, c.base, c.now, c.failed}).Verdict(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWorst_IsTheWorstVerdict(t *testing.T) {
	ok, missed := Row{Figure: Figure{Most: 2}, Now: Samples{1}}, Row{Figure: Figure{Most: 2}, Now: Samples{3}}
	unknown, failed, none := Row{Figure: Figure{Most: 2}}, Row{Failed: true}, Row{}
	for _, c := range []struct {
		rows []Row
		want Verdict
	}{
		{nil, NoLimit},
		{[]Row{none, ok}, OK},
		{[]Row{ok, unknown, none}, Unknown},
		{[]Row{missed, unknown, ok}, Missed},
		{[]Row{missed, failed, ok}, Failed},
	} {
		if got := worst(c.rows); got != c.want {
			t.Errorf("%v: %q, want %q", c.rows, got, c.want)
		}
	}
}

func TestNumber_IsReadable(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.01234: "0.0123", 2.3021: "2.3", 99.96: "100", 123.4: "123",
		1234.5: "1,234", 1234567: "1,234,567", -4321: "-4,321", 1000: "1,000",
	} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func report() Report {
	return Report{
		Base: "aaa one", Now: "bbb two", Form: "quick", Machine: "2 processors",
		Rows: []Row{
			{
				Figure: Figure{Name: "steps", Unit: "/s", Higher: true, Ratio: 0.8},
				Base:   Samples{1000, 3000, 2000}, Now: Samples{1500},
			},
			{Figure: Figure{Name: "memory", Unit: "KB", Most: 1.5}, Now: Samples{1.25}},
			{Figure: Figure{Name: "log", Unit: "KB", Ratio: 0.5, Most: 26}, Base: Samples{40}},
		},
		Notes: []string{"not measured in base: memory"},
	}
}

func TestTable_HasBothTreesSideBySide(t *testing.T) {
	var b strings.Builder
	must.Do(t, report().Table(&b))
	const want = `base aaa one
now  bbb two
quick form, 2 processors

FIGURE  UNIT  BASE   MEDIAN  NOW    MEDIAN  RATIO  LIMIT              VERDICT
steps   /s    3,000  2,000   1,500  1,500   0.50   >= 0.80x           MISSED
memory  KB    -      -       1.25   1.25    -      <= 1.5 KB          ok
log     KB    40     40      -      -       -      <= 0.50x, <= 26 KB  unknown

not measured in base: memory
`
	if got := b.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJSON_HasARunAndThenAFigurePerLine(t *testing.T) {
	var b strings.Builder
	must.Do(t, report().JSON(&b))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	for i, want := range []string{
		`"verdict":"MISSED"`, `"ratio":0.5,"unit":"/s","verdict":"MISSED"`, `"base":null`, `"limit":26,"limit_ratio":0.5`,
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d has no %s:\n%s", i, want, lines[i])
		}
	}
}
