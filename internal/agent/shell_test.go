package agent

import (
	"strings"
	"testing"

	"scrimp/internal/lib/child"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

const printsShell = `echo "|$PGPASSWORD|$AWS_SECRET_ACCESS_KEY|$HF_HOME|$VIRTUAL_ENV|${PATH%%:*}|$https_proxy|$LC_ALL|"`

// If the agent's environment is the server's shell, the program gets only the variables of the
// machine and those of its submitter's shell. If it is the machine's own, the program gets
// everything except store credentials, which are for the agent.
func TestEnvironment_HidesServersShell(t *testing.T) {
	t.Parallel()
	for borrowed, want := range map[bool]string{
		true: "|||/hub|/mine|/mine/bin|http://proxy|C|\n", false: "|pg||/hub|/mine|/mine/bin|http://proxy|C|\n",
	} {
		a := assign(t, "")
		a.Args, a.Command = nil, printsShell
		a.Shell = map[string]string{"PATH": "/mine/bin:/bin", "VIRTUAL_ENV": "/mine", "HF_HOME": "/hub"}
		r := newRig(t, a)
		r.config.Borrowed = borrowed
		r.config.Environ = []string{"PATH=/bin", "PGPASSWORD=pg", "AWS_SECRET_ACCESS_KEY=aws", "VIRTUAL_ENV=/server",
			"https_proxy=http://proxy", "LC_ALL=C"}
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if log := string(r.server.log); log != want {
			t.Errorf("borrowed is %v: the program finds %q", borrowed, log)
		}
	}
}

// The log of a program on another machine lists the variables of the submitter's shell that are not set.
func TestEnvironment_ListsWithheldVariables(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, ""))
	r.server.assignment.Args, r.server.assignment.Command, r.server.assignment.Withheld = nil, printsShell, []string{"HF_HOME"}
	saysWhatIsNotSet(t, r)
}

// The same holds for a task with its own user, who cannot read the submitter's files.
func TestEnvironment_WithholdsShellFromTaskUser(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	r := separated(t, printsShell)
	r.server.assignment.Shell = map[string]string{"PATH": "/mine/bin:/bin", "HF_HOME": "/hub"}
	saysWhatIsNotSet(t, r)
}

// saysWhatIsNotSet runs printsShell, which finds none of the variables.
func saysWhatIsNotSet(t *testing.T, r *rig) {
	t.Helper()
	const said = "scrimp: not set on this machine, which does not share the files of the shell that submitted: HF_HOME (inherit): " +
		"write values for it under env or secrets\n"
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if log := string(r.server.log); !strings.HasPrefix(log, said+"||||") || strings.Contains(log, "/mine") {
		t.Errorf("it says %q", log)
	}
}

// OfMachine matches the variables of a machine in upper and lower case.
func TestOfMachine(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"PATH": true, "LC_ALL": true, "https_proxy": true, "HTTPS_PROXY": true, "CUDA_HOME": true,
		"PATHS": false, "AWS_PROFILE": false, "PGPASSWORD": false, "VIRTUAL_ENV": false, "path": false, "proxy": false} {
		if got := child.OfMachine(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range api.Shell[1:] {
		if child.OfMachine(name) {
			t.Errorf("%s is the submitter's", name)
		}
	}
}
