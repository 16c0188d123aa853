package show

import (
	"strings"
	"unicode"
)

// clean takes out of a text of others what would steer a terminal.
func clean(s string) string { return strings.Map(harmless, s) }

// Lines is clean of a text that may have several lines, and tabs.
func Lines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return harmless(r)
	}, s)
}

func harmless(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
		return '\uFFFD'
	}
	return r
}
