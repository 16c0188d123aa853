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

// words splits a command line like a shell, as far as documents need: quotes, and operators as words.
func words(line string) (list []string) {
	var word strings.Builder
	in, quote := false, rune(0)
	end := func() {
		if in {
			list = append(list, word.String())
		}
		word.Reset()
		in = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, in = r, true
		case quote == 0 && unicode.IsSpace(r):
			end()
		case quote == 0 && strings.ContainsRune("|&;()<>", r):
			if r == '>' && in && strings.Trim(word.String(), "0123456789") == "" { // as in 2>
				word.Reset()
				in = false
			}
			if len(list) > 0 && !in && strings.ContainsAny(list[len(list)-1], "|&<>") {
				list[len(list)-1] += string(r)
				continue
			}
			end()
			list = append(list, string(r))
		default:
			in = true
			word.WriteRune(r)
		}
	}
	end()
	return list
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
