package gc

import (
	"testing"

	"scrimp/internal/cli/command"
	"scrimp/internal/test/must"
)

// A flag with an empty value, as --fit "$UNSET" gives, would remove what the flag should have kept.
func TestGC_RefusesEmptyFlags(t *testing.T) {
	for _, name := range []string{"fit", "older-than", "only", "keep"} {
		for _, value := range []string{"", "x"} {
			cmd := (&app{&command.App{}}).gcCmd()
			must.Do(t, cmd.ParseFlags([]string{"--" + name, value}))
			if err := cmd.PreRunE(cmd, nil); (err == nil) != (value == "x") {
				t.Errorf("--%s %q: %v", name, value, err)
			}
		}
	}
}
