// Package pycall finds calls in the text of a Python program and reads their arguments without running it.
package pycall

import (
	"regexp"
	"strings"
)

// Call is a call in a Python text.
type Call struct {
	Name string
	Args []string // source text, trimmed
	then string   // the rest of the line after the closing bracket
}

// Calls returns the calls of functions with the given names, in text order.
func Calls(text string, names ...string) []Call {
	var list []Call
	find := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\(`)
	for _, at := range find.FindAllStringSubmatchIndex(text, -1) {
		line := text[strings.LastIndexByte(text[:at[0]], '\n')+1 : at[0]]
		if strings.Contains(line, "#") || strings.HasSuffix(strings.TrimSpace(line), "def") {
			continue
		}
		if args, end, ok := Arguments(text, at[1]); ok {
			then, _, _ := strings.Cut(text[end:], "\n")
			list = append(list, Call{text[at[2]:at[3]], args, then})
		}
	}
	return list
}

// Arguments splits the text from i to the closing bracket into arguments.
func Arguments(text string, i int) (args []string, end int, ok bool) {
	depth, begin := 0, i
	add := func(to int) {
		if a := strings.TrimSpace(text[begin:to]); a != "" {
			args = append(args, a)
		}
		begin = to + 1
	}
	for i < len(text) {
		switch c := text[i]; c {
		case '"', '\'':
			_, next, ok := Literal(text, i)
			if !ok {
				return nil, 0, false
			}
			i = next
			continue
		case '#':
			comment, _, _ := strings.Cut(text[i:], "\n")
			i += len(comment)
			continue
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if c == ')' && depth == 0 {
				add(i)
				return args, i + 1, true
			}
			depth--
		case ',':
			if depth == 0 {
				add(i)
			}
		}
		i++
	}
	return nil, 0, false
}

// Literal reads the string literal whose quote is at i, and returns its end.
func Literal(text string, i int) (content string, end int, ok bool) {
	quote := text[i : i+1]
	if strings.HasPrefix(text[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	begin := i + len(quote)
	for i = begin; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return text[begin:i], i + len(quote), true
		case text[i] == '\n' && len(quote) == 1:
			return "", 0, false
		}
	}
	return "", 0, false
}

// Part is a piece of printed text: fixed text or an expression.
type Part struct {
	Text string
	Expr bool
	Wide bool // it may be printed with leading spaces
}

// Prefix matches the beginning of a Python string literal.
var Prefix = regexp.MustCompile(`^[fFrRbBuU]{0,2}["']`)

// Parts splits a printed argument into string literals, the values of their braces and percent signs, and expressions.
// rest holds the further arguments, which a logger formats.
func Parts(arg string, rest []string) []Part {
	var list []Part
	i, formatted := 0, false
	for {
		m := Prefix.FindString(arg[i:])
		if m == "" {
			break
		}
		content, end, ok := Literal(arg, i+len(m)-1)
		if !ok {
			break
		}
		if strings.ContainsAny(m, "fF") {
			list = append(list, Braces(content, nil)...)
		} else {
			list = append(list, Part{Text: content})
			formatted = true
		}
		i = len(arg) - len(strings.TrimLeft(arg[end:], " \t\n")) // the next literal continues this one
		if i >= len(arg) {
			break
		}
	}
	if len(list) == 0 {
		return []Part{{Text: arg, Expr: true}}
	}
	if !formatted {
		return list
	}
	return filled(list, strings.TrimSpace(arg[i:]), rest)
}

// filled returns the text with its values filled in: from .format or a percent sign after it, or from a logger's
// further arguments.
func filled(list []Part, after string, rest []string) []Part {
	whole := ""
	for _, p := range list {
		whole += p.Text
	}
	switch {
	case strings.HasPrefix(after, ".format("):
		if args, _, ok := Arguments(after, len(".format(")); ok {
			return Braces(whole, args)
		}
	case strings.HasPrefix(after, "%"):
		after = strings.TrimSpace(after[1:])
		if strings.HasPrefix(after, "(") {
			if args, _, ok := Arguments(after, 1); ok {
				return percents(whole, args)
			}
		}
		return percents(whole, []string{after})
	case after == "" && len(rest) > 0 && percent.MatchString(whole):
		return percents(whole, rest)
	}
	return list
}

// Braces splits a text with {expression:form}; args fill {} and {0}.
func Braces(s string, args []string) []Part {
	var list []Part
	fixed, next := "", 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "{{") || strings.HasPrefix(s[i:], "}}"):
			fixed += s[i : i+1]
			i++
		case s[i] == '{':
			j, ok := closing(s, i)
			if !ok {
				return append(list, Part{Text: fixed})
			}
			list = append(list, Part{Text: fixed})
			fixed = ""
			expr, wide := s[i+1:j], false
			if m := regexp.MustCompile(`^(.*?)(=)?(![rsa])?(:[^:\]]*)?$`).FindStringSubmatch(expr); m != nil {
				if m[2] != "" { // {name=} prints the name, too
					list = append(list, Part{Text: m[1] + "="})
				}
				expr, wide = m[1], width.MatchString(m[4])
			}
			if args != nil {
				expr = filler(expr, args, &next)
			}
			list = append(list, Part{strings.TrimSpace(expr), true, wide})
			i = j
		default:
			fixed += s[i : i+1]
		}
	}
	return append(list, Part{Text: fixed})
}

// closing returns the index of the brace that closes the one at i.
func closing(s string, i int) (end int, ok bool) {
	depth := 0
	for j := i; j < len(s); j++ {
		switch s[j] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return j, true
			}
		}
	}
	return 0, false
}

// filler returns the argument of .format for {}, {0} or {name}, or else the text between the braces. next counts the
// {}.
func filler(expr string, args []string, next *int) string {
	k := *next
	switch {
	case expr == "":
		*next++
	case strings.Trim(expr, "0123456789") == "":
		k = 0
		for _, c := range expr {
			k = min(10*k+int(c-'0'), len(args))
		}
	default:
		k = len(args)
		for n, a := range args {
			if value, ok := strings.CutPrefix(a, expr+"="); ok {
				args[n], k = value, n
			}
		}
	}
	if k < len(args) {
		return args[k]
	}
	return expr
}

// width matches a minimum width in {:5d} and %5d.
var width = regexp.MustCompile(`^[:%][-+<>^=]*[1-9]`)

var percent = regexp.MustCompile(`%[-+ 0#]*\d*(?:\.\d+)?[diufeEgGsrx]`)

// percents splits a text with %d and similar verbs.
func percents(s string, args []string) []Part {
	var list []Part
	for k := 0; ; k++ {
		at := percent.FindStringIndex(s)
		if at == nil {
			return append(list, Part{Text: strings.ReplaceAll(s, "%%", "%")})
		}
		expr := ""
		if k < len(args) {
			expr = args[k]
		}
		list = append(list, Part{Text: strings.ReplaceAll(s[:at[0]], "%%", "%")},
			Part{expr, true, width.MatchString(s[at[0]:at[1]])})
		s = s[at[1]:]
	}
}
