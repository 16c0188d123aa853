package commit_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
	"scrimp/internal/work/commit"
)

var zero = time.Date(2021, 2, 1, 0, 0, 0, 0, time.UTC)

const threeYears = 3 * 365 * 24

func shaped(t testing.TB, name string) commit.Region {
	t.Helper()
	r, err := commit.Generate(name, threeYears, 400, 7)
	must.Do(t, err)
	return r
}

func read(text string) (commit.Demand, error) {
	return commit.ReadDemand("demand.csv", strings.NewReader(text), zero)
}

// Each invalid file is refused with file, line and fix.
// A region without demand needs no commitment, and stops no plan of the others.
func TestReadDemand_SetsRegionsWithoutDemandApart(t *testing.T) {
	d, err := commit.ReadDemand("a.csv", strings.NewReader("hour,a,b,c\n0,0,1,0\n1,0,0,0\n"), time.Unix(0, 0))
	if err != nil || len(d.Regions) != 1 || d.Regions[0].Name != "b" || !slices.Equal(d.Empty, []string{"a", "c"}) {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestReadDemand_NamesFileLineAndFix(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"empty":         {"", "demand.csv: line 1: the file is empty"},
		"no CSV":        {"\x7fELF\x00\x01\n", "line 1: the header does not begin with hour"},
		"no region":     {"hour\n0\n", "line 1: has 0 regions"},
		"same region":   {"hour,a,a\n0,1,1\n", `line 1: column 3: two columns have the name "a"`},
		"no name":       {"hour,,a\n0,1,1\n", "line 1: column 2: the column has no name"},
		"no rows":       {"hour,a\n", "no hour stands below the header"},
		"gap":           {"hour,a\n0,1\n1,1\n3,1\n", "line 4: hour: 3 stands where hour 2 is expected, so 1 hour is missing"},
		"twice":         {"hour,a\n0,1\n0,1\n", "line 3: hour: 0 stands where hour 1 is expected: sort the file"},
		"negative":      {"hour,a,b\n0,1,-4\n", `line 2: b: "-4" is no demand: write a whole number from 0 to 1000000000`},
		"NaN":           {"hour,a\n0,NaN\n", `line 2: a: "NaN" is no demand`},
		"1e300":         {"hour,a\n0,1e300\n", `line 2: a: "1e300" is no demand`},
		"beyond":        {"hour,a\n0,1000000001\n", "is no demand"},
		"beyond 64 bit": {"hour,a\n0,99999999999999999999\n", "is no demand"},
		"all zero":      {"hour,a,b\n0,0,0\n1,0,0\n", "demand.csv: the demand is zero in every hour"},
		"fields":        {"hour,a\n0,1,2\n", "line 2: has 3 fields, and the header 2"},
		"half an hour":  {"hour,a\n2024-03-01T13:30:00Z,1\n", "is no hour"},
		"mixed":         {"hour,a\n2024-03-01T13:00:00Z,1\n1,1\n", "line 3: hour: 1 is a number, and the hours before are times"},
		"mixed too":     {"hour,a\n0,1\n2024-03-01T13:00:00Z,1\n", "line 3: hour: \"2024-03-01T13:00:00Z\" is no hour"},
		"year 12":       {"hour,a\n0012-03-01T13:00:00Z,1\n", "is no hour"},
		"long line":     {"hour,a\n" + strings.Repeat("1", 1<<17), "line 2: is longer than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(c.text); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "demand.csv: ") {
				t.Errorf("%v: want %q", err, c.says)
			}
		})
	}
}

// A file of ten million rows is refused at the first row too many.
func TestReadDemand_EndsAtItsLimit(t *testing.T) {
	var b strings.Builder
	b.WriteString("hour,a\n")
	for h := range commit.MaxHours + 1 {
		fmt.Fprintf(&b, "%d,1\n", h)
	}
	b.WriteString("what follows is not read")
	if _, err := read(b.String()); err == nil || !strings.Contains(err.Error(), "demand.csv: line 100002: is beyond 100000 hours") {
		t.Error(err)
	}
}

// Hours may be numbers or times. A byte order mark, quotes and CRLF are accepted.
func TestReadDemand_ReadsNumbersAndTimes(t *testing.T) {
	d, err := read("\ufeff\"hour\",\"eu west\"\r\n0,3\r\n1,4\r\n\r\n")
	if err != nil || !d.Numbered || d.Hours != 2 || d.Regions[0].Name != "eu west" || !slices.Equal(d.Regions[0].Units, []int64{3, 4}) {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = read("hour,a\n2024-02-28T23:00:00+01:00,3\n2024-02-28 23:00,4\n")
	if err != nil || d.Numbered || d.Calendar.Name(1) != "2024-03" || d.Calendar.Month(1) != 24+2 {
		t.Errorf("%+v, %v", d, err)
	}
}

func FuzzReadDemand(f *testing.F) {
	for _, s := range []string{"hour,a\n0,1\n", "hour,a,b\n2024-03-01 00:00,1,2\n", "hour,a\n0,-1\n", "hour,\"a\"\n0,1e9\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := read(text)
		if err == nil && (d.Hours < 1 || len(d.Regions) < 1) {
			t.Errorf("%q: %+v", text, d)
		}
		for _, r := range d.Regions {
			if len(r.Units) != d.Hours || slices.Min(r.Units) < 0 {
				t.Errorf("%q: %+v", text, r)
			}
		}
	})
}

