package jobimport

import (
	"strings"

	"scrimp/internal/job/jobimport/variable"

	"go.yaml.in/yaml/v3"
)

// provide puts definitions of the other system's variables before the program, as far as scrimp can compute them. It
// reports the others as lost.
func (d *draft) provide(n *yaml.Node, with variable.Definitions, set ...string) {
	program := d.command + d.script
	defined, missing := with.Define(program, d.setup+strings.Join(d.args, " "), set...)
	for _, name := range missing {
		d.lose(n, name, "scrimp does not set it: read what it says from SCRIMP_NODE and the like (docs/agent.md), or "+
			"set it under env")
	}
	d.before(defined...)
}

// before puts lines before the program.
func (d *draft) before(list ...string) {
	if len(list) == 0 {
		return
	}
	head := strings.Join(list, "\n") + "\n"
	if d.script != "" {
		d.script = head + d.script
	} else if d.command != "" {
		d.command = head + d.command
	}
}
