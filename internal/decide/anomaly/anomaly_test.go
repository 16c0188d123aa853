package anomaly

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/lane"
)

func scored(points []point) (scores []float64) {
	d := New()
	for _, p := range points {
		scores = append(scores, d.Score(p.Time, p.Value))
	}
	return scores
}

// gaussian scores like most alerts do: by standard deviations from the mean of the past.
func gaussian(points []point) (scores []float64) {
	mean, squares := 0.0, 0.0
	for i, p := range points {
		score := 0.0
		if squares > 0 {
			score = math.Abs(p.Value-mean) / math.Sqrt(squares/float64(i))
		}
		scores = append(scores, score)
		off := p.Value - mean
		mean += off / float64(i+1)
		squares += off * (p.Value - mean)
	}
	return scores
}

// The constants were tuned on the even kinds with seeds 1 to 4. The odd kinds are held out.
func TestScore_FindsWhatWasPlanted(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}[:lane.Pick(1, 4)]
	for half, name := range []string{"chosen on", "held back"} {
		set := made(func(kind int) bool { return kind%2 == half }, seeds...)
		var ours, plain [][]float64
		for _, s := range set {
			ours = append(ours, scored(s.points))
			plain = append(plain, gaussian(s.points))
		}
		least := map[string]float64{"standard": 60, "low-FP": 52, "low-FN": 65}
		for _, p := range profiles {
			figure, threshold := nab(set, ours, p)
			other, _ := nab(set, plain, p)
			t.Logf("%s, %s: %.1f at a threshold of %.3f; mean and deviation: %.1f", name, p.name, figure, threshold, other)
			if figure < least[p.name] || figure < other+5 {
				t.Errorf("%s, %s: %.1f; mean and deviation have %.1f", name, p.name, figure, other)
			}
			if p.name != "low-FN" && math.Abs(threshold-Alert) > 0.1 {
				t.Errorf("%s, %s: the best threshold is %.3f, and an alert begins at %.1f", name, p.name, threshold, Alert)
			}
		}
	}
}

func TestNAB_ScoresAsTheBenchmarkDoes(t *testing.T) {
	s := &labelled{points: make([]point, 1000), windows: [][2]int{{400, 449}, {700, 749}}}
	scores := func(at ...int) [][]float64 {
		list := make([]float64, 1000)
		for _, i := range at {
			list[i] = 1
		}
		return [][]float64{list}
	}
	for _, c := range []struct {
		name string
		at   []int
		want float64
	}{
		{"nothing", nil, 0},
		{"both windows at their first row", []int{400, 700}, 100},
		{"one window", []int{400}, 50},
		{"in the probation", []int{10, 400, 700}, 100},
		{"a false alarm before any window", []int{300, 400, 700}, 100 - 100*0.11/4},
		{"a false alarm right after a window", []int{400, 450, 700}, 100 + 100*0.11*sigmoid(1.0/49)/4},
		{"late", []int{449, 700}, 100 * (4 - 1 + sigmoid(-1.0/50)/sigmoid(-1)) / 4},
	} {
		if got, _ := nab([]*labelled{s}, scores(c.at...), profiles[0]); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %.3f, want %.3f", c.name, got, c.want)
		}
	}
}

func TestScore_UsesOnlyThePast(t *testing.T) {
	whole := made(func(kind int) bool { return kinds[kind].name == "latency" }, 5)[0].points
	other := slices.Clone(whole)
	for i := 1500; i < len(other); i++ {
		other[i].Value = other[i].Value*1e6 - 7
	}
	a, b := scored(whole), scored(other)
	if !slices.Equal(a[:1500], b[:1500]) || slices.Equal(a, b) {
		t.Error("scores depend on values that come later")
	}
}

func TestScore_DoesNotDependOnTheUnit(t *testing.T) {
	points := made(func(kind int) bool { return kinds[kind].name == "requests" }, 5)[0].points
	small := slices.Clone(points)
	for i := range small {
		small[i].Value *= 1.0 / (1 << 60)
	}
	a, b := scored(points), scored(small)
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-9 {
			t.Fatalf("row %d scores %g, and %g in a unit 2^60 times as large", i, a[i], b[i])
		}
	}
}

