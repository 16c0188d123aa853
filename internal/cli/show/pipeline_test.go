package show_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/calibration"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
)

// retrained is a running pipeline: two stages are reused, one is done, one runs, and others wait.
func retrained() api.Group {
	at := func(minutes int) *time.Time { return ptr(now.Add(time.Duration(minutes) * time.Minute)) }
	content := func(path, digest string) []api.StageContent { return []api.StageContent{{Path: path, Digest: digest}} }
	return api.Group{
		ID: "retrain-7", Name: "retrain", Kind: "pipeline", State: "open", Members: 7, Began: 3, Open: 1, AtOnce: 4, Succeeded: 2, Failed: 1,
		Submitted: now.Add(-70 * time.Minute), Currency: money.USD, Spent: amount("1.934512"), Budget: ptr(amount("25")), Rate: ptr(price("1.2")), User: "ana",
		Pipeline: &api.PipelineState{Saved: amount("0.0523"), Stages: []api.StageState{
			{Name: "fetch", State: "reused", Job: "retrain-6-fetch", Key: "k1", Outs: content("raw.csv", "d1"), Saved: ptr(amount("0.0123")), Started: at(-70), Finished: at(-70)},
			{Name: "clean@us-east", State: "reused", Job: "retrain-6-clean-us-east", Needs: []string{"fetch"}, Key: "k2", Saved: ptr(amount("0.04")), Started: at(-70), Finished: at(-70)},
			{Name: "clean@uk", State: "done", Job: "retrain-7-clean-uk", Needs: []string{"fetch"}, Key: "k3", Cost: amount("0.034512"), Started: at(-69), Finished: at(-60),
				Inputs: content("raw.csv", "d1"), Outs: content("data/uk.csv", "d2")},
			{Name: "train", State: "running", Job: "retrain-7-train", Needs: []string{"clean@us-east", "clean@uk"}, Key: "k4", Cost: amount("1.9"), Started: at(-58),
				Inputs: []api.StageContent{{Path: "data", Digest: "ddddddddddddddddddd3"}, {Path: "train.py", Digest: "d4"}},
				Params: map[string]string{"lr": "0.2", "seed": "7"}, Program: "p2",
				WarmStart: &api.WarmStart{Version: 6, Why: "it began with model.bin of version 6 (retrain-6), at start.bin"}},
			{Name: "probe", State: "failed", Job: "retrain-7-probe", Needs: []string{"clean@uk"}, Why: "It ended with status 3 and made no report.json.", Started: at(-50), Finished: at(-40)},
			{Name: "evaluate", State: "waiting", Needs: []string{"train"}},
			{Name: "deploy\x1b[2J", State: "skipped", Needs: []string{"evaluate"}, Why: "accuracy of evaluate is 0.8999, below the min of 0.90"},
		}},
	}
}

func receiptOf(g api.Group) api.GroupReceipt {
	return api.GroupReceipt{Group: g, Cost: amount("1.934513"), Members: []api.GroupMember{
		{ID: "retrain-7-clean-uk", State: "succeeded", Attempts: 1, Cost: amount("0.034512"), Started: ptr(now.Add(-69 * time.Minute)), Finished: ptr(now.Add(-60 * time.Minute))},
		{ID: "retrain-7-train", State: "running", Attempts: 3, Interruptions: 2, Cost: amount("1.9"), Started: ptr(now.Add(-58 * time.Minute))},
		{ID: "retrain-7-probe", State: "failed", Attempts: 1, Started: ptr(now.Add(-50 * time.Minute)), Finished: ptr(now.Add(-40 * time.Minute))},
		{ID: "retrain-7-lost", State: "failed", Attempts: 1, Cost: amount("0.000001")},
	}}
}

func earlier() api.Group {
	g := retrained()
	g.ID, g.Submitted = "retrain-6", now.Add(-30*time.Hour)
	train := &g.Pipeline.Stages[3]
	train.Key, train.Program, train.Params = "k0", "p1", map[string]string{"lr": "0.1", "old": "1", "seed": "7"}
	train.Inputs = []api.StageContent{{Path: "data", Digest: "d9"}, {Path: "train.py", Digest: "d4"}}
	return g
}

