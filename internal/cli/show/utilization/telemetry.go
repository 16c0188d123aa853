// Package utilization formats how a job used its machines, and the diagnosis of what slowed it down.
package utilization

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/internal/wire/telemetry"
)

// sparkWidth is the width of a line over time in columns.
const sparkWidth = 30

// Telemetry formats the telemetry of an attempt's machines over the requested period; 0 means all of it.
func Telemetry(t api.Telemetry, last time.Duration, p show.Place) string {
	var b strings.Builder
	head := t.Job + ": " + show.Words(t.State)
	if len(t.Nodes) == 0 || t.Seconds == 0 {
		return draw.Wrap("", head+". Nothing was measured: machines are measured while their programs run, and what "+
			"was measured goes with the output of an old job.", p.Columns())
	}
	head += ", " + t.Attempt
	if !t.Live {
		head += " (over: these are its last measurements)"
	}
	b.WriteString(draw.Wrap("", show.Clean(head), p.Columns()))
	for _, n := range t.Nodes {
		b.WriteString(nodeTelemetry(n, len(t.Nodes) > 1, last, p))
	}
	if t.Hint != "" {
		b.WriteString(draw.Wrap("hint: ", show.Clean(t.Hint), p.Columns()))
	}
	return b.String()
}

// nodeTelemetry formats one machine.
func nodeTelemetry(n api.TelemetryNode, several bool, last time.Duration, p show.Place) string {
	var parts []string
	if several {
		parts = append(parts, fmt.Sprintf("node %d", n.Node))
	}
	if parts = append(parts, show.OrDash(n.Instance)); n.Cores != nil {
		parts = append(parts, draw.Count(*n.Cores, "core"))
	}
	if n.Memory != nil {
		parts = append(parts, size.About(float64(*n.Memory)))
	}
	for _, g := range n.GPUs {
		parts = append(parts, fmt.Sprintf("GPU %d: %s", g.Index, g.Name))
	}
	if n.Until == nil {
		return draw.Wrap("", show.Clean(strings.Join(append(parts, "nothing measured"), ", ")), p.Columns())
	}
	if !p.Now.IsZero() {
		parts = append(parts, "as of "+draw.Ago(*n.Until, p.Now))
	}
	over := "OVER ALL"
	if last > 0 {
		over = "LAST " + strings.ToUpper(strings.TrimSuffix(draw.Span(last), " 00s"))
	}
	rows := telemetryRows(n)
	return "\n" + draw.Wrap("", show.Clean(strings.Join(parts, ", ")), p.Columns()) + draw.Grid([]draw.Column{
		{Name: "MEASURED", Key: true}, {Name: "NOW", Right: true}, {Name: "AVERAGE", Right: true},
		{Name: "PEAK", Right: true, Leaves: 1}, {Name: over, Leaves: 2},
	}, rows, p.Columns())
}

// telemetryRows returns the rows of a machine: each GPU, then the rest.
func telemetryRows(n api.TelemetryNode) (rows [][]string) {
	add := func(name string, m telemetry.Metric, index int, most float64) {
		if c := courseOf(n.Buckets, m, index); c.known {
			rows = append(rows, c.row(name, m, most))
		}
	}
	for i, g := range n.GPUs {
		most := 0.0
		if g.Memory != nil {
			most = float64(*g.Memory)
		}
		name := fmt.Sprintf("GPU %d ", g.Index)
		add(name+"used", telemetry.GPU, i, 1)
		add(name+"memory", telemetry.GPUMemory, i, most)
		add(name+"power", telemetry.GPUPower, i, 0)
		add(name+"temperature", telemetry.GPUTemperature, i, 0)
	}
	memory, cores := 0.0, 0.0
	if n.Memory != nil {
		memory = float64(*n.Memory)
	}
	if n.Cores != nil {
		cores = float64(*n.Cores)
	}
	add("CPU used", telemetry.CPU, 0, 1)
	add("CPU I/O wait", telemetry.IOWait, 0, 1)
	add("CPU idle", telemetry.Idle, 0, 1)
	if each := eachCore(n.Buckets); each != "" {
		rows = append(rows, []string{"each core", "", "", "", each})
	}
	add("program: cores", telemetry.TaskCPU, 0, cores)
	add("program: memory", telemetry.TaskMemory, 0, memory)
	add("memory", telemetry.Memory, 0, memory)
	add("page cache", telemetry.PageCache, 0, memory)
	add("disk read", telemetry.DiskRead, 0, 0)
	add("disk written", telemetry.DiskWrite, 0, 0)
	add("received", telemetry.NetReceive, 0, 0)
	add("sent", telemetry.NetTransmit, 0, 0)
	return rows
}

// course is a metric over time.
type course struct {
	values             []float64
	now, average, peak float64
	known              bool
}

// courseOf computes the course of a metric over the available buckets.
func courseOf(list []api.TelemetryBucket, m telemetry.Metric, index int) course {
	c := course{now: math.NaN(), peak: math.Inf(-1)}
	sum, weight := 0.0, 0.0
	for _, b := range list {
		v, peak := at(b.Mean, m, index), at(b.Peak, m, index)
		c.now = v
		c.values = append(c.values, v)
		if math.IsNaN(v) {
			continue
		}
		if math.IsNaN(peak) {
			peak = v
		}
		c.known, c.peak = true, max(c.peak, peak)
		sum, weight = sum+v*b.Covered, weight+b.Covered
	}
	c.average = sum / max(weight, 1e-9)
	return c
}

