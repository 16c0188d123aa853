package identity

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of names and labels, in bytes.
const (
	LongestName  = 63  // of a user, a team, a project, the key of a tag
	LongestLabel = 128 // the value of a tag, an environment, a model version
)

// WrongName says what is wrong with the name of a user, a team, a project or a tag, and how to write it; "" means
// nothing. There is only one way to write a name: a second name that looks the same would escape all limits.
func WrongName(name string) (fix string) {
	ok := name != "" && len(name) <= LongestName
	for i, c := range []byte(name) {
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		ok = ok && (plain || i > 0 && strings.IndexByte("._-@", c) >= 0)
	}
	if ok {
		return ""
	}
	fix = fmt.Sprintf("write 1 to %d of small letters, digits and . _ - @, beginning with a letter or digit", LongestName)
	if as := plainName(name); as != "" && as != name && WrongName(as) == "" {
		fix += ", as in " + as
	}
	return fix
}

// plainName returns the name that somebody meant.
func plainName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(name)))
}

// WrongLabel says what is wrong with the value of a tag, and how to write it; "" means nothing. The value may be any
// text without hidden characters.
func WrongLabel(text string) (fix string) {
	hidden := func(r rune) bool {
		return r != ' ' && !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
			unicode.Is(unicode.Variation_Selector, r)
	}
	switch {
	case len(text) > LongestLabel:
		return fmt.Sprintf("write at most %d bytes", LongestLabel)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, hidden):
		return "remove invisible characters, such as control characters, tabs and zero-width spaces"
	case strings.TrimSpace(text) != text || strings.Contains(text, "  "):
		return "remove spaces at its ends and double spaces"
	case !norm.NFC.IsNormalString(text):
		return "write it in Unicode's form NFC, as in " + norm.NFC.String(text)
	}
	return ""
}

// LongestEmail is the longest email address, in bytes.
const LongestEmail = 254

// WrongEmail says how to write an email address instead; "" means that text is one.
func WrongEmail(text string) (fix string) {
	local, host, ok := strings.Cut(text, "@")
	switch {
	case len(text) > LongestEmail:
		return fmt.Sprintf("write at most %d bytes", LongestEmail)
	case !ok || local == "" || host == "" || strings.ContainsAny(text, " ,;<>\"'`\\") || strings.Contains(host, "@"):
		return "write NAME@HOST"
	}
	return WrongLabel(text)
}

// PlainEmail returns an address with its ASCII letters in lower case. It does not change other letters: case
// folding maps some different letters to the same one, which would let a user sign in as another.
func PlainEmail(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// Same reports whether two names or labels are equal, ignoring case.
func Same(a, b string) bool { return a == b || strings.EqualFold(a, b) }
