// Package planning simulates jobs that are not submitted, one at a time.
package planning

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/server/prediction"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/submit/request"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

const (
	// planLimit is the Limit of a server.
	planLimit = 4 * time.Second
	// planPatience bounds how long a request waits for the plans of others.
	planPatience = 10 * time.Second
	// FewestRuns is the number of runs of a job for which prediction.Runs take too long.
	FewestRuns = 20
	// planBusy is the title of the answer to a request that would wait longer.
	planBusy = "the server makes the plans of others"
)

// Service simulates jobs that are not submitted.
type Service struct {
	Reader request.Reader
	// Server, Market and Measured answer the requests of a client that plans by itself.
	Server, Market, Measured http.HandlerFunc
	Log                      *slog.Logger
	// Limit bounds the simulation of one plan, in wall time. A plan with more work gets fewer runs.
	Limit time.Duration

	turn chan struct{} // has room for the one plan that is simulated
}

// New returns a service that simulates no plan yet.
func New(d Service) *Service {
	d.Limit = planLimit
	d.turn = make(chan struct{}, 1)
	return &d
}

// Plan simulates a job that is not submitted, as scrimp plan does. It changes and rents nothing.
func (d *Service) Plan(w http.ResponseWriter, r *http.Request) {
	j, ok := d.Reader.Plan(w, r)
	if !ok {
		return
	}
	p, no := d.planOf(r, j)
	if no != nil {
		if no.Title == planBusy {
			w.Header().Set("Retry-After", "5")
		}
		no.Answer(w)
		return
	}
	reply.JSON(w, p)
}

// Foresee returns the planned cost of a job in dollars: 10 %, median and 90 %; nil: unknown.
func (d *Service) Foresee(r *http.Request, j spec.Job) *[3]float64 {
	p, no := d.planOf(r, j)
	if no != nil || !p.Known {
		return nil
	}
	return p.CostUSD
}

// planOf simulates a job that is not submitted, or returns why it cannot.
func (d *Service) planOf(r *http.Request, j spec.Job) (p client.Plan, no *reply.Refusal) {
	var market api.Market
	var about api.Server
	var runs []client.Run
	err := answered(r, d.Server, "/v1/server", &about)
	if err == nil {
		err = answered(r, d.Market, "/v1/market", &market)
	}
	if err == nil {
		runs, err = d.earlier(r, j)
	}
	if err != nil {
		return p, &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "cannot read the market", Fix: "try again",
			Err: err}
	}
	if wrong := prediction.Unknown(j, market, about); wrong != nil {
		return p, request.Invalid(wrong)
	}
	from := ""
	past := convert.To[[]runhistory.Run](runs)
	j = runhistory.WithParallel(past, j)
	if known, ok := runhistory.Next(past, j); ok && j.Work.Time == 0 {
		j, from = known.Fill(j), known.Source()
	}
	release, ok := d.planTurn(r.Context())
	if !ok {
		return p, &reply.Refusal{Status: http.StatusServiceUnavailable, Title: planBusy, Fix: "try again in 5 s"}
	}
	p, halted, err := d.simulated(r.Context(), j, market, about)
	release()
	switch {
	case err != nil:
		d.Log.Error("cannot plan a job", "error", err, isolate.Stack(err))
		return p, &reply.Refusal{Status: http.StatusInternalServerError, Title: "the job was not simulated",
			Fix: "this is a bug of scrimp: report it with what the server's log says"}
	case halted:
		return p, &reply.Refusal{Status: http.StatusServiceUnavailable,
			Title: "the simulation takes too long for the server", Fix: "run scrimp plan, which simulates on your machine"}
	}
	p.WorkFrom = from
	return p, nil
}

// earlier returns the caller's newest runs of the job's name.
func (d *Service) earlier(r *http.Request, j spec.Job) (runs []client.Run, err error) {
	q := url.Values{"name": {j.Name}, "limit": {"20"}}
	err = answered(r, d.Measured, "/v1/measured?"+q.Encode(), &runs)
	return runs, err
}

// WithParallel returns the job with an unstated work.parallel filled in from the caller's earlier runs, if its
// resources leave a range.
func (d *Service) WithParallel(r *http.Request, j spec.Job) (spec.Job, error) {
	if !runhistory.Ranges(j) {
		return j, nil
	}
	runs, err := d.earlier(r, j)
	return runhistory.WithParallel(convert.To[[]runhistory.Run](runs), j), err
}

// simulated returns the plan of a job, with fewer runs if all of them take too long. halted reports that even those
// did, or that the client has left.
func (d *Service) simulated(ctx context.Context, j spec.Job, m api.Market, v api.Server) (
	p client.Plan, halted bool, err error,
) {
	for _, runs := range []int{prediction.Runs, FewestRuns} {
		until := time.Now().Add(d.Limit)
		halt := func() bool { return ctx.Err() != nil || time.Now().After(until) }
		err = isolate.Call(func() {
			var q *prediction.Outlook
			if p, q = prediction.Of(j, m, v, runs, halt); p.Known && !halt() {
				p.Engines = q.Compare(j)
			}
		})
		if halted = halt(); err != nil || !halted || ctx.Err() != nil {
			break
		}
	}
	return p, halted, err
}

// planTurn waits until no other plan is simulated. After release, the next plan waits for as long as this one took, so
// that plans use at most half of one processor.
func (d *Service) planTurn(ctx context.Context) (release func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, planPatience)
	defer cancel()
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	begun := time.Now()
	return func() { time.AfterFunc(time.Since(begun), func() { <-d.turn }) }, true
}

// answered calls a handler of the API as the caller of r, and decodes its answer.
func answered(r *http.Request, do http.HandlerFunc, path string, out any) error {
	of, err := http.NewRequestWithContext(r.Context(), http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	of.RemoteAddr, of.Header = r.RemoteAddr, r.Header
	got := &answer{header: http.Header{}, status: http.StatusOK}
	if do(got, of); got.status >= http.StatusBadRequest {
		return fmt.Errorf("%s answers %d: %s", path, got.status, got.body.Bytes())
	}
	return json.Unmarshal(got.body.Bytes(), out)
}

// answer keeps an answer.
type answer struct {
	header http.Header
	body   bytes.Buffer
	status int
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
