package estimate

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"sort"
	"strings"
	"testing"

	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/residual"
	"scrimp/internal/estimate/runs"
)

var (
	nested = flag.Bool("nested", false,
		"settle everything anew with the scored part left out, and print the errors by kind and source")
	parts = flag.Int("parts", 2, "parts that -nested leaves out in turn")
	salt  = flag.String("salt", "", "parts the groups another way")
)

func partOf(key string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(*salt))
	h.Write([]byte(key))
	return int(h.Sum32() >> 7 % uint32(n))
}

// tally collects the errors of one kind.
type tally struct {
	e, bias []float64
	in      int
}

func (t *tally) add(value, mid, half, y float64) {
	t.e = append(t.e, 100*math.Abs(math.Exp(value-y)-1))
	t.bias = append(t.bias, value-y)
	if math.Abs(mid-y) <= half {
		t.in++
	}
}

func (t *tally) holds() float64 { return 100 * float64(t.in) / float64(len(t.e)) }

func (t *tally) String() string {
	return fmt.Sprintf("%6.1f / %5.1f  %+5.2f  %3.0f %%", meanOf(t.e), quantile(t.e, 0.5), quantile(t.bias, 0.5),
		t.holds())
}

// tallies holds errors by kind, for a known stack and for an unknown source.
type tallies [2]map[string]*tally

func (s tallies) add(i int, kind string, value, mid, half, y float64) {
	if s[i][kind] == nil {
		s[i][kind] = &tally{}
	}
	s[i][kind].add(value, mid, half, y)
}

