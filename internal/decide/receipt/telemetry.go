package receipt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/internal/wire/telemetry"
)

// Telemetry summarizes the measurements of all machines of a job. Times and spans are wall time.
type Telemetry struct {
	Machines  int     `json:"machines"`   // measured machines of all attempts
	Seconds   float64 `json:"seconds"`    // sum of the measured times
	Cores     int     `json:"cores"`      // of the largest machine; 0: unknown
	GPUs      int     `json:"gpus"`       // of the task on the largest machine; 0: unknown
	GPUName   string  `json:"gpu_name"`   // model of one of the GPUs
	GPUMemory int64   `json:"gpu_memory"` // bytes; 0: unknown
	// GPUHeld is the sum of the peak memory of each GPU of a machine, in bytes, on the machine with most; nil: unknown.
	GPUHeld *float64 `json:"-"`
	// Figures holds each metric over all machines, cores and GPUs, by name; unknown metrics are absent.
	Figures map[string]Figure `json:"figures"`
	Hint    string            `json:"hint"`   // advice for the next run; empty if nothing stands out
	Points  []UsePoint        `json:"points"` // in time order
}

// Figure summarizes one metric.
type Figure struct {
	Average float64  `json:"average"`
	Peak    float64  `json:"peak"`  // highest mean of ten seconds
	Total   *float64 `json:"total"` // the amount, if the metric is a rate; otherwise null
}

// UsePoint is the share of GPUs and processors in use at a time; null means unknown.
type UsePoint struct {
	At     time.Time `json:"at"` // wall
	GPU    *float64  `json:"gpu"`
	CPU    *float64  `json:"cpu"`
	IOWait *float64  `json:"iowait"`
}

// Figure returns the summary of a metric; false if unknown.
func (t *Telemetry) Figure(m telemetry.Metric) (f Figure, known bool) {
	f, known = t.Figures[m.String()]
	return f, known
}

// Facts returns the measurements for display as pairs of name and text, in order. It leaves out unknown ones.
func (t *Telemetry) Facts() (list [][2]string) {
	add := func(name string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		if len(parts) > 0 {
			list = append(list, [2]string{name, strings.Join(parts, ", ")})
		}
	}
	if t.GPUs > 0 {
		add("GPU", t.share(telemetry.GPU, "used"), t.gpuMemory(), t.gpuPower())
	}
	machine := t.share(telemetry.CPU, "used")
	if machine != "" { // other programs may run on the machine
		machine = "machine " + machine
	}
	add("CPU", t.taskCores(), machine, t.plainShare(telemetry.IOWait, "I/O wait"))
	add("memory", t.bytes(telemetry.TaskMemory, "of the program"), t.bytes(telemetry.PageCache, "page cache"))
	add("disk", t.total(telemetry.DiskRead, "read"), t.total(telemetry.DiskWrite, "written"))
	add("network", t.total(telemetry.NetReceive, "received"), t.total(telemetry.NetTransmit, "sent"))
	return list
}

func (t *Telemetry) share(m telemetry.Metric, what string) string {
	f, known := t.Figure(m)
	if !known {
		return ""
	}
	return fmt.Sprintf("%s %s (peak %s)", telemetry.Percent(f.Average), what, telemetry.Percent(f.Peak))
}

func (t *Telemetry) plainShare(m telemetry.Metric, what string) string {
	f, known := t.Figure(m)
	if !known {
		return ""
	}
	return what + " " + telemetry.Percent(f.Average)
}

func (t *Telemetry) taskCores() string {
	f, known := t.Figure(telemetry.TaskCPU)
	if !known {
		return ""
	}
	text := fmt.Sprintf("%.1f", f.Average)
	if t.Cores > 0 {
		text += fmt.Sprintf(" of %d", t.Cores)
	}
	return text + " cores by the program"
}

func (t *Telemetry) gpuMemory() string {
	f, known := t.Figure(telemetry.GPUMemory)
	if !known {
		return ""
	}
	text := "memory " + size.About(f.Peak)
	if t.GPUMemory > 0 {
		text += " of " + size.About(float64(t.GPUMemory))
	}
	return text
}

func (t *Telemetry) gpuPower() string {
	power, known := t.Figure(telemetry.GPUPower)
	heat, warm := t.Figure(telemetry.GPUTemperature)
	var parts []string
	if known {
		parts = append(parts, fmt.Sprintf("%.0f W", power.Average))
	}
	if warm {
		parts = append(parts, fmt.Sprintf("at most %.0f °C", heat.Peak))
	}
	return strings.Join(parts, ", ")
}

func (t *Telemetry) bytes(m telemetry.Metric, what string) string {
	f, known := t.Figure(m)
	if !known {
		return ""
	}
	return fmt.Sprintf("%s %s (peak %s)", size.About(f.Average), what, size.About(f.Peak))
}

func (t *Telemetry) total(m telemetry.Metric, what string) string {
	f, known := t.Figure(m)
	if !known || f.Total == nil {
		return ""
	}
	return size.About(*f.Total) + " " + what
}

// main returns the metric that best shows how well the machines were used: GPU if measured, otherwise CPU.
func (t *Telemetry) main() (name string, of func(UsePoint) *float64) {
	if _, known := t.Figure(telemetry.GPU); known {
		return "GPU", func(p UsePoint) *float64 { return p.GPU }
	}
	return "CPU", func(p UsePoint) *float64 { return p.CPU }
}

// text renders the measurements for a terminal.
func (t *Telemetry) text(width int) string {
	var b strings.Builder
	for _, f := range t.Facts() {
		b.WriteString(draw.Wrap(f[0]+" ", f[1], width))
	}
	name, of := t.main()
	var values []float64
	for _, p := range t.Points {
		if v := of(p); v != nil {
			values = append(values, *v)
		}
	}
	if len(values) > 1 {
		fmt.Fprintf(&b, "%s over time %s\n", name, draw.Spark(values, min(40, width-40)))
	}
	if t.Hint != "" {
		b.WriteString(draw.Wrap("hint: ", t.Hint, width))
	}
	return b.String()
}

// useChart draws the shares in use over time; empty if there are fewer than two points.
func (r Receipt) useChart() string {
	if r.Telemetry == nil || len(r.Telemetry.Points) < 2 {
		return ""
	}
	begin := r.Telemetry.Points[0].At
	var all []draw.Series
	for _, line := range []struct {
		name, class string
		of          func(UsePoint) *float64
	}{
		{"GPU", "gpu", func(p UsePoint) *float64 { return p.GPU }},
		{"CPU", "cpu", func(p UsePoint) *float64 { return p.CPU }},
		{"I/O wait", "iowait", func(p UsePoint) *float64 { return p.IOWait }},
	} {
		s := draw.Series{Name: line.name, Class: line.class}
		for _, p := range r.Telemetry.Points {
			if v := line.of(p); v != nil {
				s.Points = append(s.Points, draw.Point{X: p.At.Sub(begin).Seconds(), Y: *v * 100})
			}
		}
		if len(s.Points) > 1 {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return draw.Lines("Use over time", all, draw.Moment, func(v float64) string { return fmt.Sprintf("%.0f %%", v) })
}
