package limits

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/api"
)

// Numbers checks every number of a value against the bounds of its kind, with times relative to now, because events
// are kept for ever. It returns an *ExcessError.
func Numbers(v any, now time.Time) error {
	w := walker{now: now}
	w.walk(reflect.ValueOf(v), nil)
	if len(w.wrong) == 0 {
		return nil
	}
	return w.wrong[0]
}

// walker visits the numbers of a value.
type walker struct {
	now   time.Time
	clips bool // removes what is out of bounds
	wrong []*ExcessError
}

// within adds a field to the paths of the errors found below it, from the inside out.
func (w *walker) within(name string, from int) {
	for _, e := range w.wrong[from:] {
		dot := "."
		if e.Field == "" || e.Field[0] == '[' {
			dot = ""
		}
		e.Field = name + dot + e.Field
	}
}

// walk visits v, whose field has the given kind or which contains numbers in its own fields.
func (w *walker) walk(v reflect.Value, k *quantity.Kind) {
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		w.pointer(v, k)
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		w.list(v, k)
	case v.Kind() == reflect.Map:
		w.dictionary(v, k)
	case k != nil:
		if !inBounds(k, v, w.now) {
			w.wrong = append(w.wrong, &ExcessError{Kind: k})
			if w.clips {
				w.clip(v, k)
			}
		}
	case v.Kind() == reflect.Struct:
		w.fields(v)
	}
}

// list walks the entries of a slice or an array, which are all of one kind.
func (w *walker) list(v reflect.Value, k *quantity.Kind) {
	for i := range v.Len() {
		before := len(w.wrong)
		if w.walk(v.Index(i), k); len(w.wrong) > before {
			w.within(fmt.Sprintf("[%d]", i), before)
		}
	}
}

// fields walks the fields of a struct, each of a kind of its own.
func (w *walker) fields(v reflect.Value) {
	for _, p := range partsOf(v.Type()) {
		before := len(w.wrong)
		if w.walk(v.Field(p.at), p.kind); len(w.wrong) > before && p.name != "" {
			if w.clips {
				markBroken(v, p.name, w.wrong[before:])
			}
			w.within(p.name, before)
		}
	}
}

func (w *walker) pointer(v reflect.Value, k *quantity.Kind) {
	if v.IsNil() {
		return
	}
	before := len(w.wrong)
	w.walk(v.Elem(), k)
	if w.clips && k != nil && len(w.wrong) > before && k != quantity.Time && v.CanSet() {
		v.SetZero() // unknown
	}
}

// markBroken marks metrics that were removed from a field.
func markBroken(v reflect.Value, field string, wrong []*ExcessError) {
	switch s := v.Addr().Interface().(type) {
	case *api.Value:
		s.Broken = s.Broken || field == "value"
	case *api.Step:
		for _, e := range wrong {
			if field == "metrics" && !slices.Contains(s.Broken, e.Field) {
				s.Broken = append(slices.Clip(s.Broken), e.Field)
			}
		}
	}
}

// dictionary visits a map in order of keys, and clips a copy, because others may read the map itself.
func (w *walker) dictionary(v reflect.Value, k *quantity.Kind) {
	if m, ok := v.Interface().(map[string]float64); ok && k != nil {
		var out []string
		for name, value := range m {
			if !k.Allows(value) {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		for _, name := range out {
			w.wrong = append(w.wrong, &ExcessError{Field: name, Kind: k})
		}
		if w.clips && len(out) > 0 {
			m = maps.Clone(m)
			maps.DeleteFunc(m, func(_ string, value float64) bool { return !k.Allows(value) })
			v.Set(reflect.ValueOf(m))
		}
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		before := len(w.wrong)
		if w.walk(v.MapIndex(key), k); len(w.wrong) > before {
			w.within(key.String(), before)
		}
	}
}

func (w *walker) clip(v reflect.Value, k *quantity.Kind) {
	switch {
	case !v.CanSet():
	case k == quantity.Time:
		v.Set(reflect.ValueOf(w.now.UTC()))
	case k == quantity.Price && v.Int() > 0:
		v.SetInt(int64(highest))
	default:
		v.SetZero()
	}
}

// inBounds reports whether a number is within the bounds of its kind.
func inBounds(k *quantity.Kind, v reflect.Value, now time.Time) bool {
	switch {
	case v.CanInt() && v.Type() != rateType:
		return k.AllowsInt(v.Int())
	case v.CanUint():
		return v.Uint() <= uint64(k.Most)
	case v.CanFloat():
		return k.Allows(v.Float())
	}
	switch x := v.Interface().(type) {
	case money.Rate:
		return k.Allows(x.Float())
	case money.Amount:
		return x.IsZero() || k.Allows(x.Float())
	case time.Time:
		return quantity.AllowsTime(x, now)
	}
	return true // its parts have kinds of their own
}

// highest is the highest allowed price.
var highest, _ = money.ParseRate(strconv.FormatFloat(quantity.Price.Most, 'f', -1, 64))

var rateType = reflect.TypeFor[money.Rate]()

// number checks JSON text of type t against the bounds of a kind. Text that does not decode passes: the decoder
// reports it.
func number(k *quantity.Kind, t reflect.Type, text []byte) error {
	if k == nil {
		return nil
	}
	v := reflect.New(t)
	if u, ok := v.Interface().(encoding.TextUnmarshaler); ok && len(text) > 1 && text[0] == '"' {
		if u.UnmarshalText(text[1:len(text)-1]) == nil && !inBounds(k, v.Elem(), time.Now()) {
			return &ExcessError{Kind: k}
		}
		return nil
	}
	if f, err := parseFloat(text); isNumber(t) && err == nil && !k.Allows(f) {
		return &ExcessError{Kind: k}
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); isNumber(t) && err == nil && !k.AllowsInt(n) {
		return &ExcessError{Kind: k} // a float is too coarse near some bounds (2^53)
	}
	return nil
}
