package diagnosis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
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
func (d *Desk) evidence(r *http.Request, id string) (in diagnose.Input, no *answer) {
	var j client.Job
	var t client.Telemetry
	var paid client.Receipt
	at := "/v1/jobs/" + url.PathEscape(id)
	for _, of := range []struct {
		do   http.HandlerFunc
		path string
		out  any
	}{{d.Job, at, &j}, {d.Telemetry, at + "/telemetry", &t}, {d.Receipt, at + "/receipt", &paid}} {
		if no := answered(r, of.do, of.path, id, of.out); no != nil {
			return in, no
		}
	}
	in = diagnose.Input{Job: j.ID, Live: !j.Closed, Metrics: j.Metrics, Lines: d.lines(r, at, id)}
	for _, n := range t.Nodes {
		in.Nodes = append(in.Nodes, nodeOf(n))
	}
	in.Account = accountOf(paid)
	if in.Account.HourlyUSD == nil && j.Rate != nil && j.Currency == money.USD {
		in.Account.HourlyUSD = new(j.Rate.Float())
	}
	texts := make([]string, 0, len(in.Lines)+3)
	for _, l := range in.Lines {
		texts = append(texts, l.Text)
	}
	var raw json.RawMessage
	if no := answered(r, d.Spec, at+"/spec", id, &raw); no != nil {
		return in, no
	}
	if s, _, err := spec.ParseJSON(spec.Read, raw, "", d.Now()); err == nil { // an older release's may be unreadable
		in.Account.Requested = int64(s.Resources.Memory.Min)
		texts = append(texts, s.Command, s.Setup, strings.Join(s.Args, " "))
	}
	in.Framework = class.FrameworkOf(texts...)
	return in, nil
}

// lines returns the last lines of a job's output with their times. It reads at most mostBytes, and none if the output
// cannot be read: the other evidence stays.
func (d *Desk) lines(r *http.Request, at, id string) (list []diagnose.Line) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	got := &answer{header: http.Header{}, most: mostBytes, stop: stop}
	path := at + "/log?" + url.Values{"format": {"json"}, "tail": {fmt.Sprint(mostOutput)}}.Encode()
	if call(ctx, r, d.Output, path, id, got) != nil || got.status >= http.StatusBadRequest {
		return nil
	}
	for text := range bytes.Lines(got.body.Bytes()) {
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
func accountOf(r client.Receipt) (out diagnose.Account) {
	out.Step, out.Checkpoints, out.SaveSeconds = r.Step, r.Checkpoints, r.SaveSeconds
	if r.Total != nil {
		out.Total = *r.Total
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

// answered calls a handler of the API about a job as the caller of r, and decodes its answer. It returns the answer if
// that is a refusal.
func answered(r *http.Request, do http.HandlerFunc, path, id string, out any) *answer {
	got := &answer{header: http.Header{}, most: mostAnswer}
	err := call(r.Context(), r, do, path, id, got)
	switch {
	case err != nil:
	case got.over:
		err = errLong
	case got.status >= http.StatusBadRequest:
		return got
	default:
		err = json.Unmarshal(got.body.Bytes(), out)
	}
	if err != nil {
		return &answer{status: http.StatusInternalServerError, err: fmt.Errorf("%s: %w", path, err)}
	}
	return nil
}

// call calls a handler of the API as the caller of r.
func call(ctx context.Context, r *http.Request, do http.HandlerFunc, path, id string, got *answer) error {
	of, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	of.RemoteAddr, of.Header = r.RemoteAddr, r.Header
	of.SetPathValue("id", id)
	do(got, of)
	return nil
}

// mostAnswer bounds an answer of the API, in bytes: the telemetry of a thousand machines.
const mostAnswer = 256 << 20

var errLong = errors.New("the answer is too long")

// answer keeps an answer, up to a limit.
type answer struct {
	header http.Header
	body   bytes.Buffer
	status int
	most   int
	over   bool
	stop   func() // called once the limit is exceeded; may be nil
	err    error  // why there is no answer; nil: the body says it
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	room := min(len(b), a.most-a.body.Len())
	a.body.Write(b[:room])
	if room < len(b) {
		if a.over = true; a.stop != nil {
			a.stop()
		}
		return room, errLong
	}
	return len(b), nil
}

// send sends a refusal on to the caller.
func (a *answer) send(w http.ResponseWriter) {
	if a.err != nil {
		reply.Problem(w, http.StatusInternalServerError, "the job was not diagnosed", "look at the server's log", a.err)
		return
	}
	w.Header().Set("Content-Type", a.header.Get("Content-Type"))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // w keeps its error
}
