package folder

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Left lists what a copy of a folder lacks because it cannot be copied, by reason.
type Left []LeftOut

// LeftOut lists what a copy lacks for one reason.
type LeftOut struct {
	Why   string   // the reason and the fix
	Paths []string // the first of them, in printable form
	Count int
}

// maxNamed bounds the paths named for each reason.
const maxNamed = 3

// maxPath bounds the printed bytes of a path.
const maxPath = 150

func (l *Left) add(path string, why error) {
	reason := why.Error()
	at := slices.IndexFunc(*l, func(x LeftOut) bool { return x.Why == reason })
	if at < 0 {
		at = len(*l)
		*l = append(*l, LeftOut{Why: reason})
	}
	x := &(*l)[at]
	if x.Count++; len(x.Paths) < maxNamed {
		x.Paths = append(x.Paths, printable(path))
	}
}

// printable returns a path as one line of UTF-8.
func printable(path string) string {
	if quoted := strconv.Quote(path); quoted[1:len(quoted)-1] != path {
		path = quoted
	}
	if len(path) > maxPath {
		path = strings.ToValidUTF8(path[:maxPath], "") + "…"
	}
	return path
}

// String names what is missing: "out/a, out/b, out/c and 2 more (WHY); out/d (WHY)".
func (l Left) String() string {
	all := make([]string, 0, len(l))
	for _, x := range l {
		names := strings.Join(x.Paths, ", ")
		if more := x.Count - len(x.Paths); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, fmt.Sprintf("%s (%s)", names, x.Why))
	}
	return strings.Join(all, "; ")
}
