package limits

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Clip cuts what v points to down to the bounds of its fields: an agent passes on what its program reports, and the
// server would refuse a report above the bounds as a whole. Of a map, the first keys in order stay.
func Clip(v any) {
	ClipNumbers(v, time.Now())
	clip(reflect.ValueOf(v).Elem(), Standard)
}

// ClipNumbers removes the numbers that are out of bounds from what v points to, as if they were missing, and returns
// their fields. A time becomes now. A price that is too high becomes the highest, so that the core terminates the
// machine. A metric becomes broken, like a number that is not finite.
func ClipNumbers(v any, now time.Time) (fields []string) {
	w := walker{now: now, clips: true}
	w.walk(reflect.ValueOf(v).Elem(), nil)
	for _, e := range w.wrong {
		fields = append(fields, e.Field)
	}
	return fields
}

// Clipped is ClipNumbers for a value that is not a pointer.
func Clipped[T any](v T, now time.Time) (T, []string) {
	if Numbers(v, now) == nil {
		return v, nil
	}
	p := reflect.New(reflect.TypeOf(v)) // v may be an interface
	p.Elem().Set(reflect.ValueOf(v))
	fields := ClipNumbers(p.Interface(), now)
	return p.Elem().Interface().(T), fields //nolint:forcetypeassert // it is the type of v
}

func clip(v reflect.Value, b Bound) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clip(v.Elem(), b)
		}
	case reflect.String:
		if v.CanSet() && (v.Len() > b.Bytes/2) { // it may be longer in JSON
			v.SetString(Cut(v.String(), b.Bytes))
		}
	case reflect.Slice:
		if v.Len() > b.Items && v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(v.Slice(0, b.Items))
		}
		for i := range v.Len() {
			clip(v.Index(i), b)
		}
	case reflect.Map:
		clipMap(v, b)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				clip(v.Field(i), Of(v.Type(), name))
			}
		}
	}
}

// clipMap clips a copy of the map, because others may read the map itself.
func clipMap(v reflect.Value, b Bound) {
	m, ok := v.Interface().(map[string]float64) // a report has no other
	if !ok {
		return
	}
	long := func(name string, _ float64) bool { return jsonLength(name) > b.Key }
	if len(m) <= b.Items && !slices.ContainsFunc(slices.Collect(maps.Keys(m)), func(k string) bool { return long(k, 0) }) {
		return
	}
	m = maps.Clone(m)
	maps.DeleteFunc(m, long)
	for _, name := range slices.Sorted(maps.Keys(m))[min(b.Items, len(m)):] {
		delete(m, name)
	}
	v.Set(reflect.ValueOf(m))
}

// Cut returns the longest prefix of a text that takes at most the given number of bytes in JSON.
func Cut(text string, most int) string {
	if jsonLength(text) <= most {
		return text
	}
	const end = "…"
	left := most - len(end)
	for i, r := range text {
		if left -= sizeOf(r); left < 0 {
			return text[:i] + end
		}
	}
	return text
}

// jsonLength returns the length of a text in JSON, in bytes.
func jsonLength(text string) (n int) {
	for _, r := range text {
		n += sizeOf(r)
	}
	return n
}

func sizeOf(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return 6
	}
	return utf8.RuneLen(r)
}
