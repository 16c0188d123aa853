package pages

import (
	"fmt"
	"html/template"
	"math"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
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
	text        func(float64) string
	whole       bool // the axis goes from 0 to 1
}{
	{"In use", "GPU and CPU in use over time", []useLine{{telemetry.GPU, "GPU"}, {telemetry.CPU, "CPU"}},
		func(v float64) string { return fmt.Sprintf("%.0f %%", v*100) }, true},
	{"Memory", "Memory in use over time", []useLine{{telemetry.GPUMemory, "each GPU"}, {telemetry.Memory, "machine"}},
		size.About, false},
	{"Disk and network", "Bytes a second over time", []useLine{{telemetry.DiskRead, "read"},
		{telemetry.DiskWrite, "written"}, {telemetry.NetReceive, "received"}, {telemetry.NetTransmit, "sent"}},
		func(v float64) string { return size.About(v) + "/s" }, false},
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
		if of.whole {
			all = append(all, draw.Series{Class: "none", Points: []draw.Point{{Y: 0}, {Y: 1}}}) // invisible: sets the axis
		}
		list = append(list, useChart{of.name, template.HTML(draw.Lines(of.title, all, draw.Moment, of.text))})
	}
	return list
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