// The best level costs least of all levels.
func TestBestLevel_CostsLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		demand := make([]int64, 1+rng.IntN(60))
		for i := range demand {
			demand[i] = rng.Int64N(12)
		}
		price := 1 + rng.Int64N(commit.One-1)
		cost := func(level int64) int64 {
			return commit.Count(demand, []commit.Purchase{{Units: level, Hours: len(demand)}}, price, 0, len(demand)).Cost
		}
		best := commit.BestLevel(demand, price)
		for l := range int64(13) {
			if cost(l) < cost(best) {
				t.Fatalf("%v at %d: level %d costs %d, level %d %d", demand, price, best, cost(best), l, cost(l))
			}
		}
	}
}

// A tally agrees with a simple count of each hour.
func TestCount_AgreesWithAPlainCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		demand := make([]int64, 50)
		for i := range demand {
			demand[i] = rng.Int64N(9)
		}
		var held []commit.Purchase
		for range rng.IntN(5) {
			held = append(held, commit.Purchase{Start: rng.IntN(60) - 5, Units: rng.Int64N(5), Hours: rng.IntN(30)})
		}
		first := rng.IntN(25)
		end := first + rng.IntN(25)
		var want commit.Tally
		for h := first; h < end; h++ {
			var l int64
			for _, p := range held {
				if h >= p.Start && h < p.Start+p.Hours {
					l += p.Units
				}
			}
			want.Demand += demand[h]
			want.Committed += l
			want.Served += min(l, demand[h])
			want.Cost += 10_000*(demand[h]-min(l, demand[h])) + 7200*l
		}
		if got := commit.Count(demand, held, 7200, first, end); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// The limits of a demand file keep every sum within 64 bits.
func TestCount_HoldsTheLargestDemand(t *testing.T) {
	demand := slices.Repeat([]int64{commit.MaxUnits}, commit.MaxHours)
	got := commit.Count(demand, []commit.Purchase{{Units: 2 * commit.MaxUnits, Hours: commit.MaxHours}}, commit.One-1, 0, len(demand))
	if cost, ok := got.Percent(); !ok || cost != 199.98 {
		t.Errorf("%v, %v of %+v", cost, ok, got)
	}
}

func TestCalendar_CountsMonthsInHours(t *testing.T) {
	c := commit.Calendar{Zero: zero}
	first, end := c.Months(26_280)
	if first != 0 || end != 36 || c.Month(12) != 8760 || c.Month(24) != 17_520 || c.Month(36) != 26_280 || c.Name(30) != "2023-08" {
		t.Errorf("months %d to %d, %d, %d, %d, %s", first, end, c.Month(12), c.Month(24), c.Month(36), c.Name(30))
	}
	c.Zero = c.Zero.AddDate(0, 0, 30).Add(-time.Hour) // 2021-03-02 23:00
	if first, end = c.Months(26_280); first != 1 || end != 36 || c.Name(0) != "2021-03" {
		t.Errorf("months %d to %d, %s", first, end, c.Name(0))
	}
}

func policy(insure float64) commit.Policy {
	return commit.Policy{Price: commit.Share(7200), Months: 12, Insure: insure, Fall: 5000}
}

// simulated returns a region's cost in per cent of on-demand: as it is, and the mean over falls in each of the last
// months.
func simulated(t testing.TB, p commit.Policy, r commit.Region) (cost, fallen float64) {
	t.Helper()
	res := p.Simulate(r, commit.Calendar{Zero: zero}, 12, 36, true)
	cost, ok := res.All.Percent()
	for _, f := range res.Falls {
		v, known := f.All.Percent()
		fallen, ok = fallen+v/float64(len(res.Falls)), ok && known
	}
	if !ok || len(res.Falls) != 12 {
		t.Fatalf("%d falls, a figure is unknown", len(res.Falls))
	}
	return cost, fallen
}

