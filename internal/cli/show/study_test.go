package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/cli/show/search"
	"scrimp/internal/lib/money"
)

// The page and the receipt of a search name its limits, and at which gain for another dollar it has stopped.
func TestGroup_SaysAtWhichGainASearchStopped(t *testing.T) {
	g := api.Group{ID: "s", Kind: "study", State: "over", Why: "plateau", Detail: "another dollar gains too little", Currency: money.USD,
		Study: &api.StudyState{Metric: "auc", Maximize: true, Searcher: "default", GroupLimits: api.GroupLimits{GPUHours: 3.25, GPULimit: new(40.0),
			WallClock: new(20 * time.Hour)}, Plateau: &api.StudyPlateau{Patience: 10, PointValue: 2000}, StoppedGain: new(0.00032), Past: 7}}
	page := group.Group(g, show.Place{Width: 200})
	receipt := group.Receipt(api.GroupReceipt{Group: g, Study: &api.StudyReceipt{}}, show.Place{Width: 200})
	for _, want := range []string{"3.25 of 40", "20h", "less than 0.0005 auc for 10 reports", "0.00032 auc for another dollar",
		"another dollar gains too little"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
		if !strings.Contains(receipt, want) {
			t.Errorf("the receipt does not say %q:\n%s", want, receipt)
		}
	}
	if want := "7 configurations of earlier searches"; !strings.Contains(page, want) {
		t.Errorf("the page does not say %q:\n%s", want, page)
	}
	g.Study = &api.StudyState{Metric: "auc", Searcher: "default", Fidelity: &api.StudyFidelity{Name: "step", Min: 1, Max: 9}, Ignored: 1}
	if page, want := group.Group(g, show.Place{Width: 200}), "1 value: of no whole step,"; !strings.Contains(page, want) {
		t.Errorf("the page does not say %q:\n%s", want, page)
	}
	g.Study = &api.StudyState{Metric: "auc", Searcher: "default"}
	for _, no := range []string{"GPU-hours", "wall clock", "plateau  ", "stopped at", "warm start"} {
		if page := group.Group(g, show.Place{Width: 200}); strings.Contains(page, no) {
			t.Errorf("a search without limits says %q:\n%s", no, page)
		}
	}
}

