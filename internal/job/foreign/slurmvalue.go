package foreign

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/job/foreign/node"

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
	if strings.Contains(value, ",") {
		d.lose(at, field, "only the first kind of "+value+" is kept")
		value, _, _ = strings.Cut(value, ",")
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
	s.gpu, s.gpusInAll = count, field == "--gpus"
	if kind == "" {
		d.lose(at, field, "the kind of accelerator is not said: give accelerator, such as "+join("H100", count))
		return
	}
	s.gpuKind = strings.ToUpper(kind)
}

// machine converts the totals to the requirements on one machine.
func (d *draft) machine(s *sbatch) {
	perNode := max(1, s.perNode)
	if s.perNode == 0 && s.tasks > 0 {
		perNode = (s.tasks + s.nodes - 1) / s.nodes
	}
	cpus := int64(perNode) * int64(s.cpus)
	if cpus > 1 || s.cpus > 1 {
		node.Set(d.resources, "cpus", node.Text(fmt.Sprintf("%d+", cpus)))
	}
	memory := s.memory
	if memory == 0 && s.perCPU > 0 && s.perCPU < (1<<40)/cpus {
		memory = s.perCPU * cpus
	}
	if memory > 0 {
		node.Set(d.resources, "memory", node.Text(mib(memory)+"+"))
	}
	if s.gpuKind != "" {
		count, err := strconv.Atoi(s.gpu)
		if err == nil && s.gpusInAll {
			count = (count + s.nodes - 1) / s.nodes
		}
		node.Set(d.resources, "accelerator", node.Text(join(s.gpuKind, strconv.Itoa(max(1, count)))))
	}
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
