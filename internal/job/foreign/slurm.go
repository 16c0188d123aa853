package foreign

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/spec"
)

var directive = regexp.MustCompile(`^#SBATCH\s+(.*)$`)

func isScript(s string) bool {
	return strings.HasPrefix(s, "#!") || regexp.MustCompile(`(?m)^#SBATCH\s`).MatchString(s)
}

// slurmSet lists the variables that scrimp's programs have in common with Slurm's (docs/agent.md).
var slurmSet = []string{
	"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_PROCID",
	"SLURM_LOCALID", "SLURM_JOB_NODELIST", "SLURM_GPUS_ON_NODE",
}

// slurmLost explains the options of sbatch that scrimp does not have, by long name.
var slurmLost = map[string]string{
	"partition":           "offers are chosen by price and deadline; zones and capacity narrow them",
	"qos":                 "see priority",
	"priority":            "see priority: critical, normal or low",
	"nice":                "see priority: critical, normal or low",
	"output":              "the output of all attempts is kept as one: scrimp logs",
	"error":               "the output of all attempts is kept as one: scrimp logs",
	"open-mode":           "the output of all attempts is kept as one: scrimp logs",
	"mail-type":           "see notify, which is a webhook",
	"mail-user":           "see notify, which is a webhook",
	"array":               "one job file is one job: submit one for each index, with --env",
	"dependency":          "jobs do not wait for jobs",
	"begin":               "jobs start when they are submitted and affordable",
	"deadline":            "it has no time zone: give deadline, such as in 24h",
	"time-min":            "the budget of time is one number",
	"constraint":          "machines are chosen by what they have, not by features",
	"nodelist":            "machines are rented, not named",
	"exclude":             "machines are rented, not named",
	"exclusive":           "a rented machine is the job's own",
	"oversubscribe":       "a rented machine is the job's own",
	"reservation":         "reservations are not named in a job file",
	"licenses":            "licences are not counted",
	"container":           "the program runs on the machine as it is, in no container",
	"ntasks-per-gpu":      "the script itself starts its tasks",
	"gpu-bind":            "the program sees all accelerators",
	"cpu-freq":            "machines are not tuned",
	"distribution":        "the script itself starts its tasks",
	"hint":                "machines are not tuned",
	"no-requeue":          "a job always goes on after an interruption",
	"export-file":         "name the variables under env",
	"gres-flags":          "machines are chosen by what they have",
	"switches":            "networks are not chosen",
	"comment":             "see tags",
	"kill-on-invalid-dep": "jobs do not wait for jobs",
}

var shortNames = map[byte]string{
	'J': "job-name", 'N': "nodes", 'n': "ntasks", 'c': "cpus-per-task", 'p': "partition", 't': "time", 'o': "output",
	'e': "error", 'A': "account", 'a': "array", 'd': "dependency", 'D': "chdir", 'q': "qos", 'C': "constraint",
	'G': "gpus",
	'w': "nodelist", 'x': "exclude",
	'b': "begin", 'L': "licenses", 'm': "distribution", 's': "oversubscribe", 'i': "input",
}

// sbatch collects the directives that belong together.
type sbatch struct {
	nodes, tasks, perNode, cpus int
	memory, perCPU              int64 // MiB per node, and per processor
	gpu, gpuKind                string
	gpusInAll                   bool
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
			body = append(body, d.line(at, line))
		}
	}
	d.machine(&s)
	d.shell(shell, base, strings.Trim(strings.Join(body, "\n"), "\n"))
	d.aliases(&yaml.Node{Line: 1}, "SLURM", slurmSet...)
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
func (d *draft) line(at *yaml.Node, line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return line
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch first := words[0]; first {
	case "srun":
		rest, options := withoutOptions(strings.TrimSpace(strings.TrimSpace(line)[len("srun"):]))
		what := "srun"
		if options != "" {
			what += " " + options
		}
		d.lose(at, what, "the command runs once on the machine; torchrun starts one process for each accelerator")
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

// withoutOptions splits the leading options from a command.
func withoutOptions(s string) (rest, options string) {
	took := s
	for strings.HasPrefix(took, "-") {
		word, after, _ := strings.Cut(took, " ")
		took = strings.TrimLeft(after, " ")
		if len(word) == 2 && took != "" && !strings.HasPrefix(took, "-") { // -n 4
			_, after, _ = strings.Cut(took, " ")
			took = strings.TrimLeft(after, " ")
		}
	}
	return took, strings.TrimSpace(strings.TrimSuffix(s, took))
}

// options parses a line of options: --name=value, --name value, -n value, -n4.
func (d *draft) options(at *yaml.Node, text string, s *sbatch) {
	if before, _, ok := strings.Cut(text, " #"); ok {
		text = before
	}
	words := strings.Fields(text)
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		name, value, given := "", "", false
		switch {
		case strings.HasPrefix(word, "--"):
			name, value, given = strings.Cut(word[2:], "=")
		case len(word) >= 2 && word[0] == '-':
			name, value, given = shortNames[word[1]], strings.TrimPrefix(word[2:], "="), len(word) > 2
		}
		if name == "" {
			d.lose(at, word, "scrimp does not know this option")
			continue
		}
		if !given && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
			value, words = words[0], words[1:]
		}
		d.option(at, name, strings.Trim(value, `"'`), s)
	}
}

