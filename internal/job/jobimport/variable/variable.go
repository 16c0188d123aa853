// Package variable defines the environment variables of other systems in terms of scrimp's own.
package variable

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Definitions say how a shell computes the variables of a system.
type Definitions struct {
	Prefix string            // of the names, without the underscore
	Values map[string]string // by name, quoted for the shell
}

// lines turns the addresses that scrimp separates by commas into lines, as SkyPilot and dstack have them.
const lines = `"$(echo "$SCRIMP_NODE_ADDRESSES" | tr , '\n')"`

// SkyPilot, Dstack and Slurm say how a shell computes the variables of each system from those that scrimp sets.
var (
	SkyPilot = Definitions{"SKYPILOT", map[string]string{
		"SKYPILOT_NUM_GPUS_PER_NODE": `"$SCRIMP_PROCS_PER_NODE"`, "SKYPILOT_NODE_RANK": `"$SCRIMP_NODE"`,
		"SKYPILOT_NUM_NODES": `"$SCRIMP_NODES"`, "SKYPILOT_NODE_IPS": lines, "SKYPILOT_TASK_ID": `"$SCRIMP_JOB"`,
	}}
	Dstack = Definitions{"DSTACK", map[string]string{
		"DSTACK_NODES_NUM": `"$SCRIMP_NODES"`, "DSTACK_NODE_RANK": `"$SCRIMP_NODE"`,
		"DSTACK_MASTER_NODE_IP": `"$MASTER_ADDR"`, "DSTACK_NODES_IPS": lines,
		"DSTACK_GPUS_PER_NODE": `"$SCRIMP_PROCS_PER_NODE"`,
		"DSTACK_GPUS_NUM":      `"$((SCRIMP_NODES * SCRIMP_PROCS_PER_NODE))"`, "DSTACK_RUN_NAME": `"$SCRIMP_JOB"`,
	}}
	Slurm = Definitions{"SLURM", map[string]string{
		"SLURM_SUBMIT_DIR": `"$PWD"`, "SLURM_TMPDIR": `"${TMPDIR:-/tmp}"`, "SLURM_NPROCS": `"$SLURM_NTASKS"`,
		"SLURM_NODELIST": `"$SLURM_JOB_NODELIST"`, "SLURM_GPUS_PER_NODE": `"$SCRIMP_PROCS_PER_NODE"`,
	}}
)

// SlurmSet lists the variables that scrimp's programs have in common with Slurm's (docs/agent.md).
var SlurmSet = []string{
	"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_PROCID",
	"SLURM_LOCALID", "SLURM_JOB_NODELIST", "SLURM_GPUS_ON_NODE",
}

// SlurmSetInArrays lists the variables of members of an array, which scrimp sets too.
var SlurmSetInArrays = []string{
	"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
	"SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP",
}

// With returns the definitions with one more.
func (d Definitions) With(name, value string) Definitions {
	d.Values = maps.Clone(d.Values)
	d.Values[name] = value
	return d
}

// Define returns the shell's lines that define the variables of a program, and the names of the variables that it
// cannot define: those without a definition, and those that only the rest, which the lines do not precede, has. It
// leaves out those in set, which scrimp sets itself.
func (d Definitions) Define(program, rest string, set ...string) (lines, missing []string) {
	found := regexp.MustCompile(d.Prefix+`_\w+`).FindAllString(program+rest, -1)
	for i, name := range found {
		value := d.Values[name]
		switch {
		case slices.Contains(set, name) || slices.Contains(found[:i], name):
		case value == "" || !strings.Contains(program, name):
			missing = append(missing, name)
		default:
			lines = append(lines, "export "+name+"="+value)
		}
	}
	return lines, missing
}
