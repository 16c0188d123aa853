package pipeline

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// cleanPaths returns the paths in their shortest form. It refuses a path that is there twice.
func cleanPaths(list []string) ([]string, error) {
	clean, seen := make([]string, 0, len(list)), make(map[string]bool, len(list))
	for _, p := range list {
		c, err := cleaned(p)
		if err != nil {
			return nil, err
		}
		if seen[c] {
			return nil, fmt.Errorf("%s is there twice", c)
		}
		seen[c] = true
		clean = append(clean, c)
	}
	return clean, nil
}

// cleaned is a path below the work folder in its one form.
func cleaned(p string) (string, error) {
	c := path.Clean(strings.ReplaceAll(p, "\\", "/"))
	switch {
	case p == "" || len(p) > MaxText || strings.ContainsRune(p, 0):
		return "", fmt.Errorf("give a path of 1 to %d bytes", MaxText)
	case !utf8.ValidString(p):
		return "", fmt.Errorf("%q is no UTF-8: rename it", p) // the key is made of JSON, which would change it
	case strings.Count(c, "/") >= maxDepth:
		return "", fmt.Errorf("%.60s… has more than %d folders within each other: use fewer", p, maxDepth)
	case strings.Contains(p, "://"):
		return "", fmt.Errorf("%s is an address: only paths below the work folder are supported", p)
	case path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../"):
		return "", fmt.Errorf("%s leads out of the work folder: give a path below it", p)
	case c == ".":
		return "", errors.New("it is the work folder itself: name what is read or made in it")
	}
	return c, nil
}

// holds reports whether path b is a, or lies below it.
func holds(a, b string) bool {
	return strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '/')
}

// overlap finds paths of a stage that lie within each other where they must not. The time grows with the number of
// paths, not with its square: paths come from whoever may submit.
func (s *Stage) overlap() error {
	outs, above := make(map[string]bool, len(s.Outs)), map[string]bool{}
	for _, o := range s.Outs {
		outs[o] = true
	}
	for _, o := range s.Outs {
		for up := path.Dir(o); up != "."; up = path.Dir(up) {
			if outs[up] {
				return &Problem{s.Name, "outs", fmt.Errorf("%s and %s overlap: name the outer one alone", up, o)}
			}
			above[up] = true
		}
	}
	for _, d := range s.Deps {
		both := above[d]
		for up := d; up != "." && !both; up = path.Dir(up) {
			both = outs[up]
		}
		if both {
			return &Problem{s.Name, "outs", fmt.Errorf("the stage reads %s and makes it, or a part of it, too: write it to "+
				"another path", d)}
		}
	}
	return nil
}
