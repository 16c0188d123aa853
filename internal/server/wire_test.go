package server

import (
	"reflect"
	"slices"
	"testing"

	"scrimp/internal/decide/core"
)

// wirePackages are the packages of wire types; types of the standard library encode themselves.
var wirePackages = []string{"scrimp/client", "scrimp/money", "scrimp/internal/wire/api"}

// inner returns the program's internal types within t.
func inner(t reflect.Type, seen map[reflect.Type]bool) (found []reflect.Type) {
	if seen[t] {
		return nil
	}
	seen[t] = true
	if p := t.PkgPath(); p != "" && p != "time" && p != "encoding/json" && !slices.Contains(wirePackages, p) {
		found = append(found, t)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return append(found, inner(t.Elem(), seen)...)
	case reflect.Map:
		return append(append(found, inner(t.Key(), seen)...), inner(t.Elem(), seen)...)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() {
				found = append(found, inner(f.Type, seen)...)
			}
		}
	default:
	}
	return found
}

// Requests and responses consist of wire types only.
func TestWire_ContainsNoInternalTypes(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	for _, r := range table() {
		for _, v := range []any{r.In, r.Out} {
			if v == nil {
				continue
			}
			for _, bad := range inner(reflect.TypeOf(v), seen) {
				t.Errorf("%s %s: %v is a type of the program's inside", r.Method, r.Path, bad)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d types were looked at", len(seen))
	}
	if len(inner(reflect.TypeFor[map[string][]*core.Terms](), map[reflect.Type]bool{})) == 0 {
		t.Error("the test finds no internal type")
	}
}
