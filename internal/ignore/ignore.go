// Package ignore matches paths against patterns in the form of .gitignore.
package ignore

import (
	"path"
	"strings"
)

// Patterns are the lines of an ignore file. The last that matches decides.
type Patterns []pattern

type pattern struct {
	segments []string
	negated  bool // !keep: takes a path back in
	folder   bool // ends with /: folders only
	anchored bool // holds a / before its end: from the root; otherwise at any depth
}

// Parse reads the lines of an ignore file.
func Parse(text string) Patterns {
	var list Patterns
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = strings.TrimSuffix(line, " ")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var p pattern
		if rest, ok := strings.CutPrefix(line, "!"); ok {
			p.negated, line = true, rest
		}
		if strings.HasPrefix(line, `\#`) || strings.HasPrefix(line, `\!`) {
			line = line[1:]
		}
		if rest, ok := strings.CutSuffix(line, "/"); ok {
			p.folder, line = true, rest
		}
		p.anchored = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		p.segments = strings.Split(line, "/")
		list = append(list, p)
	}
	return list
}

// Match reports whether the path, with slashes and relative to the ignore
// file's folder, is left out. Whoever walks a tree does not enter a folder that
// is, so that nothing below it can be taken back in, as in git.
func (l Patterns) Match(name string, folder bool) bool {
	parts := strings.Split(name, "/")
	out := false
	for _, p := range l {
		if p.folder && !folder {
			continue
		}
		matched := false
		if p.anchored {
			matched = match(p.segments, parts)
		} else {
			matched = match(p.segments, parts[len(parts)-1:])
		}
		if matched {
			out = !p.negated
		}
	}
	return out
}

// match matches segment by segment; ** is any number of them.
func match(pattern, parts []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			if len(pattern) == 1 {
				return len(parts) > 0
			}
			for i := range len(parts) + 1 {
				if match(pattern[1:], parts[i:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		ok, err := path.Match(strings.ReplaceAll(pattern[0], "[!", "[^"), parts[0])
		if err != nil || !ok {
			return false
		}
		pattern, parts = pattern[1:], parts[1:]
	}
	return len(parts) == 0
}
