package convert

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/money"
)

// fill sets v to a random value of its type: about a third of the optional parts are missing.
func fill(v reflect.Value, r *rand.Rand, deep int) {
	missing := r.IntN(3) == 0 || deep > 8
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		if !missing {
			*x = time.Unix(r.Int64N(2e9), r.Int64N(1e9)).UTC()
		}
		return
	case *money.Amount:
		*x = money.Picos(r.Int64()).Sub(money.Picos(r.Int64()))
		return
	case *money.Rate:
		*x = money.Rate(r.Int64N(1e15))
		return
	case *identity.Role:
		*x = identity.Role(r.IntN(int(identity.Admin) + 1))
		return
	case *client.Role:
		*x = []client.Role{client.Nobody, client.Viewer, client.Submitter, client.Operator, client.Admin}[r.IntN(5)]
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range fields(v.Type()) {
			fill(v.FieldByIndex(f.Index), r, deep+1)
		}
	case reflect.Pointer:
		if !missing {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), r, deep+1)
		}
	case reflect.Slice:
		if !missing {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
			for i := range v.Len() {
				fill(v.Index(i), r, deep+1)
			}
		}
	case reflect.Map:
		if !missing {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(key, r, deep+1)
				fill(value, r, deep+1)
				v.SetMapIndex(key, value)
			}
		}
	default:
		fillPlain(v, r, missing)
	}
}

func fillPlain(v reflect.Value, r *rand.Rand, missing bool) {
	switch {
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(r.Uint64() & 0xff)
		}
	case missing:
	case v.Kind() == reflect.String:
		v.SetString([]string{"a", "us-a", "ü \"x\"", "spot"}[r.IntN(4)])
	case v.Kind() == reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case v.CanInt():
		v.SetInt(r.Int64N(1 << 40))
	case v.CanUint():
		v.SetUint(r.Uint64N(1 << 40))
	case v.CanFloat():
		v.SetFloat(r.NormFloat64() * 1e3)
	default:
		panic("the test fills no " + v.Type().String())
	}
}

// The JSON of a converted value equals that of the original byte for byte, in both directions.
func TestTo_KeepsTheJSON(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range Pairs {
		there, err := copierOf(p[0], p[1])
		if err != nil {
			t.Error(err)
			continue
		}
		back, err := copierOf(p[1], p[0])
		if err != nil {
			t.Error(err)
			continue
		}
		for range 200 {
			inside, wire, again := reflect.New(p[1]).Elem(), reflect.New(p[0]).Elem(), reflect.New(p[1]).Elem()
			fill(inside, r, 0)
			there(wire, inside)
			back(again, wire)
			texts := make([]string, 3)
			for i, v := range []reflect.Value{inside, wire, again} {
				text, err := json.Marshal(v.Interface())
				if err != nil {
					t.Fatalf("%v: %v", p[1], err)
				}
				texts[i] = string(text)
			}
			if texts[0] != texts[1] || texts[1] != texts[2] {
				t.Fatalf("%v\ninside %s\nwire   %s\nback   %s", p[1], texts[0], texts[1], texts[2])
			}
			read := reflect.New(p[0])
			if err := json.Unmarshal([]byte(texts[1]), read.Interface()); err != nil {
				t.Fatalf("%v: what was written is not read: %v", p[0], err)
			}
		}
	}
}

// Types that no longer match are refused before anything is lost.
func TestTo_RefusesTypesThatDiffer(t *testing.T) {
	t.Parallel()
	type inside struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	for name, c := range map[string]struct {
		wire any
		says string
	}{
		"a field is missing": {struct {
			A int `json:"a"`
		}{}, "2 fields go over the wire, and 1"},
		"a name differs in JSON": {struct {
			A int    `json:"a"`
			B string `json:"b,omitempty"`
		}{}, "field B"},
		"the order differs": {struct {
			B string `json:"b"`
			A int    `json:"a"`
		}{}, "field A"},
		"a type differs": {struct {
			A int `json:"a"`
			B int `json:"b"`
		}{}, "one is a string"},
	} {
		if _, err := copierOf(reflect.TypeOf(c.wire), reflect.TypeFor[inside]()); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", name, err, c.says)
		}
	}
}

// nil and an empty list stay apart: nil is null.
func TestTo_KeepsNilAndEmptyApart(t *testing.T) {
	t.Parallel()
	none, empty := To[[]client.Grant]([]identity.Grant(nil)), To[[]client.Grant]([]identity.Grant{})
	if none != nil || empty == nil {
		t.Errorf("none became %#v, empty %#v", none, empty)
	}
}
