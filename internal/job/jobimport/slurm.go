package jobimport

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport/reason"
	"scrimp/internal/job/jobimport/slurm"
	"scrimp/internal/job/jobimport/variable"
	"scrimp/internal/job/spec"
)

var directive = regexp.MustCompile(`^#SBATCH\s+(.*)$`)

// sbatch collects the directives that belong together.
type sbatch struct {
	nodes, tasks, perNode, cpus int
	memory, perCPU              int64 // MiB per node, and per processor
	mostNodes                   int   // of a range; nodes is its lower end
	gpu, gpuKind                string
	kinds                       []string // accelerators; the job needs one of them
	gpusInAll, gpusByTask       bool
	perGPU                      int64 // MiB per accelerator
	cpusPerGPU                  int
	partition, constraint       given // both may name an accelerator
	array                       string
	nodesAt                     *yaml.Node
	launched                    bool // the script starts its program with srun
}

func (d *draft) slurm(base, whole string) error {
	lines := strings.Split(strings.ReplaceAll(whole, "\r\n", "\n"), "\n")
	shell := "/bin/sh"
	var body []string
	s := sbatch{nodes: 1, cpus: 1}
	directives := true
	for i, line := range lines {
		at := &yaml.Node{Line: i + 1}
		m := directive.FindStringSubmatch(line)
		switch {
		case i == 0 && strings.HasPrefix(line, "#!"):
			shell = strings.TrimSpace(line[2:])
		case m != nil && directives:
			d.options(at, m[1], &s)
		case m != nil:
			d.lose(at, strings.TrimSpace(m[1]), "it stands behind the first command, where sbatch does not read it either")
		default:
			if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
				directives = false
			}
			body = append(body, d.line(at, line, &s))
		}
	}
	d.onMachines(&s)
	d.chooseKinds(&s)
	d.machine(&s)
	d.shell(shell, base, strings.Trim(strings.Join(body, "\n"), "\n"))
	have := variable.SlurmSet
	if s.array != "" {
		have = slices.Concat(variable.SlurmSet, variable.SlurmSetInArrays)
	}
	with := variable.Slurm.With("SLURM_CPUS_PER_TASK", strconv.Itoa(s.cpus))
	d.provide(&yaml.Node{Line: 1}, with, have...)
	if strings.Contains(d.command+d.script, "scontrol show hostname") {
		d.before("scontrol() { echo \"$SCRIMP_NODE_ADDRESSES\" | tr , '\\n'; } # the machines' addresses")
	}
	return nil
}

// shell sets the script and the shell of its first line; base is the file's name.
func (d *draft) shell(shell, base, script string) {
	fields := strings.Fields(shell)
	name := ""
	if len(fields) > 0 {
		name = fields[0][strings.LastIndexByte(fields[0], '/')+1:]
	}
	if name == "env" && len(fields) > 1 {
		name, fields = fields[1], fields[1:]
	}
	switch {
	case strings.TrimSpace(script) == "":
	case name == "bash" || name == "sh" || name == "dash":
		for _, flag := range fields[1:] {
			if strings.HasPrefix(flag, "-") && strings.Trim(flag, "-eux") == "" {
				script = "set " + flag + "\n" + script
			}
		}
		if name == "bash" && strings.Contains(script, "\n") {
			d.script = script
		} else {
			d.run(script)
		}
	default:
		d.args = []string{name, base}
	}
}

