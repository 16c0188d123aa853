package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// scheduled returns the pipeline of retrain with a schedule for each half hour.
func scheduled(folder, schedule string) string {
	return strings.Replace(retrain(folder, "0.1", "0.90"), `"at_once":2`, `"at_once":2,"schedule":{"cron":"*/30 * * * *",`+schedule+`}`, 1)
}

// due moves the market's clock to the next due time of a schedule, and further. It returns how far that is ahead of
// the server's clock.
func (w *world) due(schedule string, further time.Duration) (ahead time.Duration) {
	w.t.Helper()
	var due time.Time
	w.until(func(m *core.Machine) bool {
		due = m.State().Group(schedule).Schedule.Due
		return due.After(m.State().Now())
	})
	ahead = due.Add(further).Sub(w.control.Now())
	w.event(core.Tick{}, ahead)
	return ahead
}

func TestSchedules_RunOnlyChangedStages(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	var g api.Group
	w.must("POST", "/v1/groups", scheduled(folder, `"budget":"60","runs":3`), &g)
	if g.ID != "retrain" || g.Kind != "schedule" || g.Schedule == nil || g.Schedule.Each.Float() != 9 || g.Budget.Float() != 60 {
		t.Fatalf("it begins as %+v", g)
	}
	ahead := w.due("retrain", 0) + time.Minute
	w.runsStageFor("retrain.r1.prepare", map[string]string{"prepared/b": "2"}, ahead)

	// The second run is due while the first is in progress.
	ahead = w.due("retrain", 0) + time.Minute
	w.until(func(m *core.Machine) bool { return m.State().Group("retrain").Schedule.Skipped == 1 })
	held := w.runsStageFor("retrain.r1.train", map[string]string{"model.txt": "m", "metrics.json": `{"eval":{"acc":0.9}}`}, ahead)
	if !slices.Equal(held, []string{"data/a", "prepared/b", "train.py"}) {
		t.Errorf("train finds %v, want what was sent with the schedule and what prepare has made", held)
	}
	w.runsStageFor("retrain.r1.deploy", map[string]string{"live/model": "m"}, ahead)
	if first := w.groupOver("retrain.r1"); first.Of != "retrain" || first.Began != 3 || first.User != g.User {
		t.Errorf("the first run is %+v", first)
	}

	for _, stage := range []string{"prepare", "train", "deploy"} {
		w.endsMachine("retrain.r1." + stage)
	}

	// Three due times are missed: one run makes up for them, and reuses everything.
	w.due("retrain", 100*time.Minute)
	second := w.groupOver("retrain.r2")
	if second.Began != 0 || second.Pipeline.Saved.Sign() <= 0 {
		t.Errorf("the second run is %+v, want one that takes everything from the first", second)
	}
	w.due("retrain", 0)
	w.groupOver("retrain.r3")
	g = w.groupOver("retrain")
	var list []string
	for _, r := range g.Schedule.Runs {
		list = append(list, strings.TrimSpace(r.Group+" "+r.State+" "+r.Why))
	}
	want := []string{"retrain.r1 over", "skipped the run before it is not over", "retrain.r2 over", "retrain.r3 over"}
	if !slices.Equal(list, want) || g.Why != core.NoMoreRuns || g.Schedule.Runs[2].Missed != 3 || g.Schedule.Due != nil {
		t.Errorf("it ends because %s with %q, want %q; the third makes up for %d", g.Why, list, want, g.Schedule.Runs[2].Missed)
	}
	var r api.GroupReceipt
	w.must("GET", "/v1/groups/retrain/receipt", nil, &r)
	first := w.groupOver("retrain.r1")
	if len(r.Members) != 3 || g.Spent.Sign() <= 0 || r.Cost.Cmp(g.Spent) < 0 || first.Spent.Cmp(r.Cost) < 0 { // read one after the other
		t.Errorf("its receipt has %d members and comes to %v, it spent %v; want the three jobs of the first run, %v", len(r.Members), r.Cost, g.Spent, first.Spent)
	}
	if job, _, err := w.control.Spec(t.Context(), "retrain.r1.train"); job == nil || err != nil {
		t.Errorf("the job file of a stage of a run: %s %v", job, err)
	}
}

