// Package ignore matches paths against patterns in the form of .gitignore.
package ignore

import (
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

// Parse reads the lines of an ignore file. As in git no line is an error: one
// that makes no sense matches nothing.
//
//	# comment        \#name is a file of that name
//	*.pt             at any depth; * and ? and [a-z] do not match a slash
//	/data            only here, as is every pattern with a slash in it
//	cache/           folders only
//	a/**/b  **/x  x/**   ** is any number of folders
//	!keep.pt         taken back in, where no folder above it is out
func Parse(text string) Patterns {
	var list Patterns
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line = trimSpaces(line); line == "" || line[0] == '#' {
			continue
		}
		var p pattern
		line, p.negated = strings.CutPrefix(line, "!")
		line, p.folder = strings.CutSuffix(line, "/")
		p.anchored = strings.Contains(line, "/")
		if line = strings.TrimPrefix(line, "/"); line == "" {
			continue
		}
		p.segments = strings.Split(line, "/")
		for i, s := range p.segments {
			if len(s) > 2 && strings.Trim(s, "*") == "" {
				p.segments[i] = "**"
			}
		}
		list = append(list, p)
	}
	return list
}

// trimSpaces drops spaces at the end, up to one that a backslash protects.
func trimSpaces(line string) string {
	end := 0 // behind the last character that stays
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' && i+1 < len(line) {
			i++
			end = i + 1
		} else if line[i] != ' ' {
			end = i + 1
		}
	}
	return line[:end]
}

// Match reports whether the patterns leave the path out, by itself. The path has
// slashes and is relative to the ignore file's folder. Whoever walks a tree does
// not enter a folder that is left out, so that nothing below it can be taken
// back in; Excludes gives the same answer without a walk.
func (l Patterns) Match(name string, folder bool) bool {
	parts := strings.Split(name, "/")
	for i := len(l) - 1; i >= 0; i-- {
		p := l[i]
		if p.folder && !folder {
			continue
		}
		from := 0
		if !p.anchored {
			from = len(parts) - 1
		}
		if match(p.segments, parts[from:]) {
			return !p.negated
		}
	}
	return false
}

// Excludes reports whether the path or a folder that it lies in is left out.
func (l Patterns) Excludes(name string, folder bool) bool {
	for i := range len(name) {
		if name[i] == '/' && l.Match(name[:i], true) {
			return true
		}
	}
	return l.Match(name, folder)
}

// match matches segment by segment; ** is any number of them, at the end one at
// least. Where it fails behind a **, that one takes a segment more: only the
// last needs to be tried again, so the work is at most the product of the lengths.
func match(pattern, parts []string) bool {
	p, s := 0, 0
	starred, resume := -1, 0
	for s < len(parts) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			if p == len(pattern)-1 {
				return true
			}
			starred, resume = p, s
			p++
		case p < len(pattern) && glob(pattern[p], parts[s]):
			p, s = p+1, s+1
		case starred >= 0:
			resume++
			p, s = starred+1, resume
		default:
			return false
		}
	}
	return p == len(pattern)
}
