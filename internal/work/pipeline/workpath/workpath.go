// Package workpath checks paths below a work folder, which name what stages read and make.
package workpath

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a path.
const (
	MaxBytes = 4096
	maxDepth = 100 // nested folders
)

// CleanAll returns the paths in their shortest form. It refuses a path that is there twice.
func CleanAll(list []string) ([]string, error) {
	clean, seen := make([]string, 0, len(list)), make(map[string]bool, len(list))
	for _, p := range list {
		c, err := Clean(p)
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

// Clean is a path below the work folder in its one form.
func Clean(p string) (string, error) {
	c := path.Clean(strings.ReplaceAll(p, "\\", "/"))
	switch {
	case p == "" || len(p) > MaxBytes || strings.ContainsRune(p, 0):
		return "", fmt.Errorf("give a path of 1 to %d bytes", MaxBytes)
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

// Within reports whether a path is one of a list, or lies below one.
func Within(list []string, p string) bool {
	return slices.ContainsFunc(list, func(at string) bool { return holds(at, p) })
}

// Touch reports whether a path is one of a list, lies below one, or has one below it.
func Touch(list []string, p string) bool {
	return slices.ContainsFunc(list, func(at string) bool { return holds(at, p) || holds(p, at) })
}

// holds reports whether path b is a, or lies below it.
func holds(a, b string) bool {
	return strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '/')
}

// Overlap reports an output that lies within another one or within what the stage reads. The time grows with the number
// of paths, not with its square: paths come from whoever may submit.
func Overlap(outputs, deps []string) error {
	outs, above := make(map[string]bool, len(outputs)), map[string]bool{}
	for _, o := range outputs {
		outs[o] = true
	}
	for _, o := range outputs {
		for up := path.Dir(o); up != "."; up = path.Dir(up) {
			if outs[up] {
				return fmt.Errorf("%s and %s overlap: name the outer one alone", up, o)
			}
			above[up] = true
		}
	}
	for _, d := range deps {
		both := above[d]
		for up := d; up != "." && !both; up = path.Dir(up) {
			both = outs[up]
		}
		if both {
			return fmt.Errorf("the stage reads %s and makes it, or a part of it, too: write it to another path", d)
		}
	}
	return nil
}
