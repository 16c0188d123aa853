// Package modelfile reads the shape of a model from a Hugging Face config.json, an ONNX file, or a line of text. It
// takes bytes and reads no file.
package modelfile

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"scrimp/internal/estimate/shape"
)

// Bad is an unreadable model: the file, the field, and the fix.
type Bad struct{ File, Field, Why, Fix string }

func (e *Bad) Error() string {
	s := e.File
	if e.Field != "" {
		s += ", " + e.Field
	}
	s += ": " + e.Why
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Read distinguishes a config.json from an ONNX file by its content.
func Read(name string, content []byte) (shape.Model, error) {
	trimmed := bytes.TrimLeft(content, "\ufeff \t\r\n")
	switch {
	case len(trimmed) == 0:
		return shape.Model{}, &Bad{File: name, Why: "is empty", Fix: forms}
	case trimmed[0] == '{' || trimmed[0] == '[' || strings.HasSuffix(strings.ToLower(name), ".json"):
		return Config(name, trimmed)
	}
	return ONNX(name, content)
}

const forms = "give a config.json in the form of Hugging Face, an ONNX file, the name of a published model " +
	"(scrimp estimate --models lists them), or a line such as \"transformer layers=32 dim=4096 vocab=32000\""

// kinds lists the words that a line may start with.
var kinds = map[string]shape.Kind{
	"transformer": shape.Transformer, "moe": shape.Experts, "cnn": shape.Conv, "trees": shape.Trees,
}

// Spec parses a line: the kind of model, followed by its numbers.
//
//	transformer layers=32 dim=4096 heads=32 kv=8 ff=14336 vocab=128256 gated=1
//	moe params=46.7e9 active=12.9e9 layers=32 dim=4096 ff=14336 topk=2
//	cnn gmacs=4.1 activations=11.1 params=25.6e6
//	trees features=28
//
// A transformer's parameters are counted from its shape where they are not given.
func Spec(line string) (shape.Model, error) {
	bad := func(field, why, fix string) (shape.Model, error) {
		return shape.Model{}, &Bad{File: fmt.Sprintf("model %q", line), Field: field, Why: why, Fix: fix}
	}
	words := strings.Fields(strings.ReplaceAll(line, ",", " "))
	if len(words) == 0 {
		return bad("", "is empty", forms)
	}
	kind, ok := kinds[strings.TrimSuffix(strings.ToLower(words[0]), ":")]
	if !ok {
		return bad("", "is neither a file nor a published model nor a shape", forms)
	}
	m := shape.Model{Name: string(kind), Kind: kind, Source: "as stated"}
	on := 0.0
	fields := map[string]*float64{
		"params": &m.Params, "active": &m.Active, "layers": &m.Layers, "dim": &m.Dim, "heads": &m.Heads, "kv": &m.KV,
		"head": &m.Head, "ff": &m.FF, "vocab": &m.Vocab, "topk": &m.TopK, "gmacs": &m.GMACs, "activations": &m.Acts,
		"window": &m.Window, "features": &m.Columns,
		"gated": &on, "tied": &on, "depthwise": &on, "grouped": &on, "regions": &on,
	}
	for _, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		p := fields[strings.ToLower(k)]
		if !ok || p == nil {
			return bad(k, "is no field of a model",
				"fields: params active layers dim heads kv head ff vocab topk gmacs activations window features gated "+
					"tied depthwise grouped regions")
		}
		n, err := number(v)
		if err != nil {
			return bad(k, err.Error(), "write a number such as 4096, 7e9 or 7B")
		}
		*p = n
		switch strings.ToLower(k) {
		case "gated":
			m.Gated = n != 0
		case "tied":
			m.Tied = n != 0
		case "depthwise":
			m.Depth = n != 0
		case "grouped":
			m.Groups = n != 0
		case "regions":
			m.Regions = n != 0
		}
	}
	return settle(fmt.Sprintf("model %q", line), m, nil)
}

// Line formats a model for Spec. It returns false for a kind without a line form, and for a shape that Spec would
// refuse.
func Line(m shape.Model) (string, bool) {
	line := ""
	for word, k := range kinds {
		if k == m.Kind {
			line = word
		}
	}
	if line == "" {
		return "", false
	}
	for _, f := range []struct {
		name string
		v    float64
	}{
		{"params", m.Params}, {"active", m.Active}, {"layers", m.Layers}, {"dim", m.Dim}, {"heads", m.Heads},
		{"kv", m.KV}, {"head", m.Head}, {"ff", m.FF}, {"vocab", m.Vocab}, {"topk", m.TopK}, {"gmacs", m.GMACs},
		{"activations", m.Acts}, {"window", m.Window}, {"features", m.Columns},
	} {
		if f.v > 0 {
			line += " " + f.name + "=" + strconv.FormatFloat(f.v, 'g', -1, 64)
		}
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"gated", m.Gated}, {"tied", m.Tied}, {"depthwise", m.Depth}, {"grouped", m.Groups}, {"regions", m.Regions}} {
		if f.on {
			line += " " + f.name + "=1"
		}
	}
	_, err := Spec(line)
	return line, err == nil
}

