package stages

import (
	"bytes"
	"context"
	"fmt"

	"scrimp/internal/decide/core"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/interval"
	"scrimp/internal/work/pipeline"
)

// judge decides the verdicts of a stage that wait for the interval of a gain, from the files of examples. A gate that
// does not pass makes the move one that skips the stage.
func (f *Files) judge(ctx context.Context, s groups.Snapshot, v *groups.Move) (pass bool, err error) {
	gates := s.Pipeline.Stages[v.Of.Stage].All()
	for i := range v.Of.Gates {
		x := &v.Of.Gates[i]
		if !x.Open {
			continue
		}
		if err := f.settle(ctx, s, &gates[i], x); err != nil {
			v.Of.Gates = v.Of.Gates[:i] // what was not compared is no verdict
			return false, fmt.Errorf("the gate on %s of %s has no interval: %w", x.Metric, x.Stage, err)
		}
		if !x.Pass {
			v.Do, v.Why, v.Of.Gated, v.Of.Gates = groups.Skip, x.Why, true, v.Of.Gates[:i+1]
			return false, nil
		}
	}
	return true, nil
}

// settle decides one verdict.
func (f *Files) settle(ctx context.Context, s groups.Snapshot, g *pipeline.Gate, v *pipeline.Verdict) error {
	n := s.Pipeline.Find(v.Stage)
	value, err := f.examples(ctx, s.Stages[n].Job, s.Pipeline.Stages[n].Examples, v.Metric, v.Value)
	if err != nil {
		return err
	}
	if v.Base == "" {
		return v.Settle(pipeline.Interval{}, nil)
	}
	confidence, err := g.Confident()
	if err != nil {
		return err
	}
	against, err := pipeline.Decimal(v.Base)
	if err != nil {
		return err
	}
	var base *interval.Examples
	if v.Version > 0 {
		job, file := f.exampleFile(v.Run, v.Stage)
		if file == "" {
			return fmt.Errorf("version %d, which is deployed, has no file of examples: leave confidence out for one run",
				v.Version)
		}
		if base, err = f.examples(ctx, job, file, v.Metric, v.Base); err != nil {
			return fmt.Errorf("version %d, which is deployed: %w", v.Version, err)
		}
	}
	in, low, err := interval.Of(value, base, against, confidence, g.Goal == pipeline.Minimize)
	if err != nil {
		return err
	}
	in.Confidence = g.Confidence
	return v.Settle(in, low)
}

// exampleFile is the job that has the file of examples of a stage of a run, and its path; "": there is none.
func (f *Files) exampleFile(run, stage string) (job, file string) {
	f.Control.Read(func(m *core.Machine) {
		g := m.State().Group(run)
		if g == nil || g.Terms.Pipeline == nil {
			return
		}
		if n := g.Terms.Pipeline.Find(stage); n >= 0 {
			job, file = g.Stages[n].Job, g.Terms.Pipeline.Stages[n].Examples
		}
	})
	return job, file
}

// examples reads the values of a metric from a file that a job has made. Their mean is what the metric says.
func (f *Files) examples(ctx context.Context, job, file, metric, says string) (*interval.Examples, error) {
	items, err := f.made(ctx, job, []string{file}, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for _, i := range items {
		if i.Path != file || !i.Mode.IsRegular() || i.Content == nil {
			continue
		}
		if i.Size > interval.MaxBytes {
			return nil, fmt.Errorf("%s has %d bytes: keep at most %d", file, i.Size, interval.MaxBytes)
		}
		var text bytes.Buffer
		if err := i.Content(&text); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		e, err := interval.Read(file, text.Bytes(), metric)
		if err == nil {
			err = e.Agrees(says)
		}
		return e, err
	}
	return nil, fmt.Errorf("%s is not a file that %s has made", file, job)
}

// spares notes what a stage that a gate skips had cost when it last ran in an earlier run of the pipeline, if that is
// known by now.
func (f *Files) spares(s groups.Snapshot, v *groups.Move) {
	name := s.Pipeline.Stages[v.Of.Stage].Name
	f.Control.Read(func(m *core.Machine) {
		newest := uint64(0)
		own := m.State().Group(s.Group)
		for _, g := range m.State().Groups() {
			if g.Terms.Pipeline == nil || g.Terms.Member.Name != own.Terms.Member.Name ||
				g.Terms.Owner.Team != own.Terms.Owner.Team || g.Terms.Owner.Project != own.Terms.Owner.Project {
				continue
			}
			n := g.Terms.Pipeline.Find(name)
			if n < 0 || g.Stages[n].Phase != groups.Done || g.Stages[n].Since <= newest {
				continue
			}
			if j := m.State().Job(g.Stages[n].Job); j != nil {
				newest, v.Of.Spared = g.Stages[n].Since, nil
				if j.Priced() { // else its last machine is not billed yet
					v.Of.Spared = new(j.Spent(f.Control.Now()))
				}
			}
		}
	})
}
