package market_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

var opened = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// drawn returns a random valid trace with one spot offer.
func drawn(t *rapid.T) market.Trace {
	tr := trace()
	tr.Lines = tr.Lines[:1]
	tr.Repeat = time.Duration(rapid.Int64Range(0, 1).Draw(t, "repeats")) * 20 * time.Hour
	l := &tr.Lines[0]
	times := rapid.SliceOfNDistinct(rapid.Int64Range(1, int64(20*time.Hour)-1), 0, 6, rapid.ID[int64]).Draw(t, "price times")
	slices.Sort(times)
	l.Price = l.Price[:1]
	for _, at := range times {
		l.Price = append(l.Price, market.Price{At: time.Duration(at), Rate: money.Rate(rapid.Int64Range(1, 3).Draw(t, "rate") * 1_000_000_007)})
	}
	ends := rapid.SliceOfNDistinct(rapid.Int64Range(0, int64(20*time.Hour)), 0, 8, rapid.ID[int64]).Draw(t, "span ends")
	slices.Sort(ends)
	l.Available = nil
	for i := 0; i+1 < len(ends); i += 2 {
		l.Available = append(l.Available, market.Span{From: time.Duration(ends[i]), To: time.Duration(ends[i+1]), Notice: time.Second})
	}
	if err := tr.Validate(); err != nil {
		t.Fatalf("the generator: %v", err)
	}
	return tr
}

func at(t *rapid.T, name string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(70*time.Hour)).Draw(t, name))
}

// The price segments of a span agree with the quote at every moment, in order, also over repetitions.
func TestPrices_AgreeWithQuotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawn(t)
		l := tr.Lines[0]
		from, to := at(t, "from"), at(t, "to")
		if to < from {
			from, to = to, from
		}
		segments := tr.Prices(l, from, to+1, opened)
		if !segments[0].From.Equal(opened.Add(from)) {
			t.Fatalf("the first segment begins at %v", segments[0].From)
		}
		for i := 1; i < len(segments); i++ {
			if !segments[i].From.After(segments[i-1].From) || segments[i].Rate == segments[i-1].Rate {
				t.Fatalf("segment %d: %+v after %+v", i, segments[i], segments[i-1])
			}
		}
		moments := []time.Duration{from, to}
		for _, p := range l.Price {
			for turn := time.Duration(0); turn <= to; turn += 20 * time.Hour {
				moments = append(moments, p.At+turn, p.At+turn-1)
			}
		}
		moments = append(moments, from+time.Duration(rapid.Int64Range(0, int64(to-from)).Draw(t, "moment")))
		for _, m := range moments {
			if m < from || m > to {
				continue
			}
			i := len(segments) - 1
			for segments[i].From.After(opened.Add(m)) {
				i--
			}
			if q := tr.Quote(l, m, opened); q.Rate != segments[i].Rate || !q.Priced {
				t.Fatalf("at %v the quote is %v and the segment %v", m, q.Rate, segments[i].Rate)
			}
		}
	})
}

// A machine can be rented exactly if the quote says so, and is lost when its period ends. The quote has held since its
// stated time.
func TestLoss_IsEndOfSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawn(t)
		l := tr.Lines[0]
		now := at(t, "now")
		q := tr.Quote(l, now, opened)
		lost, _, ok := tr.Loss(l, now)
		if len(l.Available) == 0 {
			if ok || !q.Available {
				t.Fatalf("always there: lost %v, available %v", ok, q.Available)
			}
		} else if ok != q.Available {
			t.Fatalf("available %v, lost %v", q.Available, ok)
		}
		since := q.At.Sub(opened)
		if since > now {
			t.Fatalf("a quote of %v dates from %v", now, since)
		}
		if before := tr.Quote(l, since, opened); before.Rate != q.Rate || before.Available != q.Available {
			t.Fatalf("the quote at %v says that it holds since %v, when it was %+v", now, since, before)
		}
		if !ok {
			return
		}
		if lost <= now {
			t.Fatalf("rented at %v, lost at %v", now, lost)
		}
		if q := tr.Quote(l, lost-1, opened); !q.Available {
			t.Fatalf("lost at %v but gone the moment before", lost)
		}
		if early := tr.Quote(l, now+time.Duration(rapid.Int64Range(0, int64(lost-now-1)).Draw(t, "early")), opened); !early.Available {
			t.Fatal("gone between the launch and the loss")
		}
	})
}

