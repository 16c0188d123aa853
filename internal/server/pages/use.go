package pages

import (
	"fmt"
	"html/template"
	"math"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/wire/telemetry"
)

// useChart is a drawing of what a machine measures over time.
type useChart struct {
	Name    string
	Drawing template.HTML
}

// useLines lists the charts of a machine and their lines. Metrics of a chart have one unit.
var useLines = []struct {
	name, title string
	lines       []useLine
	per         string // follows the unit of bytes
	whole       bool   // the values are shares: the axis goes from 0 to 1
}{
	{"In use", "GPU and CPU in use over time", []useLine{{telemetry.GPU, "GPU"}, {telemetry.CPU, "CPU"}}, "", true},
	{"Memory", "Memory in use over time", []useLine{{telemetry.GPUMemory, "each GPU"}, {telemetry.Memory, "machine"}},
		"", false},
	{"Disk and network", "Bytes a second over time", []useLine{{telemetry.DiskRead, "read"},
		{telemetry.DiskWrite, "written"}, {telemetry.NetReceive, "received"}, {telemetry.NetTransmit, "sent"}},
		"/s", false},
}

type useLine struct {
	metric telemetry.Metric
	name   string
}

// useCharts draws what the first machine of a job measures. Values of several GPUs are averaged.
func useCharts(t client.Telemetry) (list []useChart) {
	if len(t.Nodes) == 0 || len(t.Nodes[0].Buckets) == 0 {
		return nil
	}
	buckets := t.Nodes[0].Buckets
	for _, of := range useLines {
		var all []draw.Series
		for i, l := range of.lines {
			s := draw.Series{Name: l.name, Class: classes[i]}
			for _, b := range buckets {
				if v, known := mean(b.Mean[l.metric.String()]); known {
					s.Points = append(s.Points, draw.Point{X: b.At.Sub(buckets[0].At).Seconds(), Y: v})
				}
			}
			if len(s.Points) > 2 {
				all = append(all, s)
			}
		}
		if len(all) == 0 {
			continue
		}
		text := func(v float64) string { return fmt.Sprintf("%.0f %%", v*100) }
		if !of.whole {
			unit := inBytes(all) + of.per
			text = func(v float64) string { return draw.Tick(v) + unit }
		} else {
			all = append(all, draw.Series{Class: "none", Points: []draw.Point{{Y: 0}, {Y: 1}}}) // invisible: sets the axis
		}
		list = append(list, useChart{of.name, template.HTML(draw.Lines(of.title, all, draw.Moment, text))})
	}
	return list
}

// inBytes converts bytes to the largest binary unit that the highest value reaches, so that the axis has round numbers
// of it. It returns the unit.
func inBytes(all []draw.Series) string {
	units, most, n := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}, 0.0, 0
	for _, s := range all {
		for _, p := range s.Points {
			most = max(most, p.Y)
		}
	}
	for ; most >= 1024 && n < len(units)-1; n++ {
		most /= 1024
	}
	for _, s := range all {
		for i := range s.Points {
			s.Points[i].Y /= float64(int64(1) << (10 * n))
		}
	}
	return units[n]
}

func mean(list []*float64) (v float64, known bool) {
	n := 0
	for _, f := range list {
		if f != nil {
			v, n = v+*f, n+1
		}
	}
	return v / math.Max(1, float64(n)), n > 0
}
