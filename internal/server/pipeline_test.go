package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/confined"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// folderWith returns a folder with the given files.
func folderWith(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// retrain returns a pipeline of three stages on a folder.
func retrain(folder, lr, gate string) string {
	return fmt.Sprintf(`{"folder":%q,"spec":{"name":"retrain","project":"p","budget":{"dollars":"9"}},"pipeline":{"at_once":2,"stages":[
		{"name":"deploy","job":{"command":"deploy"},"deps":["model.txt"],"outs":["live"],"gate":{"metric":"train.eval.acc","min":%q}},
		{"name":"train","job":{"command":"train"},"deps":["prepared","train.py"],"outs":["model.txt","metrics.json"],
		 "metrics":["metrics.json"],"params":{"lr":%q}},
		{"name":"prepare","job":{"command":"prepare"},"deps":["data"],"outs":["prepared"]}]}}`, folder, gate, lr)
}

// runsStage makes the job of a stage produce files and succeed, and returns the contents of its work folder.
func (w *world) runsStage(job string, makes map[string]string) (held []string) {
	w.t.Helper()
	return w.runsStageFor(job, makes, time.Minute)
}

// runsStageFor is runsStage for a job whose start and end each take the given time.
func (w *world) runsStageFor(job string, makes map[string]string, long time.Duration) (held []string) {
	w.t.Helper()
	attempt := w.attemptOf(job)
	items, err := w.folders.Items(job)
	must.Do(w.t, err)
	for _, i := range items {
		if i.Mode.IsRegular() {
			held = append(held, i.Path)
		}
	}
	outs := make([]string, 0, len(makes))
	for name := range makes {
		outs = append(outs, name)
	}
	digest := w.keeps(job, makes, outs)
	w.event(core.AttemptStarted{Attempt: attempt, Message: 1}, long)
	w.event(core.AttemptEnded{Attempt: attempt, Message: 2, Reason: "completed", Outputs: "kept", OutputsDigest: digest}, long)
	return held
}

// keeps stores outputs of a job, and returns the digest that an agent would report.
func (w *world) keeps(job string, makes map[string]string, outs []string) (digest string) {
	w.t.Helper()
	err := w.kept.Own(w.t.Context(), job, func(s *checkpoint.Store) error {
		m, _, err := s.Keep(w.t.Context(), confined.Folder{Path: folderWith(w.t, makes)}, outs, api.OutputsName(job, 0))
		digest = m.Digest()
		return err
	})
	must.Do(w.t, err)
	w.quota.Again() // no agent has sent this
	return digest
}

// attemptOf waits until the job of a stage has a machine, and returns its attempt.
func (w *world) attemptOf(job string) (attempt string) {
	w.t.Helper()
	w.until(func(m *core.Machine) bool {
		group, _, _ := strings.Cut(job, ".")
		if g := m.State().Group(group); g.Phase == state.GroupOver {
			w.t.Fatalf("the pipeline is over before %s: %+v", job, g.Stages)
		}
		j, ok := m.Job(job)
		if ok && j.Live() != nil && j.Live().Instance() != "" {
			attempt = j.Live().ID()
		}
		return attempt != ""
	})
	return attempt
}

// groupOver waits until a group has ended, and returns it.
func (w *world) groupOver(group string) (g api.Group) {
	w.t.Helper()
	w.until(func(m *core.Machine) bool {
		g := m.State().Group(group)
		return g != nil && g.Phase == state.GroupOver
	})
	w.must("GET", "/v1/groups/"+group, nil, &g)
	return g
}

func stagesOf(g api.Group) (list []string) {
	for _, s := range g.Pipeline.Stages {
		list = append(list, s.Name+" "+s.State)
	}
	return list
}

func TestPipelines_ReuseUnchangedStages(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x", "prepared/stale": "old", "notes": "n"})
	var g api.Group
	w.must("POST", "/v1/groups", retrain(folder, "0.1", "0.90"), &g)
	if got := stagesOf(g); g.Kind != "pipeline" || len(got) != 3 || !slices.Equal(got[1:], []string{"train waiting", "deploy waiting"}) {
		t.Fatalf("it begins as %v: %+v", got, g)
	}
	if held := w.runsStage("retrain.prepare", map[string]string{"prepared/b": "2"}); !slices.Equal(held, []string{"data/a", "notes", "train.py"}) {
		t.Errorf("prepare finds %v, want what was sent but for what stages make", held)
	}
	held := w.runsStage("retrain.train", map[string]string{"model.txt": "m", "metrics.json": `{"eval":{"acc":0.9,"n":3},"x":"y"}`})
	if !slices.Equal(held, []string{"data/a", "notes", "prepared/b", "train.py"}) {
		t.Errorf("train finds %v, want what prepare has made besides", held)
	}
	w.runsStage("retrain.deploy", map[string]string{"live/model": "m"})
	g = w.groupOver("retrain")
	if got := stagesOf(g); !slices.Equal(got, []string{"prepare done", "train done", "deploy done"}) {
		t.Fatalf("it ends as %v: %+v", got, g.Pipeline)
	}
	for _, s := range g.Pipeline.Stages { // until its machine is billed nobody knows what it cost
		if !s.CostOpen {
			t.Errorf("the cost of %s is final before its machine is billed", s.Name)
		}
		w.endsMachine(s.Job)
	}
	g = api.Group{}
	w.must("GET", "/v1/groups/retrain", nil, &g)
	for _, s := range g.Pipeline.Stages {
		if s.CostOpen || s.Cost.Sign() <= 0 {
			t.Errorf("%s costs %v, open: %v", s.Name, s.Cost, s.CostOpen)
		}
	}
	if train := g.Pipeline.Stages[1]; train.Metrics["eval.acc"] != "0.9" || train.Metrics["eval.n"] != "3" || len(train.Metrics) != 2 || train.Bytes == 0 {
		t.Errorf("train has made %+v", train)
	}

	w.must("POST", "/v1/groups", retrain(folder, "0.1", "0.90"), &g)
	g = w.groupOver("retrain-2")
	if got := stagesOf(g); !slices.Equal(got, []string{"prepare reused", "train reused", "deploy reused"}) || g.Began != 0 || g.Spent.Sign() != 0 {
		t.Errorf("again it ends as %v: %+v", got, g)
	}
	if got, want := g.Pipeline.Stages[1].Job, "retrain.train"; got != want || g.Pipeline.Saved.Sign() <= 0 {
		t.Errorf("train was taken from %s and saved %v, want from %s", got, g.Pipeline.Saved, want)
	}

	w.must("POST", "/v1/groups", retrain(folder, "0.2", "0.91"), &g)
	w.runsStage("retrain-3.train", map[string]string{"model.txt": "n", "metrics.json": `{"eval":{"acc":0.9099}}`})
	g = w.groupOver("retrain-3")
	if got := stagesOf(g); !slices.Equal(got, []string{"prepare reused", "train done", "deploy skipped"}) {
		t.Errorf("with another parameter and a higher bar it ends as %v", got)
	}
	if why := g.Pipeline.Stages[2].Why; why != "eval.acc of train is 0.9099, below the min of 0.91" {
		t.Errorf("deploy was skipped because %q", why)
	}
}

func TestPipelines_NameTheMissingOutputs(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	w.must("POST", "/v1/groups", retrain(folder, "1", "0"), nil)
	w.runsStage("retrain.prepare", map[string]string{"elsewhere": "2"})
	g := w.groupOver("retrain")
	if got := stagesOf(g); !slices.Equal(got, []string{"prepare failed", "train skipped", "deploy skipped"}) {
		t.Errorf("it ends as %v", got)
	}
	if g.Succeeded != 0 || g.Failed != 1 {
		t.Errorf("%d members succeeded and %d failed: the job succeeded, and its stage did not", g.Succeeded, g.Failed)
	}
	if s := g.Pipeline.Stages; !strings.Contains(s[0].Why, "did not make prepared") || s[1].Why != "it needs prepare, which failed" {
		t.Errorf("the stages say %q and %q", s[0].Why, s[1].Why)
	}
}

// The content behind a link counts, not its target; content outside the folder is unknown.
func TestPipelines_FollowLinks(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"real/a": "1", "in": "x"})
	for to, at := range map[string]string{"real/a": "l", "real": "folder", "/nowhere": "out"} {
		must.Do(t, os.Symlink(to, filepath.Join(folder, at)))
	}
	key := func(n int, dep string) (key string) {
		name := fmt.Sprint(strings.ReplaceAll(dep, "/", "-"), n)
		w.must("POST", "/v1/groups", fmt.Sprintf(`{"folder":%q,"spec":{"name":%q,"project":%q,"budget":{"dollars":"9"}},"pipeline":{"at_once":1,
			"stages":[{"name":"make","job":{"command":"make"},"deps":[%q]}]}}`, folder, name, name, dep), nil)
		w.began(name, 1)
		w.control.Read(func(m *core.Machine) { key = m.State().Group(name).Stages[0].Key })
		w.must("POST", "/v1/groups/"+name+"/end", api.End{}, nil)
		w.groupOver(name)
		return key
	}
	before := map[string]string{}
	for _, dep := range []string{"l", "folder", "folder/a", "in"} {
		if before[dep] = key(1, dep); key(2, dep) != before[dep] {
			t.Errorf("%s has another key though nothing has changed", dep)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "real/a"), []byte("2"), 0o600))
	for dep, was := range before {
		if changed := key(3, dep) != was; changed != (dep != "in") {
			t.Errorf("after a change of real/a the key of a stage that reads %s is another one: %v", dep, changed)
		}
	}
}

