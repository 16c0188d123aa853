package core

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/internal/api/bound"
	"scrimp/internal/money"
	"scrimp/internal/quantity"
	"scrimp/internal/test/lane"
)

// extreme puts numbers at the ends of their bounds into events.
type extreme struct {
	rng *rand.Rand
	now time.Time
}

// of is a copy of b, some of whose numbers are extreme.
func (x extreme) of(b Body) Body {
	v := reflect.New(reflect.TypeOf(b)).Elem()
	v.Set(reflect.ValueOf(b))
	x.stretch(v, nil)
	return v.Interface().(Body) //nolint:forcetypeassert // it was one
}

// stretch goes through what v holds; k is what v itself counts.
func (x extreme) stretch(v reflect.Value, k *quantity.Kind) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		x.stretch(c.Elem(), k)
		v.Set(c)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			x.stretch(c.Index(i), k)
		}
		if !v.IsNil() {
			v.Set(c)
		}
	case v.Type() == reflect.TypeFor[map[string]float64]() && k != nil:
		c := map[string]float64{}
		for name := range v.Seq2() {
			c[name.String()] = x.float(k)
		}
		v.Set(reflect.ValueOf(c))
	case k != nil && v.CanSet():
		if x.rng.IntN(4) == 0 {
			x.set(v, k)
		}
	case v.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "-" && len(f.Index) == 1 {
				x.stretch(v.FieldByIndex(f.Index), bound.KindOf(v.Type(), name, f.Type))
			}
		}
	}
}

func (x extreme) set(v reflect.Value, k *quantity.Kind) {
	switch v.Interface().(type) {
	case time.Time:
		at := []time.Time{{}, x.now, x.now.Add(quantity.Decade), x.now.Add(-1), x.now.Add(1), time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)}
		v.Set(reflect.ValueOf(at[x.rng.IntN(len(at))]))
		return
	case money.Amount:
		a, _ := money.Estimated(x.float(k))
		if x.rng.IntN(3) == 0 {
			a = money.Picos(1)
		}
		v.Set(reflect.ValueOf(a))
		return
	case money.Rate:
		v.SetInt([]int64{0, 1, int64(quantity.Price.Most * 1e12)}[x.rng.IntN(3)])
		return
	}
	switch {
	case v.CanInt():
		v.SetInt(quantity.Int(x.float(k)))
	case v.CanUint():
		v.SetUint(uint64(max(0, x.float(k))))
	case v.CanFloat():
		v.SetFloat(x.float(k))
	}
}

// float is a number within the bounds of k, at their ends more often than not.
func (x extreme) float(k *quantity.Kind) float64 {
	ends := []float64{k.Least, k.Most, k.Most / 2, 0, 1, math.SmallestNonzeroFloat64, k.Most * math.Exp(-40*x.rng.Float64())}
	f := ends[x.rng.IntN(len(ends))]
	return min(max(f, k.Least), k.Most)
}

// Whatever numbers within their bounds come, in whatever order: a step takes them in so many turns at most, sums agree, and
// the log and the snapshot give the state back.
func TestAStepTakesEveryExtreme(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(2_000, 100_000)) {
		nonsense(t, seed, 30, true)
		if t.Failed() {
			t.Fatalf("repeat: nonsense(t, %d, 30, true)", seed)
		}
	}
}
