package accelerator

import (
	"strings"

	"scrimp/internal/lib/nearest"
)

// mostNear bounds how many names Nearest gives.
const mostNear = 4

// Nearest continues a sentence that says that nobody sells the accelerators of a request, such as H100:8. It gives the
// kind that a misspelt name may mean, and the kinds of what is for sale with the most similar names.
func Nearest[T any](wanted string, sale []T, of func(T) string) (text string) {
	kind, _, _ := strings.Cut(wanted, ":")
	known := strings.EqualFold(kind, AnyKind)
	var names []string
	for _, a := range accelerators {
		family, _, _ := strings.Cut(a.Name, "-")
		names, known = append(names, a.Name, family), known || Matches(kind, a.Name)
	}
	if near := nearest.Of(strings.ToUpper(kind), names); !known && near != "" {
		text = " (did you mean " + near + "?)"
	}
	var sold []string
	for _, s := range sale {
		if name := of(s); name != "" {
			sold = append(sold, name)
		}
	}
	if sold = nearest.Order(strings.ToUpper(kind), sold); len(sold) > 0 {
		text += "; the nearest for sale are " + strings.Join(sold[:min(mostNear, len(sold))], ", ")
	}
	return text
}