// Whatever the shape of the demand, a plan costs at most as much as on-demand and at least as much as the best level of
// each month. More insurance lowers the cost of falls.
func TestPlan_HoldsOnEveryShape(t *testing.T) {
	for _, name := range []string{"growth", "season", "fall", "flat", "batch", "from-zero"} {
		t.Run(name, func(t *testing.T) {
			r := shaped(t, name)
			none, fallen := simulated(t, policy(0), r)
			some, insured := simulated(t, policy(0.2), r)
			res := policy(0.1).Simulate(r, commit.Calendar{Zero: zero}, 12, 36, false)
			regret, ok := commit.Regret(res.All, res.AllBest)
			t.Logf("%.2f, with falls %.2f; insured %.2f, %.2f; regret %.2f", none, fallen, some, insured, regret)
			if !ok || regret < 0 || none > 101 || some > 100.5 {
				t.Errorf("a plan costs %.2f %% and %.2f %% of on-demand, regret %.2f", none, some, regret)
			}
			if insured > fallen+0.01 {
				t.Errorf("insurance makes falls dearer: %.2f %% and %.2f %%", fallen, insured)
			}
		})
	}
}

// Flat demand is bought completely and at once. A batch that runs a quarter of the time is not worth a commitment.
func TestPlan_BuysWhatIsUsedEnough(t *testing.T) {
	cal := commit.Calendar{Zero: zero}
	flat := shaped(t, "flat")
	if n := policy(0).Plan(flat.Units[:8760], cal, 12, nil)[0]; n != 400 {
		t.Errorf("flat demand of 400: bought %d", n)
	}
	held := []commit.Purchase{{Units: 400, Hours: 2 * 8760}}
	if n := policy(0).Plan(flat.Units[:8760], cal, 12, held)[0]; n != 0 {
		t.Errorf("400 are held, and %d more bought", n)
	}
	if n := policy(0).Plan(shaped(t, "batch").Units[:8760], cal, 12, nil)[0]; n != 40 {
		t.Errorf("a batch of 400 in one week of four, 40 else: bought %d", n)
	}
	zeroYet := shaped(t, "from-zero")
	for k, n := range policy(0).Plan(zeroYet.Units[:8760], cal, 12, nil) {
		if n != 0 {
			t.Errorf("without demand %d are bought in month %d", n, k)
		}
	}
}

// A plan uses only the past: later demand changes no earlier purchase. Every run gives the same result.
func TestPlay_DoesNotKnowTheFuture(t *testing.T) {
	r := shaped(t, "growth")
	cal := commit.Calendar{Zero: zero}
	whole := policy(0.1).Play(r.Units, cal, nil, 12, 36)
	for _, m := range []int{20, 30} {
		cut := policy(0.1).Play(r.Units[:cal.Month(m)], cal, nil, 12, m)
		again := policy(0.1).Play(commit.Fallen(r.Units, cal.Month(m)+24, 9000), cal, nil, 12, m)
		if !slices.Equal(cut, whole[:len(cut)]) || !slices.Equal(cut, again) {
			t.Errorf("purchases to month %d differ: %v, %v, %v", m, whole, cut, again)
		}
	}
}

// Larger demand is planned in coarser steps, and costs the same share within a tenth of a per cent.
func TestPlan_ScalesWithTheDemand(t *testing.T) {
	r := shaped(t, "growth")
	want, _ := simulated(t, policy(0.1), r)
	for i := range r.Units {
		r.Units[i] *= 500_000
	}
	if got, _ := simulated(t, policy(0.1), r); max(got-want, want-got) > 0.1 {
		t.Errorf("%.3f %% and %.3f %%", want, got)
	}
	for i := range r.Units {
		r.Units[i] = commit.MaxUnits * int64(i%2)
	}
	simulated(t, commit.Policy{Price: commit.Share(1), Months: 36, Insure: 0.999, Fall: 9999}, r)
}

// A purchase for three years is owed for three years.
func TestPlan_OfThreeYears(t *testing.T) {
	p := commit.Policy{Price: commit.Share(5000), Months: 36, Fall: 5000}
	r := shaped(t, "flat")
	got := p.Play(r.Units, commit.Calendar{Zero: zero}, nil, 12, 36)
	if len(got) != 1 || got[0].Hours != 3*8760 || got[0].Units != 400 {
		t.Errorf("%+v", got)
	}
}

