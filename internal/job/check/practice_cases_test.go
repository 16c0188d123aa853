package check_test

import (
	"time"

	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/size"
)

// on sets the job's accelerators, before other changes.
func on(accelerator string, also func(*check.Case)) func(*check.Case) {
	return func(c *check.Case) { also(c); c.Job.Resources.Accelerator = accelerator }
}

// share adds a run with one known figure.
func share(set func(*check.Run, figure.Figure), v float64) func(*check.Case) {
	r := check.Run{Job: "j-1"}
	set(&r, figure.Known(v))
	return ran(check.Run{Job: "j-2"}, r)
}

func waited(r *check.Run, f figure.Figure)  { r.Waited = f }
func lost(r *check.Run, f figure.Figure)    { r.Lost = f }
func startUp(r *check.Run, f figure.Figure) { r.StartUp = f }
func held(r *check.Run, f figure.Figure)    { r.Held = f }
func saving(r *check.Run, f figure.Figure)  { r.Saved = f }

// cost returns a successful run of 100 steps.
func cost(job string, usd float64) check.Run {
	return check.Run{Job: job, State: "succeeded", Steps: 100, CostUSD: figure.Known(usd)}
}

func region(store string, zones ...string) func(*check.Case) {
	return job(func(j *spec.Job) { j.Checkpoint.Store, j.Resources.Zones = store, zones })
}

