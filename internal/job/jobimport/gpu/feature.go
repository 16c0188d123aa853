package gpu

import (
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/market/accelerator"
)

// memoryWord matches the memory of an accelerator as a feature: 80g, 80gb.
var memoryWord = regexp.MustCompile(`(?i)^[0-9]+gb?$`)

// Features returns the kinds of accelerators that a constraint names, which are alternatives, and its parts that name
// none: a100|h100, a100&80gb, (a100|h100)&nvlink.
func Features(constraint string) (kinds, others []string) {
	parts := []string{constraint}
	switch {
	case strings.ContainsAny(constraint, "()[]"):
		parts = outside(constraint)
	case !strings.Contains(constraint, "|"):
		if kind := Named(constraint); kind != "" { // a feature may be its memory
			kinds = append(kinds, kind)
		}
		for _, word := range outside(constraint) {
			if Named(word) == "" && (!memoryWord.MatchString(word) || kinds == nil) {
				others = append(others, word)
			}
		}
		return kinds, others
	}
	for _, part := range parts {
		for word := range strings.SplitSeq(strings.Trim(part, "()[]"), "|") {
			if kind := Named(word); kind == "" {
				others = append(others, word)
			} else if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, others
}

// outside splits a constraint at & and at commas that lie outside of brackets.
func outside(s string) (parts []string) {
	depth, from := 0, 0
	for i, r := range s {
		switch {
		case r == '(' || r == '[':
			depth++
		case r == ')' || r == ']':
			depth--
		case (r == '&' || r == ',') && depth <= 0:
			parts, from = append(parts, s[from:i]), i+1
		}
	}
	return slices.DeleteFunc(append(parts, s[from:]), func(p string) bool { return strings.TrimSpace(p) == "" })
}

// Within reports whether each accelerator of a kind is one of another kind, as A100-80GB of A100.
func Within(kind, of string) bool {
	some := false
	for _, a := range accelerator.Accelerators() {
		if accelerator.Matches(kind, a.Name) {
			if some = true; !accelerator.Matches(of, a.Name) {
				return false
			}
		}
	}
	return some
}
