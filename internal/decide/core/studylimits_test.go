package core_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/study"
)

// gpuHours adds up, machine by machine, what the trials of a study have used.
func (b *bench) gpuHours() (sum float64) {
	for n := range b.group(b.name).Began {
		j, _ := b.m.Job(b.group(b.name).MemberID(n))
		for _, a := range j.Attempts() {
			for _, k := range a.Tasks() {
				until := k.Until()
				if until.IsZero() {
					until = b.now
				}
				sum += until.Sub(k.From()).Hours() * float64(k.GPUs())
			}
		}
	}
	return sum
}

// A study never uses more GPU-hours than its limit, including the last saves of its trials. Its planner leaves less
// than one unit of each trial unused.
func TestStudy_StaysWithinItsGPUHours(t *testing.T) {
	for _, searcher := range []string{"random", "asha-stop", "asha-promo", "top-k", "default"} {
		t.Run(searcher, func(t *testing.T) {
			b := newBench(t, "s")
			b.yard = newYard(t, 20, yardOffer("g", 2))
			b.step("", studyOf("s", searcher, 500, 3, func(g *core.GroupTerms) {
				g.Study.GPUHours, g.Grace, g.Member.Grace = 20, 10*time.Minute, 10*time.Minute
			}))
			b.play()
			used, told := b.gpuHours(), time.Duration(0)
			if told, _ = b.m.GPUTime(b.group("s"), b.now); told.Hours() < used-1e-6 || told.Hours() > used+1e-6 {
				t.Errorf("the core counts %g GPU-hours, and the machines were held for %g", told.Hours(), used)
			}
			if g := b.group("s"); used > 20 || used < 14 || g.Why != core.HoursSpent {
				t.Errorf("it used %g of 20 GPU-hours and ended as %s", used, g.Why)
			}
		})
	}
}

// The limit on GPU-hours ends a study whose trials report nothing, so that its planner cannot know what they use.
func TestStudy_EndsAtItsGPUHoursWithoutReports(t *testing.T) {
	b := newBench(t, "s")
	b.yard = newYard(t, 20, yardOffer("g", 2))
	b.step("", studyOf("s", "random", 500, 3, func(g *core.GroupTerms) {
		g.Study.GPUHours, g.Grace, g.Member.Grace = 20, 10*time.Minute, 10*time.Minute
	}))
	for n := 0; b.group("s").Phase == state.GroupOpen && n < 1000; n++ {
		b.tick(time.Minute)
		if n == 30 {
			b.restart()
		}
	}
	// 3 trials with 2 GPUs each: 6 GPUs use 20 GPU-hours in 200 minutes, and the saves need 10 of them.
	if g, took := b.group("s"), b.now.Sub(b.group("s").Opened); g.Why != core.HoursSpent || took < 188*time.Minute || took > 192*time.Minute ||
		!strings.HasPrefix(g.Detail, "19.1 of 20 GPU-hours are used, and saving on 6 GPUs takes up to 1") {
		t.Errorf("it ended as %s (%s) after %v", g.Why, g.Detail, took)
	}
}

// A study whose trials all fail ends after a few of them. It says how they ended, and which log shows why.
func TestStudy_EndsWhenEveryTrialFails(t *testing.T) {
	b := newBench(t, "s")
	b.step("", studyOf("s", "asha-stop", 500, 2, nil))
	for n := 0; b.group("s").Phase != state.GroupOver && n < 100; n++ {
		b.tick(time.Minute)
		for m := range b.group("s").Began {
			j, _ := b.m.Job(b.group("s").MemberID(m))
			if a := j.Live(); a != nil && a.Task() == core.TaskRunning {
				b.n++
				b.step("", core.AttemptEnded{Attempt: a.ID(), Message: 10 * b.n, Reason: "failed", Exit: 1 + m%3/2})
			}
		}
	}
	g := b.group("s")
	want := "7 trials have begun, and none has reported a value of loss; 6 failed, 4 with exit status 1, 2 with exit status 2: " +
		"correct the command or the space, and start the search again; scrimp logs s.5 shows why the newest failed"
	if g.Began == 6 {
		want = strings.Replace(want, "7 trials", "6 trials", 1)
	}
	if g.Why != "no_values" || g.Detail != want {
		t.Errorf("it ended as %s: %s, want %s", g.Why, g.Detail, want)
	}
}