// A known maximum lifetime ends a machine unless its period ends first.
func TestLoss_IncludesMaxLifetime(t *testing.T) {
	tr := trace()
	l := tr.Lines[0]
	l.Offer.MaxLifetime = 30 * time.Minute
	for now, want := range map[time.Duration]time.Duration{0: 30 * time.Minute, time.Hour: 90 * time.Minute, 110 * time.Minute: 2 * time.Hour} {
		if lost, notice, ok := tr.Loss(l, now); !ok || lost != want || notice != time.Minute {
			t.Errorf("rented at %v: %v, at %v with %v of notice; want %v", now, ok, lost, notice, want)
		}
	}
}

// plain is the slow twin of Cost, in units of 1e-12.
func plain(segments []market.Segment, end time.Time) *big.Int {
	sum := new(big.Int)
	for i, s := range segments {
		to := end
		if i+1 < len(segments) && segments[i+1].From.Before(end) {
			to = segments[i+1].From
		}
		if to.After(s.From) {
			n := new(big.Int).Mul(big.NewInt(int64(s.Rate)), big.NewInt(int64(to.Sub(s.From))))
			sum.Add(sum, n.Quo(n, big.NewInt(int64(time.Hour))))
		}
	}
	return sum
}

// Under each billing rule a bill equals plain integer arithmetic: the seconds, the rest of the minimum, and the credit
// for an early interruption. Its seconds are the sum of any division of the span.
func TestBill_EqualsSumOfAnyDivision(t *testing.T) {
	for name, rules := range map[string]market.Billing{
		"seconds": {}, "minimum": {Minimum: time.Minute}, "free if interrupted early": {FreeIfInterruptedWithin: time.Hour},
		"both": {Minimum: time.Hour, FreeIfInterruptedWithin: 10 * time.Minute}, "free beyond the minimum": {Minimum: time.Minute, FreeIfInterruptedWithin: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			met := map[string]int{}
			rapid.Check(t, func(t *rapid.T) {
				tr := drawn(t)
				from := at(t, "from")
				length := time.Duration(rapid.OneOf(
					rapid.Int64Range(0, int64(10*time.Hour)),
					rapid.SampledFrom([]int64{0, 1, int64(time.Minute) - 1, int64(time.Minute), int64(10*time.Minute) - 1, int64(10 * time.Minute), int64(time.Hour) - 1, int64(time.Hour)}),
				).Draw(t, "length"))
				taken := rapid.Bool().Draw(t, "interrupted")
				segments := tr.Prices(tr.Lines[0], from, from+length+rules.Minimum+1, opened)
				begin, end := segments[0].From, segments[0].From.Add(length)
				lines := market.Bill(rules, segments, end, taken)

				want := plain(segments, end)
				if length < rules.Minimum {
					want = plain(segments, begin.Add(rules.Minimum))
				}
				free := taken && length < rules.FreeIfInterruptedWithin
				if free {
					want = new(big.Int)
				}
				var sum money.Amount
				for _, l := range lines {
					sum = sum.Add(l.Amount)
					met[l.Rule]++
				}
				if sum.Big().Cmp(want) != 0 {
					t.Fatalf("the bill of %v (interrupted: %v) is %s, plain integers say %s: %+v", length, taken, sum.Big(), want, lines)
				}
				if lines[0].Rule != "" || !lines[0].From.Equal(begin) || !lines[0].To.Equal(end) {
					t.Fatalf("the first line is %+v, want the plain seconds", lines[0])
				}
				var pieces, before money.Amount
				for _, c := range append(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.Int64Range(0, int64(length)), 0, 10).Draw(t, "cuts"))), int64(length)) {
					now := market.Cost(segments, begin.Add(time.Duration(c)))
					if now.Cmp(before) < 0 {
						t.Fatal("the cost so far went down")
					}
					pieces, before = pieces.Add(now.Sub(before)), now
				}
				if pieces != lines[0].Amount {
					t.Fatalf("the pieces sum to %v, the line says %v", pieces, lines[0].Amount)
				}
			})
			for rule, on := range map[string]bool{market.RuleMinimum: rules.Minimum > 0, market.RuleInterruptedEarly: rules.FreeIfInterruptedWithin > 0} {
				if (met[rule] > 0) != on {
					t.Errorf("rule %s was met %d times", rule, met[rule])
				}
			}
		})
	}
	if lines := market.Bill(market.Billing{Minimum: time.Hour}, nil, opened, true); lines != nil {
		t.Errorf("a machine without a price is billed %+v: unknown is not zero", lines)
	}
}

