package plan

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/prediction"
	"scrimp/internal/work/study"
)

// Predict requests the server's market and simulates the job on it.
func Predict(ctx context.Context, a *command.App, c *command.Client, j spec.Job, v api.Server) (planning.Plan, error) {
	p, _, err := predict(ctx, a, c, j, v)
	if err == nil {
		err = ctx.Err() // the simulation is incomplete
	}
	return p, err
}

// PredictTrial does that for the trial of a study, and returns what its trials need too.
func PredictTrial(ctx context.Context, a *command.App, c *command.Client, j spec.Job, v api.Server,
	atOnce int) (planning.Plan, study.Means, error) {
	p, q, err := predict(ctx, a, c, j, v)
	if err != nil {
		return p, study.Means{}, err
	}
	return p, q.Means(atOnce), nil
}

// predict returns the plan of the runs that were complete when ctx ended, if any was.
func predict(ctx context.Context, a *command.App, c *command.Client, j spec.Job, v api.Server) (planning.Plan,
	*prediction.Outlook, error) {
	var m api.Market
	for begun := a.Now(); ; {
		if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
			return planning.Plan{}, nil, err
		}
		if prediction.Polled(m, v) || a.Now().Sub(begun) >= firstPolls {
			break
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil { // the server has just started
			return planning.Plan{}, nil, err
		}
		if err := c.Do(ctx, http.MethodGet, "/v1/server", nil, &v); err != nil {
			return planning.Plan{}, nil, err
		}
	}
	if err := prediction.Unknown(j, m, v); err != nil {
		return planning.Plan{}, nil, err
	}
	begun, said := a.Now(), a.Now().Add(quiet-every)
	p, q := prediction.With(j, m, v, prediction.Simulation{Runs: prediction.Runs,
		Halt: func() bool { return ctx.Err() != nil },
		Told: func(runs int) {
			if now := a.Now(); runs < prediction.Runs && now.Sub(said) >= every {
				said = now
				a.Notef("simulated %d runs in %s; Ctrl-C prints the plan of these\n", runs, draw.Span(now.Sub(begun)))
			}
		}})
	if ctx.Err() != nil && p.Runs == 0 {
		return planning.Plan{}, nil, ctx.Err()
	}
	return planning.Plan{Plan: p, Spot: q.Spot}, q, nil
}

// firstPolls bounds how long a plan waits for engines that a new server has not polled yet.
const firstPolls = 5 * time.Second

const (
	quiet = 1500 * time.Millisecond // how long a simulation takes before it shows progress
	every = 2 * time.Second         // between two lines of progress
)

// shows prints a plan. It returns an error if the plan is infeasible.
func (a *app) shows(p planning.Plan) (err error) {
	if a.JSON {
		err = a.Print(p)
	} else {
		a.Printf("%s", p.Text(a.Place()))
	}
	if err == nil && !p.Feasible {
		return command.Infeasible
	}
	return err
}

// drawn writes a drawing of the frontier to a file.
func (a *app) drawn(file, svg string) error {
	if svg == "" {
		a.Notef("note: no plan has a cost and a time to draw: %s is not written\n", file)
		return nil
	}
	if err := os.WriteFile(file, []byte(svg), 0o644); err != nil {
		return fmt.Errorf("write the drawing: %w", err)
	}
	a.Notef("The frontier is in %s\n", file)
	return nil
}

// Never reports whether no machine on the market can ever run the job: prices change, machine types do not. An empty
// market may still fill.
func Never(p planning.Plan) bool {
	changes := func(r api.PlanRefusal) bool {
		return !slices.Contains([]plan.Reason{plan.TooSmall, plan.DoesNotFit, plan.TooLarge, plan.TooFew, plan.ShortLived,
			plan.NoImages, plan.WrongGPU, plan.WrongPlace, plan.WrongKind}, plan.Reason(r.Why))
	}
	return p.Take == "" && p.WaitsFor == "" && len(p.Rejected) > 0 && !slices.ContainsFunc(p.Rejected, changes)
}

// Unfit returns why no machine on the market can ever run the job; "" if one can, or if the market may still fill.
func Unfit(p planning.Plan) string {
	switch {
	case !p.Unsold && !Never(p):
		return ""
	case len(p.Reasons) > 0:
		return p.Reasons[0]
	}
	return "nothing on this market fits: scrimp market shows what is for sale"
}