// The receipt of a search that is over says what it saved against training everything in full, also if it cost more.
func TestReceipt_SaysWhatASearchSaved(t *testing.T) {
	usd := func(text string) money.Amount {
		a, err := money.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for name, c := range map[string]struct {
		state, cost  string
		full         float64
		proxy        bool
		want, absent string
	}{
		"saved":             {"over", "3", 10, false, "saved         $7.00 against that", "more than that"},
		"saved by a proxy":  {"over", "3", 10, true, "saved         $7.00 against that", "more than that"},
		"dearer":            {"over", "12.5", 10, false, "nothing: the search cost $2.50 more than that", "against that"},
		"dearer by a proxy": {"over", "12.5", 10, true, "nothing: the search cost $2.50 more than that", "against that"},
		"still open":        {"open", "3", 10, true, "$10.00 had each configuration been trained in full", "against that"},
	} {
		r := api.GroupReceipt{Group: api.Group{ID: "s", State: c.state, Currency: money.USD, Study: &api.StudyState{Metric: "loss"}},
			Cost: usd(c.cost), Study: &api.StudyReceipt{AllFull: &c.full, Pruned: usd("1")}}
		if c.proxy {
			r.Study.OnProxy = new(usd("2"))
		}
		text := group.Receipt(r, show.Place{Width: 200})
		flat := strings.Join(strings.Fields(text), " ")
		if !strings.Contains(flat, strings.Join(strings.Fields(c.want), " ")) || strings.Contains(flat, c.absent) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// The course of a search fits into the terminal, names the parameter that matters most first, and its plot goes from
// the first to the best value. Before the first value, it prints nothing.
func TestCourse_FitsTheTerminal(t *testing.T) {
	r := api.GroupReceipt{Group: api.Group{Currency: "USD", Study: &api.StudyState{Metric: "loss", Fidelity: &api.StudyFidelity{Name: "epoch", Min: 1, Max: 9}}},
		Study: &api.StudyReceipt{}}
	if got := search.Course(r, show.Place{Width: 80}); got != "" {
		t.Errorf("without a value: %q", got)
	}
	r.Study.BestBySpend = []api.StudyMark{{SpentUSD: 0.5, Best: 3}, {SpentUSD: 1, Best: 2}, {SpentUSD: 4, Best: 1.25}, {SpentUSD: 8, Best: 1.25}}
	r.Study.Rungs = []api.StudyRung{{Unit: 1, Reached: 12, Continued: 4, Best: 2}, {Unit: 3, Reached: 4, Best: 1.25}}
	r.Study.Importance = &api.StudyImportance{Unit: 1, Trials: 12, Shares: map[string]float64{"width": 0.08, "lr": 0.62}}
	for _, width := range []int{60, 80, 120} {
		got := search.Course(r, show.Place{Width: width})
		flat := strings.Join(strings.Fields(got), " ")
		for _, want := range []string{"12 trials by epoch 1, 4 trials by epoch 3", "lr 62 %, width 8 % of the spread of loss", "$0.50", "$8.00", "1.25 |", "3 |"} {
			if !strings.Contains(flat, want) {
				t.Errorf("%d columns: it lacks %q:\n%s", width, want, got)
			}
		}
		for line := range strings.Lines(got) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
				t.Errorf("%d columns: a line has %d: %s", width, n, line)
			}
		}
	}
}

// The line of a search that runs says its best value and its spend first, so that 80 columns show both.
func TestProgress_OfASearchShowsBestAndSpendIn80Columns(t *testing.T) {
	g := api.Group{ID: "chargpt-study", State: "open", Currency: "USD", Began: 12, Open: 4, Budget: new(money.Picos(100e12)),
		Spent: money.Picos(12_345e9), Study: &api.StudyState{Metric: "val_loss", Full: 3, Best: &api.Trial{Best: new(2.6789)}}}
	if got := group.Progress(g, show.Place{Width: 80}); !strings.Contains(got, "best val_loss 2.6789, $12.3450 of $100.00") {
		t.Errorf("the line is %s", got)
	}
}

// The commands that show more end the page of a search, after its course.
func TestSearch_EndsWithItsCommands(t *testing.T) {
	r := api.GroupReceipt{Group: api.Group{ID: "s", State: "open", Currency: "USD", Study: &api.StudyState{Metric: "loss",
		Fidelity: &api.StudyFidelity{Name: "epoch", Min: 1, Max: 9}}}, Study: &api.StudyReceipt{
		BestBySpend: []api.StudyMark{{SpentUSD: 0.5, Best: 3}, {SpentUSD: 1, Best: 2}, {SpentUSD: 4, Best: 1.25}},
		Rungs:       []api.StudyRung{{Unit: 1, Reached: 12, Continued: 4, Best: 2}, {Unit: 3, Reached: 4, Best: 1.25}}}}
	for _, width := range []int{80, 120} {
		got := group.Search(r, show.Place{Width: width})
		commands := strings.Index(got, "  scrimp tune trials s")
		if commands < 0 || strings.Count(got[commands:], "\n") != 3 || !strings.Contains(got[:commands], "against the spend") {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
	if got := group.Search(api.GroupReceipt{Group: r.Group}, show.Place{Width: 80}); got != group.Group(r.Group, show.Place{Width: 80}) {
		t.Errorf("without a receipt:\n%s", got)
	}
}

// A search without a best trial says whether it is over, for which reason, and what is probably wrong.
func TestNoBest_SaysWhy(t *testing.T) {
	g := api.Group{ID: "s", State: "over", Why: "no_values", Study: &api.StudyState{Metric: "auc",
		Warnings: []string{"the program prints no auc", "is it a number?"}}}
	want := "s: no trial has reported a value, and the search is over: no values. the program prints no auc. is it a number? " +
		"scrimp tune trials s lists the trials, scrimp receipt s what they cost"
	if got := search.NoBest(g).Error(); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	g.Study.Proxy = &api.StudyProxyState{Best: &api.Trial{ID: "s.1"}}
	if got := search.NoBest(g).Error(); !strings.Contains(got, "no trial that trains in full has reported a value,") {
		t.Errorf("with a best trial of the proxy it says\n%s", got)
	}
}

// "yet" promises a value that a search which is over cannot give.
func TestSearch_SaysYetOnlyWhileItIsOpen(t *testing.T) {
	for state, want := range map[string]bool{"open": true, "ending": true, "over": false} {
		g := api.Group{ID: "s", Kind: "study", State: state, Currency: money.USD, Study: &api.StudyState{Metric: "auc"}}
		for _, text := range []string{group.Group(g, show.Place{Width: 200}), search.NoBest(g).Error()} {
			if !strings.Contains(text, "value") || strings.Contains(text, "value yet") != want {
				t.Errorf("a search that is %s says %q", state, text)
			}
		}
	}
}

// A stage that ran although nothing changed has a reason, and one that was reused needs none.
func TestPipelineWhy_SaysWhyAnUnchangedStageRan(t *testing.T) {
	for state, want := range map[string]bool{"done": true, "failed": true, "running": true, "reused": false, "skipped": false} {
		v := group.PipelineWhy{Run: "p-2", Stage: "count", State: state, Key: "k", Against: "p", Same: true}
		if text := v.Text(show.Place{Width: 200}); strings.Contains(text, "data at an address") != want {
			t.Errorf("a stage that is %s says %q", state, text)
		}
	}
}
