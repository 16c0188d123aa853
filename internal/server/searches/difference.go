package searches

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// difference names the fields in which the definition of a search differs from the one that was asked for, both as
// JSON objects.
func difference(is, asked []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(is, &a) != nil || json.Unmarshal(asked, &b) != nil {
		return ""
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, y := string(a[name]), string(b[name])
		switch {
		case x == y:
		case strings.HasPrefix(x, "{") && strings.HasPrefix(y, "{"):
			list = append(list, difference(a[name], b[name]))
		default:
			list = append(list, fmt.Sprintf("its %s is %s and not %s", name, short(x), short(y)))
		}
	}
	return strings.Join(list, ", ")
}

// short returns the start of a value, without the quotes of a text.
func short(json string) string {
	text := []rune(strings.Trim(cmp.Or(json, "none"), `"`))
	if len(text) > 60 {
		return string(text[:60]) + "…"
	}
	if string(text) == "null" {
		return "none"
	}
	return string(text)
}