// A study that ends before it has used a limit up says with figures why: what the rest is, what is kept, and what the
// next unit or full training may need.
func TestStudy_SaysWhyItLeavesTheRestOfALimit(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*core.GroupTerms)
		want   string
	}{
		"wall clock": {func(g *core.GroupTerms) { g.Study.Wall = 302 * time.Minute },
			`^[45]h\d+m\d*s? of 5h2m0s have passed, and another unit of training may need \d+m\d+s of the rest, \d+m\d+s$`},
		"final": {func(g *core.GroupTerms) { g.Study.Wall, g.Study.Final = 8*time.Hour, true },
			`of 8h0m0s have passed, \S+ is kept to train another trial in full that becomes the best, and another unit`},
		"budget": {func(g *core.GroupTerms) { g.AtOnce, g.Budget = 1, money.Picos(4.205e12) },
			`^\$\S+ of \$4.21 is spent, and another unit of training may need \$0\.\d+ of the rest, \$0\.\d+$`},
		"proxy": {func(g *core.GroupTerms) {
			g.Budget, g.Study.Proxy = money.Picos(4e12), &study.Proxy{Max: 3, Promote: 9, Reserve: 0.1}
		}, `^\$\S+ of \$4.00 is spent, and a full training may need \$\S+ of the rest, \$0\.\d+$`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "s")
			b.step("", studyOf("s", "asha-promo", 500, 3, c.change))
			b.play()
			if g := b.group("s"); !regexp.MustCompile(c.want).MatchString(g.Detail) {
				t.Errorf("it ended as %s: %s, want %s", g.Why, g.Detail, c.want)
			}
		})
	}
}

// The planner of a study with a wall-clock limit starts no unit that would end beyond it.
func TestStudy_PlansItsUnitsWithinTheWallClock(t *testing.T) {
	b := newBench(t, "s")
	b.step("", studyOf("s", "asha-promo", 500, 3, func(g *core.GroupTerms) { g.Study.Wall = 5 * time.Hour }))
	b.play()
	if g, took := b.group("s"), b.group("s").Finished.Sub(b.group("s").Opened); g.Why != core.TimeSpent || took > 5*time.Hour ||
		took < 4*time.Hour {
		t.Errorf("it ended as %s after %v of 5h", g.Why, took)
	}
}

// A study ends when another dollar is expected to gain too little, and its reason states that gain.
func TestStudy_EndsOnAPlateau(t *testing.T) {
	b := newBench(t, "s")
	b.loss = func(int, int) (float64, bool) { return 1, true }
	b.step("", studyOf("s", "default", 500, 3, func(g *core.GroupTerms) {
		g.Study.Plateau = &study.Plateau{Patience: 5, MinGain: 0.5}
	}))
	b.play()
	g := b.group("s")
	if g.Why != core.Plateau || g.Study.Flat == nil || *g.Study.Flat >= 0.5 || !strings.Contains(g.Detail, "for 5 reports") {
		t.Errorf("it ended as %s (%s) at %v", g.Why, g.Detail, g.Study.Flat)
	}
	if spent := b.m.GroupSpent(g, b.now).Float(); spent > 50 {
		t.Errorf("it has spent $%g of $500 on a metric that never changes", spent)
	}
	s := state.New()
	for n, w := range b.log {
		s.Replay(uint64(n+1), w.event, w.out.Facts, w.out.Postings)
	}
	if r := s.Group("s").Study.Flat; r == nil || *r != *g.Study.Flat {
		t.Errorf("replayed, it stopped at %v", r)
	}
}
