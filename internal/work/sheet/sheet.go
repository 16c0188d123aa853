// Package sheet reads small YAML files of numbers that people write, such as prices and costs: strictly, with exact
// decimals, and with file, line, field and fix for each problem.
package sheet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
)

// Limits of a file.
const (
	maxText     = 1 << 20
	maxProblems = 50
	maxName     = 200     // bytes of a text
	MaxItems    = 1000    // of a list or a mapping
	MaxNumber   = 1 << 40 // about 1.1e12, of any number
)

// A Reader reads one file and collects its problems.
type Reader struct {
	file     string
	problems spec.Problems
	unread   bool                // the file is unreadable, so nothing counts as missing
	failed   map[*yaml.Node]bool // unreadable parts, which cause no further problems
}

// A Node is a part of the file.
type Node struct {
	r     *Reader
	y     *yaml.Node // nil if the file does not have it
	field string
	at    *yaml.Node // its parent
}

// A Named is a field of a mapping.
type Named struct {
	Name string
	Node
}

// Open parses a file, whose root must be a mapping.
func Open(file string, text []byte) (*Reader, Node) {
	r := &Reader{file: path.Base(file), failed: map[*yaml.Node]bool{}}
	root := Node{r: r}
	var doc yaml.Node
	switch err := yaml.NewDecoder(strings.NewReader(string(text[:min(len(text), maxText)]))).Decode(&doc); {
	case len(text) > maxText:
		root.Wrong("the file is larger than 1 MiB", "give the file of costs itself")
	case errors.Is(err, io.EOF):
		root.Wrong("the file is empty", "write its fields")
	case err != nil:
		root.Wrong(strings.TrimPrefix(err.Error(), "yaml: "), "correct the YAML")
	default:
		root.y = doc.Content[0]
	}
	r.unread = len(r.problems) > 0
	return r, root
}

// Err returns all problems, as spec.Problems.
func (r *Reader) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b spec.Problem) int { return a.Line - b.Line })
	return r.problems
}

// unreadable reports that the node has the wrong form, and suppresses further problems of it.
func (n Node) unreadable(cause, fix string) {
	n.Wrong(cause, fix)
	n.r.failed[n.y] = true
}

// Wrong reports a problem of the node, unless the node or its parent is unreadable.
func (n Node) Wrong(cause, fix string) {
	if n.r.unread || n.r.failed[cmp.Or(n.y, n.at)] {
		return
	}
	p := spec.Problem{File: n.r.file, Field: n.field, Cause: cause, Fix: fix}
	if at := cmp.Or(n.y, n.at); at != nil {
		p.Line, p.Column = at.Line, at.Column
	}
	if len(n.r.problems) < maxProblems {
		n.r.problems = append(n.r.problems, p)
	}
}

// There reports whether the file has the node.
func (n Node) There() bool { return n.y != nil }

// IsMapping reports whether the node has fields.
func (n Node) IsMapping() bool { return n.There() && n.y.Kind == yaml.MappingNode }

// IsList reports whether the node is a list.
func (n Node) IsList() bool { return n.There() && n.y.Kind == yaml.SequenceNode }

// All returns the fields of a mapping in order.
func (n Node) All() (list []Named) {
	if !n.There() {
		return nil
	}
	switch {
	case !n.IsMapping():
		n.unreadable("has no fields", "write its fields below it, each as name: value")
		return nil
	case len(n.y.Content) > 2*MaxItems:
		n.unreadable(fmt.Sprintf("has more than %d fields", MaxItems), "write fewer")
		return nil
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		key := n.y.Content[i]
		field := key.Value
		if n.field != "" {
			field = n.field + "." + field
		}
		child := Node{r: n.r, y: n.y.Content[i+1], field: field}
		if key.Kind != yaml.ScalarNode || seen[key.Value] || len(key.Value) > maxName || key.Value == "" {
			Node{r: n.r, y: key, field: field}.Wrong("is not a name, or is there twice",
				"write each field once, with a short name")
			continue
		}
		seen[key.Value] = true
		list = append(list, Named{key.Value, child})
	}
	return list
}

// Fields returns the fields of a mapping by name, and refuses unknown ones.
func (n Node) Fields(known ...string) map[string]Node {
	out := map[string]Node{}
	for _, name := range known {
		field := name
		if n.field != "" {
			field = n.field + "." + name
		}
		out[name] = Node{r: n.r, field: field, at: cmp.Or(n.y, n.at)}
	}
	for _, f := range n.All() {
		if !slices.Contains(known, f.Name) {
			f.Wrong("is not known here", "write one of "+strings.Join(known, ", "))
			continue
		}
		out[f.Name] = f.Node
	}
	return out
}

// List returns the items of a list.
func (n Node) List() (list []Node) {
	if !n.There() {
		return nil
	}
	switch {
	case !n.IsList():
		n.unreadable("is no list", "write one item a line, each after a dash")
		return nil
	case len(n.y.Content) > MaxItems:
		n.unreadable(fmt.Sprintf("has more than %d items", MaxItems), "write fewer")
		return nil
	}
	for i, item := range n.y.Content {
		list = append(list, Node{r: n.r, y: item, field: fmt.Sprintf("%s[%d]", n.field, i)})
	}
	return list
}

