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
		"rnu job.yaml": "did you mean roi, run? scrimp --help lists all", "catalog shwo": "did you mean show?",
		"budgets sett x": "did you mean set?", "engine lsit": "did you mean list?",
		"ab no.yaml --set a=b": "no.yaml: no such file", "--json catalog shwo": "did you mean show?",
		"kill p1": "did you mean cancel, stop, gc?", "ps": "did you mean jobs, status, queue?",
		"ls": "did you mean jobs, status, queue?", "submit x": "did you mean run?", "delete p1": "did you mean cancel, stop",
		"list":          "did you mean jobs, status",
		"--json squeue": "did you mean jobs", "qz": `unknown command "qz" for "scrimp": scrimp --help lists them`,
		"help ssh": "did you mean shell, exec?", "help zzzzz": "scrimp --help lists them", "help catalog shwo": "did you mean show?",
		"catalog zzz": "scrimp catalog --help lists them", "engine --josn": "unknown flag",
	} {
		out, errs, code := scrimp(t, strings.Fields(line)...)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %q %q, want %q", line, code, out, errs, want)
		}
	}
	for _, line := range []string{"help", "help run", "help catalog", "help help", "help engine add", "run --help"} {
		if out, errs, code := scrimp(t, strings.Fields(line)...); code != 0 || errs != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
		}
	}
	if out, errs, code := scrimp(t, "engine"); code != 0 || errs != "" || !strings.Contains(out, "Available Commands") {
		t.Errorf("engine: %d %s %s", code, out, errs)
	}
}
