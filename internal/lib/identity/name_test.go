package identity_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"scrimp/internal/lib/identity"
)

func TestWrongName_RefusesOtherSpellings(t *testing.T) {
	for _, name := range []string{"chat", "a", "7b", "ann@example.com", "vision_2.lanes", strings.Repeat("a", 63)} {
		if fix := identity.WrongName(name); fix != "" {
			t.Errorf("%q: %s", name, fix)
		}
	}
	for name, as := range map[string]string{"Chat": "chat", "chat ": "chat", "chat\u200b": "chat", "ｃｈａｔ": "chat", "CHAT\t": "chat",
		"": "", "-x": "", "ch\u0430t": "cht", "a/b": "", strings.Repeat("a", 64): ""} {
		fix := identity.WrongName(name)
		if fix == "" || as != "" && !strings.HasSuffix(fix, " "+as) || as == "" && strings.Contains(fix, "as in") {
			t.Errorf("%q: %q, want as in %q", name, fix, as)
		}
	}
	for _, text := range []string{"", "Chat", "v3", "für alle", "日本語", "a b", "llama-3.1 (8B)", "👍"} {
		if fix := identity.WrongLabel(text); fix != "" {
			t.Errorf("label %q: %s", text, fix)
		}
	}
	for _, text := range []string{"chat ", " chat", "ch  at", "chat\u200b", "chat\u00ad", "\u202echat", "chat\u3164", "cha\u0000t",
		"chat\ufe0f", "fu\u0308r", "chat\n", "chat\u00a0", "\xff", strings.Repeat("a", 129), "chat\U000e0041"} {
		if identity.WrongLabel(text) == "" {
			t.Errorf("label %q is let in", text)
		}
	}
	if !identity.Same("Chat", "chat") || identity.Same("chat", "chats") {
		t.Error("Same is not the same")
	}
}

// A valid name or label is in its normal form, and no two names look the same.
func FuzzName(f *testing.F) {
	for _, text := range []string{"chat", "Chat", "chat\u200b", "\xff", "é", "e\u0301"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if identity.WrongName(text) == "" && (strings.ToLower(text) != text || strings.TrimSpace(text) != text) {
			t.Errorf("%q is a name", text)
		}
		if identity.WrongLabel(text) == "" && (!utf8.ValidString(text) || strings.ContainsAny(text, "\u200b\u200d\u2060\ufeff\u202e\n\t")) {
			t.Errorf("%q is a label", text)
		}
	})
}
