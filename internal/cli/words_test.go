package cli

import (
	"testing"

	"scrimp/internal/cli/command"

	"github.com/spf13/cobra"
)

// Each command that a word of another tool is answered with exists somewhere, and no word is a command itself.
func TestMain_AnswersWordsOfOtherToolsWithCommands(t *testing.T) {
	names := map[string]bool{}
	commands(t, func(c *cobra.Command) { names[c.Name()] = true })
	for word, list := range command.Meanings {
		for _, name := range list {
			if !names[name] {
				t.Errorf("%s is answered with %s, which is no command", word, name)
			}
		}
		if found, _, err := Root().Find([]string{word}); err == nil && found.Name() == word {
			t.Errorf("%s is a command", word)
		}
	}
}
