package command_test

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/command"
)

// An error of the server names the flag instead of the field of the request.
func TestInFlags_NamesTheFlagOfAField(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{"half_life_ns": "--half-life: no team has a share yet", "team": "--team: no",
		"other": "other: no", "": "no"} {
		sent := &api.Problem{Title: "no team has a share yet", Field: field}
		err := command.InFlags(sent, map[string]string{"half_life_ns": "--half-life", "team": "--team"})
		if !strings.HasPrefix(err.Error(), want) || sent.Field != field {
			t.Errorf("%q: %v", field, err)
		}
	}
}
