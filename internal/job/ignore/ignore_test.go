package ignore

import "testing"

func TestMatch_FollowsGitDocumentation(t *testing.T) {
	for _, c := range []struct {
		patterns, name string
		folder, want   bool
	}{
		{"*.pt", "a/b/model.pt", false, true},
		{"*.pt\n!keep.pt", "keep.pt", false, false},
		{"/data", "data", true, true},
		{"/data", "sub/data", true, false},
		{"data/", "data", false, false},
		{"data/", "sub/data", true, true},
		{"doc/*.txt", "doc/notes.txt", false, true},
		{"doc/*.txt", "doc/server/arch.txt", false, false},
		{"**/logs", "a/b/logs", true, true},
		{"logs/**", "logs/a/b", false, true},
		{"logs/**", "logs", true, false},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/x/y/b", false, true},
		{"# comment", "# comment", false, false},
		{`\#name`, "#name", false, true},
		{`\!name`, "!name", false, true},
		{"[!a]x", "bx", false, true},
		{"[!a]x", "ax", false, false},
		{"name  ", "name", false, true},
		{"", "anything", false, false},
	} {
		if got := Parse(c.patterns).Match(c.name, c.folder); got != c.want {
			t.Errorf("%q on %q (folder %v) = %v, want %v", c.patterns, c.name, c.folder, got, c.want)
		}
	}
}
