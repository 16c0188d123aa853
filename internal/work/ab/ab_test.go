package ab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
)

// noises are distributions of the difference between two runs; their means are 0.
var noises = []struct {
	name        string
	base, other func(*rand.Rand) float64
}{ // differences of the last two are not symmetric around their mean
	{"normal", (*rand.Rand).NormFloat64, (*rand.Rand).NormFloat64},
	{"heavy-tailed", heavy, heavy},
	{"skewed", skewed, skewed},
	{"one arm is constant", func(*rand.Rand) float64 { return 0 }, (*rand.Rand).NormFloat64},
	{"in steps, with ties", coarse, coarse},
	{"one arm is skewed", (*rand.Rand).NormFloat64, func(r *rand.Rand) float64 { return -skewed(r) }},
	{"arms are skewed against each other", skewed, func(r *rand.Rand) float64 { return -skewed(r) }},
}

// heavy is Student's t with two degrees of freedom, whose variance is infinite.
func heavy(r *rand.Rand) float64 { return r.NormFloat64() / math.Sqrt(r.ExpFloat64()) }

func skewed(r *rand.Rand) float64 { return r.ExpFloat64() - 1 }

func coarse(r *rand.Rand) float64 { return math.Round(r.NormFloat64()) / 2 }

// compare simulates a comparison in which the change is better by the given amount. It judges after each pair until
// there is a verdict.
func compare(r *rand.Rand, d Design, base, other func(*rand.Rand) float64, better float64) Result {
	if !d.Maximize {
		better = -better
	}
	var pairs []Pair
	for i := range d.Pairs {
		level := 100 + 3*r.NormFloat64() // effect of the seed on both
		pairs = append(pairs, Pair{Seed: i, Base: level + base(r), Other: level + better + other(r)})
		if d.Pairs > 8 && i+1 < d.Pairs { // the last call gives the first verdict
			continue
		}
		if got, _ := decide(d, pairs); got.Over {
			return got
		}
	}
	got, _ := decide(d, pairs)
	return got
}

// With a verdict after each pair: if the change is exactly as bad as the tolerance allows, at most 5 % of comparisons
// say "no worse", and at most 5 % "worse". If the arms are equal, at most 5 % say "better" or "worse".
func TestJudge_ErrsInAtMostFivePercent(t *testing.T) {
	t.Parallel()
	simulated, sizes := lane.Pick(100, 2000), []int{3, 6, 8, 5, 7, 10, 12, 20}
	for i, noise := range noises {
		most := float64(simulated) * 5 / 100
		if i >= len(noises)-2 || simulated < 2000 { // the true rate is 5 %, so sometimes a little more
			most += 3 * math.Sqrt(most*0.95)
		}
		for _, n := range sizes[:lane.Pick(3, len(sizes))] {
			for _, relative := range []bool{false, true} {
				if relative && n > 8 {
					continue // it is slow and tests the same
				}
				d := Design{Metric: "m", Maximize: n%2 == 0, Tolerance: 1.5, Pairs: n, Relative: relative}
				if relative {
					d.Tolerance = 0.015 // of 100
				}
				r := rand.New(rand.NewPCG(uint64(n), 7))
				count := map[Verdict]int{}
				better := 0
				for range simulated {
					count[compare(r, d, noise.base, noise.other, -1.5).Verdict]++
					if compare(r, d, noise.base, noise.other, 0).Verdict == Better {
						better++
					}
				}
				t.Logf("%s, %d pairs: %v, better %d of %d", noise.name, n, count, better, simulated)
				if worst := max(count[NoWorse]+count[Better], count[Worse], better); float64(worst) > most {
					t.Errorf("%s, %d pairs, relative %v: of %d at the limit %v; of equal arms %d better", noise.name, n, relative,
						simulated, count, better)
				}
				if n < MinPairs && count[CannotTell] != simulated {
					t.Errorf("%d pairs tell: %v", n, count)
				}
			}
		}
	}
}

// If the tolerance is as many standard deviations as Reach says, 80 % of comparisons of two equal arms are judged no
// worse.
func TestReach_HasTheStatedPower(t *testing.T) {
	t.Parallel()
	simulated := lane.Pick(200, 2000)
	all := []int{6, 7, 8, 12, 9, 10, 15, 18, 20, 30, 50}
	for _, n := range all[:lane.Pick(4, len(all))] {
		ratio, _ := Reach(n)
		r := rand.New(rand.NewPCG(uint64(n), 9))
		d := Design{Metric: "m", Maximize: true, Tolerance: ratio * math.Sqrt2, Pairs: n}
		shown := 0
		for range simulated {
			if v := compare(r, d, (*rand.Rand).NormFloat64, (*rand.Rand).NormFloat64, 0).Verdict; v == NoWorse || v == Better {
				shown++
			}
		}
		power := float64(shown) / float64(simulated)
		t.Logf("%d pairs, %.2f deviations: %.1f %%", n, ratio, 100*power)
		if slack := 3 * math.Sqrt(0.16/float64(simulated)); power < 0.8-slack || power > 0.83+slack {
			t.Errorf("%d pairs show it in %.1f %%, and Reach says 80 %%", n, 100*power)
		}
	}
	if math.Pow(0.5*math.Erfc(-1.80/math.Sqrt2), 6) < 0.8 { // six pairs: each must be positive
		t.Error("six pairs at 1.80 deviations have less than 80 %")
	}
}

