package search

import (
	"path"
	"strings"
)

// Pattern selects names as path.Match does; the zero Pattern selects all.
type Pattern struct {
	text string
	part string // every selected name contains it
	only bool   // the pattern is *part*, which needs no more
}

// PatternOf returns the pattern of a text, or path.ErrBadPattern.
func PatternOf(text string) (p Pattern, err error) {
	if text == "" {
		return p, nil
	}
	if _, err := path.Match(text, ""); err != nil {
		return p, err
	}
	p.text = text
	if strings.ContainsAny(text, `[\`) {
		return p, nil
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '*' || r == '?' }) {
		if len(part) > len(p.part) {
			p.part = part
		}
	}
	p.only = !strings.Contains(p.part, "/") && text == "*"+p.part+"*"
	return p, nil
}

// Any reports whether the pattern selects all names.
func (p Pattern) Any() bool { return p.text == "" }

// Takes reports whether the pattern selects the name.
func (p Pattern) Takes(name string) bool {
	if p.text == "" {
		return true
	}
	if !strings.Contains(name, p.part) {
		return false
	}
	if p.only && !strings.Contains(name, "/") {
		return true
	}
	ok, _ := path.Match(p.text, name) // PatternOf has checked the pattern
	return ok
}
