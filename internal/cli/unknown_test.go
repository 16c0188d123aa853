package cli_test

import (
	"strings"
	"testing"
)

// A command that is misspelt at any depth is an error that suggests the nearest ones; a group of commands alone shows its
// help.
func TestMain_SuggestsNearCommandsAtAnyDepth(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"rnu job.yaml": "Did you mean this?\n\troi\n\trun", "catalog shwo": "did you mean show?",
		"budgets sett x": "did you mean set?", "engine lsit": "did you mean list?",
		"ab no.yaml --set a=b": "no.yaml: no such file", "--json catalog shwo": "did you mean show?",
		"catalog zzz": "scrimp catalog --help lists them", "engine --josn": "unknown flag",
	} {
		out, errs, code := scrimp(t, strings.Fields(line)...)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %q %q, want %q", line, code, out, errs, want)
		}
	}
	if out, errs, code := scrimp(t, "engine"); code != 0 || errs != "" || !strings.Contains(out, "Available Commands") {
		t.Errorf("engine: %d %s %s", code, out, errs)
	}
}
