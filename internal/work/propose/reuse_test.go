package propose

import (
	"fmt"
	"slices"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// chain is a pipeline of n stages. Each stage reads the outputs of the previous stage.
func chain(t testing.TB, n int) groups.Snapshot {
	var list []pipeline.Stage
	for i := range n {
		list = append(list, pipeline.Stage{Name: fmt.Sprint("s", i), Deps: []string{fmt.Sprint("f", i)},
			Outs: []string{fmt.Sprint("f", i+1)}})
	}
	spec, err := pipeline.New(list)
	must.Do(t, err)
	return groups.Snapshot{Kind: groups.Pipeline, Pipeline: spec, Stages: make([]groups.Stage, n), AtOnce: 2}
}

// reuses is a resolver for which each stage but those of changed has run before. It verifies that a stage comes after
// the one that it reads.
func reuses(t testing.TB, changed ...int) groups.Resolver {
	return func(now groups.Snapshot, v groups.Move) (groups.Move, error) {
		n := v.Of.Stage
		if n > 0 && now.Stages[n-1].Job != fmt.Sprint("job", n-1) {
			t.Fatalf("stage %d is resolved, and the outputs of the stage before it are those of %q", n, now.Stages[n-1].Job)
		}
		if v.Do == groups.Start && !slices.Contains(changed, n) {
			v.Do, v.Of.From = groups.Reuse, fmt.Sprint("job", n)
		}
		return v, nil
	}
}

// One proposal reuses stages that need each other, up to the first that has to run.
func TestStages_ReusesAChainInOneProposal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, changed, want int }{{5, -1, 5}, {5, 3, 4}, {5, 0, 1}, {5000, -1, StagesAtOnce}} {
		s := chain(t, c.n)
		moves, err := Stages(s, reuses(t, c.changed))
		must.Do(t, err)
		if len(moves) != c.want {
			t.Errorf("%d stages, stage %d changed: %d moves, want %d", c.n, c.changed, len(moves), c.want)
		}
		for i, v := range moves {
			if want := map[bool]groups.Do{true: groups.Start, false: groups.Reuse}[i == c.changed]; v.Do != want || v.Of.Stage != i {
				t.Errorf("move %d is %s of stage %d, want %s", i, v.Do, v.Of.Stage, want)
			}
		}
		if slices.ContainsFunc(s.Stages, func(x groups.Stage) bool { return x.Phase != groups.Waiting }) {
			t.Error("the snapshot has changed")
		}
	}
}

// Inputs count like moves: one event holds the digest of each.
func TestStages_BoundsTheInputsOfOneProposal(t *testing.T) {
	t.Parallel()
	s := chain(t, 100)
	moves, err := Stages(s, func(_ groups.Snapshot, v groups.Move) (groups.Move, error) {
		v.Do, v.Of.Inputs = groups.Reuse, make([]pipeline.Content, 500)
		return v, nil
	})
	must.Do(t, err)
	if want := 9; len(moves) != want { // 9 moves with 500 inputs are the first above 4096
		t.Errorf("%d moves, want %d", len(moves), want)
	}
}

// A reused stage takes no place of a running one.
func TestStages_ReusedStagesTakeNoPlace(t *testing.T) {
	t.Parallel()
	var list []pipeline.Stage
	for i := range 10 {
		list = append(list, pipeline.Stage{Name: fmt.Sprint("s", i), Outs: []string{fmt.Sprint("f", i)}})
	}
	spec, err := pipeline.New(list)
	must.Do(t, err)
	s := groups.Snapshot{Kind: groups.Pipeline, Pipeline: spec, Stages: make([]groups.Stage, 10), AtOnce: 2}
	moves, err := Stages(s, func(_ groups.Snapshot, v groups.Move) (groups.Move, error) {
		if v.Of.Stage%3 != 0 { // 0, 3, 6 and 9 have changed
			v.Do = groups.Reuse
		}
		return v, nil
	})
	must.Do(t, err)
	if got := fmt.Sprint(said(moves)); got != "[start 0 reuse 1 reuse 2 start 3]" {
		t.Errorf("the moves are %s", got)
	}
}

// A reused stage that lacks a metric which a gate judges stops the stages after it in the same proposal.
func TestStages_StopAtAReusedStageWithoutItsMetric(t *testing.T) {
	t.Parallel()
	s := chain(t, 3)
	moves, err := Stages(s, func(_ groups.Snapshot, v groups.Move) (groups.Move, error) {
		if v.Do == groups.Start {
			v.Do, v.Of.Wrong = groups.Reuse, map[string]string{"acc": "f1 has none"}
		}
		return v, nil
	})
	must.Do(t, err)
	if len(moves) != 3 || moves[0].Do != groups.Reuse || moves[1].Do != groups.Skip || moves[2].Do != groups.Skip {
		t.Errorf("the moves are %s", said(moves))
	}
}

// The proposals of a chain of ten thousand stages that have all run before, without reading files.
func BenchmarkStages_NoChange(b *testing.B) {
	for b.Loop() {
		s := chain(b, pipeline.MaxStages)
		b.ResetTimer()
		rounds := 0
		for done := 0; done < pipeline.MaxStages; rounds++ {
			moves, err := Stages(s, reuses(b))
			must.Do(b, err)
			for _, v := range moves {
				s.Stages[v.Of.Stage].Reuse(v)
			}
			done += len(moves)
		}
		b.ReportMetric(float64(rounds), "proposals")
	}
}