// A stage runs again if its earlier outputs were removed or are damaged.
func TestPipelines_RerunStagesWithMissingOutputs(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1"})
	one := func() string {
		return fmt.Sprintf(`{"folder":%q,"spec":{"name":"one","budget":{"dollars":"9"}},"pipeline":{"at_once":1,"stages":[
			{"name":"make","job":{"command":"make"},"deps":["data"],"outs":["out"]}]}}`, folder)
	}
	w.must("POST", "/v1/groups", one(), nil)
	w.runsStage("one.make", map[string]string{"out/x": "content"})
	w.groupOver("one")
	parts, err := filepath.Glob(filepath.Join(w.opts.Dir, "blobs", "jobs", "one.make", "objects", "kept", "*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("its parts are %v, %v", parts, err)
	}
	must.Do(t, os.Remove(parts[0]))
	w.must("POST", "/v1/groups", one(), nil)
	w.runsStage("one-2.make", map[string]string{"out/x": "content"})
	if g := w.groupOver("one-2"); !slices.Equal(stagesOf(g), []string{"make done"}) {
		t.Errorf("it ends as %v", stagesOf(g))
	}
	w.must("POST", "/v1/groups", one(), nil)
	if g := w.groupOver("one-3"); !slices.Equal(stagesOf(g), []string{"make reused"}) || g.Pipeline.Stages[0].Job != "one-2.make" {
		t.Errorf("after that it ends as %v, from %s", stagesOf(g), g.Pipeline.Stages[0].Job)
	}
}

// The end of an attempt names its outputs by digest. Others that lie there later are not used: the stage runs again.
func TestPipelines_UseOnlyTheOutputsThatWereReported(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1"})
	two := fmt.Sprintf(`{"folder":%q,"spec":{"name":"two","budget":{"dollars":"9"}},"pipeline":{"at_once":1,"stages":[
		{"name":"make","job":{"command":"make"},"deps":["data"],"outs":["out"]},
		{"name":"use","job":{"command":"use"},"deps":["out"],"outs":["end"]}]}}`, folder)
	w.must("POST", "/v1/groups", two, nil)
	w.runsStage("two.make", map[string]string{"out/x": "content"})
	w.runsStage("two.use", map[string]string{"end/y": "end"})
	w.groupOver("two")
	var j api.Job
	w.must("GET", "/v1/jobs/two.make", nil, &j)
	if want := w.keeps("two.make", map[string]string{"out/x": "content"}, []string{"out"}); j.OutputsDigest != want || len(want) != 64 {
		t.Errorf("the job names its outputs %q, want %q", j.OutputsDigest, want)
	}
	w.must("POST", "/v1/groups", two, nil)
	if g := w.groupOver("two-2"); !slices.Equal(stagesOf(g), []string{"make reused", "use reused"}) {
		t.Errorf("the same files under another time: it ends as %v", stagesOf(g))
	}
	w.keeps("two.make", map[string]string{"out/x": "forged"}, []string{"out"})
	w.must("POST", "/v1/groups", two, nil)
	w.runsStage("two-3.make", map[string]string{"out/x": "content"})
	if g := w.groupOver("two-3"); !slices.Equal(stagesOf(g), []string{"make done", "use reused"}) {
		t.Errorf("forged outputs: it ends as %v", stagesOf(g))
	}
}

// gc keeps files that an unfinished pipeline may still read.
func TestPipelines_KeepOutputsStillNeeded(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	w.must("POST", "/v1/groups", retrain(folder, "1", "0"), nil)
	w.runsStageFor("retrain.prepare", map[string]string{"prepared/b": "2"}, 0)
	w.began("retrain", 2)
	collect := func() (done client.GCDone) {
		w.must("POST", "/v1/gc", client.GC{Only: []string{client.GCOutputs}, OlderThan: 1}, &done)
		return done
	}
	var machine string
	w.control.Read(func(m *core.Machine) { machine = m.State().Job("retrain.prepare").Attempts()[0].Instance() })
	w.event(core.InstanceEnded{Instance: machine, Until: w.control.Now(), Cause: "terminated"}, 0)
	if done := collect(); len(done.Items) > 0 {
		t.Errorf("while train reads them gc removes %+v", done.Items)
	}
	w.must("POST", "/v1/groups/retrain/end", api.End{}, nil)
	w.groupOver("retrain")
	if done := collect(); len(done.Items) != 1 || done.Items[0].Job != "retrain.prepare" {
		t.Errorf("afterwards it removes %+v", done.Items)
	}
}

// Limits of a pipeline on GPU-hours and time are those of all its stages together, and of each run of a schedule. A stage
// has no more GPU-hours than its pipeline.
func TestPipelines_HaveLimitsBesidesDollars(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	file := func(name, more string) string {
		return fmt.Sprintf(`{"folder":%q,"spec":{"name":%q,"budget":{"dollars":"9","gpu_hours":2.5,"wall_clock":"90m"}},"pipeline":{"at_once":1%s,"stages":[
			{"name":"make","job":{"command":"make","budget":{"gpu_hours":9}},"deps":["data"],"outs":["out"]}]}}`,
			folderWith(t, map[string]string{"data/a": "1"}), name, more)
	}
	w.must("POST", "/v1/groups", file("one", ""), nil)
	w.began("one", 1)
	var g api.Group
	w.must("GET", "/v1/groups/one", nil, &g)
	if p := g.Pipeline; p.GPULimit == nil || *p.GPULimit != 2.5 || p.WallClock == nil || *p.WallClock != 90*time.Minute {
		t.Errorf("its limits are %+v", p.GroupLimits)
	}
	w.control.Read(func(m *core.Machine) {
		if hours := m.State().Job("one.make").Terms().GPUHours; hours != 2.5 {
			t.Errorf("its stage may use %g GPU-hours", hours)
		}
	})
	w.event(core.Tick{}, 91*time.Minute)
	if g := w.groupOver("one"); g.Why != core.TimeSpent || !strings.Contains(g.Detail, "1h30m0s of 1h30m0s have passed") {
		t.Errorf("it ends as %s: %s", g.Why, g.Detail)
	}
	w.must("POST", "/v1/groups", file("daily", `,"schedule":{"cron":"0 3 * * *","budget":"90"}`), nil)
	w.control.Read(func(m *core.Machine) {
		y := m.State().Group("daily").Terms
		if wall, hours := y.Limits(); wall != 0 || hours != 0 {
			t.Errorf("the schedule itself has the limits %v and %g", wall, hours)
		}
		if wall, hours := y.Run.Limits(); wall != 90*time.Minute || hours != 2.5 {
			t.Errorf("each run has the limits %v and %g", wall, hours)
		}
	})
}

// A pipeline whose limit is used up by the saves of its first stages, or before a machine has started, would end at once.
func TestPipelines_RefuseLimitsThatNoStageFitsIn(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	file := func(limits string, atOnce int) string {
		stage := func(n int) string {
			return fmt.Sprintf(`{"name":"train@%d","job":{"command":"c","grace":"3m","resources":{"accelerator":"any:4"}},"deps":["data"],"outs":["out%d"]}`, n, n)
		}
		return fmt.Sprintf(`{"folder":%q,"accept_wait":true,"spec":{"name":"short","budget":{"dollars":"9",%s}},"pipeline":{"at_once":%d,"stages":[%s,%s]}}`,
			folderWith(t, map[string]string{"data/a": "1"}), limits, atOnce, stage(0), stage(1))
	}
	for _, c := range []struct {
		limits      string
		atOnce      int
		field, says string // 4 GPUs × 3 minutes are 0.2 GPU-hours
	}{
		{`"gpu_hours":0.2`, 1, "budget.gpu_hours", "stage train@0 needs more than 0.2 to save at the end: 4 GPUs × 3m0s"},
		{`"gpu_hours":0.4`, 2, "budget.gpu_hours", "2 stages that run at once need more than 0.4"},
		{`"wall_clock":"1ms"`, 1, "budget.wall_clock", "the pipeline has 1ms"},
		{`"gpu_hours":0.4`, 1, "", ""}, {`"gpu_hours":0.41`, 2, "", ""},
	} {
		rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, file(c.limits, c.atOnce))
		if p.Field != c.field || !strings.Contains(p.Title, c.says) || rec.Code < 400 && c.field != "" {
			t.Errorf("%s, %d at once: %d, field %q: %s", c.limits, c.atOnce, rec.Code, p.Field, p.Title)
		}
	}
}