// By hand: 400 units at 0.72 of on-demand, owed for 8,760 h, are always used. One unit owes 6,307.2 h of on-demand, so
// it has paid off in the ninth month. If half the demand falls, 200 of 400 units are idle: 0.72 × 400 = 288 for 200
// served, which is 144 %. 144 would have been enough, which is 72 %.
func TestOutlook_OfFlatDemandByHand(t *testing.T) {
	r := shaped(t, "flat")
	o := policy(0).Outlook(commit.Region{Name: "flat", Units: r.Units[:8760]}, commit.Calendar{Zero: zero}, nil, []int64{0, 5000, 10_000})
	if o.BreakEven != 9 || o.Months[0].Buy != 400 || o.Months[0].Name != "2022-02" || len(o.Months) != 12 {
		t.Errorf("%+v", o)
	}
	for i, want := range [][2]float64{{72, 0}, {144, 72}} {
		cost, regret, ok := o.Falls[i].Percent()
		if !ok || cost < want[0]-1e-9 || cost > want[0]+1e-9 || regret < want[1]-1e-9 || regret > want[1]+1e-9 {
			t.Errorf("fall of %d: %v %%, regret %v, want %v", o.Falls[i].Share, cost, regret, want)
		}
	}
	if _, _, ok := o.Falls[2].Percent(); ok || o.Falls[2].Used != 0 {
		t.Errorf("without demand nothing is known: %+v", o.Falls[2])
	}
}

// Without a fall to insure against, flat demand is fully covered in every month, whatever is held and whenever it ends.
func TestPlan_ReplacesWhatEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	cal := commit.Calendar{Zero: zero}
	r := commit.Region{Name: "flat", Units: shaped(t, "flat").Units[:8760]}
	for range 60 {
		var held []commit.Purchase
		for range rng.IntN(4) {
			held = append(held, commit.Purchase{Units: 1 + rng.Int64N(120), Hours: cal.Month(12 + rng.IntN(14))})
		}
		for _, m := range policy(0).Outlook(r, cal, held, nil).Months {
			if m.Held <= 400 && m.Level() != 400 || m.Held > 400 && m.Buy != 0 {
				t.Fatalf("%+v held: %s has %d and buys %d", held, m.Name, m.Held, m.Buy)
			}
		}
	}
}

// Flat demand of any size is bought to the exact unit, in one purchase, now or in addition to what is held.
func TestPlan_BuysFlatDemandToTheUnit(t *testing.T) {
	cal := commit.Calendar{Zero: zero}
	for _, units := range []int64{1, 7, 4096, 4097, 10_000, 65_537, 100_003, 1_000_003, 999_999_999, commit.MaxUnits} {
		demand := slices.Repeat([]int64{units}, 8760)
		for _, months := range []int{12, 36} {
			p := policy(0)
			p.Months = months
			if n := p.Plan(demand, cal, 12, nil)[0]; n != units {
				t.Errorf("flat demand of %d, %d months: bought %d", units, months, n)
			}
			held := []commit.Purchase{{Units: units / 3, Hours: 8 * 8760}}
			if n := p.Plan(demand, cal, 12, held)[0]; n != units-units/3 {
				t.Errorf("flat demand of %d with %d held: bought %d", units, units/3, n)
			}
		}
	}
}

// However cheap a commitment is, no plan commits to more than the largest demand of the forecast. That is the largest
// past demand times its growth (at most 1 in 168 days, of which 0.7 continues for 380 days).
func TestPlan_BuysNoMoreThanIsEverUsed(t *testing.T) {
	for _, name := range []string{"growth", "season", "fall", "flat", "batch", "from-zero"} {
		r := shaped(t, name)
		for _, price := range []*big.Rat{commit.Share(1), commit.Share(7200), big.NewRat(1, 1e18)} {
			for _, insure := range []float64{0, 0.5} {
				p := commit.Policy{Price: price, Months: 12, Insure: insure, Fall: 5000}
				past := r.Units[:commit.Calendar{Zero: zero}.Month(24)]
				n := p.Plan(past, commit.Calendar{Zero: zero}, 24, nil)[0]
				if most := float64(slices.Max(past)) * (1 + 0.7*380/168) * (1 + 0.7*56/168); float64(n) > most {
					t.Errorf("%s at %v: bought %d of at most %.0f", name, price, n, most)
				}
				if name == "flat" && n > 400 {
					t.Errorf("flat at %v: bought %d of 400", price, n)
				}
			}
		}
	}
}

// Half of a flat demand falls, at a price that is not a multiple of a ten-thousandth. The regret is exact, and at most
// what is owed. 100 × $1.50 × 26,280 h are owed; after the fall 50 units are idle for the whole term.
func TestOutlook_RegretIsExact(t *testing.T) {
	p := commit.Policy{Price: big.NewRat(150, 306), Months: 36, Fall: 5000}
	r := commit.Region{Name: "flat", Units: slices.Repeat([]int64{100}, 8760)}
	o := p.Outlook(r, commit.Calendar{Zero: zero}, nil, []int64{5000, 10_000})
	if o.Months[0].Buy != 100 {
		t.Fatalf("bought %d", o.Months[0].Buy)
	}
	for i, want := range []string{"1971000.00", "3942000.00"} {
		if got := o.Falls[i].Regret(big.NewRat(306, 100), p.Price).FloatString(2); got != want {
			t.Errorf("fall of %d: regret %s, by hand %s", o.Falls[i].Share, got, want)
		}
	}
}
