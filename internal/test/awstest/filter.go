package awstest

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

type tags map[string]string

func readTags(p params) tags {
	t := tags{}
	for _, one := range p.each("Tag") {
		key := one.must("Key")
		if strings.HasPrefix(strings.ToLower(key), "aws:") {
			p.fail(bad("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use"))
		}
		if len(key) > 128 || len(one.str("Value")) > 256 {
			p.fail(bad("InvalidParameterValue", "Tag %q: keys have at most 128 and values 256 characters", key))
		}
		t[key] = one.str("Value")
	}
	if len(t) > 50 {
		p.fail(bad("TagLimitExceeded", "More than 50 tags are specified"))
	}
	return t
}

func (t tags) show() *node {
	if len(t) == 0 {
		return nil
	}
	return items("tagSet", slices.Sorted(maps.Keys(t)), func(k string) *node {
		return x("item", x("key", k), x("value", t[k]))
	})
}

// A filter is a filter of a request: any of its values matches, with * and ?.
type filter struct {
	name   string
	values []string
}

// filters reads the filters of a request. Only the known names are allowed; "tags" allows tag:KEY, tag-key and
// tag-value.
func (c *call) filters(known ...string) (list []filter) {
	for _, p := range c.each("Filter") {
		f := filter{p.must("Name"), p.list("Value")}
		tagged := slices.Contains(known, "tags") &&
			(strings.HasPrefix(f.name, "tag:") || f.name == "tag-key" || f.name == "tag-value")
		if !tagged && !slices.Contains(known, f.name) {
			c.fail(bad("InvalidParameterValue", "The filter '%s' is invalid", f.name))
		}
		if len(f.values) == 0 {
			c.fail(bad("InvalidParameterValue", "The filter '%s' has no value", f.name))
		}
		if c.s.o.Literal && f.name == "instance-type" {
			f.values = slices.DeleteFunc(f.values, func(v string) bool { return strings.ContainsAny(v, "*?") })
		}
		list = append(list, f)
	}
	return list
}

// pass reports whether a resource matches every filter. of returns its values by name.
func pass(filters []filter, t tags, of func(name string) []string) bool {
	for _, f := range filters {
		var have []string
		switch key, tagged := strings.CutPrefix(f.name, "tag:"); {
		case tagged:
			if v, ok := t[key]; ok {
				have = []string{v}
			}
		case f.name == "tag-key":
			have = slices.Collect(maps.Keys(t))
		case f.name == "tag-value":
			have = slices.Collect(maps.Values(t))
		default:
			have = of(f.name)
		}
		if !slices.ContainsFunc(have, func(v string) bool { return slices.ContainsFunc(f.values, matches(v)) }) {
			return false
		}
	}
	return true
}

var wild = strings.NewReplacer("[", "\\[", "/", "\x00")

func matches(v string) func(string) bool {
	return func(pattern string) bool {
		ok, err := path.Match(wild.Replace(pattern), strings.ReplaceAll(v, "/", "\x00"))
		return ok && err == nil
	}
}

// page cuts a list that is ordered by seq. The token names the last entry of the previous page, so that changes in
// between shift nothing.
func page[T any](c *call, list []T, seq func(T) int, least, most int) (cutList []T, next *node, err error) {
	size, token := c.number("MaxResults", 0), c.str("NextToken")
	if size != 0 && (size < least || size > most) {
		return nil, nil, bad("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value "+
			"between %d and %d.", size, least, most)
	}
	if size == 0 || size > c.s.o.Page {
		size = c.s.o.Page
	}
	after := -1
	if token != "" {
		raw, err := base64.StdEncoding.DecodeString(token)
		n, err2 := strconv.Atoi(strings.TrimPrefix(string(raw), c.action+" "))
		if err != nil || err2 != nil {
			return nil, nil, bad("InvalidNextToken", "The token '%s' is invalid", token)
		}
		after = n
	}
	for _, v := range list {
		if seq(v) > after {
			cutList = append(cutList, v)
		}
	}
	if len(cutList) <= size {
		return cutList, nil, nil
	}
	cutList = cutList[:size]
	return cutList, x("nextToken", c.token(seq(cutList[size-1]))), nil
}

// token returns the token for the page after entry n.
func (c *call) token(n int) string {
	return base64.StdEncoding.EncodeToString([]byte(c.action + " " + strconv.Itoa(n)))
}

// numbered adds numbers to the entries of a fixed list.
type numbered[T any] struct {
	n int
	v T
}

func number[T any](list []T) []numbered[T] {
	out := make([]numbered[T], len(list))
	for k, v := range list {
		out[k] = numbered[T]{k, v}
	}
	return out
}

func (n numbered[T]) seq() int { return n.n }

// notFound is a refusal that names everything that is missing, as EC2 does.
func notFound(code, what string, missing []string) error {
	if len(missing) == 1 {
		return bad(code, "The %s ID '%s' does not exist", what, missing[0])
	}
	return bad(code, "The %s IDs '%s' do not exist", what, strings.Join(missing, ", "))
}
