// Package convert converts values of the program to values of the wire and back. The two types of a pair have the
// same fields in the same order with the same JSON names. The first use of a pair checks that, and a test checks all
// pairs, so a change inside the program cannot silently change the wire.
package convert

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// To returns v as a T: a type in Pairs, a pointer to one or a list of them. It shares common parts such as lists of
// text. It panics on any other type, which is a bug of ours.
func To[T any](v any) T {
	var out T
	from, to := reflect.ValueOf(v), reflect.ValueOf(&out).Elem()
	c, err := copierOf(to.Type(), from.Type())
	if err != nil {
		panic(err)
	}
	c(to, from)
	return out
}

// A copier sets its first argument to the converted second one.
type copier func(to, from reflect.Value)

type pair struct{ to, from reflect.Type }

// copiers caches the copiers by pair: types do not change.
var copiers sync.Map

func copierOf(to, from reflect.Type) (copier, error) {
	if c, made := copiers.Load(pair{to, from}); made {
		return c.(copier), nil
	}
	c, err := build(to, from)
	if err == nil {
		copiers.Store(pair{to, from}, c)
	}
	return c, err
}

func build(to, from reflect.Type) (copier, error) {
	if to == from {
		return func(to, from reflect.Value) { to.Set(from) }, nil
	}
	if c, special := specials[pair{to, from}]; special {
		return c, nil
	}
	if to.Kind() != from.Kind() {
		return nil, fmt.Errorf("convert %v to %v: one is a %v, the other a %v", from, to, from.Kind(), to.Kind())
	}
	switch to.Kind() {
	case reflect.Struct:
		return buildStruct(to, from)
	case reflect.Pointer:
		return buildPointer(to, from)
	case reflect.Slice:
		return buildSlice(to, from)
	case reflect.Map:
		return buildMap(to, from)
	case reflect.Array:
		if to.Elem() == from.Elem() && to.Len() == from.Len() {
			return func(to, from reflect.Value) { to.Set(from.Convert(to.Type())) }, nil
		}
		return nil, fmt.Errorf("convert %v to %v: say how in specials", from, to)
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return func(to, from reflect.Value) { to.Set(from.Convert(to.Type())) }, nil
	default:
		return nil, fmt.Errorf("convert %v to %v: say how in specials", from, to)
	}
}

func buildStruct(to, from reflect.Type) (copier, error) {
	a, b := fields(to), fields(from)
	if len(a) != len(b) {
		return nil, fmt.Errorf("convert %v to %v: %d fields go over the wire, and %d", from, to, len(b), len(a))
	}
	type step struct {
		to, from int
		copier   copier
	}
	steps := make([]step, 0, len(a))
	for i := range a {
		if a[i].Anonymous != b[i].Anonymous || a[i].Tag.Get("json") != b[i].Tag.Get("json") ||
			!a[i].Anonymous && a[i].Name != b[i].Name {
			return nil, fmt.Errorf("convert %v to %v: field %s stands where %s does, or has another name in JSON", from, to,
				b[i].Name, a[i].Name)
		}
		c, err := copierOf(a[i].Type, b[i].Type)
		if err != nil {
			return nil, fmt.Errorf("field %s of %v: %w", a[i].Name, to, err)
		}
		steps = append(steps, step{a[i].Index[0], b[i].Index[0], c})
	}
	return func(to, from reflect.Value) {
		for _, s := range steps {
			s.copier(to.Field(s.to), from.Field(s.from))
		}
	}, nil
}

// fields returns the fields of t on the wire.
func fields(t reflect.Type) (list []reflect.StructField) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			list = append(list, f)
		}
	}
	return list
}

func buildPointer(to, from reflect.Type) (copier, error) {
	c, err := copierOf(to.Elem(), from.Elem())
	return func(to, from reflect.Value) {
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			c(to.Elem(), from.Elem())
		}
	}, err
}

// buildSlice keeps nil and empty slices apart: nil is null in JSON.
func buildSlice(to, from reflect.Type) (copier, error) {
	c, err := copierOf(to.Elem(), from.Elem())
	return func(to, from reflect.Value) {
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			c(to.Index(i), from.Index(i))
		}
	}, err
}

func buildMap(to, from reflect.Type) (copier, error) {
	key, err := copierOf(to.Key(), from.Key())
	if err != nil {
		return nil, err
	}
	value, err := copierOf(to.Elem(), from.Elem())
	return func(to, from reflect.Value) {
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
		for k, v := range from.Seq2() {
			newKey, newValue := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
			key(newKey, k)
			value(newValue, v)
			to.SetMapIndex(newKey, newValue)
		}
	}, err
}
