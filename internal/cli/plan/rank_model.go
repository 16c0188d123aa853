package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"scrimp/internal/cli/evidence"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/decide/rank"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
)

// byModel estimates the run on every machine shape.
func (a *app) byModel(ctx context.Context, j spec.Job, folder string, q *rank.Request, v *planning.Ranking) error {
	ask, err := askOf(j, folder)
	if err != nil {
		return err
	}
	if ask.Model.Text() && j.Model.Sequence == 0 {
		v.Assumed = append(v.Assumed, fmt.Sprintf("%g tokens a sample (model.sequence says otherwise)", ask.Seq))
	}
	if bytes := runhistory.Checkpoint(ask.Model, ask.Tuning); bytes > 0 && q.Checkpoints {
		n := cmp.Or(j.Checkpoint.Keep, 3)
		q.Kept = bytes * size.Bytes(n)
		v.Assumed = append(v.Assumed, fmt.Sprintf("%d checkpoints of %s are kept in the provider's store", n, bytes))
	}
	v.Work = cmp.Or(j.Model.Config, ask.Model.Name, "the model") + workOf(ask)
	if text := dividedAs(ask); text != "" {
		v.Assumed = append(v.Assumed, text)
	}
	rows, err := pastruns.Rows(ctx, a.App, nil)
	if err != nil {
		return err
	}
	ways := ways(j, ask, evidence.Programs(j, folder), q.Now)
	for _, w := range ways {
		q.Variants = append(q.Variants, w.Variant)
	}
	q.Work = 3600
	q.Estimate = estimateBy(estimate.New(hardware.Catalogued(), nil, rows), ask, ways)
	return nil
}

// askOf converts a job with a model to a request to the estimator.
func askOf(j spec.Job, folder string) (estimate.Request, error) {
	if err := runhistory.Sound(j.Model); err != nil {
		return estimate.Request{}, err
	}
	j, err := pastruns.Divided(j, folder)
	if err != nil {
		return estimate.Request{}, err
	}
	m, err := pastruns.Model(j, folder)
	if err != nil {
		return estimate.Request{}, err
	}
	ask := runhistory.Request(j, m)
	switch err := ask.Check(); {
	case err != nil:
		return ask, fmt.Errorf("model: %w", err)
	case ask.Tokens > 0 && ask.Rows == 0 && !ask.Model.Text() && m.Kind != shape.Recurrent && m.Kind != shape.Segments:
		return ask, errors.New("work.tokens is given, and the model takes samples in: give work.samples and work.epochs")
	case m.Kind == shape.Trees && ask.Trees == 0:
		return ask, errors.New("model is boosted trees, and nothing says how many: give work.steps, and work.samples for " +
			"the rows of the table")
	case ask.Tokens == 0 && ask.Rows == 0:
		return ask, errors.New("model is given, and nothing says how much it is to be trained: give work.tokens, or " +
			"work.samples and work.epochs")
	}
	return ask, nil
}

// dividedAs describes the run's parallelism over accelerators.
func dividedAs(ask estimate.Request) string {
	var parts []string
	if ask.Zero > 0 {
		parts = append(parts, fmt.Sprintf("replicas share out what ZeRO stage %d does", ask.Zero))
	}
	if ask.TP > 1 {
		parts = append(parts, fmt.Sprintf("layers are cut over %g accelerators", ask.TP))
	}
	if ask.PP > 1 {
		parts = append(parts, fmt.Sprintf("in %g stages", ask.PP))
	}
	if ask.Keep != runs.KeepAll {
		parts = append(parts, "activations are computed again")
	}
	if len(parts) == 0 {
		return ""
	}
	return "the run is divided as its file or its launcher says: " + strings.Join(parts, ", ")
}

// workOf describes the amount of training.
func workOf(ask estimate.Request) string {
	if ask.Tokens > 0 {
		return fmt.Sprintf(", %s tokens", draw.Short(int64(ask.Tokens)))
	}
	again := "once"
	if ask.Epochs > 1 {
		again = fmt.Sprintf("%g times", ask.Epochs)
	}
	return fmt.Sprintf(", %s samples, %s", draw.Short(int64(ask.Rows)), again)
}

// estimateBy returns a function that estimates a machine shape and a way to train. A variant beyond the ways changes
// the work, not the way.
func estimateBy(e *estimate.Estimator, ask estimate.Request, ways []way) func(rank.Shape, int) (rank.Estimate, bool) {
	return func(s rank.Shape, variant int) (rank.Estimate, bool) {
		x := ask
		if variant >= len(ways) {
			variant = 0
		}
		ways[variant].set(&x)
		x.Chip, x.Count = s.Accelerator, float64(s.Count())
		if x.Chip == "" || x.Count < 1 || x.Zero > ask.Zero && x.Count < 2 {
			return rank.Estimate{}, false
		}
		x.Host = hostOf(s)
		o, err := e.Answer(x)
		if why := cannot(err); why != "" {
			return rank.Estimate{Why: why}, true
		}
		if err != nil || o.Hours == nil {
			return rank.Estimate{}, false
		}
		r := rank.Estimate{Rate: rank.Range{Low: 1 / o.Hours.High, Value: 1 / o.Hours.Value, High: 1 / o.Hours.Low},
			Fits: o.Fits, Source: o.Provenance}
		if o.PeakMemory != nil {
			r.Memory = size.Bytes(o.PeakMemory.Value * float64(size.GB))
		}
		return r, true
	}
}

// hostOf returns the machines of a shape.
func hostOf(s rank.Shape) *hardware.Machine {
	return &hardware.Machine{Count: float64(s.Machines), Each: float64(s.Each), CPUs: float64(s.CPUs), Network: s.Network,
		Link: s.Link}
}

// cannot returns why an accelerator cannot train at all or not in the requested format, or "" for another error.
func cannot(err error) rank.Reason {
	switch {
	case errors.Is(err, estimate.ErrInferenceOnly):
		return rank.InferenceOnly
	case errors.Is(err, estimate.ErrPrecision):
		return rank.NoPrecision
	}
	return ""
}
