package charge

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Misread reports whether a loader or a spreadsheet may read a name as something else: a number, a date, a formula
// or a missing value.
func Misread(name string) bool {
	return name != "" && (formula(name) || number(name) || !strings.ContainsFunc(name, unicode.IsLetter) ||
		len(name) <= 5 && absent[strings.ToLower(name)] || len(name) <= 32 && date.MatchString(name))
}

// formula reports whether the text starts like a formula, or with a character that readers strip first.
func formula(text string) bool { return strings.ContainsAny(text[:1], "=+-@|% \t\r\n") }

// number reports whether the name parses as a number, such as "1e5" or "inf".
func number(name string) bool {
	if !strings.ContainsAny(name[:1], "0123456789.iInN") {
		return false
	}
	_, err := strconv.ParseFloat(name, 64)
	return err == nil
}

// absent lists the words that loaders read as a missing value or as a boolean.
var absent = map[string]bool{"null": true, "none": true, "na": true, "n/a": true, "nil": true, "true": true,
	"false": true, "yes": true, "no": true, "#n/a": true, "<na>": true}

// date matches dates and times with letters: mar-1, 1 March 2026, 2026-03-01T08:00:00Z, 3:15 pm.
var date = regexp.MustCompile(`(?i)^(` +
	months + `[-/. ]?\d{1,4}|\d{1,4}[-/. ]?` + months + `([-/. ]\d{1,4})?|` +
	`\d{4}-\d\d-\d\dT[\d:.]+(Z|[-+][\d:]+)?|\d{1,2}(:\d\d){0,2} [ap]m?)$`)

const months = `(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|january|february|march|april|june|july|august|sept|` +
	`september|october|november|december)`

// TextCell returns a cell that every spreadsheet reads as text: a name that may be misread gets a leading quote.
func TextCell(name string) string {
	if Misread(name) {
		return "'" + name
	}
	return name
}
