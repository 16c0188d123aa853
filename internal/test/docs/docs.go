// Package docs checks the documents against the program: it generates the reference from the code, and parses
// Markdown for the tests that follow links and run the printed commands.
package docs

import (
	"regexp"
	"strings"
	"unicode"
)

// A Block is preformatted text of a document: fenced, or indented by four spaces.
type Block struct {
	Lang  string   // after the fence; "": none
	Marks []string // HTML comments directly above it
	Lines []string
	Line  int // line number of its first line, from 1
}

// Mark returns the rest of a comment above the block that starts with the word and a colon.
func (b Block) Mark(word string) (rest string, ok bool) {
	for _, m := range b.Marks {
		if rest, ok := strings.CutPrefix(m, word+":"); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

var comment = regexp.MustCompile(`^<!--\s*(.*?)\s*-->$`)

// Blocks returns the blocks of a document in order.
func Blocks(text string) (list []Block) {
	var marks []string
	var open *Block // the block that is being read
	fence, blank := "", true
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "" && trimmed == fence:
			list, open, fence = append(list, *open), nil, ""
		case fence != "":
			open.Lines = append(open.Lines, line)
		case strings.HasPrefix(trimmed, "```"):
			list, open = closed(list, open), &Block{Lang: strings.TrimPrefix(trimmed, "```"), Marks: marks, Line: n + 2}
			fence, marks = "```", nil
		case open != nil && (trimmed == "" || strings.HasPrefix(line, "    ")):
			open.Lines = append(open.Lines, strings.TrimPrefix(line, "    "))
		case blank && strings.HasPrefix(line, "    ") && trimmed != "":
			open, marks = &Block{Marks: marks, Lines: []string{line[4:]}, Line: n + 1}, nil
		default:
			list, open = closed(list, open), nil
			if m := comment.FindStringSubmatch(trimmed); m != nil {
				marks = append(marks, m[1])
			} else if trimmed != "" {
				marks = nil
			}
		}
		blank = trimmed == ""
	}
	return closed(list, open)
}

// closed appends an indented block that ends here, without its trailing empty lines.
func closed(list []Block, open *Block) []Block {
	if open == nil {
		return list
	}
	for len(open.Lines) > 0 && strings.TrimSpace(open.Lines[len(open.Lines)-1]) == "" {
		open.Lines = open.Lines[:len(open.Lines)-1]
	}
	return append(list, *open)
}

// Prose returns a document without its blocks and inline code.
func Prose(text string) string {
	lines := strings.Split(text, "\n")
	for _, b := range Blocks(text) {
		for i := range b.Lines {
			lines[b.Line-1+i] = ""
		}
	}
	return code.ReplaceAllString(strings.Join(lines, "\n"), "")
}

var (
	code = regexp.MustCompile("`[^`\n]*`")
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	head = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
)

// Links returns the link targets of a document.
func Links(text string) (list []string) {
	for _, m := range link.FindAllStringSubmatch(Prose(text), -1) {
		list = append(list, m[1])
	}
	return list
}

// Anchors returns the fragments of a document's headings, as GitHub makes them.
func Anchors(text string) map[string]bool {
	lines := strings.Split(text, "\n")
	for _, b := range Blocks(text) {
		for i := range b.Lines {
			lines[b.Line-1+i] = ""
		}
	}
	list := map[string]bool{}
	for _, m := range head.FindAllStringSubmatch(strings.Join(lines, "\n"), -1) {
		list[Anchor(m[1])] = true
	}
	return list
}

// Anchor returns the fragment of a heading: lower-case letters, digits and dashes; spaces become dashes.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(heading))
}

// Commands returns the command lines of a shell block without comments, with continued lines joined. In a block of
// another language, only lines that start with the program's name are commands.
func (b Block) Commands() (list []string) {
	part := ""
	for _, line := range b.Lines {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if b.Lang != "sh" && part == "" && !strings.HasPrefix(line, "scrimp ") {
			continue
		}
		line = uncommented(line)
		if more, ok := strings.CutSuffix(line, "\\"); ok {
			part += more
			continue
		}
		if line = strings.TrimSpace(part + line); line != "" {
			list = append(list, line)
		}
		part = ""
	}
	return list
}

// uncommented returns a line up to a # that starts a word outside quotes.
func uncommented(line string) string {
	quote := rune(0)
	before := ' '
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && before == ' ':
			return strings.TrimSpace(line[:i])
		}
		before = r
	}
	return strings.TrimSpace(line)
}

// Calls returns the arguments of each call of the program in a command line: for "a && scrimp b | c" it returns [b].
func Calls(line string) (list [][]string) {
	var call []string
	for _, w := range append(words(line), ";") {
		switch w {
		case ";", "&", "&&", "|", "||", "(", ")", ">", ">>", "<", "<(":
			if len(call) > 0 && call[0] == "scrimp" {
				list = append(list, call[1:])
			}
			call = nil
		default:
			if len(call) > 0 || !assignment.MatchString(w) {
				call = append(call, w)
			}
		}
	}
	return list
}

var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// words splits a command line as a shell does, as far as documents need: quotes, and operators as words.
func words(line string) []string {
	var s splitter
	for _, r := range line {
		switch {
		case s.quote != 0 && r == s.quote:
			s.quote = 0
		case s.quote == 0 && (r == '\'' || r == '"'):
			s.quote, s.in = r, true
		case s.quote == 0 && unicode.IsSpace(r):
			s.end()
		case s.quote == 0 && strings.ContainsRune(operators, r):
			s.operator(r)
		default:
			s.in = true
			s.word.WriteRune(r)
		}
	}
	s.end()
	return s.list
}

// operators are the characters that a shell's operators are made of.
const operators = "|&;()<>"

// A splitter holds the words of a command line so far. In says that a word has begun, which may be empty; quote is the
// quote that is open, or 0.
type splitter struct {
	list  []string
	word  strings.Builder
	in    bool
	quote rune
}

// end ends the word that has begun, if one has.
func (s *splitter) end() {
	if s.in {
		s.list = append(s.list, s.word.String())
	}
	s.drop()
}

// drop forgets the word that has begun.
func (s *splitter) drop() {
	s.word.Reset()
	s.in = false
}

// operator adds a character of an operator: to the operator that stands right before it, or as a word of its own.
func (s *splitter) operator(r rune) {
	if r == '>' && s.in && strings.Trim(s.word.String(), "0123456789") == "" { // the 2 of 2> names a stream
		s.drop()
	}
	if last := len(s.list) - 1; last >= 0 && !s.in && strings.ContainsAny(s.list[last], "|&<>") {
		s.list[last] += string(r)
		return
	}
	s.end()
	s.list = append(s.list, string(r))
}

var figures = regexp.MustCompile(`[0-9$─░\x{2581}-\x{2588}]|  `)

// Shape returns the invariant part of an output line: its text up to the first figure or column.
func Shape(line string) string {
	line = strings.TrimSpace(line)
	if at := figures.FindStringIndex(line); at != nil {
		line = line[:at[0]]
	}
	return strings.TrimSpace(line)
}
