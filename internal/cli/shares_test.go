package cli_test

import (
	"strings"
	"testing"
)

// On a server without teams, the answer says for which jobs the share is. Once a team exists, a misspelt name is refused
// in the words of the command line.
func TestQueueSet_SaysThatNoTeamIsMadeYet(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if out := h.do("queue", "set", "--team", "vision", "--weight", "2"); !strings.Contains(out, "no teams yet") ||
		!strings.Contains(out, "scrimp teams set vision") {
		t.Errorf("without teams: %s", out)
	}
	h.do("teams", "set", "vision")
	if out := h.do("queue", "set", "--team", "vision", "--guarantee", "none"); strings.Contains(out, "no teams yet") {
		t.Errorf("with a team: %s", out)
	}
	for args, says := range map[string]string{
		"queue set --team vison --weight 2":                   `--team: team "vison" is not known`,
		"budgets set --team vison --month --dollars 5":        `--team: team "vison" is not known`,
		"budgets set --scope team:vison --month --dollars $5": `--scope: team "vison" is not known`,
		"budgets share vison":                                 `TEAM: team "vison" is not known`,
	} {
		if text, err := h.try(strings.Fields(args)...); err == nil || !strings.Contains(text, says) {
			t.Errorf("%s: %s, want %s", args, text, says)
		}
	}
}
