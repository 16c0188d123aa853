package ignore

import "slices"

// glob matches one segment of a path, byte by byte: * matches any text, ? any character, [a-z] one of a set, and \
// quotes the next character. A pattern that ends within a set or after a backslash matches nothing.
func glob(pattern, s string) bool {
	p, i := 0, 0
	starred, resume := -1, 0
	for i < len(s) || p < len(pattern) {
		if p < len(pattern) && pattern[p] == '*' {
			starred, resume = p, i
			p++
			continue
		}
		if p < len(pattern) && i < len(s) {
			if ok, next := one(pattern, p, s[i]); ok {
				p, i = next, i+1
				continue
			}
		}
		if starred < 0 || resume >= len(s) {
			return false
		}
		resume++
		p, i = starred+1, resume
	}
	return true
}

// one matches the character c against the part of pattern at p, and returns where the next part begins.
func one(pattern string, p int, c byte) (ok bool, next int) {
	switch pattern[p] {
	case '?':
		return true, p + 1
	case '[':
		return set(pattern, p+1, c)
	case '\\':
		if p++; p == len(pattern) {
			return false, p
		}
	}
	return pattern[p] == c, p + 1
}

// set matches c against the set after its bracket at p. A leading ] is a member.
func set(pattern string, p int, c byte) (ok bool, next int) {
	negated := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negated {
		p++
	}
	found := false
	for first := true; ; first = false {
		if p >= len(pattern) {
			return false, p
		}
		if pattern[p] == ']' && !first {
			return found != negated, p + 1
		}
		if name, end := class(pattern, p); end > 0 {
			in, known := classes[name]
			if !known {
				return false, len(pattern)
			}
			found, p = found || in(c), end
			continue
		}
		low, high, next := span(pattern, p)
		if p = next; p > len(pattern) {
			return false, p
		}
		found = found || low <= c && c <= high
	}
}

// span returns the character or range (such as a-z) at p, and its end.
func span(pattern string, p int) (low, high byte, next int) {
	low, next = member(pattern, p)
	if next+1 < len(pattern) && pattern[next] == '-' && pattern[next+1] != ']' {
		high, next = member(pattern, next+1)
		return low, high, next
	}
	return low, low, next
}

// member returns the character at p, which a backslash may quote, and its end. The end is beyond the pattern if the
// pattern is cut off.
func member(pattern string, p int) (c byte, next int) {
	if pattern[p] == '\\' {
		p++
	}
	if p >= len(pattern) {
		return 0, len(pattern) + 1
	}
	return pattern[p], p + 1
}

// class returns the name of a class such as [:digit:] at p, and its end, or 0 if there is none.
func class(pattern string, p int) (name string, end int) {
	if p+1 >= len(pattern) || pattern[p] != '[' || pattern[p+1] != ':' {
		return "", 0
	}
	for e := p + 2; e < len(pattern); e++ {
		if pattern[e] == ']' {
			if pattern[e-1] != ':' || e-1 < p+2 {
				return "", 0
			}
			return pattern[p+2 : e-1], e + 1
		}
	}
	return "", 0
}

func within(low, high byte) func(byte) bool {
	return func(c byte) bool { return low <= c && c <= high }
}

func either(fs ...func(byte) bool) func(byte) bool {
	return func(c byte) bool {
		return slices.ContainsFunc(fs, func(f func(byte) bool) bool { return f(c) })
	}
}

var (
	digit, lower, upper = within('0', '9'), within('a', 'z'), within('A', 'Z')
	punct               = either(within('!', '/'), within(':', '@'), within('[', '`'), within('{', '~'))
)

var classes = map[string]func(byte) bool{
	"digit": digit, "lower": lower, "upper": upper, "punct": punct,
	"alpha":  either(lower, upper),
	"alnum":  either(lower, upper, digit),
	"xdigit": either(digit, within('a', 'f'), within('A', 'F')),
	"space":  either(within('\t', '\r'), within(' ', ' ')),
	"blank":  either(within('\t', '\t'), within(' ', ' ')),
	"print":  within(' ', '~'),
	"graph":  within('!', '~'),
	"cntrl":  either(within(0, 31), within(127, 127)),
}
