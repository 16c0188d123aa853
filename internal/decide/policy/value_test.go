package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// A batch of values gives the same result as the same values one by one.
func TestValues_BatchEqualsOneByOne(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := Metric{Name: "loss", Maximize: rng.IntN(2) == 0, Target: rng.NormFloat64() * 2, HasGoal: rng.IntN(2) == 0,
			Patience: rng.Int64N(8), MinDelta: float64(rng.IntN(3)) / 10}
		var list Values
		for step := int64(1); step < 12; step++ {
			list = append(list, Value{Step: step, Value: rng.NormFloat64(), Broken: rng.IntN(20) == 0})
		}
		together, stop := Seen{}.Judge(m, list)
		var alone Seen
		first := Stop("")
		for _, v := range list {
			var why Stop
			if alone, why = alone.Judge(m, Values{v}); first == "" {
				first = why
			}
		}
		if together != alone || stop != first {
			t.Fatalf("seed %d: together %+v and %q, one by one %+v and %q, of %+v", seed, together, stop, alone, first, list)
		}
	}
}

// Values reported once per epoch or ten times a second take few bytes.
func TestValues_TakeFewBytesInTheLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	begun := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		every time.Duration
		value func() float64
		epoch func(n int) float64
		most  float64 // bytes per value
	}{
		{"four digits, twice a second", 500 * time.Millisecond, func() float64 { return math.Round(rng.Float64()*1e4) / 1e4 }, func(int) float64 { return 0 }, 14},
		{"a tensor's 32 bits, each second", time.Second, func() float64 { return float64(rng.Float32()) }, func(int) float64 { return 0 }, 20},
		{"64 bits, each second", time.Second, rng.Float64, func(int) float64 { return 0 }, 27},
		{"four digits, each epoch of ten minutes", 10 * time.Minute, func() float64 { return math.Round(rng.Float64()*1e4) / 1e4 }, func(n int) float64 { return float64(n) }, 22},
	} {
		var list Values
		for n := range 300 {
			jitter := time.Duration(rng.Int64N(int64(10 * time.Millisecond)))
			list = append(list, Value{At: begun.Add(time.Duration(n)*c.every + jitter), Step: int64(n), Epoch: c.epoch(n), Value: c.value()})
		}
		b, err := json.Marshal(list)
		must.Do(t, err)
		each := float64(len(b)) / float64(len(list))
		t.Logf("%s: %.1f bytes a value", c.name, each)
		if each > c.most {
			t.Errorf("%s: %.1f bytes a value, want at most %v", c.name, each, c.most)
		}
	}
}

// FuzzValues writes values and reads them back: only their times are rounded.
func FuzzValues(f *testing.F) {
	f.Add(int64(1772323200123), int64(5), 2.31, 0.5, int64(-70), int64(1), 1e-300, 0.5, false)
	f.Add(int64(0), int64(-1), float64(float32(0.1)), 0.0, int64(9), int64(math.MaxInt64), 1e9, 1.0, true)
	f.Fuzz(func(t *testing.T, at, step int64, value, epoch float64, later, steps int64, second, then float64, broken bool) {
		for _, x := range []float64{value, epoch, second, then} {
			if x-x != 0 {
				t.Skip()
			}
		}
		begun := time.UnixMilli(at % 1e13).UTC()
		list := Values{{At: begun, Step: step, Value: value, Epoch: epoch + 0},
			// adding 0 avoids minus zero
			{At: begun.Add(time.Duration(later%1e12) * time.Millisecond), Step: steps, Value: second, Epoch: then + 0}}
		if broken {
			list[1].Value, list[1].Broken = 0, true
		}
		b, err := json.Marshal(list)
		must.Do(t, err)
		var again Values
		must.Do(t, json.Unmarshal(b, &again))
		want := slices.Clone(list)
		for i := range want {
			ms := want[i].At.UnixMilli()
			want[i].At = time.UnixMilli(ms / 10 * 10).UTC()
		}
		if fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s is read as %+v, want %+v", b, again, want)
		}
	})
}

func TestValues_RefuseInvalidOnes(t *testing.T) {
	for _, text := range []string{`5`, `"1 2"`, `"1 2 x"`, `"1 2 NaN"`, `"1 2 3 4 5"`, `"1 2 Inf"`, `"x 2 3"`, `"1 2 3,"`} {
		var v Values
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s is read as %+v", text, v)
		}
	}
}
