package show

import (
	"strings"
	"unicode"
)

// Clean replaces control characters, so that text from another user cannot steer a terminal.
func Clean(s string) string { return strings.Map(harmless, s) }

// Lines is Clean for several lines: it keeps newlines and tabs.
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
