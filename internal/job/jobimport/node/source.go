package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/job/spec"
)

// InSource gives problems of the converted file the lines of the source: of each the first line that has all that the
// converted line says, or else none.
func InSource(err error, base string, out, source []byte) error {
	var list spec.Problems
	if !errors.As(err, &list) {
		return err
	}
	lines := strings.Split(string(out), "\n")
	for i := range list {
		p := &list[i]
		value := ""
		if p.Line > 0 && p.Line <= len(lines) {
			_, value, _ = strings.Cut(lines[p.Line-1], ": ")
		}
		words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(`:,[]{}"' `, r) })
		p.File, p.Line, p.Column = base, lineWith(string(source), words), 0
	}
	return fmt.Errorf("what it says is not allowed in a job file: correct it there: %w", list)
}

// lineWith returns the number of the first line that has all the words; 0: none has, or there are none.
func lineWith(text string, words []string) int {
	for i, line := range strings.Split(text, "\n") {
		missing := func(word string) bool { return !strings.Contains(line, word) }
		if len(words) > 0 && !slices.ContainsFunc(words, missing) {
			return i + 1
		}
	}
	return 0
}
