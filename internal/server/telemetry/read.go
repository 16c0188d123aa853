package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/store/logfile"
	"scrimp/internal/wire/telemetry"
)

// node is a machine of an attempt with its telemetry.
type node struct {
	rank     int
	instance string
	head     telemetry.Head
	list     []telemetry.Bucket
}

// attempt is an attempt of a job.
type attempt struct {
	id    string
	live  bool
	nodes []node
}

// attempts returns the attempts of a job, without telemetry.
func attempts(j *core.Job) (list []attempt) {
	for _, a := range j.Attempts() {
		one := attempt{id: a.ID(), live: a.Live()}
		for _, k := range a.Tasks() {
			one.nodes = append(one.nodes, node{rank: k.Rank(), instance: k.Instance()})
		}
		list = append(list, one)
	}
	return list
}

// fill reads the telemetry of an attempt's machines, and reports whether there is any. It skips damaged parts of a
// series.
func (d *Service) fill(ctx context.Context, a *attempt) (some bool, err error) {
	for i := range a.nodes {
		n := &a.nodes[i]
		name := logfile.Name(a.id, n.rank)
		b, err := d.Store.Series(ctx, name)
		if err != nil {
			return some, err
		}
		if n.head, n.list, err = telemetry.Decode(b); err != nil {
			d.Errors.Debug("telemetry is damaged; leaving out its end", "of", name, "error", err)
		}
		some = some || len(n.list) > 0
	}
	return some, nil
}

// Get returns the telemetry of an attempt.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	var list []attempt
	state := ""
	if !d.Control.Job(id, func(_ *core.Machine, j *core.Job) { list, state = attempts(j), string(j.State()) }) {
		reply.UnknownJob(w, "", id)
		return
	}
	last, number, wrong := asked(r, len(list))
	if wrong != nil {
		wrong.Answer(w)
		return
	}
	out := client.Telemetry{Job: id, State: state, Attempts: []string{}, Figures: map[string]client.Figure{},
		Nodes: []client.TelemetryNode{}}
	var shown *attempt
	for i := range list {
		known, err := d.fill(r.Context(), &list[i])
		if err != nil {
			reply.Problem(w, http.StatusInternalServerError, "measurements not read", "look at the server's log", err)
			return
		}
		if known {
			out.Attempts = append(out.Attempts, list[i].id)
		}
		if known && number == 0 || number == i+1 {
			shown = &list[i]
		}
	}
	if shown != nil {
		fillOut(&out, shown, last)
	}
	reply.JSON(w, out)
}

// asked parses a request: the length of the last part to return, 0 for all, and the number of the attempt, 0 for the
// newest with telemetry.
func asked(r *http.Request, attempts int) (last time.Duration, number int, wrong *reply.Refusal) {
	q := r.URL.Query()
	if text := q.Get("last"); text != "" {
		span, err := spec.ParseDuration(text)
		if err != nil || span <= 0 {
			return 0, 0, &reply.Refusal{Status: http.StatusBadRequest, Field: "last", Title: "last is not a span",
				Fix: "write a span with its unit, such as 15m"}
		}
		last = span
	}
	if text := q.Get("attempt"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > attempts {
			return 0, 0, &reply.Refusal{Status: http.StatusBadRequest, Field: "attempt",
				Title: fmt.Sprintf("the job has no attempt %.20s", text),
				Fix:   fmt.Sprintf("it has %d, counted from 1", attempts)}
		}
		number = n
	}
	return last, number, nil
}

// fillOut adds an attempt to the response: figures of all of it, and buckets of its last part.
func fillOut(out *client.Telemetry, a *attempt, last time.Duration) {
	out.Attempt, out.Live = a.id, a.live
	var all telemetry.Summary
	cores := 0
	var newest []telemetry.Bucket
	for i := range a.nodes {
		n := &a.nodes[i]
		var own telemetry.Summary
		own.Add(n.list)
		all.Add(n.list)
		cores = max(cores, n.head.Cores)
		v := client.TelemetryNode{Node: n.rank, Instance: n.instance, Driver: n.head.Driver, Seconds: own.Seconds,
			GPUs: []client.GPU{}, Buckets: []client.TelemetryBucket{}}
		if n.head.Cores > 0 {
			v.Cores = new(n.head.Cores)
		}
		if n.head.Memory > 0 {
			v.Memory = new(n.head.Memory)
		}
		for _, g := range n.head.GPUs {
			v.GPUs = append(v.GPUs, gpuOf(g))
		}
		var end []telemetry.Bucket
		if len(n.list) > 0 {
			end = n.list[len(n.list)-1:]
			v.Until = new(time.Unix(end[0].End(), 0).UTC())
			newest = append(newest, end...)
			begin := end[0].End() - int64(last/time.Second)
			for _, b := range n.list {
				if last == 0 || b.End() > begin {
					v.Buckets = append(v.Buckets, bucketTo(&b))
				}
			}
		}
		v.Figures = figures(&own, end)
		out.Nodes = append(out.Nodes, v)
	}
	out.Seconds, out.Figures, out.Hint = all.Seconds, figures(&all, newest), all.Hint(cores)
}

