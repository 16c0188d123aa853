package diagnosis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/ask"
	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
)

// Bounds on the output of a job that is read.
const (
	mostOutput  = 5000     // lines
	mostBytes   = 16 << 20 // of these lines, as JSON
	longestLine = 2000     // bytes of a line that are examined
)

// evidence collects what the server knows about a job.
func (d *Service) evidence(r *http.Request, id string) (in diagnose.Input, no *ask.Answer) {
	var j client.Job
	var t client.Telemetry
	var paid client.Receipt
	at := "/v1/jobs/" + url.PathEscape(id)
	for _, of := range []struct {
		do   http.HandlerFunc
		path string
		out  any
	}{{d.Job, at, &j}, {d.Telemetry, at + "/telemetry", &t}, {d.Receipt, at + "/receipt", &paid}} {
		if no := ask.Get(r, of.do, of.path, id, of.out); no != nil {
			return in, no
		}
	}
	in = diagnose.Input{Job: j.ID, Live: !j.Closed, Metrics: j.Metrics, Lines: d.lines(r, at, id)}
	for _, n := range t.Nodes {
		in.Nodes = append(in.Nodes, nodeOf(n))
	}
	in.Account = accountOf(paid, j.Phase)
	if in.Account.HourlyUSD == nil && j.Rate != nil && j.Currency == money.USD {
		in.Account.HourlyUSD = new(j.Rate.Float())
	}
	texts := make([]string, 0, len(in.Lines)+3)
	for _, l := range in.Lines {
		texts = append(texts, l.Text)
	}
	var raw json.RawMessage
	if no := ask.Get(r, d.Spec, at+"/spec", id, &raw); no != nil {
		return in, no
	}
	if s, _, err := spec.ParseJSON(spec.Read, raw, "", d.Now()); err == nil { // an older release's may be unreadable
		in.Account.Requested = int64(s.Resources.Memory.Min)
		in.Account.Reports = s.Progress.Pattern != "" || s.Work.Steps > 0
		texts = append(texts, s.Command, s.Setup, strings.Join(s.Args, " "))
	}
	in.Framework = class.FrameworkOf(texts...)
	return in, nil
}

// lines returns the last lines of a job's output with their times. It reads at most mostBytes, and none if the output
// cannot be read: the other evidence stays.
func (d *Service) lines(r *http.Request, at, id string) (list []diagnose.Line) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	got := &ask.Answer{Most: mostBytes, Stop: stop}
	path := at + "/log?" + url.Values{"format": {"json"}, "tail": {fmt.Sprint(mostOutput)}}.Encode()
	if ask.Call(ctx, r, d.Output, path, id, got) != nil || got.Status >= http.StatusBadRequest {
		return nil
	}
	for text := range bytes.Lines(got.Body.Bytes()) {
		var l client.LogLine
		if json.Unmarshal(text, &l) != nil { // cut at the limit
			continue
		}
		one := diagnose.Line{Text: l.Line}
		if len(one.Text) > longestLine {
			one.Text = strings.ToValidUTF8(one.Text[:longestLine], "")
		}
		if l.At != nil {
			one.At = l.At.Unix()
		}
		list = append(list, one)
	}
	return list
}

// nodeOf converts a machine's telemetry.
func nodeOf(n client.TelemetryNode) diagnose.Node {
	out := diagnose.Node{Rank: n.Node, Head: telemetry.Head{Driver: n.Driver}}
	if n.Cores != nil {
		out.Head.Cores = *n.Cores
	}
	if n.Memory != nil {
		out.Head.Memory = *n.Memory
	}
	for _, g := range n.GPUs {
		d := telemetry.Device{Index: g.Index, Name: g.Name}
		if g.Memory != nil {
			d.Memory = *g.Memory
		}
		if g.Power != nil {
			d.Power = *g.Power
		}
		out.Head.GPUs = append(out.Head.GPUs, d)
	}
	for _, b := range n.Buckets {
		one := telemetry.Bucket{Start: b.At.Unix(), Width: int64(b.Width), Covered: b.Covered}
		for name, values := range b.Mean {
			m, known := telemetry.Named(name)
			if !known { // from a later release
				continue
			}
			for i, v := range values {
				one.V[m] = append(one.V[m], valueOf(v, b.Peak[name], i))
			}
		}
		out.Buckets = append(out.Buckets, one)
	}
	return out
}

func valueOf(mean *float64, peaks []*float64, i int) telemetry.Value {
	switch {
	case mean == nil:
		return telemetry.Unknown
	case i < len(peaks) && peaks[i] != nil:
		return telemetry.Value{Mean: *mean, Max: *peaks[i]}
	}
	return telemetry.Exactly(*mean)
}

// accountOf returns the job's costs from its receipt, including the cost of an hour with machines.
// Phase is that of its present attempt; empty without one.
func accountOf(r client.Receipt, phase string) (out diagnose.Account) {
	out.Step, out.Checkpoints, out.SaveSeconds = r.Step, r.Checkpoints, r.SaveSeconds
	if r.Total != nil {
		out.Total = *r.Total
	}
	if n := len(r.Tries); n > 0 && r.MarketSpeed > 0 {
		if t := r.Tries[n-1]; t.Begun == nil && phase != "" && t.End == phase { // it is the present attempt
			out.NotBegun = t.Until.Sub(t.From).Seconds() / r.MarketSpeed
		}
	}
	cost, hours := 0.0, 0.0
	for _, t := range r.Tries {
		span, spent := t.Until.Sub(t.From).Hours(), t.Cost.Float()
		if t.Rate > 0 { // a minimum charge is not an hourly price
			spent = min(spent, t.Rate.Float()*span)
		}
		cost, hours = cost+spent, hours+span
	}
	if r.Currency == money.USD && hours > 0 && cost > 0 {
		out.HourlyUSD = new(cost / hours)
	}
	return out
}