func TestDetector_MemoryDoesNotGrow(t *testing.T) {
	d, r := New(), rand.New(rand.NewPCG(1, 1))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 2*memory + 5000 {
		d.Score(at.Add(time.Duration(i)*time.Minute), math.Round(r.NormFloat64()))
	}
	if len(d.past) > 2*memory || len(d.level.ring) != memory || len(d.level.sorted) != memory ||
		len(d.peaks) > least+2*memory/restOf || len(d.season.hours[3]) > slotSize {
		t.Errorf("it holds %d rows, %d levels, %d peaks and %d values of an hour", len(d.past), len(d.level.ring),
			len(d.peaks), len(d.season.hours[3]))
	}
}

func TestScore_HandlesOddValues(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, value := range map[string]func(i int) float64{
		"constant":  func(int) float64 { return 7 },
		"zero":      func(int) float64 { return 0 },
		"no number": func(int) float64 { return math.NaN() },
		"infinite":  func(i int) float64 { return math.Inf(i%2*2 - 1) },
		"huge":      func(i int) float64 { return []float64{1e300, -1e300, math.MaxFloat64}[i%3] },
		"one huge": func(i int) float64 {
			if i == 500 {
				return 1e300
			}
			return 1
		},
		"tiny": func(i int) float64 { return math.SmallestNonzeroFloat64 * float64(i%2) },
	} {
		d := New()
		for i := range 800 {
			s := d.Score(at.Add(time.Duration(i)*-time.Second), value(i))
			if !(s >= 0 && s <= 1) {
				t.Fatalf("%s: row %d scores %g", name, i, s)
			}
			if s >= Alert && name != "one huge" {
				t.Errorf("%s: row %d is an alert", name, i)
			}
		}
	}
}

func TestReader_NamesFileAndLine(t *testing.T) {
	for _, c := range []struct{ name, text, fault string }{
		{"empty", "", "f.csv: the file is empty"},
		{"no rows", "timestamp,value\n", "f.csv: there is no row"},
		{"no header", "2026-01-01 00:00:00,1\n", "f.csv:1: the header"},
		{"words", "timestamp,value\n2026-01-01 00:00:00,1\n2026-01-01 00:05:00,many\n", `f.csv:3: the value "many"`},
		{"infinite", "timestamp,value\n2026-01-01 00:00:00,1e400\n", `f.csv:2: the value "1e400"`},
		{"no time", "timestamp,value\nyesterday,1\n", `f.csv:2: the timestamp "yesterday"`},
		{"too few cells", "timestamp,value\n2026-01-01 00:00:00\n", "f.csv:2: this is not a CSV row"},
		{"a quote", "timestamp,value\n2026-01-01 00:00:00,\"1\n", "f.csv:"},
	} {
		_, err := rowsOf(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", c.name, err, c.fault)
		}
	}
	rows, err := rowsOf("\ufeffother,Value,TIMESTAMP\nx,1,2026-01-01 00:00:00\nx,NaN,2026-01-01T00:05:00Z\n" +
		"x,,1767226200\nx,1e300,1767226500000\nx,-3,2026-01-01 00:00\n")
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for i, note := range []string{"", "f.csv:3: the value is missing", "f.csv:4: the value is missing",
		"f.csv:5: the value 1e300 counts as 1e+100", "f.csv:6: the time is before"} {
		if !strings.HasPrefix(rows[i].Note, note) || (note == "") != (rows[i].Note == "") {
			t.Errorf("row %d: %q, want %q", i, rows[i].Note, note)
		}
	}
	if rows[3].Time.Sub(rows[0].Time) != 15*time.Minute {
		t.Errorf("milliseconds are read as %s", rows[3].Time)
	}
	text := "timestamp,value\n"
	for i := range 30 {
		text += fmt.Sprintf("%d,1\n", 1767225600+300*i+i/20*86400)
	}
	if rows, err = rowsOf(text); err != nil || !strings.Contains(rows[20].Note, "f.csv:22: no row for 24h5m0s") {
		t.Errorf("a gap: %q, %v", rows[20].Note, err)
	}
}

func rowsOf(text string) (list []Row, err error) {
	r, err := NewReader("f.csv", strings.NewReader(text))
	for err == nil {
		var row Row
		if row, err = r.Next(); err == nil {
			list = append(list, row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}