func params() market.Params {
	return market.Params{Name: "g", Zones: 2, CPUs: 2, Memory: 4 * size.GiB, MedianUp: 2 * time.Hour, MedianDown: 30 * time.Minute, Notice: 2 * time.Minute, Length: 4 * 365 * 24 * time.Hour}
}

// Generate is deterministic in seed, byte for byte, differs between seeds, and every market is valid.
func TestGenerate_IsDeterministicInSeed(t *testing.T) {
	p := params()
	p.Length = 20 * 24 * time.Hour
	markets := map[string]uint64{}
	for seed := range uint64(200) {
		tr := market.Generate(p, seed)
		if err := tr.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		a, err := json.Marshal(tr)
		must.Do(t, err)
		b, _ := json.Marshal(market.Generate(p, seed))
		if !bytes.Equal(a, b) {
			t.Fatalf("seed %d gives two markets", seed)
		}
		if other, ok := markets[string(a)]; ok {
			t.Fatalf("seeds %d and %d give one market", seed, other)
		}
		markets[string(a)] = seed
	}
}

// Over years, half of the periods are at least as long as the parameters' medians, and their mean is that of a Weibull
// distribution with shape 0.6: median·Γ(1+1/0.6)/ln(2)^(1/0.6), which is 2.77 times the median. With about 20,000 of
// each, the standard error of the mean is 1.2 %, so a deviation of 5 % is not chance.
func TestGenerate_FollowsParameters(t *testing.T) {
	p := params()
	var up, down []float64
	for seed := range uint64(2) {
		tr := market.Generate(p, seed)
		for _, l := range tr.Lines {
			if l.Offer.Capacity != market.Spot {
				if l.Price[0].Rate != 100_000_000_000 || len(l.Price) != 1 {
					t.Errorf("on-demand costs %v", l.Price)
				}
				continue
			}
			for i, s := range l.Available {
				if s.Notice != p.Notice {
					t.Fatalf("a notice of %v", s.Notice)
				}
				if i+1 < len(l.Available) { // the last one may be cut off or extended
					up, down = append(up, float64(s.To-s.From)), append(down, float64(l.Available[i+1].From-s.To))
				}
			}
			for _, pr := range l.Price {
				if pr.Rate < 25_000_000_000 || pr.Rate > 40_000_000_000 {
					t.Fatalf("spot costs %v", pr.Rate)
				}
			}
		}
	}
	factor := math.Gamma(1+1/0.6) / math.Pow(math.Ln2, 1/0.6)
	for name, c := range map[string]struct {
		drawn  []float64
		median time.Duration
	}{"up": {up, p.MedianUp}, "down": {down, p.MedianDown}} {
		slices.Sort(c.drawn)
		sum := 0.0
		for _, v := range c.drawn {
			sum += v
		}
		median, mean := c.drawn[len(c.drawn)/2]/float64(c.median), sum/float64(len(c.drawn))/float64(c.median)/factor
		t.Logf("%s: %d drawn, median %.3f and mean %.3f of what they should be", name, len(c.drawn), median, mean)
		if len(c.drawn) < 10_000 || math.Abs(median-1) > 0.05 || math.Abs(mean-1) > 0.05 {
			t.Errorf("%s: %d drawn, median %.3f and mean %.3f of what they should be", name, len(c.drawn), median, mean)
		}
	}
}

func TestBuiltin_MarketsAreValid(t *testing.T) {
	for _, name := range []string{"calm", "stormy"} {
		tr, err := market.Builtin(name, 4, 8*size.GiB)
		must.Do(t, err)
		if err := tr.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if l, ok := tr.Line(tr.Lines[1].Offer.ID); !ok || l.Offer.ID != tr.Lines[1].Offer.ID {
			t.Errorf("%s: an offer is not found by its name", name)
		}
	}
	if _, err := market.Builtin("mild", 4, size.GiB); err == nil {
		t.Error("a market that nobody knows")
	}
	if _, ok := trace().Line("local/nowhere"); ok {
		t.Error("an offer that nobody sells")
	}
}
