// Package ignore matches paths against patterns in the form of .gitignore.
package ignore

import (
	"strings"
)

// Patterns holds the lines of an ignore file. The last matching line decides.
type Patterns []pattern

type pattern struct {
	segments []string
	negated  bool // !keep: includes the path again
	folder   bool // ends with /: folders only
	anchored bool // has a / before its end: relative to the root; otherwise at any depth
}

// Parse reads the lines of an ignore file. As in git, no line is an error: an invalid one matches nothing.
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

// trimSpaces removes trailing spaces, up to one that a backslash quotes.
func trimSpaces(line string) string {
	end := 0 // after the last character to keep
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

// Match reports whether the patterns exclude the path itself. The path uses slashes and is relative to the ignore
// file's folder. A caller that walks a tree must not enter an excluded folder, so nothing below it can be included
// again. Excludes gives the same result without a walk.
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

// Excludes reports whether the path or one of its parent folders is excluded.
func (l Patterns) Excludes(name string, folder bool) bool {
	for i := range len(name) {
		if name[i] == '/' && l.Match(name[:i], true) {
			return true
		}
	}
	return l.Match(name, folder)
}

// match matches segment by segment; ** matches any number of segments, but at the end at least one. After a mismatch
// the last ** takes one more segment. Only the last one must be retried, so the work is at most the product of the
// lengths.
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