// plainly computes positive a second time, directly from its description: all combinations of signs in a list, sorted
// anew after each pair.
func plainly(differences []float64, n int) int {
	type way struct {
		signs []float64
		gone  bool
	}
	ways := []*way{{}}
	for range n {
		var longer []*way
		for _, w := range ways {
			for _, s := range []float64{1, -1} {
				longer = append(longer, &way{signs: append(slices.Clone(w.signs), s)})
			}
		}
		ways = longer
	}
	for k := range differences {
		sum := func(w *way) (s float64) {
			for i := range k + 1 {
				s += w.signs[i] * differences[i]
			}
			return s
		}
		gone := 0
		var rest []*way
		for _, w := range ways {
			if w.gone {
				gone++
			} else {
				rest = append(rest, w)
			}
		}
		slices.SortStableFunc(rest, func(a, b *way) int {
			switch x, y := sum(a), sum(b); {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		for i := 0; i < len(rest); {
			to := i + 1
			for to < len(rest) && math.Abs(sum(rest[to])-sum(rest[i])) < 1e-9 {
				to++
			}
			if float64(gone+to) > level(n)*math.Pow(float64(k+1)/float64(n), 2)*float64(len(ways))+1e-9 {
				break
			}
			for ; i < to; i++ {
				rest[i].gone = true
			}
		}
		if ways[0].gone {
			return k + 1
		}
	}
	return 0
}

func TestPositive_AgreesWithAPlainCount(t *testing.T) {
	t.Parallel()
	r, shown := rand.New(rand.NewPCG(3, 4)), 0
	for range lane.Pick(150, 1500) {
		n := 3 + r.IntN(7)
		var list []float64
		for range 1 + r.IntN(n) {
			list = append(list, math.Round(4*(r.NormFloat64()+1.6))/4)
		}
		got, want := positive(list, n), plainly(list, n)
		if got != want {
			t.Fatalf("%v of %d: shown after %d, and a plain count says %d", list, n, got, want)
		}
		if got > 0 {
			shown++
		}
		atMost := 0
		for g := range 1 << len(list) { // computed a second time, without the bits of a group
			sum, seen := 0.0, 0.0
			for i, v := range list {
				seen += v
				if g>>i&1 == 0 {
					sum += v
				} else {
					sum -= v
				}
			}
			if sum >= seen-1e-9 {
				atMost++
			}
		}
		if got, want := atLeast(list), float64(atMost)/float64(int(1)<<len(list)); got != want {
			t.Fatalf("%v: a share of %g is at least the sum seen, and a plain count says %g", list, got, want)
		}
	}
	if shown < 10 {
		t.Errorf("only %d lists show anything", shown)
	}
}

// If there are too many pairs to test every combination, the tested ones are closed under exclusive or.
func TestSigns_AreAGroup(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 12, 13, 30, 50} {
		list := signs(n)
		have := map[uint64]bool{}
		for _, g := range list {
			have[g] = true
		}
		if list[0] != 0 || len(have) != 1<<min(n, exactPairs) {
			t.Errorf("%d pairs: %d combinations, the first %x", n, len(have), list[0])
		}
		for i, g := range list {
			if !have[g^list[(i*7919+13)%len(list)]] {
				t.Fatalf("%d pairs: two combinations together are none", n)
			}
		}
		for k := range n { // half of them flip each difference
			turned := 0
			for _, g := range list {
				turned += int(g >> k & 1)
			}
			if turned != len(list)/2 {
				t.Errorf("%d pairs: difference %d is turned by %d of %d", n, k, turned, len(list))
			}
		}
	}
}

// The interval holds the values that the test does not reject, and the mean of the pairs.
func TestJudge_BoundsTheDifference(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(6, 60)) {
		r := rand.New(rand.NewPCG(seed, 5))
		d := Design{Metric: "m", Maximize: seed%2 == 0, Tolerance: 0.1, Pairs: 7}
		var pairs []Pair
		mean := 0.0
		for i := range d.Pairs {
			p := Pair{Seed: i, Base: r.NormFloat64(), Other: r.NormFloat64()}
			pairs, mean = append(pairs, p), mean+(p.Other-p.Base)/float64(d.Pairs)
		}
		got := Judge(d, pairs)
		if got.Pairs < d.Pairs {
			continue
		}
		if math.Abs(got.Difference-mean) > 1e-12 || got.Low == nil || got.High == nil || *got.Low > mean || *got.High < mean {
			t.Fatalf("the mean is %g: %+v", mean, got)
		}
		for x := -6.0; x <= 6; x += 0.05 {
			var up, down []float64
			for _, p := range pairs {
				up, down = append(up, p.Other-p.Base-x), append(down, x-(p.Other-p.Base))
			}
			inside := plainly(up, 7) == 0 && plainly(down, 7) == 0
			if near := math.Min(math.Abs(x-*got.Low), math.Abs(x-*got.High)); near > 1e-6 && inside != (*got.Low < x && x < *got.High) {
				t.Errorf("seed %d: %.2f is inside: %v, and the interval is %g to %g", seed, x, inside, *got.Low, *got.High)
			}
		}
	}
}

func pairsOf(gains ...float64) (list []Pair) {
	for i, g := range gains {
		list = append(list, Pair{Seed: i, Base: 10 + float64(i), Other: 10 + float64(i) + g})
	}
	return list
}

func TestJudge_SaysWhatItCannotTell(t *testing.T) {
	t.Parallel()
	d := Design{Metric: "accuracy", Maximize: true, Tolerance: 1, Pairs: 6}
	short := d
	short.Pairs = 3
	one := d
	one.Pairs = 1
	for _, c := range []struct {
		what  string
		d     Design
		pairs []Pair
		want  Verdict
		over  bool
		why   string
	}{
		{"no pair", d, nil, CannotTell, false, "no pair"},
		{"no metric", Design{Pairs: 3}, pairsOf(1, 2), Unjudged, false, "not judged"},
		{"three pairs", short, pairsOf(1, 2, 3), CannotTell, true, "3 pairs never tell with an error of at most 5 %, whatever they report: 6 can"},
		{"one pair", one, pairsOf(1), CannotTell, true, "1 pair never tells with an error of at most 5 %, whatever it reports: 6 can"},
		{"one is left", d, pairsOf(-2, .5, -2, .5, -2), CannotTell, true, "whatever the last pair reports, it cannot decide"},
		{"five of six", d, pairsOf(-.1, .2, .3, .1, 0), CannotTell, false, "5 of 6 pairs"},
		{"six", d, pairsOf(-.1, .2, .3, .1, 0, -.5), NoWorse, true, "not worse"},
		{"six better", d, pairsOf(.1, .2, .3, .1, .5, .6), Better, true, "better"},
		{"six worse", d, pairsOf(-2, -3, -4, -2, -3, -1.1), Worse, true, "worse than"},
		{"one each way of six", d, pairsOf(-2, .5), CannotTell, true, "whatever the last 4 pairs report"},
		{"a seed that nobody reads", d, []Pair{{1, 5, 5}, {2, 5, 5}, {3, 5, 5}}, CannotTell, true, "SCRIMP_SEED"},
	} {
		got := Judge(c.d, c.pairs)
		if got.Verdict != c.want || got.Over != c.over || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
	if got := Judge(d, pairsOf(-2, .5)); got.More == 0 {
		t.Errorf("it proposes no more pairs: %+v", got)
	}
	if got := Judge(d, pairsOf(-1.1, -0.9)); got.More != 0 { // a mean at the limit
		t.Errorf("it proposes %d pairs at the limit itself", got.More)
	}
}

// If Judge calls a comparison hopeless, no result of the remaining pairs could decide it.
func TestJudge_GivesUpOnlyWhatIsHopeless(t *testing.T) {
	t.Parallel()
	r, over := rand.New(rand.NewPCG(1, 1)), 0
	for range lane.Pick(200, 2000) {
		d := Design{Metric: "m", Maximize: true, Tolerance: 0, Pairs: 6 + r.IntN(4)}
		var gains []float64
		for range 1 + r.IntN(d.Pairs-1) {
			gains = append(gains, r.NormFloat64())
		}
		got := Judge(d, pairsOf(gains...))
		if got.Verdict != CannotTell || !got.Over {
			continue
		}
		over++
		for _, last := range []float64{1e-6, 1, 1e6, -1e-6, -1, -1e6} {
			all := slices.Clone(gains)
			for len(all) < d.Pairs {
				all = append(all, last*(1+float64(len(all))/100))
			}
			if late := Judge(d, pairsOf(all...)); late.Verdict != CannotTell {
				t.Errorf("%v is hopeless, and with %g it is %s", gains, last, late.Verdict)
			}
		}
	}
	if over < 20 {
		t.Errorf("only %d were given up", over)
	}
}

// Values that are equal except for rounding differ by 0, and a value at the tolerance is not above it.
func TestJudge_LeavesRoundingOut(t *testing.T) {
	t.Parallel()
	var equal, rounded, turns, limit []Pair
	for i := range 6 {
		v := 0.9 + 0.001*float64(i)
		equal = append(equal, Pair{Seed: i, Base: v, Other: v})
		rounded = append(rounded, Pair{Seed: i, Base: v, Other: v + 0.1*v - v/10})
		turns = append(turns, Pair{Seed: i, Base: v, Other: v + 0.1*float64(1-i%2*2)})
		limit = append(limit, Pair{Seed: i, Base: v, Other: v - 0.01})
	}
	for _, maximize := range []bool{true, false} {
		d := Design{Metric: "m", Maximize: maximize, Tolerance: 0.01, Pairs: 6}
		for i, pairs := range [][]Pair{equal, rounded} {
			got := Judge(d, pairs)
			if got.Verdict != NoWorse || got.Difference != 0 || got.Low == nil || *got.Low != 0 || got.High == nil || *got.High != 0 {
				t.Errorf("equal values %d, maximize %v: %+v, %v to %v", i, maximize, got, *got.Low, *got.High)
			}
			for _, v := range []float64{got.Difference, *got.Low, *got.High} {
				if math.Signbit(v) {
					t.Errorf("equal values %d, maximize %v: a zero is negative", i, maximize)
				}
			}
		}
		if got := Judge(d, turns[:2]); got.Difference != 0 {
			t.Errorf("what cancels leaves %g", got.Difference)
		}
		if got := Judge(d, limit); maximize && got.Verdict != CannotTell || !maximize && got.Verdict != Better {
			t.Errorf("maximize %v: a loss of just the tolerance is %+v", maximize, got)
		}
	}
	// If only one pair differs, the bound of the mean is the 0 of the others, without a rounding error.
	d := Design{Metric: "m", Maximize: true, Tolerance: 0.01, Pairs: 6}
	if got := Judge(d, pairsOf(0, 0, 0.5, 0, 0, 0)); got.Low == nil || *got.Low != 0 {
		t.Errorf("the lower bound of one gain and five zeroes: %+v, %v", got, *got.Low)
	}
}

// A share of a baseline of 0 is 0, and no number of pairs helps.
func TestJudge_SaysThatAShareOfZeroAllowsNothing(t *testing.T) {
	t.Parallel()
	d := Design{Metric: "loss", Tolerance: 0.1, Relative: true, Pairs: 6}
	got := Judge(d, []Pair{{Seed: 1}})
	if !got.Over || got.More != 0 || !strings.Contains(got.Why, "a baseline of 0 allows nothing: use an absolute one, such as --tolerance loss=0.01") {
		t.Errorf("no difference from 0: %+v", got)
	}
	if got = Judge(d, []Pair{{Seed: 1, Other: 1}}); got.Over || got.More != 0 {
		t.Errorf("worse than 0: %+v", got)
	}
	if got = Judge(d, []Pair{{Seed: 1, Base: 1, Other: 1}}); got.More == 0 {
		t.Errorf("a baseline of 1: %+v", got)
	}
}

func TestParseTolerance(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"accuracy=0.2%": "accuracy 0.002 true", "val/loss=0.01": "val/loss 0.01 false", "1%": " 0.01 true", "a=b=2": "a=b 2 false",
		"a=100%": "a 1 true", "a=9e14": "a 9e+14 false",
		"acc= 2 %": "acc 0.02 true", "0.5": " 0.5 false",
	} {
		metric, tolerance, relative, err := ParseTolerance(text)
		if got := fmt.Sprint(metric, " ", tolerance, " ", relative); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"": "not a tolerance", "accuracy": "not a tolerance", "=1%": "names no metric", "accuracy=": "not a tolerance",
		"accuracy=-1": "not a tolerance", "accuracy=NaN": "not a tolerance", "a=1%%": "not a tolerance", "a=1 percent": "not a tolerance",
		"a=0": "say how much worse", "a=-0": "say how much worse", "0%": "say how much worse", "a=1e-400": "say how much worse",
		"a=1e-13%": "say how much worse", "a=1e300%": "at most 100%", "a=101%": "at most 100%", "a=1e400%": "at most 100%",
		"a=inf": "below 1e+15", "a=1e15": "below 1e+15", "a=1e400": "below 1e+15"} {
		if _, _, _, err := ParseTolerance(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", text, err, want)
		}
	}
}

func TestGoal(t *testing.T) {
	t.Parallel()
	for metric, want := range map[string]string{"accuracy": "true true", "val_loss": "false true", "eval/F1": "true true",
		"throughput": "false false", "glossary": "false false", "accuracy_loss": "false false", "test-error": "false true"} {
		maximize, known := Goal(metric)
		if got := fmt.Sprint(maximize, known); got != want {
			t.Errorf("%s: %s", metric, got)
		}
	}
}