// given is an option of sbatch as written in the script.
type given struct {
	at           *yaml.Node
	field, value string
}

func (d *draft) option(at *yaml.Node, name, value string, s *sbatch) {
	if read := slurmOptions[name]; read != nil {
		read(d, s, given{at, "--" + name, value})
		return
	}
	d.lose(at, "--"+name, why(slurmLost[name]))
}

// slurmOptions converts the options that scrimp has an equivalent of.
var slurmOptions = map[string]func(d *draft, s *sbatch, o given){
	"job-name": func(d *draft, _ *sbatch, o given) { d.name = spec.Label(o.value) },
	"nodes": func(d *draft, s *sbatch, o given) {
		if d.number(o, &s.nodes); s.nodes > 1 {
			d.lose(o.at, o.field, onEach)
		}
	},
	"ntasks":          func(d *draft, s *sbatch, o given) { d.number(o, &s.tasks) },
	"ntasks-per-node": func(d *draft, s *sbatch, o given) { d.number(o, &s.perNode) },
	"cpus-per-task":   func(d *draft, s *sbatch, o given) { d.number(o, &s.cpus) },
	"mem":             func(d *draft, s *sbatch, o given) { s.memory = d.mebibytes(o.at, o.field, o.value) },
	"mem-per-cpu":     func(d *draft, s *sbatch, o given) { s.perCPU = d.mebibytes(o.at, o.field, o.value) },
	"container-image": func(d *draft, _ *sbatch, o given) {
		if !d.inImage(strings.Replace(strings.TrimPrefix(o.value, "docker://"), "#", "/", 1)) {
			d.lose(o.at, o.field, o.value+" is no reference to an image of a registry")
		}
	},
	"tmp": func(d *draft, _ *sbatch, o given) {
		d.lose(o.at, o.field, noDisk)
	},
	"gres":          func(d *draft, s *sbatch, o given) { d.gpus(o.at, o.field, o.value, s) },
	"gpus":          func(d *draft, s *sbatch, o given) { d.gpus(o.at, o.field, o.value, s) },
	"gpus-per-node": func(d *draft, s *sbatch, o given) { d.gpus(o.at, o.field, o.value, s) },
	"time": func(d *draft, _ *sbatch, o given) {
		if span, ok := slurmTime(o.value); !ok {
			d.lose(o.at, o.field, fmt.Sprintf("%q is not a time limit", o.value))
		} else if span > 0 {
			d.wallClock = short(span)
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

// number parses a count into to; --nodes=2-4 gives 2.
func (d *draft) number(o given, to *int) {
	low, _, _ := strings.Cut(o.value, "-")
	n, err := strconv.Atoi(low)
	if err != nil || n < 1 || n > 1<<20 {
		d.lose(o.at, o.field, fmt.Sprintf("%q is not a count", o.value))
		return
	}
	*to = n
}

func (d *draft) export(o given) {
	for item := range strings.SplitSeq(o.value, ",") {
		if k, v, ok := strings.Cut(item, "="); ok {
			d.env[k] = v
		} else if item != "NONE" && item != "NIL" {
			d.lose(o.at, o.field+"="+item, "the submitting shell's environment is not taken: name variables under env "+
				"or secrets")
		}
	}
}