// Two pipelines of a project that need the same output at once produce it once; those of another project do not
// share it.
func TestPipelines_ShareAStageInProgress(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1"})
	makes := func(name, project string) {
		w.must("POST", "/v1/groups", fmt.Sprintf(`{"folder":%q,"spec":{"name":%q,"project":%q,"budget":{"dollars":"9"}},
			"pipeline":{"at_once":1,"stages":[{"name":"make","job":{"command":"make"},"deps":["data"],"outs":["out"]}]}}`, folder, name, project), nil)
	}
	makes("one", "p")
	w.began("one", 1)
	makes("two", "p")
	makes("other", "q")
	w.began("other", 1)
	w.until(func(m *core.Machine) bool { return m.State().Group("two").Why == string(core.MadeElsewhere) })
	w.runsStage("one.make", map[string]string{"out/x": "content"})
	w.groupOver("one")
	if g := w.groupOver("two"); !slices.Equal(stagesOf(g), []string{"make reused"}) {
		t.Errorf("the second ends as %v", stagesOf(g))
	}
}

func TestPipelines_RefuseInvalidStages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	for _, c := range []struct{ from, to, field string }{
		{`"deps":["data"]`, `"deps":["model.txt"]`, "pipeline.stages[1]"},
		{`"deps":["data"]`, `"deps":["none"]`, "pipeline.stages[2].deps[0]"},
		{`"deps":["prepared","train.py"]`, `"deps":["prepared","prepare.py"]`, "pipeline.stages[1].deps[1]"},
		{`"outs":["live"]`, `"outs":["prepared"]`, "pipeline.stages[2].outs"},
		{`"outs":["live"]`, `"outs":["../live"]`, "pipeline.stages[0].outs"},
		{`"at_once":2`, `"at_once":0`, "pipeline.at_once"},
		{`,"budget":{"dollars":"9"}`, ``, "budget"},
		{`"name":"retrain"`, `"name":"retrain","command":"x"`, "command"},
		{`"command":"train"`, `"command":""`, "pipeline.stages[1].job.command"},
		{`"command":"train"`, `"command":"x","resources":{"accelerator":"H100:0"}`, "pipeline.stages[1].job.resources.accelerator"},
		{`"min":"0"`, `"min":"high"`, "pipeline.stages[0].gate"},
		{`train.eval.acc","min":"0"`, `x"`, "pipeline.stages[0].gate"},
		{`"pipeline"`, `"array":"0-9","pipeline"`, "array"},
	} {
		body := strings.Replace(retrain(folder, "1", "0"), c.from, c.to, 1)
		if rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, body); rec.Code < 400 || p.Field != c.field {
			t.Errorf("%s: %d, field %q: %s %s", c.to, rec.Code, p.Field, p.Title, p.Detail)
		}
	}
}

// A stage's work folder counts towards its team's disk limit.
func TestPipelines_CountTowardsTheTeamsDisk(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	limit := int64(1 << 20)
	w.must("PUT", "/v1/teams/small", api.SetTeam{Disk: &limit}, nil)
	folder := folderWith(t, map[string]string{"data/a": "1", "train.py": "x"})
	w.must("POST", "/v1/groups", strings.Replace(retrain(folder, "1", "0"), `"project":"p"`, `"team":"small"`, 1), nil)
	makes := map[string]string{"prepared/b": noise(768 << 10)}
	w.runsStage("retrain.prepare", makes)
	g := w.groupOver("retrain")
	if s := g.Pipeline.Stages[1]; s.State != "failed" || !strings.Contains(s.Why, "the team has used its disk, make room with scrimp gc") {
		t.Errorf("train is %s: %q", s.State, s.Why)
	}
	if _, err := w.folders.Of("retrain.train"); err == nil {
		t.Error("the folder of the stage is still there")
	}
}
