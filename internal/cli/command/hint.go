package command

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// hints completes the commands that texts recommend with the flags of all commands that the user gave, so that a copied
// command goes to the same server and data folder.
type hints struct{ root *cobra.Command }

// hintForm matches the beginning of a recommended command, also where a line ends within it.
// The words up to --help belong to it, because help needs no flags.
var hintForm = regexp.MustCompile(`\bscrimp(\s+)([a-z][a-z-]*)\b((?:\s+[a-z-]+)*\s+--help\b)?`)

var (
	// anyServer lists the commands that use the data folder and not the server that --server names.
	anyServer = []string{"login", "serve"}
	// apart lists the commands that use neither.
	apart = []string{"init", "import", "schema", "completion", "agent", "help"}
)

// CompleteHints makes the recommended commands of all output repeat the flags of root that the user gave.
func (a *App) CompleteHints(root *cobra.Command) { a.hints.root = root }

// complete returns the text with the flags in its commands. Values from the environment are left out, because the next
// command has them too.
func (h hints) complete(text string) string {
	if h.root == nil {
		return text
	}
	data, server := h.flag("data"), h.flag("server")
	if data+server == "" {
		return text
	}
	return hintForm.ReplaceAllStringFunc(text, func(hint string) string {
		m := hintForm.FindStringSubmatch(hint)
		is := func(c *cobra.Command) bool { return c.Name() == m[2] }
		if m[3] != "" || slices.Contains(apart, m[2]) || !slices.ContainsFunc(h.root.Commands(), is) {
			return hint // help, or a sentence about scrimp
		}
		flags := data + server
		if slices.Contains(anyServer, m[2]) {
			flags = data
		}
		return "scrimp" + flags + m[1] + m[2]
	})
}

// flag returns a flag that the user gave, as a shell reads it, after a space.
func (h hints) flag(name string) string {
	f := h.root.PersistentFlags().Lookup(name)
	if f == nil || !f.Changed {
		return ""
	}
	return " --" + name + " " + shellWord(f.Value.String())
}

// shellWord quotes a word for the shell if it needs that.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
