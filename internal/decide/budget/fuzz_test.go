package budget

import (
	"strings"
	"testing"

	"scrimp/internal/decide/ledger"
)

// A valid scope covers the jobs that it names, in either case, and no others.
func FuzzScope(f *testing.F) {
	for _, text := range []string{"all", "team:chat", "team:Chat", "tag:a=b", "tag:a=b=c", "user:", "tag:=", "project:chat\u200b", "team:a:b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScope(text)
		if err != nil || s == All {
			return
		}
		kind, name, _ := strings.Cut(text, ":")
		if strings.TrimSpace(text) != text || s.Holds(ledger.Owner{Team: "none"}, "none") && name != "none" {
			t.Errorf("%q is let in", text)
		}
		if kind == "team" && (!s.Holds(ledger.Owner{Team: strings.ToUpper(name)}, "") || s.Holds(ledger.Owner{Project: name}, name)) {
			t.Errorf("%q holds another team", text)
		}
	})
}
