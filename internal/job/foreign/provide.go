package foreign

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lines turns the addresses that scrimp separates by commas into lines, as SkyPilot and dstack have them.
const lines = `"$(echo "$SCRIMP_NODE_ADDRESSES" | tr , '\n')"`

// skySets, dstackSets and slurmSets say how a shell computes variables of the other system from those that scrimp sets.
var (
	skySets = map[string]string{
		"SKYPILOT_NUM_GPUS_PER_NODE": `"$SCRIMP_PROCS_PER_NODE"`, "SKYPILOT_NODE_RANK": `"$SCRIMP_NODE"`,
		"SKYPILOT_NUM_NODES": `"$SCRIMP_NODES"`, "SKYPILOT_NODE_IPS": lines, "SKYPILOT_TASK_ID": `"$SCRIMP_JOB"`,
	}
	dstackSets = map[string]string{
		"DSTACK_NODES_NUM": `"$SCRIMP_NODES"`, "DSTACK_NODE_RANK": `"$SCRIMP_NODE"`,
		"DSTACK_MASTER_NODE_IP": `"$MASTER_ADDR"`, "DSTACK_NODES_IPS": lines,
		"DSTACK_GPUS_PER_NODE": `"$SCRIMP_PROCS_PER_NODE"`,
		"DSTACK_GPUS_NUM":      `"$((SCRIMP_NODES * SCRIMP_PROCS_PER_NODE))"`, "DSTACK_RUN_NAME": `"$SCRIMP_JOB"`,
	}
	slurmSets = map[string]string{
		"SLURM_SUBMIT_DIR": `"$PWD"`, "SLURM_TMPDIR": `"${TMPDIR:-/tmp}"`, "SLURM_NPROCS": `"$SLURM_NTASKS"`,
		"SLURM_NODELIST": `"$SLURM_JOB_NODELIST"`, "SLURM_GPUS_PER_NODE": `"$SCRIMP_PROCS_PER_NODE"`,
	}
)

// provide puts definitions of the other system's variables before the program, as far as scrimp can compute them. It
// reports the others as lost, unless they are in set, which lists those that scrimp sets itself.
func (d *draft) provide(n *yaml.Node, prefix string, sets map[string]string, set ...string) {
	program := d.command + d.script
	found := regexp.MustCompile(prefix+`_\w+`).FindAllString(program+d.setup+strings.Join(d.args, " "), -1)
	var defined []string
	for i, name := range found {
		value := sets[name]
		switch {
		case slices.Contains(set, name) || slices.Contains(found[:i], name):
		case value == "" || !strings.Contains(program, name):
			d.lose(n, name, "scrimp does not set it: read what it says from SCRIMP_NODE and the like (docs/agent.md), or "+
				"set it under env")
		default:
			defined = append(defined, "export "+name+"="+value)
		}
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
