package check_test

import (
	"strings"
	"time"

	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
)

// says states facts by name and value.
func says(facts ...string) func(*check.Case) {
	return func(c *check.Case) {
		c.Facts = map[string]string{}
		for i := 0; i < len(facts); i += 2 {
			c.Facts[facts[i]] = facts[i+1]
		}
	}
}

// ran adds earlier runs.
func ran(runs ...check.Run) func(*check.Case) { return func(c *check.Case) { c.Runs = runs } }

// program adds a program with these lines.
func program(lines ...string) func(*check.Case) {
	return func(c *check.Case) { c.Texts = []check.Text{{Name: "t.py", Body: strings.Join(lines, "\n")}} }
}

// job changes the job file.
func job(f func(*spec.Job)) func(*check.Case) { return func(c *check.Case) { f(&c.Job) } }

// phaseCases has the items that the job file, earlier runs, programs or the user settle.
var phaseCases = []itemCase{
	{"baseline", check.Unknown, "", func(*check.Case) {}},
	{"baseline", check.Pass, "you say so", says("baseline", "yes")},
	{"baseline", check.Warn, "you say no", says("baseline", "no")},
	{"data-checked", check.Unknown, "", func(*check.Case) {}},
	{"data-checked", check.Pass, "you say so", says("data_checked", "yes")},
	{"data-checked", check.Warn, "you say no", says("data_checked", "no")},
	{"rollback", check.Unknown, "", func(*check.Case) {}},
	{"rollback", check.Pass, "you say so", says("rollback", "yes")},
	{"rollback", check.Warn, "you say no", says("rollback", "no")},
	{"drift", check.Unknown, "", func(*check.Case) {}},
	{"drift", check.Pass, "you say so", says("drift", "yes")},
	{"drift", check.Warn, "you say no", says("drift", "no")},
	{"held-out", check.Unknown, "", func(*check.Case) {}},
	{"held-out", check.Pass, "you say so", says("held_out", "yes")},
	{"held-out", check.Warn, "you say no", says("held_out", "no")},
	{"data-versioned", check.Unknown, "", func(*check.Case) {}},
	{"data-versioned", check.Pass, "you say so", says("data_versioned", "yes")},
	{"data-versioned", check.Warn, "you say no", says("data_versioned", "no")},
	{"repeated", check.Unknown, "never ran", func(*check.Case) {}},
	{"repeated", check.Warn, "j-1 has done the same 100 steps, and ended on 2026-11-20", func(c *check.Case) {
		c.Job.Work.Steps = 100
		c.Runs = []check.Run{{Job: "j-1", State: "succeeded", Steps: 100, Finished: now.AddDate(0, 0, -1)}}
	}},
	{"repeated", check.Pass, "7 days", func(c *check.Case) {
		c.Job.Work.Steps = 100
		c.Runs = []check.Run{{Job: "j-2", State: "succeeded", Steps: 100, Finished: now.AddDate(0, 0, -8)},
			{Job: "j-1", State: "failed", Steps: 100, Finished: now}}
	}},
	{"failing", check.Unknown, "never ran", func(*check.Case) {}},
	{"failing", check.Fail, "the last 3 runs failed", ran(check.Run{State: "failed"}, check.Run{State: "failed"}, check.Run{State: "failed"})},
	{"failing", check.Warn, "j-2, the last run, failed", ran(check.Run{Job: "j-2", State: "failed"}, check.Run{State: "succeeded"})},
	{"failing", check.Pass, "ended as succeeded", ran(check.Run{State: "succeeded"}, check.Run{State: "failed"})},
	{"time-limit", check.Warn, "hangs", func(*check.Case) {}},
	{"time-limit", check.Pass, "6h 00m", job(func(j *spec.Job) { j.Budget.WallClock = spec.Duration(6 * time.Hour) })},
	{"secrets", check.Pass, "", job(func(j *spec.Job) { j.Env = map[string]string{"MAX_TOKENS": "1000000000", "HF_TOKEN": "$HF_TOKEN"} })},
	{"secrets", check.Warn, "AWS_SECRET_ACCESS_KEY", job(func(j *spec.Job) {
		j.Env = map[string]string{"AWS_SECRET_ACCESS_KEY": "0123456789", "B": "c"}
	})},
	{"notified", check.Warn, "nobody hears", func(*check.Case) {}},
	{"notified", check.Pass, "notify", job(func(j *spec.Job) { j.Notify.Webhook = "https://example.org/hook" })},
	{"data-versioned", check.Pass, "is v7", job(func(j *spec.Job) { j.Tags = map[string]string{"data_version": "v7"} })},
	{"data-size", check.Unknown, "names no data", func(*check.Case) {}},
	{"data-size", check.Warn, "s3://b/c has no size", job(func(j *spec.Job) { j.Data = []spec.Data{{Path: "s3://b/c"}} })},
	{"data-size", check.Pass, "2 inputs", job(func(j *spec.Job) { j.Data = []spec.Data{{Path: "s3://b/c", Size: 1}, {Path: "in"}} })},
	{"data-format", check.Unknown, "neither", program("x = 1")},
	{"data-format", check.Warn, "t.py:1 `read_csv(`", program("x = pd.read_csv('a')")},
	{"data-format", check.Pass, "t.py:2", program("x = pd.read_csv('a')", "ds = wds.WebDataset('x')")},
	{"loader-workers", check.Unknown, "no loader", program("x = 1")},
	{"loader-workers", check.Warn, "without num_workers", program("d = DataLoader(ds, batch_size=8)")},
	{"loader-workers", check.Warn, "switched off", program("d = DataLoader(ds, num_workers=0)")},
	{"loader-workers", check.Pass, "t.py:1", program("d = DataLoader(ds, num_workers=7)")},
	{"seed", check.Unknown, "no program", func(*check.Case) {}},
	{"seed", check.Warn, "no seed", program("train()")},
	{"seed", check.Pass, "manual_seed", program("torch.manual_seed(0)")},
	{"pinned", check.Unknown, "neither", func(*check.Case) {}},
	{"pinned", check.Warn, "torch without a version", job(func(j *spec.Job) { j.Setup = "pip install -q numpy==2.1 torch" })},
	{"pinned", check.Pass, "", job(func(j *spec.Job) { j.Setup = "pip install -r requirements.txt && pip install torch==2.4.0" })},
	{"pinned", check.Warn, "another image tomorrow", job(func(j *spec.Job) { j.Image = "registry:5000/a/b" })},
	{"pinned", check.Warn, "another image tomorrow", job(func(j *spec.Job) { j.Image = "a/b:latest" })},
	{"pinned", check.Pass, "", job(func(j *spec.Job) { j.Image = "a/b@sha256:0" })},
	{"pinned", check.Pass, "", job(func(j *spec.Job) { j.Image = "a/b:2.4.0" })},
	{"interrupted", check.Unknown, "never ran", func(*check.Case) {}},
	{"interrupted", check.Warn, "7 interruptions in 2 runs", ran(check.Run{Interruptions: 6}, check.Run{Interruptions: 1})},
	{"interrupted", check.Pass, "5 interruptions in 2 runs", ran(check.Run{Interruptions: 4}, check.Run{Interruptions: 1})},
	{"save-rate", check.Unknown, "no earlier run", ran(check.Run{Worked: time.Minute, Checkpoints: 9})},
	{"save-rate", check.Warn, "j-1 saved 60 times an hour", ran(check.Run{Job: "j-1", Worked: time.Hour, Checkpoints: 60})},
	{"save-rate", check.Pass, "saved 10 times an hour", ran(check.Run{Worked: time.Hour, Checkpoints: 10})},
	{"idle-stop", check.Warn, "keeps its machine", func(*check.Case) {}},
	{"idle-stop", check.Pass, "15m", job(func(j *spec.Job) { j.Idle = spec.Duration(15 * time.Minute) })},
	{"outputs-kept", check.Warn, "goes with its machine", func(*check.Case) {}},
	{"outputs-kept", check.Pass, "out", job(func(j *spec.Job) { j.Outputs = []string{"out"} })},
	{"outputs-kept", check.Pass, "checkpoints in ck", job(func(j *spec.Job) { j.Checkpoint.Dir = "ck" })},
	{"versions-kept", check.Unknown, "keeps no checkpoints", func(*check.Case) {}},
	{"versions-kept", check.Pass, "newest 3", job(func(j *spec.Job) { j.Checkpoint.Dir = "ck" })},
	{"versions-kept", check.Warn, "keeps 40", job(func(j *spec.Job) { j.Checkpoint.Dir, j.Checkpoint.Keep = "ck", 40 })},
	{"held-out", check.Pass, "val_loss", job(func(j *spec.Job) { j.Metric.Name = "val_loss" })},
	{"held-out", check.Unknown, "", job(func(j *spec.Job) { j.Metric.Name = "interval" })},
	{"seeds", check.Unknown, "how many", func(*check.Case) {}},
	{"seeds", check.Warn, "you say 1", says("seeds", "1")},
	{"seeds", check.Pass, "you say 3", says("seeds", "3")},
	{"model-version", check.Warn, "version of the model", func(*check.Case) {}},
	{"model-version", check.Pass, "v3", job(func(j *spec.Job) { j.ModelVersion = "v3" })},
	{"latency", check.Unknown, "measured it", func(*check.Case) {}},
	{"latency", check.Unknown, "no goal", says("latency", "80ms")},
	{"latency", check.Fail, "100ms is the goal", says("latency", "1.2s", "latency_goal", "100ms")},
	{"latency", check.Pass, "you say 80ms", says("latency", "80ms", "latency_goal", "100ms")},
	{"cold-start", check.Unknown, "cold start is unknown", func(*check.Case) {}},
	{"cold-start", check.Warn, "1m30s", says("cold_start", "90s")},
	{"cold-start", check.Pass, "20s", says("cold_start", "20s")},
}