// line removes from a script line what only a Slurm cluster has.
func (d *draft) line(at *yaml.Node, line string, s *sbatch) string {
	line = headAddress.ReplaceAllString(line, "$$MASTER_ADDR")
	words := strings.Fields(line)
	if len(words) == 0 {
		return line
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch first := words[0]; first {
	case "srun":
		rest, options := slurm.Command(strings.TrimSpace(strings.TrimSpace(line)[len("srun"):]))
		s.launched = true
		d.launch(at, options, s)
		return indent + rest
	case "module", "ml", "spack":
		d.lose(at, strings.TrimSpace(line), "a rented machine has no modules: put what the program needs into setup")
		return indent + ": " + strings.TrimSpace(line)
	case "scontrol", "sbatch", "squeue", "sacct", "scancel":
		d.lose(at, strings.TrimSpace(line),
			"there is no Slurm on a rented machine; an exit with status 75 asks for another attempt")
	}
	return line
}

var (
	oneTask    = regexp.MustCompile(`(--ntasks[= ]|-n ?|--ntasks-per-node[= ])1\b`)
	imageOfRun = regexp.MustCompile(`--container-image[= ](\S+)`)
)

// launch takes what the options of srun say: the image, and how many tasks a machine has.
func (d *draft) launch(at *yaml.Node, options string, s *sbatch) {
	if m := imageOfRun.FindStringSubmatch(options); m != nil {
		d.container(given{at: at, field: "--container-image", value: m[1]})
	}
	perNode := max(1, s.perNode, (s.tasks+s.nodes-1)/s.nodes)
	if perNode > 1 && !oneTask.MatchString(options) {
		d.lose(at, strings.TrimSpace("srun "+options), fmt.Sprintf("srun starts %d tasks on a machine, and scrimp runs the "+
			"command once: torchrun starts one process for each accelerator", perNode))
	}
}

// container sets the image of pyxis: a path of a registry, where # may stand for the first /.
func (d *draft) container(o given) {
	image := strings.Trim(o.value, `"'`)
	if !d.inImage(strings.Replace(strings.TrimPrefix(image, "docker://"), "#", "/", 1)) {
		d.lose(o.at, o.field, o.value+" is no reference to an image of a registry")
	}
}

// headAddress matches how scripts find the first machine: $(srun --nodes=1 -w "$head" hostname --ip-address).
var headAddress = regexp.MustCompile(`\$\(\s*srun\b[^)]*\bhostname\b[^)]*\)`)

// onMachines sets the number of machines if srun starts the program on each of them. Otherwise the script runs on the
// first one alone, and the number is lost.
func (d *draft) onMachines(s *sbatch) {
	switch {
	case s.nodesAt == nil:
	case s.launched:
		d.onNodes(strconv.Itoa(s.nodes))
		if s.mostNodes > s.nodes {
			d.onNodes(fmt.Sprintf("%d..%d", s.nodes, s.mostNodes))
		}
		d.remarks["nodes"] = "The whole script runs on each machine, not only what srun starts."
	default:
		d.lose(s.nodesAt, "--nodes", reason.Nodes)
	}
}

// options converts a line of options.
func (d *draft) options(at *yaml.Node, text string, s *sbatch) {
	for _, o := range slurm.Options(text) {
		if o.Name == "" {
			d.lose(at, o.Value, "scrimp does not know this option")
			continue
		}
		d.option(given{at, "--" + o.Name, o.Value, o.Raw}, o.Name, s)
	}
}

// given is an option of sbatch as written in the script.
type given struct {
	at           *yaml.Node
	field, value string
	raw          string // value with its quotes
}

func (d *draft) option(o given, name string, s *sbatch) {
	if read := slurmOptions[name]; read != nil {
		read(d, s, o)
		return
	}
	d.lose(o.at, o.field, reason.Slurm.Of(name))
}

// slurmOptions converts the options that scrimp has an equivalent of.
var slurmOptions = map[string]func(d *draft, s *sbatch, o given){
	"job-name":        func(d *draft, _ *sbatch, o given) { d.name = spec.Label(o.value) },
	"nodes":           (*draft).machineCount,
	"ntasks":          func(d *draft, s *sbatch, o given) { d.number(o, &s.tasks) },
	"ntasks-per-node": func(d *draft, s *sbatch, o given) { d.number(o, &s.perNode) },
	"cpus-per-task":   func(d *draft, s *sbatch, o given) { d.number(o, &s.cpus) },
	"mem":             func(d *draft, s *sbatch, o given) { s.memory = d.mebibytes(o.at, o.field, o.value) },
	"mem-per-cpu":     func(d *draft, s *sbatch, o given) { s.perCPU = d.mebibytes(o.at, o.field, o.value) },
	"container-image": func(d *draft, _ *sbatch, o given) { d.container(o) },
	"tmp": func(d *draft, _ *sbatch, o given) {
		d.lose(o.at, o.field, reason.Disk)
	},
	"gres":          func(d *draft, s *sbatch, o given) { d.gpus(o.at, o.field, o.value, s) },
	"gpus":          func(d *draft, s *sbatch, o given) { d.gpus(o.at, o.field, o.value, s) },
	"gpus-per-node": func(d *draft, s *sbatch, o given) { d.gpus(o.at, o.field, o.value, s) },
	"gpus-per-task": func(d *draft, s *sbatch, o given) { d.gpus(o.at, o.field, o.value, s) },
	"mem-per-gpu":   func(d *draft, s *sbatch, o given) { s.perGPU = d.mebibytes(o.at, o.field, o.value) },
	"cpus-per-gpu":  func(d *draft, s *sbatch, o given) { d.number(o, &s.cpusPerGPU) },
	"partition":     func(_ *draft, s *sbatch, o given) { s.partition = o },
	"constraint":    func(_ *draft, s *sbatch, o given) { s.constraint = o },
	"array":         (*draft).arrayOf,
	"dependency":    func(d *draft, _ *sbatch, o given) { d.dependsOn(o) },
	"time": func(d *draft, _ *sbatch, o given) {
		if span, ok := slurm.TimeLimit(o.value); !ok {
			d.lose(o.at, o.field, fmt.Sprintf("%q is not a time limit", o.value))
		} else if span > 0 {
			d.wallClock = slurm.Short(span)
			d.remarks["budget"] = "Slurm's time limit; it counts from the first machine on, over all attempts."
		}
	},
	"signal": func(d *draft, _ *sbatch, o given) { d.sbatchSignal(o.at, o.field, o.value) },
	"chdir": func(d *draft, _ *sbatch, o given) {
		d.folder(&yaml.Node{Line: o.at.Line, Value: o.field}, o.value)
	},
	"account": func(d *draft, _ *sbatch, o given) { d.team = o.value },
	"wckey":   func(d *draft, _ *sbatch, o given) { d.project = o.value },
	"export":  func(d *draft, _ *sbatch, o given) { d.export(o) },
	"requeue": func(*draft, *sbatch, given) {}, // always
}

// number parses a count into to.
func (d *draft) number(o given, to *int) {
	n, err := strconv.Atoi(o.value)
	if err != nil || n < 1 || n > 1<<20 {
		d.lose(o.at, o.field, fmt.Sprintf("%q is not a count", o.value))
		return
	}
	*to = n
}

func (d *draft) export(o given) {
	for _, item := range slurm.Items(o.raw) {
		if k, v, ok := strings.Cut(item, "="); ok {
			d.env[k] = slurm.Unquoted(v)
		} else if item != "NONE" && item != "NIL" {
			d.lose(o.at, o.field+"="+item, "the submitting shell's environment is not taken: name variables under env "+
				"or secrets")
		}
	}
}
