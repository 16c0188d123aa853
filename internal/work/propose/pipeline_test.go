package propose

import (
	"fmt"
	"slices"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// said writes moves in short form.
func said(moves []groups.Move) (list []string) {
	for _, v := range moves {
		text := string(v.Do)
		if v.Of != nil {
			text += fmt.Sprint(" ", v.Of.Stage)
		}
		if v.Do == groups.Skip || v.Do == groups.Fail {
			text += ": " + v.Why
		}
		list = append(list, text)
	}
	return list
}

func TestStages_RunInOrder(t *testing.T) {
	spec, err := pipeline.New([]pipeline.Stage{
		{Name: "prepare", Deps: []string{"data"}, Outs: []string{"p"}},
		{Name: "train", Deps: []string{"p"}, Outs: []string{"m", "f"}, Metrics: []string{"f"}},
		{Name: "other", Deps: []string{"data"}, Outs: []string{"o"}},
		{Name: "deploy", Deps: []string{"m"}, Gate: &pipeline.Gate{Metric: "train.acc", Min: "0.9"}},
		{Name: "tell", After: []string{"deploy"}},
	})
	must.Do(t, err)
	acc := func(v string) groups.Stage {
		return groups.Stage{Phase: groups.Done, Product: groups.Product{Metrics: map[string]string{"acc": v}}}
	}
	wrong := groups.Stage{Phase: groups.Done, Product: groups.Product{Wrong: map[string]string{"acc": "f has acc twice"}}}
	empty := groups.Stage{Phase: groups.Done, Product: groups.Product{Wrong: map[string]string{"acc": "f is empty"}}}
	done, waits := groups.Stage{Phase: groups.Done}, groups.Stage{}
	for _, c := range []struct {
		name   string
		open   int
		stages []groups.Stage
		want   []string
	}{
		{"at first", 0, []groups.Stage{waits, waits, waits, waits, waits}, []string{"start 0", "start 2"}},
		{"one place", 1, []groups.Stage{waits, waits, waits, waits, waits}, []string{"start 0"}},
		{"no place", 2, []groups.Stage{done, waits, waits, waits, waits}, nil},
		{"a job has succeeded", 0, []groups.Stage{{Phase: groups.Made}, waits, done, waits, waits}, []string{"keep 0"}},
		{"reused", 0, []groups.Stage{{Phase: groups.Reused}, waits, done, waits, waits}, []string{"start 1"}},
		{"a failure", 1, []groups.Stage{{Phase: groups.StageFailed}, waits, {Phase: groups.Running}, waits, waits},
			[]string{"skip 1: it needs prepare, which failed", "skip 3: it needs train, which was skipped", "skip 4: it needs deploy, which was skipped"}},
		{"at the bar", 0, []groups.Stage{done, acc("0.90"), done, waits, waits}, []string{"start 3"}},
		{"below the bar", 0, []groups.Stage{done, acc("0.8999999999999999999"), done, waits, waits},
			[]string{"skip 3: acc of train is 0.8999999999999999999, below the min of 0.9", "skip 4: it needs deploy, which was skipped"}},
		{"no metric", 0, []groups.Stage{done, done, done, waits, waits},
			[]string{"fail 3: the gate has nothing to judge: the metrics of train have no number acc", "skip 4: it needs deploy, which failed"}},
		{"a file without numbers", 0, []groups.Stage{done, empty, done, waits, waits},
			[]string{"fail 3: the gate has nothing to judge: the metrics of train have no number acc: f is empty", "skip 4: it needs deploy, which failed"}},
		{"two numbers", 0, []groups.Stage{done, wrong, done, waits, waits},
			[]string{"fail 3: the gate has nothing to judge: the metrics of train have no number acc: f has acc twice", "skip 4: it needs deploy, which failed"}},
		{"no metric, and the gate waits for another stage", 0, []groups.Stage{done, empty, waits, waits, waits},
			[]string{"skip 2: the pipeline stops: the gate has nothing to judge: the metrics of train have no number acc: f is empty",
				"fail 3: the gate has nothing to judge: the metrics of train have no number acc: f is empty",
				"skip 4: it needs deploy, which failed"}},
		{"no metric, while another stage runs", 1, []groups.Stage{done, empty, {Phase: groups.Running}, waits, waits},
			[]string{"fail 3: the gate has nothing to judge: the metrics of train have no number acc: f is empty", "skip 4: it needs deploy, which failed"}},
		{"all are settled", 0, []groups.Stage{done, acc("1"), done, done, done}, []string{"finish"}},
		{"one is not over", 1, []groups.Stage{done, acc("1"), {Phase: groups.StageFailed}, done, done}, nil},
	} {
		s := groups.Snapshot{Group: "g", Kind: groups.Pipeline, AtOnce: 2, Open: c.open, Pipeline: spec, Stages: c.stages}
		if got := said(Moves(s)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A chain of 10,000 stages is planned after each of its steps.
func BenchmarkStages(b *testing.B) {
	var list []pipeline.Stage
	for n := range pipeline.MaxStages {
		s := pipeline.Stage{Name: fmt.Sprint("s", n), Outs: []string{fmt.Sprint("o", n)}}
		if n > 0 {
			s.Deps = []string{fmt.Sprint("o", n-1)}
		} else {
			s.Deps = []string{"data"}
		}
		list = append(list, s)
	}
	spec, err := pipeline.New(list)
	must.Do(b, err)
	s := groups.Snapshot{Kind: groups.Pipeline, AtOnce: 8, Pipeline: spec, Stages: make([]groups.Stage, len(spec.Stages))}
	for b.Loop() {
		Moves(s)
	}
}
