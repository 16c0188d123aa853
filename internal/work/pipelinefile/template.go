package pipelinefile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"scrimp/internal/job/spec"
	"scrimp/internal/work/pipelinefile/document"

	"go.yaml.in/yaml/v3"
)

// scope holds what a stage's templates may name.
type scope struct {
	vars      *yaml.Node // a map
	item, key *yaml.Node // of foreach and matrix; nil otherwise
}

// fill copies a tree with its templates filled in: ${name}, ${name.sub}, ${list[0]}. A text that is exactly one
// template becomes the value with its type. In a command, maps become flags.
func (r *reader) fill(n *yaml.Node, s scope, field string, command bool) *yaml.Node {
	if !r.room(n, field) {
		return null(n)
	}
	c := *n
	switch n.Kind {
	case yaml.ScalarNode:
		if !strings.Contains(n.Value, "${") {
			return n
		}
		if inner, ok := alone(n.Value); ok && !command {
			v, err := s.lookup(inner)
			if err != nil {
				r.unfilled(n, field, err)
				return null(n)
			}
			return r.moved(v, n, field)
		}
		text, err := s.text(n.Value, command)
		if err != nil {
			r.unfilled(n, field, err)
		}
		if r.bytes += len(text); r.bytes > maxBytes {
			r.wrong(n, field, "makes the pipeline too large", "use shorter values in templates")
			r.nodes = maxNodes + 1
			return null(n)
		}
		c.Tag, c.Value = "!!str", text
	case yaml.MappingNode:
		c.Content = make([]*yaml.Node, 0, len(n.Content))
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if strings.Contains(key.Value, "${") {
				text, err := s.text(key.Value, false)
				if err != nil {
					r.unfilled(key, field, err)
				}
				key = str(key, text)
			}
			c.Content = append(c.Content, key, r.fill(n.Content[i+1], s, join(field, key.Value), command))
		}
	default:
		c.Content = make([]*yaml.Node, len(n.Content))
		for i, item := range n.Content {
			c.Content[i] = r.fill(item, s, field, command)
		}
	}
	return &c
}

// unfilled reports a template that cannot be filled. wrong drops what is reported about the same text afterwards.
func (r *reader) unfilled(n *yaml.Node, field string, err error) {
	r.wrong(n, field, err.Error(), `name a value of params.yaml or vars, or write \${…} for a variable of the shell`)
	r.empty[spec.Problem{File: r.file, Line: n.Line, Column: n.Column}] = true
}

// moved copies a value to the location of the template that names it, so that problems name that location.
func (r *reader) moved(n, to *yaml.Node, field string) *yaml.Node {
	if !r.room(to, field) {
		return null(to)
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Line: to.Line, Column: to.Column}
	for _, item := range n.Content {
		c.Content = append(c.Content, r.moved(item, to, field))
	}
	return c
}

// alone returns the name in a text that is exactly one template.
func alone(text string) (inner string, ok bool) {
	text = strings.TrimSpace(text)
	inner, ok = strings.CutPrefix(text, "${")
	if !ok || strings.IndexByte(inner, '}') != len(inner)-1 {
		return "", false
	}
	return inner[:len(inner)-1], true
}

// text fills the templates of a text.
func (s scope) text(text string, command bool) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)
			return b.String(), nil
		}
		if literal, escaped := strings.CutSuffix(before, `\`); escaped {
			b.WriteString(literal + "${")
			text = rest
			continue
		}
		b.WriteString(before)
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("has ${%.40s without }", rest)
		}
		v, err := s.lookup(inner)
		if err != nil {
			return "", err
		}
		filled, err := inText(v, inner, command)
		if err != nil {
			return "", err
		}
		if b.WriteString(filled); b.Len() > document.MaxText {
			return "", fmt.Errorf("is longer than 1 MiB with ${%.40s}", inner)
		}
		text = after
	}
}

var pathForm = regexp.MustCompile(`^[^.\[\]]+(\[[0-9]{1,6}\])*(\.[^.\[\]]+(\[[0-9]{1,6}\])*)*$`)

// lookup returns the value of a path such as a.b[0].c.
func (s scope) lookup(inner string) (*yaml.Node, error) {
	name := strings.TrimSpace(inner)
	if !pathForm.MatchString(name) {
		return nil, fmt.Errorf("has the template ${%.60s}, which is not a name such as train.lr or list[0]", inner)
	}
	at := s.vars
	for i, part := range strings.Split(strings.ReplaceAll(name, "[", ".["), ".") {
		switch index, isIndex := strings.CutPrefix(part, "["); {
		case isIndex:
			n, err := strconv.Atoi(index[:len(index)-1])
			if err != nil || at.Kind != yaml.SequenceNode || n >= len(at.Content) {
				return nil, fmt.Errorf("names ${%s}, and there is no such list, or it is shorter", name)
			}
			at = at.Content[n]
		case i == 0 && part == "item" && s.item != nil:
			at = s.item
		case i == 0 && part == "key" && s.key != nil:
			at = s.key
		default:
			if at = document.In(at, part); at == nil {
				return nil, fmt.Errorf("names ${%s}, and there is no %s", name, part)
			}
		}
	}
	return at, nil
}

// inText formats a value as a part of a text. In a command, a map becomes flags and a list words.
func inText(v *yaml.Node, name string, command bool) (string, error) {
	switch {
	case isNull(v):
		return "", fmt.Errorf("names ${%s}, which has no value", name)
	case v.Kind == yaml.ScalarNode:
		return single(v), nil
	case !command:
		return "", fmt.Errorf("names ${%s} within a text, which is a list or a map: only a command takes these", name)
	case v.Kind == yaml.SequenceNode:
		return words(v, name)
	}
	list, err := flags(v, "", nil)
	return strings.Join(list, " "), err
}

// single returns a scalar as text.
func single(v *yaml.Node) string {
	if v.Tag == "!!bool" {
		return strings.ToLower(v.Value)
	}
	return v.Value
}

// flags formats the values of a map as flags: a nested map adds its name and a dot, true gives the flag alone, and
// false nothing.
func flags(v *yaml.Node, above string, list []string) (_ []string, err error) {
	for i := 0; i+1 < len(v.Content); i += 2 {
		name, value := join(above, v.Content[i].Value), v.Content[i+1]
		switch {
		case isNull(value):
			return nil, fmt.Errorf("passes %s, which has no value", name)
		case value.Kind == yaml.MappingNode:
			if list, err = flags(value, name, list); err != nil {
				return nil, err
			}
		case value.Tag == "!!bool":
			if single(value) == "true" {
				list = append(list, "--"+name)
			}
		default:
			text, err := words(value, name)
			if err != nil {
				return nil, err
			}
			list = append(list, strings.TrimRight("--"+name+" "+text, " "))
		}
	}
	return list, nil
}

// words formats a scalar or a list of scalars as shell words.
func words(v *yaml.Node, name string) (string, error) {
	items := v.Content
	if v.Kind == yaml.ScalarNode {
		items = []*yaml.Node{v}
	}
	var list []string
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || isNull(item) {
			return "", fmt.Errorf("passes %s, whose list has a list, a map or nothing in it", name)
		}
		if item.Tag == "!!str" {
			list = append(list, document.Word(item.Value))
		} else {
			list = append(list, single(item))
		}
	}
	return strings.Join(list, " "), nil
}
