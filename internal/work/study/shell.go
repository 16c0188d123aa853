package study

import (
	"slices"
	"strings"
)

// script is a shell command as far as a warning needs it: its simple commands in order, and what follows the last one,
// such as a comment or a closing bracket. It does not look into $(…), quotes and functions.
type script struct {
	commands []simple
	end      string
}

// simple is a simple command.
type simple struct {
	words []string
	piped bool // it reads the output of the one before
	away  bool // its output goes to a file
}

// prefixes may precede the program of a simple command.
var prefixes = []string{"exec", "time", "nohup", "env", "then", "do", "else", "{", "!", "sudo", "nice"}

// program returns the name of the program, without variables that are set for it.
func (c *simple) program() string {
	for _, w := range c.words {
		if name, _, sets := strings.Cut(w, "="); !slices.Contains(prefixes, w) && (!sets || !variable.MatchString(name)) {
			return w
		}
	}
	return ""
}

// scanner reads a script.
type scanner struct {
	script
	rest   string
	word   strings.Builder
	inWord bool
	now    simple
	target string   // the redirection whose target is the next word; empty: none
	here   []string // the ends of the here-documents that begin on this line
}

// scan reads a shell command.
func scan(text string) script {
	s := &scanner{rest: strings.TrimSpace(text)}
	for s.rest != "" {
		s.next()
	}
	s.ends()
	return s.script
}

// take returns and skips the next n bytes.
func (s *scanner) take(n int) string {
	n = min(n, len(s.rest))
	text := s.rest[:n]
	s.rest = s.rest[n:]
	return text
}

// adds adds a text to the word.
func (s *scanner) adds(text string) {
	s.word.WriteString(text)
	s.inWord, s.end = true, ""
}

func (s *scanner) next() {
	switch c := s.rest[0]; c {
	case '\\':
		if text := s.take(2); text != "\\\n" {
			s.adds(text[1:])
		}
	case '\'', '"', '`':
		s.adds(strings.Trim(s.take(closing(s.rest, c)), string(c)))
	case '$':
		s.adds(s.take(expansion(s.rest)))
	case ' ', '\t', '\r':
		s.take(1)
		s.endWord()
	case '\n':
		s.take(1)
		s.ends()
		s.skipsHere()
	case '#':
		if s.inWord {
			s.adds(s.take(1))
			return
		}
		end, _, _ := strings.Cut(s.rest, "\n")
		s.end = s.take(len(end))
	case ';', '&', '|', '(', ')', '<', '>':
		s.operator()
	default:
		s.adds(s.take(1))
	}
}

// closing returns the length of a quoted text with its quotes.
func closing(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '\'':
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return len(text)
}

// expansion returns the length of $(…), ${…} or a plain $.
func expansion(text string) int {
	depth := 0
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth--
		}
		if depth <= 0 {
			return min(i+1, len(text)) - map[bool]int{true: 1}[i == 1]
		}
	}
	return len(text)
}

// operator reads an operator or a redirection.
func (s *scanner) operator() {
	n := 1
	for n < len(s.rest) && strings.IndexByte("&|<>;-", s.rest[n]) >= 0 {
		n++
	}
	if s.rest[0] == '(' || s.rest[0] == ')' {
		n = 1
	}
	op := s.take(n)
	if strings.ContainsAny(op, "<>") {
		fd := ""
		if text := s.word.String(); s.inWord && strings.Trim(text, "0123456789") == "" {
			fd, s.inWord = text, false
			s.word.Reset()
		}
		s.endWord()
		s.target = fd + op
		return
	}
	s.ends()
	s.now.piped = op == "|" || op == "|&"
	s.end = op
}

// endWord ends a word: it belongs to the command, or is the target of a redirection.
func (s *scanner) endWord() {
	if !s.inWord {
		return
	}
	word, op := s.word.String(), s.target
	s.word.Reset()
	s.inWord, s.target = false, ""
	switch op {
	case "":
		s.now.words = append(s.now.words, word)
	case "<<", "<<-":
		s.here = append(s.here, word)
	case ">", ">>", ">|", "1>", "1>>", "&>", "&>>", ">&":
		s.now.away = strings.Trim(word, "0123456789") != "" && (!strings.HasPrefix(word, "/dev/") || word == "/dev/null")
	}
}

// ends ends a simple command.
func (s *scanner) ends() {
	s.endWord()
	if len(s.now.words) > 0 {
		s.commands = append(s.commands, s.now)
	}
	s.now = simple{}
}

// skipsHere skips the here-documents that begin on the line before.
func (s *scanner) skipsHere() {
	for _, end := range s.here {
		for s.rest != "" {
			line, _, _ := strings.Cut(s.rest, "\n")
			s.take(len(line) + 1)
			if strings.TrimLeft(line, "\t") == end {
				s.end = end
				break
			}
		}
	}
	s.here = nil
}
