package check

import (
	"fmt"
	"strings"
)

// Found describes what a program would find where jobs run, as far as this shell shows it.
type Found struct {
	Elsewhere   bool     // the server runs on another machine
	Python      string   // python3 with its version; empty if PATH has none
	Environment string   // active virtual or Conda environment; empty for none
	Path        []string // folders of PATH
	Missing     string   // the command's program if it is not on PATH; empty if none is missing
}

// namedFolders bounds how many folders of PATH are named, the first ones first.
const namedFolders = 3

// Text formats it for people. It excludes what the job's setup installs.
func (f *Found) Text() string {
	if f.Elsewhere {
		return "the server is elsewhere: programs find the PATH and the Python of their machine, and nothing of this shell"
	}
	text := "jobs on this machine find no python3"
	if f.Python != "" {
		text = "jobs on this machine find python3 as " + f.Python
	}
	if f.Environment != "" {
		text += ", and the environment " + f.Environment
	}
	path := strings.Join(f.Path[:min(len(f.Path), namedFolders)], ", ")
	if more := len(f.Path) - namedFolders; more > 0 {
		path += fmt.Sprintf(" and %d more", more)
	}
	return text + "; PATH is this shell's: " + path + ". Other machines get nothing of this shell"
}

// python judges whether the program finds what its command names.
func python(c *Case) (Verdict, string, string) {
	f := c.Found
	const installs = "install what it needs under setup"
	switch {
	case f == nil:
		return Unknown, "not checked", "run scrimp check in the shell that submits"
	case f.Elsewhere:
		return Unknown, f.Text(), installs
	case f.Missing == "":
		return Pass, f.Text(), ""
	case c.Job.Setup != "":
		return Warn, f.Missing + " is not on PATH, unless setup installs it; " + f.Text(), "see that setup installs it"
	}
	return Fail, f.Missing + " is not on PATH; " + f.Text(), "activate the environment that has it before you submit, " +
		"or " + installs
}