// A schedule never starts a run that could exceed its budget; it ends instead.
func TestSchedules_EndWithTheirBudget(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	_, p := w.ask("POST", "/v1/groups", auth.OwnerName, scheduled(folder, `"budget":"8.99"`))
	if p.Status != http.StatusUnprocessableEntity && p.Status != http.StatusConflict || !strings.Contains(p.Title+p.Detail, "one run can cost") {
		t.Fatalf("a budget that a run with its grace does not fit in: %+v", p)
	}
	var g api.Group
	w.must("POST", "/v1/groups", scheduled(folder, `"budget":"60"`), &g)
	var worst money.Amount
	w.control.Read(func(m *core.Machine) { worst = m.WorstOf(*m.State().Group("retrain").Terms.Run) })
	w.must("POST", "/v1/groups/retrain/end", client.End{}, &g)
	text, err := worst.MarshalText()
	must.Do(t, err)
	w.must("POST", "/v1/groups", scheduled(folder, fmt.Sprintf(`"budget":%q`, text)), &g) // enough for one run
	ahead := w.due("retrain-2", 0) + time.Minute
	w.runsStageFor("retrain-2.r1.prepare", map[string]string{"prepared/b": "2"}, ahead)
	w.until(func(m *core.Machine) bool { return m.State().Job("retrain-2.r1.train") != nil })
	w.must("POST", "/v1/groups/retrain-2.r1/end", client.End{}, &g)
	w.groupOver("retrain-2.r1")
	w.due("retrain-2", 0)
	g = w.groupOver("retrain-2")
	if last := g.Schedule.Runs[len(g.Schedule.Runs)-1]; g.Why != core.BudgetSpent || last.Group != "" || !strings.Contains(last.Why, "is taken") {
		t.Errorf("it ends because %s: %s; its last run: %+v", g.Why, g.Detail, last)
	}
}

func TestSchedules_EndWithTheirRun(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	var g api.Group
	w.must("POST", "/v1/groups", scheduled(folder, `"budget":"60"`), &g)
	w.due("retrain", 0)
	w.until(func(m *core.Machine) bool { return m.State().Job("retrain.r1.prepare") != nil })
	w.must("POST", "/v1/groups/retrain/end", client.End{}, &g)
	if run := w.groupOver("retrain.r1"); run.Cancelled != 1 {
		t.Errorf("its run ends as %+v", run)
	}
	if g = w.groupOver("retrain"); g.Why != core.ClosedByUser || g.Schedule.Due != nil {
		t.Errorf("it ends as %+v", g)
	}
	w.control.Read(func(m *core.Machine) {
		if spent, worst := m.State().Group("retrain"), m.State().Group("retrain.r1"); spent.Phase != state.GroupOver || worst.Phase != state.GroupOver {
			t.Errorf("phases %s, %s", spent.Phase, worst.Phase)
		}
	})
}

// Two submissions at once cannot open two schedules of one name: each would spend a budget of its own.
func TestSchedules_OfOneNameOpenOnceWhenSubmittedTogether(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	const together = 4
	var group sync.WaitGroup
	var answers [together]api.Problem
	for i := range together {
		group.Go(func() {
			_, answers[i] = w.ask("POST", "/v1/groups", auth.OwnerName, scheduled(folder, `"budget":"60"`))
		})
	}
	group.Wait()
	refused := 0
	for _, p := range answers {
		if p.Status == http.StatusConflict && strings.Contains(p.Title+p.Detail, "the schedule retrain") {
			refused++
		}
	}
	open := 0
	w.control.Read(func(m *core.Machine) { open = len(m.State().Groups()) })
	if refused != together-1 || open != 1 {
		t.Errorf("%d are open and %d are refused, want one open: %+v", open, refused, answers)
	}
	var g api.Group // another project may have one of the same name
	w.must("POST", "/v1/groups", strings.Replace(scheduled(folder, `"budget":"60"`), `"project":"p"`, `"project":"q"`, 1), &g)
}

func TestSchedules_AreRefusedBeforeAnyCost(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	for _, c := range []struct{ schedule, says string }{
		{`"budget":"0"`, "needs a budget"},
		{`"budget":"60","zone":"Mars/Base"`, "unknown"},
		{`"budget":"60","runs":-1`, "runs"},
		{`"budget":"60","until":"2001-01-01T00:00:00Z"`, "until"},
		{`"budget":"60","cron":"0 0 30 2 *"`, "never due"},
	} {
		text := scheduled(folder, c.schedule)
		if strings.Contains(c.schedule, "cron") {
			text = strings.Replace(text, `"cron":"*/30 * * * *",`, "", 1)
		}
		_, p := w.ask("POST", "/v1/groups", auth.OwnerName, text)
		if p.Status < 400 || p.Status >= 500 || !strings.Contains(p.Title+" "+p.Detail, c.says) {
			t.Errorf("%s: %+v, want one that says %q", c.schedule, p, c.says)
		}
	}
}