func gpuOf(d telemetry.Device) client.GPU {
	g := client.GPU{Index: d.Index, Name: d.Name}
	if d.Memory > 0 {
		g.Memory = &d.Memory
	}
	if d.Power > 0 {
		g.Power = &d.Power
	}
	return g
}

// figures returns the metrics overall and in the newest buckets.
func figures(s *telemetry.Summary, newest []telemetry.Bucket) map[string]client.Figure {
	list := map[string]client.Figure{}
	var now telemetry.Summary
	now.Add(newest)
	for m := range telemetry.Metrics {
		of := s.Of[m]
		if !of.Known() {
			continue
		}
		f := client.Figure{Average: of.Average, Peak: of.Peak}
		if now.Of[m].Known() {
			f.Last = new(now.Of[m].Average)
		}
		if m.IsRate() {
			f.Total = new(of.Sum())
		}
		list[m.String()] = f
	}
	return list
}

func bucketTo(b *telemetry.Bucket) client.TelemetryBucket {
	v := client.TelemetryBucket{At: time.Unix(b.Start, 0).UTC(), Width: float64(b.Width), Covered: b.Covered,
		Mean: map[string][]*float64{}}
	if b.Width > telemetry.Least {
		v.Peak = map[string][]*float64{}
	}
	for m := range telemetry.Metrics {
		for _, one := range b.V[m] {
			var mean, peak *float64
			if one.Known() {
				mean, peak = &one.Mean, &one.Max
			}
			v.Mean[m.String()] = append(v.Mean[m.String()], mean)
			if v.Peak != nil {
				v.Peak[m.String()] = append(v.Peak[m.String()], peak)
			}
		}
	}
	return v
}

// pointsOfReceipt is the number of points of a line on a receipt.
const pointsOfReceipt = 120

// Receipt returns the telemetry of all machines of a job for its receipt; nil: none is known.
func (d *Service) Receipt(ctx context.Context, j *core.Job) (*receipt.Telemetry, error) {
	var all telemetry.Summary
	var list []telemetry.Bucket
	v := &receipt.Telemetry{}
	for _, a := range attempts(j) {
		if _, err := d.fill(ctx, &a); err != nil {
			return nil, err
		}
		for i := range a.nodes {
			n := &a.nodes[i]
			if len(n.list) == 0 {
				continue
			}
			all.Add(n.list)
			list = append(list, n.list...)
			v.Machines++
			v.Cores = max(v.Cores, n.head.Cores)
			for _, g := range n.head.GPUs {
				v.GPUs, v.GPUMemory = max(v.GPUs, len(n.head.GPUs)), max(v.GPUMemory, g.Memory)
				v.GPUName = g.Name
			}
			if held, known := gpuHeld(n.list, len(n.head.GPUs)); known && (v.GPUHeld == nil || held > *v.GPUHeld) {
				v.GPUHeld = &held
			}
		}
	}
	if all.Seconds == 0 {
		return nil, nil //nolint:nilnil // no telemetry is not an error
	}
	v.Seconds, v.Hint = all.Seconds, all.Hint(v.Cores)
	v.Figures = map[string]receipt.Figure{}
	for m := range telemetry.Metrics {
		if of := all.Of[m]; of.Known() {
			f := receipt.Figure{Average: of.Average, Peak: of.Peak}
			if m.IsRate() {
				f.Total = new(of.Sum())
			}
			v.Figures[m.String()] = f
		}
	}
	v.Points = points(list)
	return v, nil
}

// gpuHeld returns the sum of the peak memory of each GPU of a machine; false: the memory of a GPU is unknown.
func gpuHeld(list []telemetry.Bucket, gpus int) (sum float64, known bool) {
	peaks := map[int]float64{}
	for i := range list {
		for n, v := range list[i].V[telemetry.GPUMemory] {
			if v.Known() {
				peaks[n] = max(peaks[n], v.Max)
			}
		}
	}
	for _, p := range peaks {
		sum += p
	}
	return sum, gpus > 0 && len(peaks) >= gpus
}

// points returns the used shares over time, of all machines together.
func points(list []telemetry.Bucket) (out []receipt.UsePoint) {
	slices.SortStableFunc(list, func(a, b telemetry.Bucket) int { return int(a.Start - b.Start) })
	first, end := list[0].Start, list[0].End()
	for i := range list {
		end = max(end, list[i].End())
	}
	width := max(telemetry.Least, (end-first+pointsOfReceipt-1)/pointsOfReceipt)
	for len(list) > 0 {
		at := first + (list[0].Start-first)/width*width
		n := 0
		for n < len(list) && list[n].Start < at+width {
			n++
		}
		var s telemetry.Summary
		s.Add(list[:n])
		p := receipt.UsePoint{At: time.Unix(at, 0).UTC()}
		for m, to := range map[telemetry.Metric]**float64{telemetry.GPU: &p.GPU, telemetry.CPU: &p.CPU,
			telemetry.IOWait: &p.IOWait} {
			if s.Of[m].Known() {
				*to = new(s.Of[m].Average)
			}
		}
		out, list = append(out, p), list[n:]
	}
	return out
}
