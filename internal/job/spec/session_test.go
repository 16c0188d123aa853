package spec_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
)

// A session has no program of its own, saves its whole work folder, and has one machine.
func TestSession_RefusesWhatItCannotHave(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const whole = "checkpoint: {dir: .}\n"
	for text, want := range map[string]string{
		"session: shell\n" + whole:                                        "",
		"session: notebook\nidle: 20m\n" + whole:                          "",
		"session: desk\n" + whole:                                         "it is one of shell, notebook",
		"session: shell\ncommand: a\n" + whole:                            "`command` stands beside session",
		"session: shell\nargs: [a]\n" + whole:                             "`args` stands beside session",
		"session: shell\n":                                                "`checkpoint.dir` is \"\", and a session saves its whole work folder",
		"session: shell\ncheckpoint: {dir: out}\n":                        "write checkpoint: {dir: \".\"}",
		"session: shell\nnodes: 2\n" + whole:                              "`nodes` is above 1",
		"session: shell\nany_of: [{name: b, args: [--x]}]\n" + whole:      "`any_of[0].args` has no program",
		"command: a\n" + whole:                                            "`checkpoint.dir` is the work folder itself",
		"session: shell\nany_of: [lab, {name: b, env: {A: b}}]\n" + whole: "",
	} {
		_, _, err := spec.Parse(spec.Run, "job.yaml", []byte(text), "j", at)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