// at returns a value, or NaN.
func at(by map[string][]*float64, m telemetry.Metric, index int) float64 {
	if list := by[m.String()]; index < len(list) && list[index] != nil {
		return *list[index]
	}
	return math.NaN()
}

// row returns a row of the table. most is the value of a full bar; 0 stands for the highest value.
func (c course) row(name string, m telemetry.Metric, most float64) []string {
	if most == 0 {
		most = c.peak
	}
	now := "-"
	if !math.IsNaN(c.now) {
		now = withUnit(m, c.now)
	}
	return []string{name, now, withUnit(m, c.average), withUnit(m, c.peak), draw.SparkOf(bins(c.values), most, sparkWidth)}
}

// bins averages values so that they fit on a line.
func bins(values []float64) (out []float64) {
	each := (len(values) + sparkWidth - 1) / sparkWidth
	for part := range slices.Chunk(values, max(1, each)) {
		sum, n := 0.0, 0
		for _, v := range part {
			if !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		out = append(out, sum/float64(n)) // NaN if nothing is known
	}
	return out
}

// eachCore draws the last measurement of each core.
func eachCore(list []api.TelemetryBucket) string {
	for _, b := range slices.Backward(list) {
		if cores := b.Mean[telemetry.Core.String()]; len(cores) > 0 {
			values := make([]float64, len(cores))
			for i := range cores {
				values[i] = at(b.Mean, telemetry.Core, i)
			}
			return draw.SparkOf(values[:min(len(values), 2*sparkWidth)], 1, 2*sparkWidth)
		}
	}
	return ""
}

// withUnit formats a value with its unit.
func withUnit(m telemetry.Metric, v float64) string {
	switch {
	case m.IsRate():
		return size.About(v) + "/s"
	case !m.AddsUp() && m != telemetry.GPUTemperature:
		return telemetry.Percent(v)
	case m == telemetry.GPUTemperature:
		return fmt.Sprintf("%.0f °C", v)
	case m == telemetry.GPUPower:
		return fmt.Sprintf("%.0f W", v)
	case m == telemetry.TaskCPU:
		return fmt.Sprintf("%.2f", v)
	}
	return size.About(v)
}

// Running formats a line for each running job with its machines' current utilization.
func Running(list []api.JobTelemetry, p show.Place) string {
	if len(list) == 0 {
		return "No job runs.\n"
	}
	rows := make([][]string, len(list))
	for i, j := range list {
		now := func(m telemetry.Metric) string {
			if v, known := j.Now[m.String()]; known {
				return withUnit(m, v)
			}
			return "-"
		}
		rows[i] = []string{show.Clean(j.Job), fmt.Sprintf("%d/%d", j.Measured, j.Nodes), fmt.Sprint(j.GPUs),
			now(telemetry.GPU),
			now(telemetry.GPUMemory), now(telemetry.GPUPower), now(telemetry.CPU), now(telemetry.IOWait),
			now(telemetry.TaskCPU), now(telemetry.TaskMemory), now(telemetry.DiskRead), now(telemetry.NetReceive)}
	}
	return draw.Grid([]draw.Column{
		{Name: "JOB", Key: true}, {Name: "NODES", Right: true, Leaves: 6}, {Name: "GPUS", Right: true, Leaves: 5},
		{Name: "GPU", Right: true}, {Name: "GPU MEMORY", Right: true, Leaves: 4}, {Name: "POWER", Right: true, Leaves: 3},
		{Name: "CPU", Right: true}, {Name: "I/O WAIT", Right: true}, {Name: "CORES", Right: true, Leaves: 7},
		{Name: "MEMORY", Right: true}, {Name: "DISK READ", Right: true, Leaves: 2},
		{Name: "RECEIVED", Right: true, Leaves: 1},
	}, rows, p.Columns())
}

// InUse formats the utilization of a job's machines as a line or two of its page, or returns "" without measurements.
func InUse(t api.Telemetry, p show.Place) string {
	var b strings.Builder
	line := func(name, lead string, m telemetry.Metric, more ...string) {
		f, known := t.Figures[m.String()]
		if !known {
			return
		}
		text := withUnit(m, f.Average) + " on average"
		if t.Live && f.Last != nil {
			text = withUnit(m, *f.Last) + " now, " + text
		}
		for _, one := range more {
			if one != "" {
				text += ", " + one
			}
		}
		p.Fact(&b, name, "%s", lead+text)
	}
	now := func(m telemetry.Metric, before, after string) string {
		f, known := t.Figures[m.String()]
		switch {
		case !known:
			return ""
		case t.Live && f.Last != nil:
			return before + withUnit(m, *f.Last) + after
		}
		return before + withUnit(m, f.Average) + after
	}
	line("GPU", "", telemetry.GPU, now(telemetry.GPUMemory, "memory ", ""), now(telemetry.GPUPower, "", ""),
		now(telemetry.GPUTemperature, "", ""))
	// Other programs may run on the machine: what the job's own program uses comes first.
	own := now(telemetry.TaskCPU, "", " cores")
	if memory := now(telemetry.TaskMemory, "", ""); memory != "" && own != "" {
		own += " and " + memory
	}
	if own != "" {
		own += " by the program, "
	}
	line("CPU", own+"machine ", telemetry.CPU, now(telemetry.IOWait, "I/O wait ", ""))
	if t.Hint != "" {
		p.Fact(&b, "hint", "%s", t.Hint)
	}
	return b.String()
}