// practiceCases has the items that earlier receipts, prices and the practice of training programs settle.
var practiceCases = []itemCase{
	{"deadline", check.Warn, "by when", func(*check.Case) {}},
	{"deadline", check.Pass, "its window", job(func(j *spec.Job) { j.Window = "22:00-06:00" })},
	{"deadline", check.Unknown, "duration is unknown", job(func(j *spec.Job) { j.Deadline.In = time.Hour })},
	{"deadline", check.Fail, "has passed", job(func(j *spec.Job) { j.Deadline.At = now.Add(-time.Second) })},
	{"deadline", check.Fail, "2h 00m of work, and 1h 00m", func(c *check.Case) { hours(c, 2); c.Job.Deadline.In = time.Hour }},
	{"deadline", check.Pass, "2h 00m of work, and 2h 00m", func(c *check.Case) { hours(c, 2); c.Job.Deadline.At = now.Add(2 * time.Hour) }},
	{"deadline-kept", check.Unknown, "no earlier run", ran(check.Run{})},
	{"deadline-kept", check.Pass, "j-1 met", ran(check.Run{}, check.Run{Job: "j-1", DeadlineMet: new(true)})},
	{"deadline-kept", check.Warn, "j-2 missed", ran(check.Run{Job: "j-2", DeadlineMet: new(false)}, check.Run{DeadlineMet: new(true)})},
	{"saved", check.Unknown, "", ran(check.Run{})},
	{"saved", check.Pass, "j-1 cost 62 % less", share(saving, 0.62)},
	{"saved", check.Warn, "5 % more than on-demand", share(saving, -0.05)},
	{"cost-trend", check.Unknown, "fewer than two", ran(cost("j-1", 1))},
	{"cost-trend", check.Unknown, "fewer than two", ran(cost("j-2", 1), cost("j-1", 0))},
	{"cost-trend", check.Pass, "1.20 times", ran(cost("j-2", 6), cost("j-1", 5))},
	{"cost-trend", check.Warn, "a step of j-2 cost 1.50 times one of j-1", ran(cost("j-2", 3), check.Run{State: "failed"}, cost("j-1", 2))},
	{"data-rights", check.Unknown, "license", func(*check.Case) {}},
	{"data-rights", check.Pass, "you say so", says("data_rights", "yes")},
	{"personal-data", check.Unknown, "", func(*check.Case) {}},
	{"personal-data", check.Warn, "you say no", says("personal_data", "no")},
	{"prefetch", check.Unknown, "no loader", program("x = 1")},
	{"prefetch", check.Warn, "copies each batch", on("L4", program("d = DataLoader(ds)"))},
	{"prefetch", check.Warn, "switched off", on("L4", program("d = DataLoader(ds, pin_memory=False)"))},
	{"prefetch", check.Pass, "pin_memory", on("L4", program("d = DataLoader(ds, pin_memory=True)"))},
	{"prefetch", check.Pass, "no accelerator", program("d = DataLoader(ds)")},
	{"disk", check.Unknown, "", job(func(j *spec.Job) { j.Data = []spec.Data{{Path: "s3://b/c", Size: 5}} })},
	{"disk", check.Unknown, "", job(func(j *spec.Job) { j.Data = []spec.Data{{Name: "c", Path: "s3://b/c", Size: 5, Stream: true}} })},
	{"disk", check.Warn, "inputs of 120GiB, and resources.disk accepts less", disks(0, 0)},
	{"disk", check.Warn, "accepts less", disks(120*size.GiB-1, 0)},
	{"disk", check.Fail, "at most 100GiB", disks(0, 100*size.GiB)},
	{"disk", check.Pass, "a disk of 120GiB or more", disks(120*size.GiB, 0)},
	{"input-wait", check.Unknown, "", ran(check.Run{})},
	{"input-wait", check.Pass, "10 %", share(waited, 0.1)},
	{"input-wait", check.Warn, "j-1 waited 31 %", share(waited, 0.31)},
	{"code-version", check.Unknown, "no tag", func(*check.Case) {}},
	{"code-version", check.Pass, "the tag commit is 1a2b", job(func(j *spec.Job) { j.Tags = map[string]string{"commit": "1a2b"} })},
	{"code-version", check.Warn, "you say no", says("code_versioned", "no")},
	{"loss-scaling", check.Unknown, "neither", program("x = 1")},
	{"loss-scaling", check.Warn, "t.py:1 `float16`", program("with autocast(dtype=torch.float16):")},
	{"loss-scaling", check.Pass, "GradScaler", program("with autocast(dtype=torch.float16):", "s = GradScaler()")},
	{"loss-scaling", check.Pass, "bfloat16", program("with autocast(dtype=torch.bfloat16):")},
	{"loss-scaling", check.Pass, "precision is bf16", says("precision", "bf16")},
	{"loss-scaling", check.Unknown, "no program shows", says("precision", "fp16")},
	{"loss-scaling", check.Warn, "no program scales", func(c *check.Case) { program("x = 1")(c); c.Job.Model.Precision = "fp16" }},
	{"optimizer-saved", check.Unknown, "no save", program("x = 1")},
	{"optimizer-saved", check.Warn, "t.py:1 `torch.save(`", program("torch.save(m.state_dict(), p)")},
	{"optimizer-saved", check.Pass, "optimizer.state_dict(", program("torch.save([m.state_dict(), optimizer.state_dict()], p)")},
	{"saves-on-stop", check.Unknown, "no program", func(*check.Case) {}},
	{"saves-on-stop", check.Warn, "no program reacts", program("x = 1")},
	{"saves-on-stop", check.Pass, "SIGTERM", program("signal.signal(signal.SIGTERM, save)")},
	{"saves-on-stop", check.Pass, "never runs", job(func(j *spec.Job) { j.Resources.Capacity = []string{"on-demand"} })},
	{"store-region", check.Unknown, "names no region", region("s3://b")},
	{"store-region", check.Warn, "may run anywhere", region("s3://b?region=eu-west-1")},
	{"store-region", check.Fail, "runs in us-east-1 only", region("s3://b?region=eu-west-1", "us-east-1")},
	{"store-region", check.Warn, "may run in", region("s3://b?region=eu-west-1", "us-east-1", "eu-west-1a")},
	{"store-region", check.Pass, "both are in eu-west-1", region("s3://b?region=eu-west-1", "eu-west-1a")},
	{"distributed", check.Pass, "one accelerator at most", on("H100:1", func(*check.Case) {})},
	{"distributed", check.Unknown, "no program", on("H100:1..8", func(*check.Case) {})},
	{"distributed", check.Warn, "no program uses", on("H100:8", program("x = 1"))},
	{"distributed", check.Warn, "t.py:1 `DataParallel(`", on("H100:8", program("m = nn.DataParallel(m)"))},
	{"distributed", check.Pass, "torchrun", on("H100:8", job(func(j *spec.Job) { j.Command = "torchrun t.py" }))},
	{"distributed", check.Pass, "DistributedDataParallel", on("H100:2+", program("m = DistributedDataParallel(m)"))},
	{"price-cap", check.Warn, "no limit", on("L4", func(*check.Case) {})},
	{"price-cap", check.Pass, "the cheapest that fits is aws/us-east-1/l4/spot at $0.3/h", on("L4", job(func(j *spec.Job) { j.MaxPrice = rate("0.30") }))},
	{"price-cap", check.Fail, "$0.29/h", on("L4", job(func(j *spec.Job) { j.MaxPrice = rate("0.29") }))},
	{"price-cap", check.Unknown, "no machine", on("B300:64", job(func(j *spec.Job) { j.MaxPrice = rate("0.29") }))},
	{"price-cap", check.Pass, "never runs on spot", job(func(j *spec.Job) { j.Resources.Capacity = []string{"on-demand"} })},
	{"choice", check.Pass, "2 offers: 1 machine type in 1 region", on("L4", func(*check.Case) {})},
	{"choice", check.Warn, "1 offer", on("T4", func(*check.Case) {})},
	{"choice", check.Unknown, "no priced machine", on("B300:64", func(*check.Case) {})},
	{"memory-used", check.Unknown, "", ran(check.Run{})},
	{"memory-used", check.Warn, "used 31 %", share(held, 0.31)},
	{"memory-used", check.Pass, "used 95 %", share(held, 0.95)},
	{"memory-used", check.Warn, "runs out of memory", share(held, 0.96)},
	{"save-fits", check.Unknown, "", ran(check.Run{})},
	{"save-fits", check.Warn, "took 21s, and grace is 20s", ran(check.Run{Save: 21 * time.Second})},
	{"save-fits", check.Pass, "grace is 1m 30s", func(c *check.Case) {
		c.Job.Grace, c.Runs = spec.Duration(90*time.Second), []check.Run{{Save: 21 * time.Second}}
	}},
	{"lost-work", check.Unknown, "", ran(check.Run{Lost: figure.Known(0.4), Profile: true})},
	{"lost-work", check.Pass, "j-1 repeated 10 %", share(lost, 0.1)},
	{"lost-work", check.Warn, "j-1 repeated 40 %", share(lost, 0.4)},
	{"start-up", check.Unknown, "", ran(check.Run{})},
	{"start-up", check.Pass, "20 %", share(startUp, 0.2)},
	{"start-up", check.Warn, "j-1 spent 35 %", share(startUp, 0.35)},
	{"best-kept", check.Unknown, "keeps no checkpoints", func(*check.Case) {}},
	{"best-kept", check.Unknown, "no metric", job(func(j *spec.Job) { j.Checkpoint.Dir = "ck" })},
	{"best-kept", check.Warn, "may be older", job(func(j *spec.Job) { j.Checkpoint.Dir, j.Metric.Name = "ck", "val_loss" })},
	{"best-kept", check.Pass, "the best val_loss", job(func(j *spec.Job) { j.Checkpoint.Dir, j.Checkpoint.Best, j.Metric.Name = "ck", true, "val_loss" })},
	{"model-card", check.Unknown, "", func(*check.Case) {}},
	{"model-card", check.Pass, "you say so", says("model_card", "yes")},
	{"parity", check.Unknown, "", func(*check.Case) {}},
	{"parity", check.Warn, "you say no", says("parity", "no")},
	{"peak-planned", check.Unknown, "its peak is unknown", func(*check.Case) {}},
	{"peak-planned", check.Unknown, "not what a machine serves", says("peak_requests", "300")},
	{"peak-planned", check.Pass, "3 machines serve the 300 a second that you say: $2.40/h on aws/us-east-1/l4/on-demand",
		on("L4", says("peak_requests", "300", "predictions_per_second", "120"))},
	{"peak-planned", check.Pass, "one machine", says("peak_requests", "120", "predictions_per_second", "120")},
	{"health", check.Unknown, "not in production", program("livenessProbe: x")},
	{"health", check.Pass, "t.py:1 `livenessProbe`", func(c *check.Case) { program("livenessProbe: x")(c); c.Job.Kind = "inference" }},
	{"health", check.Warn, "you say no", says("health", "no")},
	{"commitment", check.Unknown, "not in production", func(*check.Case) {}},
	{"commitment", check.Pass, "reserved", job(func(j *spec.Job) { j.Resources.Capacity = []string{"reserved", "spot"} })},
	{"commitment", check.Pass, "you say so", says("commitment", "yes")},
}

// disks asks for a disk for 120 GiB of inputs.
func disks(least, most size.Bytes) func(*check.Case) {
	return job(func(j *spec.Job) {
		j.Data = []spec.Data{{Name: "c", Path: "s3://b/c", Size: 100 * size.GiB}, {Name: "d", Path: "gs://b/d", Size: 20 * size.GiB}}
		j.Resources.Disk = spec.Sizes{Min: least, Max: most}
	})
}