// Values fitted on one part of the groups must hold for the other: constants, shares, distances and noise are fitted
// again from neutral values without the scored part, which is then tested as in TestBench.
func TestSettledOnOnePart_HoldsForTheOther(t *testing.T) {
	if !*nested {
		t.Skip("settling anew takes a minute: -nested")
	}
	was := physics.Fitted
	defer func() { physics.Fitted = was }()
	all := newBench(t)
	total := tallies{map[string]*tally{}, map[string]*tally{}}
	const whole = " all"
	once := map[string]*tally{}
	var lines []string
	for part := range *parts {
		var rest []runs.Row
		for _, r := range all.rows {
			if partOf(stackKey(r), *parts) != part {
				rest = append(rest, r)
			}
		}
		c, k := settle(rest, all.chips, *steps, telling)
		physics.Fitted = c
		own := tallies{map[string]*tally{}, map[string]*tally{}}
		b := newBench(t)
		foretell(t, b, k, part, func(i int, r runs.Row, value, mid, half, y float64) {
			own.add(i, whole, value, mid, half, y)
			for _, kind := range []string{whole, r.Family, r.Family + ", " + short(r.Source)} {
				total.add(i, kind, value, mid, half, y)
			}
		})
		physics.Fitted = was
		for kind, sum := range profiled(t, b, k, part) {
			if once[kind] == nil {
				once[kind] = &tally{}
			}
			once[kind].e, once[kind].bias, once[kind].in = append(once[kind].e, sum.e...),
				append(once[kind].bias, sum.bias...), once[kind].in+sum.in
		}
		lines = append(lines, fmt.Sprintf("%-74s %3d  %s   %s", fmt.Sprintf("part %d of %d", part+1, *parts),
			len(own[0][whole].e), own[0][whole], own[1][whole]))
		for _, bad := range []struct {
			what     string
			got, max float64
		}{{"known stack, MAPE", meanOf(own[0][whole].e), 20},
			{"known stack, median", quantile(own[0][whole].e, 0.5), 11},
			{"unknown source, median", quantile(own[1][whole].e, 0.5), 25}} {
			if bad.got > bad.max {
				t.Errorf("part %d, settled on the others: %s %.1f, to reach %g", part+1, bad.what, bad.got, bad.max)
			}
		}
	}
	var kinds []string
	for kind := range total[0] {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	for _, kind := range kinds {
		lines = append(lines, fmt.Sprintf("%-74s %3d  %s   %s", strings.TrimSpace(kind), len(total[0][kind].e),
			total[0][kind], total[1][kind]))
	}
	for _, p := range []struct {
		kind string
		most float64
	}{{"one profiled row, other counts: CNN", 5}, {"one profiled row, other counts: transformer <= 8", 10},
		{"one profiled row, other counts: transformer > 8", 7}, {"one profiled row, other sequence length", 12}} {
		if o := once[p.kind]; o != nil {
			lines = append(lines, fmt.Sprintf("%-74s %3d  %s", p.kind, len(o.e), o))
			if meanOf(o.e) > p.most {
				t.Errorf("settled on the others, %s: MAPE %.1f, to reach %g", p.kind, meanOf(o.e), p.most)
			}
		}
	}
	if h := total[0][whole].holds(); h < 75 || h > 90 {
		t.Errorf("the interval of a known stack holds %.0f %%", h)
	}
	fmt.Fprintf(os.Stdout, "\n%-76s %-34s %s\n%-74s %3s  %s\n%s\n", "SETTLED ON THE OTHER PARTS ONLY", "KNOWN STACK",
		"UNKNOWN SOURCE", "", "n",
		"MAPE / median   bias  holds     MAPE / median   bias  holds", strings.Join(lines, "\n"))
}

// foretell computes, for every asked row of a part, the value, the middle and half of its interval, with its stack (0)
// and its source (1) left out.
func foretell(t *testing.T, b *bench, k *residual.Kernel, part int,
	to func(i int, r runs.Row, value, mid, half, y float64)) {
	t.Helper()
	l := k.Learn(b.points)
	x, ok := k.Examine(b.points)
	if !ok {
		t.Fatal("the likeness of the runs is no likeness")
	}
	for j, w := range []struct {
		key   func(runs.Row) string
		widen residual.Widths
	}{{stackKey, l.Near}, {sourceKey, l.Afar}} {
		m, sd := x.LeftOut(groups(b.rows, w.key))
		for i, r := range b.rows {
			if b.asked(i) && partOf(stackKey(r), *parts) == part {
				half := math.Min(math.Max(floor, w.widen.Of(b.points[i].Name[cFamily])*sd[i]), widest)
				to(j, r, m[i]-shade(half), m[i], half, b.points[i].Y)
			}
		}
	}
}

// profiled returns the errors of a part's rows if one row of their kind is known.
func profiled(t *testing.T, b *bench, k *residual.Kernel, part int) map[string]*tally {
	t.Helper()
	x, ok := k.Examine(b.points)
	if !ok {
		t.Fatal("the likeness of the runs is no likeness")
	}
	once := k.Learn(b.points).Once
	out := map[string]*tally{}
	for _, seq := range []bool{false, true} {
		_, asked := profileGroups(b.rows, seq)
		m, sd := x.LeftOut(asked)
		for i, r := range b.rows {
			if math.IsNaN(m[i]) || partOf(stackKey(r), *parts) != part {
				continue
			}
			kind := ""
			switch {
			case seq:
				kind = "one profiled row, other sequence length"
			case strings.HasPrefix(r.Family, "cnn"):
				kind = "one profiled row, other counts: CNN"
			case strings.HasPrefix(r.Family, "transformer") && r.N <= 8:
				kind = "one profiled row, other counts: transformer <= 8"
			case strings.HasPrefix(r.Family, "transformer"):
				kind = "one profiled row, other counts: transformer > 8"
			default:
				continue
			}
			if out[kind] == nil {
				out[kind] = &tally{}
			}
			half := math.Max(floor, once.Of(b.points[i].Name[cFamily])*sd[i])
			out[kind].add(m[i]-shade(half), m[i], half, b.points[i].Y)
		}
	}
	return out
}

// short shortens a source to a table's width.
func short(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "github.com/")
	if i := strings.Index(s, "/blob/"); i > 0 {
		tail := strings.Split(strings.TrimSuffix(s[i+len("/blob/"):], "/README.md"), "/")
		s = s[:i] + " " + tail[len(tail)-1]
	}
	return s[:min(len(s), 52)]
}