// number parses 4096, 7e9, 7B, 350M, 4k.
func number(s string) (float64, error) {
	scale := 1.0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			scale, s = 1e3, s[:len(s)-1]
		case 'M':
			scale, s = 1e6, s[:len(s)-1]
		case 'B', 'G':
			scale, s = 1e9, s[:len(s)-1]
		case 'T':
			scale, s = 1e12, s[:len(s)-1]
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	v *= scale
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%q is not a number from 0 up", s)
	}
	return v, nil
}

// Number parses a count as people write it: 2B, 350M, 1e9.
func Number(s string) (float64, error) { return number(s) }

// settle computes derived numbers, and refuses impossible shapes. called maps fields of a line to the names in the
// file.
func settle(file string, m shape.Model, called map[string]string) (shape.Model, error) {
	field, why, fix := bounded(m)
	if why == "" {
		switch m.Kind {
		case shape.Transformer, shape.Experts:
			field, why, fix = layered(m, cmp.Or(called["head"], "head"))
		case shape.Conv, shape.Detect:
			if m.GMACs == 0 {
				field, why = "gmacs", "a convolutional model needs its multiply-accumulates a sample"
				fix = "give gmacs=4.1"
			}
		case shape.Trees, shape.Recurrent, shape.Recommend, shape.Segments:
		}
	}
	if why != "" {
		return shape.Model{}, &Bad{File: file, Field: cmp.Or(called[field], field), Why: why, Fix: fix}
	}
	if m.Kind == shape.Transformer || m.Kind == shape.Experts {
		if m.FF == 0 && m.Dim > 0 {
			m.FF = 4 * m.Dim
		}
		if m.Params == 0 {
			m.Params, m.Active = m.Count(1)
		}
	}
	return m, nil
}

// bounded returns the first number beyond that of any model; why is "" if there is none.
func bounded(m shape.Model) (field, why, fix string) {
	for _, f := range []struct {
		name, what string
		v, most    float64
	}{
		{"layers", "layers", m.Layers, 1e4}, {"dim", "wide", m.Dim, 1e6}, {"heads", "heads", m.Heads, 1e5},
		{"kv", "key and value heads", m.KV, 1e5}, {"head", "wide a head", m.Head, 1e5},
		{"ff", "wide in the feed-forward layer", m.FF, 1e7}, {"vocab", "words", m.Vocab, 1e8},
		{"params", "parameters", m.Params, 1e14}, {"active", "active parameters", m.Active, 1e14},
		{"gmacs", "multiply-accumulates in 1e9", m.GMACs, 1e7}, {"activations", "activations in 1e6", m.Acts, 1e7},
		{"topk", "experts a token", m.TopK, 1e4}, {"window", "tokens looked back on", m.Window, 1e9},
		{"features", "columns", m.Columns, 1e7},
	} {
		if f.v > f.most || f.v < 0 {
			return f.name, fmt.Sprintf("%g %s is absurd", f.v, f.what),
				fmt.Sprintf("no model has more than %g: correct the number", f.most)
		}
	}
	return "", "", ""
}

// layered returns an impossible part of a transformer's shape; why is "" if there is none. head is the file's name for
// the width of a head.
func layered(m shape.Model, head string) (field, why, fix string) {
	if m.Params == 0 && (m.Layers == 0 || m.Dim == 0) {
		return "layers, dim", "neither parameters nor layers and width are given", "give params, or layers and dim"
	}
	grouped := m.KV > 0 && m.Heads > 0
	if grouped && m.KV > m.Heads {
		return "kv", fmt.Sprintf("%g is more than the %g heads", m.KV, m.Heads),
			"give at most as many as there are heads"
	}
	for _, f := range []struct {
		name string
		v    float64
	}{{"layers", m.Layers}, {"dim", m.Dim}, {"heads", m.Heads}, {"kv", m.KV}, {"ff", m.FF}, {"vocab", m.Vocab}} {
		if f.v != math.Trunc(f.v) {
			return f.name, fmt.Sprintf("%g is not a whole number", f.v), "correct the number"
		}
	}
	if grouped && math.Mod(m.Heads, m.KV) != 0 {
		return "kv", fmt.Sprintf("%g do not divide the %g heads", m.KV, m.Heads),
			"each key and value head serves as many others"
	}
	if m.Heads > 0 && m.Dim > 0 && m.Head == 0 && math.Mod(m.Dim, m.Heads) != 0 {
		return "heads", fmt.Sprintf("%g do not divide the width %g", m.Heads, m.Dim),
			"give " + head + ", the width of one"
	}
	return "", "", ""
}