func TestPipelines_MatchGolden(t *testing.T) {
	g := retrained()
	file := group.Layered([]group.GraphStage{{Name: "fetch"}, {Name: "clean", Needs: []string{"fetch"}}, {Name: "train", Needs: []string{"clean"}},
		{Name: "deploy", Needs: []string{"train"}, Gate: "train.accuracy at least 0.90"}, {Name: "look", Needs: []string{"fetch"}}})
	oldest := retrained()
	oldest.Name = "alone"
	why := func(g api.Group, stage string) group.PipelineWhy {
		v, err := group.WhyOf(g, []api.Group{retrained(), earlier(), {ID: "array"}}, stage)
		must.Do(t, err)
		return v
	}
	lines := func(p show.Place) (text string) {
		for _, s := range g.Pipeline.Stages {
			text += group.Stage(s, g.Currency, 13, p) + "\n"
		}
		return text
	}
	for width, p := range map[string]show.Place{"120": {Width: 120, Now: now}, "80": {Width: 80, Now: now}, "piped": {}} {
		for name, text := range map[string]string{
			"pipeline": group.Group(g, p), "pipeline-line": group.Progress(g, p) + "\n" + lines(p), "pipeline-graph": group.DrawGraph(group.Graph(g), g.Currency, p),
			"pipeline-file": group.DrawGraph(file, money.USD, p), "pipeline-plan": group.PipelinePlan("retrain", file, 4, amount("25"), api.GroupLimits{GPULimit: new(40.0), WallClock: new(12 * time.Hour)}, []string{"plots of the file is left out"}, p), "pipeline-cost": group.CostOf(receiptOf(g)).Text(p),
			"pipeline-why": why(g, "train").Text(p) + why(g, "clean@uk").Text(p) + why(g, "evaluate").Text(p) + why(oldest, "train").Text(p),
		} {
			golden.Check(t, name+"."+width+".txt", text)
			if strings.Contains(text, "\x1b") {
				t.Errorf("%s steers the terminal", name)
			}
		}
	}
	golden.JSON(t, "json/pipeline-cost.json", group.CostOf(receiptOf(g)))
	golden.JSON(t, "json/pipeline-why.json", why(g, "train"))
	golden.JSON(t, "json/pipeline-graph.json", group.Graph(g)[3])
}

// A cost that is not final is not shown as a figure once the job is over.
func TestPipelines_ShowNoCostThatIsOpen(t *testing.T) {
	g := retrained()
	g.Pipeline.Stages = g.Pipeline.Stages[:1]
	s := &g.Pipeline.Stages[0]
	s.State, s.Saved, s.Started, s.Finished, s.Cost, s.CostOpen = "failed", nil, &now, &now, amount("0.0123"), true
	for name, text := range map[string]string{"line": group.Stage(*s, g.Currency, 9, show.Place{}), "graph": group.DrawGraph(group.Graph(g), g.Currency, show.Place{}),
		"cost": group.CostOf(receiptOf(g)).Text(show.Place{})} {
		line, _, _ := strings.Cut(text, "\n")
		if name != "line" {
			line = strings.Split(text, "\n")[1]
		}
		if strings.Contains(line, "0.0123") || !strings.Contains(line, "  -") {
			t.Errorf("the %s shows %q", name, line)
		}
	}
}

// After a failed deploy stage, the text says that the deployed model is unknown.
func TestModels_SayWhatIsUnknown(t *testing.T) {
	list := []api.ModelVersion{{Pipeline: "rated", Version: 1, Run: "rated", State: "unknown", UnknownSince: "rated-2", Currency: money.USD},
		{Pipeline: "rated", Version: 2, Run: "rated-2", State: "failed", UnknownSince: "rated-2", Currency: money.USD}}
	text := group.Models(list, show.Place{Now: now})
	if strings.Count(text, "what rated has in place is unknown since rated-2: its deploy stage failed") != 1 {
		t.Error(text)
	}
	if text := group.Model(list[0], show.Place{Now: now}); !strings.Contains(text, "unknown since rated-2") {
		t.Error(text)
	}
}

// The lineage names the version that a warm start began with, as scrimp models lists it.
func TestModel_NamesWhatItsWarmStartBeganWith(t *testing.T) {
	v := api.ModelVersion{Pipeline: "rated", Version: 3, Currency: money.USD, Lineage: []api.ModelStage{
		{Stage: "train", WarmStart: &api.WarmStart{PipelineWarm: api.PipelineWarm{From: "model.txt", To: "start.txt"}, Version: 2,
			Digest: "a80461cda0fb124a7f8e"}},
		{Stage: "other", WarmStart: &api.WarmStart{PipelineWarm: api.PipelineWarm{From: "x", To: "y"}}}}}
	text := group.Model(v, show.Place{Now: now})
	if !strings.Contains(text, "train  start  model.txt of rated@2  a80461cda0fb") || strings.Count(text, " start ") != 1 {
		t.Error(text)
	}
}

