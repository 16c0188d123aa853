package folderblob

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// asidePrefix begins the name of a file that is being written. No key maps to such a name, because a percent sign in
// a key becomes %25.
const asidePrefix = ".%aside-"

// errKey says that a key cannot be a file name.
var errKey = errors.New("key cannot be a file name")

// keyPath returns the slash path of a key below the folder. Every key has one path, and no two share one: bytes
// outside a plain name become %XX, an empty element becomes a single %, and . and .. are escaped, so that no key
// leaves the folder.
func keyPath(key string) (string, error) {
	if key == "" {
		return "", fmt.Errorf("%w: it is empty", errKey)
	}
	elements := strings.Split(key, "/")
	for i, e := range elements {
		elements[i] = escape(e)
		if len(elements[i]) > 255 {
			return "", fmt.Errorf("%w: an element is longer than 255 bytes: %.40s…", errKey, e)
		}
	}
	return strings.Join(elements, "/"), nil
}

func escape(e string) string {
	switch e {
	case "":
		return "%"
	case ".", "..":
		return "%2E" + e[1:]
	}
	plain := true
	for i := range len(e) {
		plain = plain && !special(e[i])
	}
	if plain {
		return e
	}
	var b strings.Builder
	for i := range len(e) {
		if special(e[i]) {
			fmt.Fprintf(&b, "%%%02X", e[i])
		} else {
			b.WriteByte(e[i])
		}
	}
	return b.String()
}

func special(c byte) bool {
	return c < ' ' || c == 0x7f || strings.IndexByte(`%\:*?"<>|`, c) >= 0
}

// unescape inverts escape. ok is false for a name that escape never produces: a foreign file, which is not a blob.
func unescape(name string) (element string, ok bool) {
	if name == "%" {
		return "", true
	}
	if !strings.Contains(name, "%") {
		return name, utf8.ValidString(name) && name != "" && escape(name) == name
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		var c byte
		if _, err := fmt.Sscanf(name[i+1:i+3], "%02X", &c); err != nil {
			return "", false
		}
		b.WriteByte(c)
		i += 2
	}
	element = b.String()
	return element, utf8.ValidString(element) && escape(element) == name
}
