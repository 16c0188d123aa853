package view

// A JSON scanner for one level of a text. Decoding each event of the log completely takes ten times as long, and most
// of it is not needed. The store holds valid JSON; the scanner reads what it can of other text.

// members calls f with each member of a JSON object. Keys have their quotes.
func members(text []byte, f func(key, value []byte)) {
	var key []byte
	level(text, '{', func(value []byte) {
		if key == nil {
			key = value
			return
		}
		f(key, value)
		key = nil
	})
}

// elements calls f with each element of a JSON array.
func elements(text []byte, f func(value []byte)) { level(text, '[', f) }

// level calls f with each value of an object or array, and with each key.
func level(text []byte, begin byte, f func(value []byte)) {
	at := spaces(text, 0)
	if at >= len(text) || text[at] != begin {
		return
	}
	for at++; at < len(text); {
		switch text[at] {
		case ' ', '\t', '\n', '\r', ',', ':':
			at++
		case '}', ']':
			return
		default:
			end := valueEnd(text, at)
			f(text[at:end])
			at = end
		}
	}
}

func spaces(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
		at++
	}
	return at
}

// valueEnd returns the end of the value that begins at at.
func valueEnd(text []byte, at int) int {
	switch text[at] {
	case '"':
		return stringEnd(text, at)
	case '{', '[':
		return nestedEnd(text, at)
	}
	for at < len(text) {
		switch text[at] {
		case ',', ':', '}', ']', ' ', '\t', '\n', '\r':
			return at
		}
		at++
	}
	return at
}

// nestedEnd returns the end of the object or array that begins at at.
func nestedEnd(text []byte, at int) int {
	for deep := 0; at < len(text); {
		switch text[at] {
		case '"':
			at = stringEnd(text, at)
			continue
		case '{', '[':
			deep++
		case '}', ']':
			deep--
		}
		if at++; deep == 0 {
			return at
		}
	}
	return len(text)
}

// stringEnd returns the end of the string that begins at at.
func stringEnd(text []byte, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(text)
}

// named calls f with the name and the text of each fact of a record. Names have their quotes.
func named(facts []byte, f func(name, fact []byte)) {
	var name []byte
	elements(facts, func(value []byte) { // names and facts alternate
		if name == nil {
			name = value
			return
		}
		f(name, value)
		name = nil
	})
}

// inBody calls f with each member of an event's body. Keys have their quotes.
func inBody(event []byte, f func(key, value []byte)) {
	members(event, func(key, value []byte) {
		if string(key) == `"body"` {
			members(value, f)
		}
	})
}