// The lines of a pipeline's cost add up to its receipt, to the last unit.
func TestPipelineCost_AddsUpToTheReceipt(t *testing.T) {
	r := receiptOf(retrained())
	v := group.CostOf(r)
	sum, saved := money.Amount{}, money.Amount{}
	for _, s := range v.Stages {
		sum = sum.Add(s.Cost)
		if s.Saved != nil {
			saved = saved.Add(*s.Saved)
		}
	}
	if sum != r.Cost || v.Cost != r.Cost || saved != r.Group.Pipeline.Saved || v.Saved != saved {
		t.Errorf("the lines are %s and %s, the receipt says %s and %s", sum, saved, r.Cost, r.Group.Pipeline.Saved)
	}
}

// Each stage counts once, so the counts add up to the stages; a job that never had a machine has not begun.
func TestPipelineCost_CountsEachStageOnce(t *testing.T) {
	r := receiptOf(retrained())
	if c := group.CostOf(r).Counts; c != (calibration.StageCounts{Ran: 1, Running: 1, Reused: 2, NotBegun: 2, Failed: 1}) {
		t.Errorf("%+v", c)
	}
	r.Members[1].Started = nil // train waits for a machine
	if c := group.CostOf(r).Counts; c != (calibration.StageCounts{Ran: 1, Reused: 2, NotBegun: 3, Failed: 1}) {
		t.Errorf("without a machine: %+v", c)
	}
	r.Group.Pipeline.Stages[3].State = "skipped" // its job was canceled before it had one
	if text := group.CostOf(r).Text(show.Place{}); !strings.Contains(text, "7: 1 ran, 0 running, 2 reused, 3 not begun, 1 failed") {
		t.Error(text)
	}
}

// A page and a plan of thousands of stages show the important ones.
func TestPipelines_LargeOnesFitAPage(t *testing.T) {
	g := retrained()
	var graph []group.GraphStage
	for i := range 3000 {
		name := fmt.Sprint("many@", i)
		g.Pipeline.Stages, graph = append(g.Pipeline.Stages, api.StageState{Name: name, State: "waiting"}), append(graph, group.GraphStage{Name: name})
	}
	page, plan := group.Group(g, show.Place{}), group.PipelinePlan("large", group.Layered(graph), 4, amount("25"), api.GroupLimits{}, nil, show.Place{})
	if strings.Count(page, "\n") > 20 || !strings.Contains(page, "probe") || !strings.Contains(page, "3 of 3007 stages") {
		t.Errorf("the page is\n%.3000s", page)
	}
	if strings.Count(plan, "\n") > 50 || !strings.Contains(plan, "2960 stages: scrimp pipeline graph draws all") {
		t.Errorf("the plan is\n%.3000s", plan)
	}
}

// The line about the largest stage agrees with the receipt.
func TestPipelineCost_SuggestsLowerCost(t *testing.T) {
	for want, change := range map[string]func(*api.GroupMember, *api.StageState){
		"it was tried 5 times":        func(m *api.GroupMember, _ *api.StageState) { m.Attempts = 5 },
		"it lost its machine 2 times": func(*api.GroupMember, *api.StageState) {},
		"no less than on-demand":      func(m *api.GroupMember, _ *api.StageState) { m.Attempts, m.Interruptions, m.OnDemand = 1, 0, &m.Cost },
		"the whole work folder": func(m *api.GroupMember, s *api.StageState) {
			m.Attempts, m.Interruptions, s.Inputs = 1, 0, []api.StageContent{{Path: "."}}
		},
		"scrimp explain retrain-7-train": func(m *api.GroupMember, _ *api.StageState) { m.Attempts, m.Interruptions = 1, 0 },
	} {
		r := receiptOf(retrained())
		change(&r.Members[1], &r.Group.Pipeline.Stages[3])
		if v := group.CostOf(r); v.Largest != "train" || !strings.Contains(v.Lower, want) {
			t.Errorf("%s: %q, want %q", v.Largest, v.Lower, want)
		}
	}
	if v := group.CostOf(api.GroupReceipt{Group: retrained()}); v.Largest != "" || v.Stages[0].Share != nil {
		t.Errorf("of nothing, %s is the largest", v.Largest)
	}
}

func TestPipelineWhy_NamesExistingStages(t *testing.T) {
	if _, err := group.WhyOf(retrained(), nil, "trian"); err == nil || !strings.Contains(err.Error(), "it has fetch, clean@us-east") {
		t.Error(err)
	}
}