// Text returns a text of at most 200 bytes, or "" if there is none.
func (n Node) Text() string {
	if !n.There() {
		return ""
	}
	if n.y.Kind != yaml.ScalarNode || len(n.y.Value) > maxName {
		n.unreadable("is no text of at most 200 bytes", "write a short text")
		return ""
	}
	return n.y.Value
}

// Required is Text, with a problem if there is none.
func (n Node) Required(fix string) string {
	text := n.Text()
	if text == "" {
		n.Wrong("is missing", fix)
	}
	return text
}

// Word returns one of the words, or "" if there is none.
func (n Node) Word(words ...string) string {
	text := n.Text()
	if text != "" && !slices.Contains(words, text) {
		n.Wrong(fmt.Sprintf("is %q", text), "write one of "+strings.Join(words, ", "))
		return ""
	}
	return text
}

// Whole returns a whole number from least to most, or otherwise if there is none.
func (n Node) Whole(least, most, otherwise int) int {
	if !n.There() {
		return otherwise
	}
	v, err := strconv.Atoi(n.y.Value)
	if err != nil || n.y.Kind != yaml.ScalarNode || v < least || v > most {
		n.Wrong(fmt.Sprintf("is %.40q", n.y.Value), fmt.Sprintf("write a whole number from %d to %d", least, most))
		return otherwise
	}
	return v
}

// Decimal returns an exact decimal such as 12.34 or 28%, from zero to MaxNumber, and false if there is none.
func (n Node) Decimal() (*big.Rat, bool) {
	if !n.There() {
		return nil, false
	}
	v, ok := Number(n.y.Value)
	if !ok || n.y.Kind != yaml.ScalarNode || !v.inRange() || v.Sign == '$' {
		n.unreadable(fmt.Sprintf("is %.40q", n.y.Value), "write a decimal such as 12.34 or 28%, "+rangeFix)
		return nil, false
	}
	return v.Value, true
}

// IsPercent reports whether the node is written as a percentage.
func (n Node) IsPercent() bool {
	return n.There() && n.y.Kind == yaml.ScalarNode && strings.HasSuffix(strings.TrimSpace(n.y.Value), "%")
}

// Price returns an amount of money such as 3.06 or, in dollars, $3.06, from zero to MaxNumber, and false if there is
// none. A percentage is not a price.
func (n Node) Price(c money.Currency) (*big.Rat, bool) {
	if !n.There() {
		return nil, false
	}
	v, ok := Number(n.y.Value)
	switch {
	case !ok || n.y.Kind != yaml.ScalarNode || !v.inRange():
		n.unreadable(fmt.Sprintf("is %.40q", n.y.Value), "write an amount such as 12.34, "+rangeFix)
	case v.Sign == '%':
		n.unreadable(fmt.Sprintf("is %.40q, and a percentage is no price", n.y.Value),
			"write the amount itself, such as 12.34")
	case v.Sign == '$' && c != money.USD:
		n.unreadable(fmt.Sprintf("is %.40q, and the currency is %s", n.y.Value, c), "write the amount without $")
	default:
		return v.Value, true
	}
	return nil, false
}

const rangeFix = "from 0 to 10^12, with at most 12 decimals and no exponent"

// A Figure is an exact decimal and its sign: % has divided it by 100, $ means dollars, and 0 is none.
type Figure struct {
	Value *big.Rat
	Sign  rune
}

func (f Figure) inRange() bool {
	return f.Value.Sign() >= 0 && f.Value.Cmp(big.NewRat(MaxNumber, 1)) <= 0
}

// Number parses an exact decimal, a percentage such as 28%, or dollars such as $3.06.
func Number(text string) (f Figure, ok bool) {
	text, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	text, dollars := strings.CutPrefix(text, "$")
	a, err := money.Parse(strings.TrimSpace(text))
	if err != nil || percent && dollars {
		return f, false
	}
	scale := big.NewInt(1e12)
	switch {
	case percent:
		f.Sign = '%'
		scale = big.NewInt(1e14)
	case dollars:
		f.Sign = '$'
	}
	f.Value = new(big.Rat).SetFrac(a.Big(), scale)
	return f, true
}

// Amount rounds an exact sum to units of 1e-12, half away from zero, and returns false if an amount cannot hold it.
func Amount(v *big.Rat) (money.Amount, bool) {
	n := new(big.Int).Mul(v.Num(), big.NewInt(2e12))
	d := v.Denom()
	n.Add(n, new(big.Int).Mul(d, big.NewInt(int64(v.Sign()))))
	n.Quo(n, new(big.Int).Mul(d, big.NewInt(2)))
	return money.FromBig(n)
}

// Has reports whether a mapping has a field.
func (n Node) Has(name string) bool {
	for i := 0; n.IsMapping() && i+1 < len(n.y.Content); i += 2 {
		if n.y.Content[i].Value == name {
			return true
		}
	}
	return false
}
