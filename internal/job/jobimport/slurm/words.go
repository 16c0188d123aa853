package slurm

import "strings"

// Words splits a text at spaces as sbatch does: not within quotes, which stay in the words.
func Words(text string) []string { return split(text, " \t") }

// Items splits a list at commas, but not within quotes, which stay in the items.
func Items(list string) []string { return split(list, ",") }

// Unquoted returns a word without its quotes.
func Unquoted(word string) string {
	var b strings.Builder
	scan(word, func(r rune, _, mark bool) {
		if !mark {
			b.WriteRune(r)
		}
	})
	return b.String()
}

// scan calls f for each character: whether it lies in quotes, and whether it is a quotation mark that begins or ends
// them. A mark without a partner is a character of the text.
func scan(text string, f func(r rune, quoted, mark bool)) {
	var open rune
	for i, r := range text {
		switch {
		case open == 0 && (r == '"' || r == '\'') && strings.ContainsRune(text[i+1:], r):
			open = r
			f(r, true, true)
		case open != 0 && r == open:
			open = 0
			f(r, true, true)
		default:
			f(r, open != 0, false)
		}
	}
}

// split splits a text at the separators outside of quotes, and leaves out empty parts.
func split(text, separators string) (list []string) {
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			list = append(list, b.String())
		}
		b.Reset()
	}
	scan(text, func(r rune, quoted, _ bool) {
		if !quoted && strings.ContainsRune(separators, r) {
			end()
			return
		}
		b.WriteRune(r)
	})
	end()
	return list
}
