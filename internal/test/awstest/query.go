package awstest

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An apiError is an error response.
type apiError struct {
	status        int
	code, message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// bad returns an error with status 400, which most errors have.
func bad(code, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// refuse returns an error with another status.
func refuse(status int, code, format string, args ...any) *apiError {
	return &apiError{status, code, fmt.Sprintf(format, args...)}
}

// params are the parameters of a request below a prefix. It records which are read, so that the cloud refuses unread
// ones instead of ignoring them.
type params struct {
	prefix string
	all    url.Values
	used   map[string]bool
	first  *error // the first error
}

func newParams(all url.Values) params {
	return params{all: all, used: map[string]bool{}, first: new(error)}
}

func (p params) fail(err error) {
	if *p.first == nil {
		*p.first = err
	}
}

func (p params) has(name string) bool {
	_, ok := p.all[p.prefix+name]
	return ok
}

// str returns the value; "": none.
func (p params) str(name string) string {
	p.used[p.prefix+name] = true
	return p.all.Get(p.prefix + name)
}

// must returns a required value.
func (p params) must(name string) string {
	v := p.str(name)
	if v == "" {
		p.fail(bad("MissingParameter", "The request must contain the parameter %s%s", p.prefix, name))
	}
	return v
}

// oneOf returns a value of a closed set, or "".
func (p params) oneOf(name string, allowed ...string) string {
	v := p.str(name)
	if v != "" && !slices.Contains(allowed, v) {
		p.fail(bad("InvalidParameterValue", "Value (%s) for parameter %s%s is invalid. Valid values: %s", v, p.prefix, name,
			strings.Join(allowed, " | ")))
	}
	return v
}

func (p params) number(name string, otherwise int) int {
	v := p.str(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		p.fail(bad("InvalidParameterValue", "Value (%s) for parameter %s%s is invalid: not an integer", v, p.prefix, name))
	}
	return n
}

func (p params) fraction(name string, otherwise float64) float64 {
	v := p.str(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		p.fail(bad("InvalidParameterValue", "Value (%s) for parameter %s%s is invalid: not a number", v, p.prefix, name))
	}
	return n
}

func (p params) flag(name string, otherwise bool) bool {
	switch v := p.str(name); v {
	case "":
		return otherwise
	case "true", "false":
		return v == "true"
	default:
		p.fail(bad("InvalidParameterValue", "Value (%s) for parameter %s%s is invalid: true or false", v, p.prefix, name))
		return otherwise
	}
}

func (p params) moment(name string) (at time.Time) {
	v := p.str(name)
	if v == "" {
		return at
	}
	at, err := time.Parse(time.RFC3339, v)
	if err != nil {
		p.fail(bad("InvalidParameterValue", "Value (%s) for parameter %s%s is invalid: not a time", v, p.prefix, name))
	}
	return at.UTC()
}

// list returns Name.1, Name.2 and so on.
func (p params) list(name string) (values []string) {
	for n := 1; p.has(name + "." + strconv.Itoa(n)); n++ {
		values = append(values, p.str(name+"."+strconv.Itoa(n)))
	}
	return values
}

// sub returns the parameters that start with the name.
func (p params) sub(name string) params {
	p.prefix += name + "."
	return p
}

// present reports whether any parameter has the prefix.
func (p params) present() bool {
	for key := range p.all {
		if strings.HasPrefix(key, p.prefix) {
			return true
		}
	}
	return false
}

// each returns Name.1.*, Name.2.* and so on.
func (p params) each(name string) (list []params) {
	for n := 1; ; n++ {
		one := p.sub(name + "." + strconv.Itoa(n))
		if !one.present() {
			return list
		}
		list = append(list, one)
	}
}

// end returns the first error of the parameters, including unread ones.
func (p params) end() error {
	if *p.first != nil {
		return *p.first
	}
	var unread []string
	for key := range p.all {
		if !p.used[key] {
			unread = append(unread, key)
		}
	}
	if len(unread) > 0 {
		slices.Sort(unread)
		return bad("UnknownParameter", "The parameter %s is not recognized", unread[0])
	}
	return nil
}

// A node is an element of an XML response.
type node struct {
	name, text string
	kids       []*node
}

// x returns an element with texts, numbers, times and elements. It skips nil elements.
func x(name string, parts ...any) *node {
	n := &node{name: name}
	for _, p := range parts {
		switch p := p.(type) {
		case *node:
			if p != nil {
				n.kids = append(n.kids, p)
			}
		case []*node:
			n.kids = append(n.kids, p...)
		case time.Time:
			n.text += p.UTC().Format("2006-01-02T15:04:05.000Z")
		default:
			n.text += fmt.Sprint(p)
		}
	}
	return n
}

// opt returns an element, or nil if its text is empty.
func opt(name, text string) *node {
	if text == "" {
		return nil
	}
	return x(name, text)
}

// items returns a list under a name: each value becomes an element "item".
func items[T any](name string, list []T, of func(T) *node) *node {
	n := &node{name: name}
	for _, v := range list {
		if one := of(v); one != nil {
			one.name = "item"
			n.kids = append(n.kids, one)
		}
	}
	return n
}

// texts returns a list of texts.
func texts(name string, list []string) *node {
	return items(name, list, func(s string) *node { return x("item", s) })
}

func (n *node) write(b *strings.Builder) {
	b.WriteString("<" + n.name + ">")
	_ = xml.EscapeText(b, []byte(n.text)) // a builder never fails
	for _, k := range n.kids {
		if k != nil {
			k.write(b)
		}
	}
	b.WriteString("</" + n.name + ">")
}
