package jobimport

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/job/jobimport/gpu"
	"scrimp/internal/job/jobimport/node"
	"scrimp/internal/job/jobimport/slurm"

	"go.yaml.in/yaml/v3"
)

// mebibytes parses a Slurm size. It reports one that is none, and 0.
func (d *draft) mebibytes(at *yaml.Node, field, value string) int64 {
	n, ok := slurm.Mebibytes(value)
	switch {
	case !ok:
		d.lose(at, field, fmt.Sprintf("%q is not a size", value))
	case n == 0:
		d.lose(at, field, "0 means all memory of the machine: give memory")
	}
	return n
}

func mib(n int64) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%dGiB", n/1024)
	}
	return fmt.Sprintf("%dMiB", n)
}

// gpus parses gpu:a100:4, a100:4 and 4.
func (d *draft) gpus(at *yaml.Node, field, value string, s *sbatch) {
	kinds := strings.Split(value, ",")
	if field == "--gres" {
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return !strings.HasPrefix(k, "gpu") })
		if len(kinds) < strings.Count(value, ",")+1 {
			d.lose(at, field, "only accelerators are asked for")
		}
	}
	switch {
	case len(kinds) == 0:
		return
	case len(kinds) > 1:
		d.lose(at, field, "only the first kind of "+value+" is kept")
	}
	value = strings.TrimPrefix(kinds[0], "gpu")
	value = strings.TrimPrefix(value, ":")
	kind, count, both := strings.Cut(value, ":")
	if !both && strings.Trim(kind, "0123456789") == "" {
		kind, count = "", kind
	}
	if count == "" {
		count = "1"
	}
	s.gpu, s.gpusInAll, s.gpusByTask = count, field == "--gpus", field == "--gpus-per-task"
	if part := migSlice.FindString(kind); part != "" {
		d.lose(at, field, "scrimp rents whole accelerators, not parts such as "+strings.Trim(part, "_-"))
		kind = strings.TrimSuffix(kind, part)
	}
	kind = strings.ReplaceAll(strings.ToLower(kind), "rtx_", "rtx")
	if s.gpuKind = gpu.Named(kind); s.gpuKind == "" {
		s.gpuKind = strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(kind, "nvidia_"), "_", "-"))
	}
}

// migSlice matches the part of an accelerator at the end of a name: a100_3g.20gb, 1g.5gb.
var migSlice = regexp.MustCompile(`(?i)[_-]?[0-9]g\.[0-9]+gb$`)

// machine converts the totals to the requirements on one machine.
func (d *draft) machine(s *sbatch) {
	perNode := max(1, s.perNode)
	if s.perNode == 0 && s.tasks > 0 {
		perNode = (s.tasks + s.nodes - 1) / s.nodes
	}
	gpus := s.accelerators(perNode)
	cpus := max(int64(perNode)*int64(s.cpus), int64(s.cpusPerGPU)*gpus)
	if cpus > 1 || s.cpus > 1 {
		node.Set(d.resources, "cpus", node.Text(fmt.Sprintf("%d+", cpus)))
	}
	memory := s.memory
	if memory == 0 && s.perCPU > 0 && s.perCPU < (1<<40)/cpus {
		memory = s.perCPU * cpus
	}
	if memory == 0 && gpus > 0 {
		memory = s.perGPU * gpus
	}
	if memory > 0 {
		node.Set(d.resources, "memory", node.Text(mib(memory)+"+"))
	}
	if gpus == 0 {
		return
	}
	count := strconv.FormatInt(gpus, 10)
	switch len(s.kinds) {
	case 0:
		d.anyGPU(count)
	case 1:
		node.Set(d.resources, "accelerator", node.Text(gpu.Counted(s.kinds[0], count)))
	default:
		for _, kind := range s.kinds {
			d.kinds = append(d.kinds, gpu.Counted(kind, count))
		}
	}
}

// accelerators returns the number of accelerators of a machine.
func (s *sbatch) accelerators(tasks int) int64 {
	if s.gpu == "" {
		return 0
	}
	count, err := strconv.Atoi(s.gpu)
	switch {
	case err != nil || count > 1<<20:
		return 1
	case s.gpusInAll:
		count = (count + s.nodes - 1) / s.nodes
	case s.gpusByTask:
		count *= min(tasks, 1<<20)
	}
	return int64(count)
}

// sbatchSignal sets the signal before the end of the time, and how long the program has from then on.
func (d *draft) sbatchSignal(at *yaml.Node, field, value string) {
	name, seconds, ok := slurm.Signal(value)
	if !ok {
		d.lose(at, field, fmt.Sprintf("%q is not a signal that a program can save on", value))
		return
	}
	d.signal = fmt.Sprintf("%s@%ds", name, seconds)
	d.grace = fmt.Sprintf("%ds", seconds)
}
