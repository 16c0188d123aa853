package foreign

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// mebibytes parses a Slurm size: 16G, 4000M, or MiB without a unit.
func (d *draft) mebibytes(at *yaml.Node, field, value string) int64 {
	m := regexp.MustCompile(`(?i)^([0-9]{1,12})([kmgt]?)b?$`).FindStringSubmatch(value)
	if m == nil {
		d.lose(at, field, fmt.Sprintf("%q is not a size", value))
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > 1<<33 {
		d.lose(at, field, fmt.Sprintf("%q is not a size", value))
		return 0
	}
	if n == 0 {
		d.lose(at, field, "0 means all memory of the machine: give memory")
	}
	switch strings.ToLower(m[2]) {
	case "k":
		return max(1, n/1024)
	case "g":
		return n * 1024
	case "t":
		return n * 1024 * 1024
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
	if first, rest, several := strings.Cut(value, ","); several {
		if strings.Contains(rest, "gpu") || field != "--gres" {
			d.lose(at, field, "only the first kind of "+value+" is kept")
		}
		value = first
	}
	value, isGPU := strings.CutPrefix(value, "gpu")
	if field == "--gres" && !isGPU {
		d.lose(at, field, "only accelerators are asked for")
		return
	}
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
	if s.gpuKind = named(kind); s.gpuKind == "" {
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
		set(d.resources, "cpus", text(fmt.Sprintf("%d+", cpus)))
	}
	memory := s.memory
	if memory == 0 && s.perCPU > 0 && s.perCPU < (1<<40)/cpus {
		memory = s.perCPU * cpus
	}
	if memory == 0 && gpus > 0 {
		memory = s.perGPU * gpus
	}
	if memory > 0 {
		set(d.resources, "memory", text(mib(memory)+"+"))
	}
	if gpus == 0 {
		return
	}
	switch count, kind := strconv.FormatInt(gpus, 10), cmp.Or(s.gpuKind, named(s.hint)); kind {
	case "":
		d.anyGPU(count)
	default:
		set(d.resources, "accelerator", text(join(kind, count)))
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

// slurmTime parses minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
// days-hours:minutes:seconds. 0 means no limit.
func slurmTime(s string) (time.Duration, bool) {
	if u := strings.ToUpper(s); u == "UNLIMITED" || u == "INFINITE" {
		return 0, true
	}
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	var n []int64
	for part := range strings.SplitSeq(days+":"+clock, ":") {
		v, err := strconv.ParseInt(part, 10, 64)
		if err != nil || v < 0 || v > 100_000 {
			return 0, false
		}
		n = append(n, v)
	}
	span := func(d, h, m, s int64) (time.Duration, bool) {
		return time.Duration(d)*24*time.Hour + time.Duration(h)*time.Hour + time.Duration(m)*time.Minute +
			time.Duration(s)*time.Second, true
	}
	switch {
	case hasDays && len(n) == 2:
		return span(n[0], n[1], 0, 0)
	case hasDays && len(n) == 3:
		return span(n[0], n[1], n[2], 0)
	case len(n) == 4:
		return span(n[0], n[1], n[2], n[3])
	case len(n) == 2:
		return span(0, 0, n[1], 0)
	case len(n) == 3:
		return span(0, 0, n[1], n[2])
	}
	return 0, false
}

// short formats a duration without zero units.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var signalNumbers = map[string]string{"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "15": "TERM"}

// sbatchSignal parses [R][B]:USR1@90; the time is in seconds, 60 by default.
func (d *draft) sbatchSignal(at *yaml.Node, field, value string) {
	text := regexp.MustCompile(`^[RB]+:`).ReplaceAllString(value, "")
	name, lead, ok := strings.Cut(text, "@")
	if !ok {
		lead = "60"
	}
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if known, ok := signalNumbers[name]; ok {
		name = known
	}
	seconds, err := strconv.Atoi(lead)
	switch name {
	case "TERM", "INT", "HUP", "USR1", "USR2":
	default:
		err = fmt.Errorf("signal")
	}
	if err != nil || seconds < 1 || seconds > 65535 {
		d.lose(at, field, fmt.Sprintf("%q is not a signal that a program can save on", value))
		return
	}
	d.signal = fmt.Sprintf("%s@%ds", name, seconds)
	d.grace = fmt.Sprintf("%ds", seconds)
}
