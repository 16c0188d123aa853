package tune

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestShuffled_AgreesWithTheProtocol(t *testing.T) {
	for seed, want := range []string{"[6 3 2 9 8 1 4 7 0 5]", "[4 2 8 1 9 3 0 6 7 5]"} {
		if got := fmt.Sprint(Shuffled(10, uint64(seed))); got != want {
			t.Errorf("seed %d: %s, want %s", seed, got, want)
		}
	}
}

func TestHistory_IgnoresWhatIsNotTheNextEpoch(t *testing.T) {
	h := NewHistory(&Search{Trials: make([][]Value, 2), Epochs: 3, Switch: 1})
	if !h.Start(0, 0) || h.Free(0) || h.Fresh(0) || !h.Free(1) {
		t.Fatal("trial 0 runs on worker 0 after a switch, and trial 1 is free")
	}
	steps := []struct {
		report Report
		want   bool
	}{
		{Report{Trial: 0, Epoch: 2, Value: 1}, false}, // out of order
		{Report{Trial: 0, Epoch: 1, Value: 5, Cost: 3, Moved: true, Spent: 3}, true},
		{Report{Trial: 0, Epoch: 1, Value: 4, Cost: 3}, false}, // twice
		{Report{Trial: 2, Epoch: 1, Value: 1}, false},          // of no trial
		{Report{Trial: -1, Epoch: 1, Value: 1}, false},
		{Report{Trial: 1, Epoch: 1, Value: math.NaN(), Cost: 1, Spent: 4}, true},
		{Report{Trial: 1, Epoch: 2, Value: 0, Cost: 1, Spent: 5}, false}, // it has failed
	}
	for _, s := range steps {
		if got := h.Add(s.report); got != s.want {
			t.Errorf("%+v: added %v, want %v", s.report, got, s.want)
		}
	}
	if h.Incumbent != 5 || h.Spent != 4 || h.Runs[0].Costs[0] != 2 || !h.Runs[1].Failed || h.Free(1) || !h.Free(0) {
		t.Errorf("incumbent %g, spent %g, runs %+v", h.Incumbent, h.Spent, h.Runs)
	}
	if h.Start(0, 0) {
		t.Error("worker 0 goes on with trial 0 and pays for no switch")
	}
	if h.Lose(0); !h.Free(0) || h.Epoch(0) != 1 || h.Runs[0].Failed {
		t.Errorf("a trial whose machine was interrupted trains its epoch again: %+v", h.Runs[0])
	}
}

func TestReadTask_NamesTheFieldAndTheFix(t *testing.T) {
	const good = `{"max_epoch": 3, "budget_seconds": 10, "params": [{"name": "lr", "type": "float", "low": 1e-3, "high": 1, "log": true},
		{"name": "opt", "type": "cat", "choices": ["sgd", 16, true]}], "default": {"lr": 0.1, "opt": 16}}`
	task, err := ReadTask(strings.NewReader(good), "x/space.json")
	if err != nil || fmt.Sprint(task.Space.Default) != "[0.1 1]" {
		t.Fatalf("default %v, %v", task.Space.Default, err)
	}
	for from, want := range map[string][2]string{
		`"max_epoch": 3`:                    {`"max_epoch": 0`, "max_epoch is 0: give 1 to"},
		`"max_epoch":`:                      {`"max_epoch": "3", "x":`, "x/space.json:1: "},
		`"budget_seconds": 10`:              {`"budget_seconds": 0`, "budget_seconds is 0: give more than 0"},
		`"budget_seconds":`:                 {`"switch_seconds": -1, "budget_seconds":`, "switch_seconds is -1"},
		`"budget_seconds": `:                {`"goal": "maximise", "budget_seconds": `, "with its sign turned"},
		`"low": 1e-3`:                       {`"low": 2`, "params[0] (lr): low 2 is above high 1: swap them"},
		`1e-3`:                              {`0`, "log needs low above 0"},
		`"low": 1e-3, `:                     {``, "give low and high"},
		`"float"`:                           {`"real"`, "type is \"real\": give float, int or cat"},
		`"name": "opt"`:                     {`"name": "lr"`, "another parameter has that name"},
		`"name": "opt", `:                   {``, "give a name"},
		`["sgd", 16, true]`:                 {`[]`, "choices has 0 values"},
		`"sgd", 16`:                         {`16, 16`, "choices has \"16\" twice"},
		`"lr": 0.1`:                         {`"lr": "x"`, "default.lr: \"x\" is not a number"},
		`"lr": 0.1, `:                       {``, "default has no lr"},
		`"opt": 16}`:                        {`"opt": 17}`, "\"17\" is not one of the choices sgd, 16, true"},
		`{"max_epoch": 3, "budget_seconds"`: {"{\n\"max_epoch\": 3,\n \"budget_seconds\"=", "x/space.json:3: "},
	} {
		_, err := ReadTask(strings.NewReader(strings.Replace(good, from, want[0], 1)), "x/space.json")
		if err == nil || !strings.Contains(err.Error(), want[1]) || !strings.HasPrefix(err.Error(), "x/space.json:") {
			t.Errorf("%s for %s: %v, want %q", want[0], from, err, want[1])
		}
	}
}
