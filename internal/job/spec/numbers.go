package spec

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/lib/size"
)

// typeKinds maps number types to their kinds.
var typeKinds = map[reflect.Type]*quantity.Kind{
	amountType: quantity.Dollars, rateType: quantity.Price, bytesType: quantity.Bytes,
	reflect.TypeFor[Duration](): quantity.Span, reflect.TypeFor[Deadline](): quantity.Time,
	reflect.TypeFor[Range](): quantity.Count, reflect.TypeFor[Sizes](): quantity.Bytes,
}

// kindOf returns the kind of number in a field, or nil.
func kindOf(t reflect.Type, tag reflect.StructTag) *quantity.Kind {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if k := typeKinds[t]; k != nil {
		return k
	}
	return quantity.Named[tag.Get("as")]
}

// most returns the upper bound of a field: its own, or that of its kind.
func most(k *quantity.Kind, tag reflect.StructTag) float64 {
	if own, err := strconv.ParseFloat(tag.Get("most"), 64); err == nil {
		return own
	}
	return k.Most
}

// number checks a number's bounds. values reports invalid and negative ones.
func (c *checker) number(field string, v reflect.Value, tag reflect.StructTag) {
	k := kindOf(v.Type(), tag)
	if k == nil || k == quantity.Time { // limits compares it with now
		return
	}
	n := 0.0
	switch x := v.Interface().(type) {
	case money.Amount:
		n = x.Float()
	case money.Rate:
		n = x.Float()
	case Range:
		n = float64(max(x.Min, x.Max))
	case Sizes:
		n = float64(max(x.Min, x.Max))
	default:
		if n = math.Inf(1); v.CanFloat() {
			n = v.Float()
		} else if v.CanInt() && v.Int() <= quantity.Int(most(k, tag)) {
			n = float64(min(v.Int(), quantity.Int(most(k, tag))))
		}
	}
	finite := !v.CanFloat() || n-n == 0
	c.wrong(finite && n > most(k, tag), field, "is above "+mostOf(k, tag), "give at most that")
	c.wrong(finite && k.Least < 0 && n < k.Least, field, fmt.Sprintf("is below %g", k.Least), "give at least that")
}

// mostOf formats the upper bound of a field as in a job file.
func mostOf(k *quantity.Kind, tag reflect.StructTag) string {
	switch k {
	case quantity.Span:
		return fmt.Sprintf("%.0fh, which are ten years", time.Duration(k.Most).Hours())
	case quantity.Bytes:
		return fmt.Sprintf("%dTiB", int64(k.Most)/int64(size.TiB))
	case quantity.Dollars, quantity.Price:
		return fmt.Sprintf("$%.0f", k.Most)
	case quantity.Metric:
		return fmt.Sprintf("%g", k.Most)
	}
	return fmt.Sprintf("%.0f", most(k, tag))
}

// atMost describes a field's bounds in the schema in words, because its form may be text.
func atMost(t reflect.Type, tag reflect.StructTag) string {
	switch k := kindOf(t, tag); k {
	case nil, quantity.Fraction, quantity.Exit:
		return ""
	case quantity.Time:
		return " At most ten years away."
	case quantity.Metric:
		return fmt.Sprintf(" From %g to %g.", k.Least, k.Most)
	default:
		return " At most " + mostOf(k, tag) + "."
	}
}
