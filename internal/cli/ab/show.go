package ab

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/show/comparison"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/wait"
	"scrimp/internal/work/ab"
)

// status shows the newest comparison with the given name.
func (a *app) status(ctx context.Context, c *command.Client, name string) error {
	g, _, err := groups.PipelineRun(ctx, c, name, false)
	if err != nil {
		return err
	}
	v, err := a.report(ctx, c, g, map[string]comparison.Run{})
	if err != nil {
		return err
	}
	return a.Show(v, v.Text(a.Place()))
}

// follow shows the progress of a comparison, cancels the remaining runs once it is decided, and prints the result.
func (a *app) follow(ctx context.Context, c *command.Client, id string) error {
	over, shown, ended := map[string]comparison.Run{}, "", false
	for failed := 0; ; {
		g, err := c.Group(ctx, id)
		var v comparison.Comparison
		if err == nil {
			v, err = a.report(ctx, c, g, over)
		}
		switch {
		case ctx.Err() != nil:
			a.Notef("\nDetached: %s goes on, and nothing stops it early. scrimp ab status %s shows it, scrimp stop %s ends "+
				"it.\n",
				id, id, id)
			return nil
		case err != nil:
			if failed++; failed > 20 {
				return fmt.Errorf("follow %s: %w", id, err)
			}
		default:
			failed = 0
			if line := v.Progress(); line != shown && !a.JSON {
				shown = line
				a.Notef("%s\n", line)
			}
			if g.Closed {
				return a.ended(v)
			}
			if v.Decided && !ended && g.State != "over" {
				if _, err := c.EndGroup(ctx, id, false); err == nil {
					ended = true
				}
			}
		}
		_ = wait.For(ctx, time.Second)
	}
}

// ended prints an ended comparison. The verdict determines the exit status.
func (a *app) ended(v comparison.Comparison) error {
	if err := a.Show(v, v.Text(a.Place())); err != nil {
		return err
	}
	if v.Failed || v.Verdict != nil && (*v.Verdict == ab.Worse || *v.Verdict == ab.CannotTell) {
		return command.JobFailed
	}
	return nil
}

// report returns the state of a comparison. It caches the results of ended runs in over, by job.
func (a *app) report(ctx context.Context, c *command.Client, g api.Group, over map[string]comparison.Run) (
	v comparison.Comparison, err error) {
	v = comparison.Comparison{Group: g.ID, State: g.State, Closed: g.Closed, Currency: g.Currency, Spent: g.Spent,
		Arms: [2]comparison.Arm{{Name: baselineArm}, {Name: changeArm}}}
	for _, s := range g.Pipeline.Stages {
		var kept record
		if err := json.Unmarshal([]byte(s.Params[param]), &kept); err != nil || kept.Pairs == 0 {
			return v, fmt.Errorf("%s is a pipeline and no comparison: scrimp pipeline status %s shows it", g.ID, g.ID)
		}
		v.Design, v.Baseline, v.Metric = kept.Design, kept.Baseline, kept.Shown
		r, done := over[s.Job]
		if !done {
			if r, err = stateOf(ctx, c, s, kept.Shown); err != nil {
				return v, err
			}
			if r.Closed && s.Job != "" {
				over[s.Job] = r
			}
		}
		r.Seed = kept.Seed
		x := &v.Arms[0]
		if kept.Arm == changeArm {
			x = &v.Arms[1]
		}
		x.Runs = append(x.Runs, r)
	}
	v.Sum()
	return v, nil
}

// stateOf returns the state and result of a run.
func stateOf(ctx context.Context, c *command.Client, s api.StageState, metric string) (r comparison.Run, err error) {
	r = comparison.Run{Job: s.Job, State: s.State, Why: s.Why, Cost: s.Cost}
	if s.Job == "" {
		r.Closed = s.State == "failed" || s.State == "skipped"
		return r, nil
	}
	j, err := c.Job(ctx, s.Job)
	if err != nil {
		return r, err
	}
	r.State, r.Closed, r.Cost = j.State, j.Closed, j.Spent
	r.Why = cmp.Or(j.Detail, j.Why)
	if !j.Closed || j.State != "succeeded" {
		return r, nil
	}
	r.Why = ""
	if value, there := j.Metrics[metric]; there && !math.IsNaN(value) && !math.IsInf(value, 0) {
		r.Value = &value
	}
	r.Reported = slices.Collect(maps.Keys(j.Metrics))
	receipt, err := c.Receipt(ctx, s.Job)
	if err != nil {
		return r, err
	}
	r.Times = map[string]float64{}
	if run := secondsRun(receipt); run > 0 {
		r.Times[comparison.PerRun] = run
	}
	if values, err := c.Metric(ctx, s.Job); err == nil { // an older server may not have it
		pace(r.Times, values.Values)
		if r.NoNumber = noNumber(values, metric); r.NoNumber {
			r.Value = nil
		}
	}
	if t, err := c.Telemetry(ctx, s.Job, 0, 0); err == nil {
		r.Memory = peaks(t)
	}
	return r, nil
}

// secondsRun is how long the attempts of a job ran, in seconds of the wall.
func secondsRun(r receipt.Receipt) (run float64) {
	for _, t := range r.Tries {
		if t.Begun != nil {
			run += t.Until.Sub(*t.Begun).Seconds() / max(r.MarketSpeed, 1e-9)
		}
	}
	return run
}

// peaks are the highest memory of the GPU and of the program, where they were measured.
func peaks(t api.Telemetry) map[string]float64 {
	memory := map[string]float64{}
	for _, m := range []string{comparison.OfGPU, comparison.OfProgram} {
		if f, measured := t.Figures[m]; measured && f.Peak > 0 {
			memory[m] = f.Peak
		}
	}
	return memory
}

// noNumber reports whether the last value of a metric is NaN or infinite.
func noNumber(v api.MetricValues, metric string) bool {
	n := len(v.Values)
	return n > 0 && v.Metric == metric && v.Values[n-1].Value == nil
}

// shortestPace is the shortest time between two values that gives a pace, in seconds. Values carry the time at which an
// agent read them, up to half a second late, so a shorter span would show the agent's rhythm and not the program's.
const shortestPace = 10

// pace adds the durations of an epoch and a step, measured from the first to the last value of the newest attempt, if
// they are at least shortestPace apart.
func pace(times map[string]float64, list []api.MetricValue) {
	if len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	for _, first := range list {
		if first.Attempt != last.Attempt {
			continue
		}
		took := last.At.Sub(first.At).Seconds()
		if took < shortestPace {
			return
		}
		if epochs := last.Epoch - first.Epoch; epochs > 0 {
			times[comparison.PerEpoch] = took / epochs
		}
		if steps := last.Step - first.Step; steps > 0 {
			times[comparison.PerStep] = took / float64(steps)
		}
		return
	}
}
