package check_test

import (
	"slices"
	"time"

	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// itemCase is a job with the expected verdict of an item.
type itemCase struct {
	id      string
	verdict check.Verdict
	why     string // part of the evidence
	set     func(*check.Case)
}

var cases = []itemCase{
	{"cost", check.Unknown, "neither", func(*check.Case) {}},
	{"cost", check.Pass, "$3.00 to $8.00: 10h 00m on aws/us-east-1/l4/spot", func(c *check.Case) {
		hours(c, 10)
		c.Job.Resources.Accelerator = "L4"
	}},
	{"cost", check.Pass, "$8.00: ", func(c *check.Case) {
		hours(c, 10)
		c.Job.Resources.Accelerator, c.Job.Resources.Capacity = "L4", []string{"on-demand"}
	}},
	{"cost", check.Pass, "a price of 2026-11-20", func(c *check.Case) {
		hours(c, 10)
		c.Job.Resources.Accelerator, c.Now = "T4", now.Add(30*24*time.Hour)
	}},
	{"cost", check.Pass, "$16.00", func(c *check.Case) {
		hours(c, 10)
		c.Job.Resources.Accelerator, c.Job.Nodes = "L4", spec.Range{Min: 2, Max: 2}
	}},
	{"cost", check.Unknown, "", func(c *check.Case) { hours(c, 10); c.Job.Resources.Accelerator = "B300:64" }},
	{"cost", check.Pass, "what j-1 has cost, for 400 steps instead of 100", func(c *check.Case) {
		c.Job.Work.Steps = 400
		c.Runs = []check.Run{{Job: "j-2", State: "failed", CostUSD: figure.Known(9)},
			{Job: "j-1", State: "succeeded", Steps: 100, CostUSD: figure.Known(2)}}
	}},
	{"cost", check.Pass, "$1.00 to $2.00: scrimp estimate", func(c *check.Case) {
		c.Estimate = &check.Estimate{CostLow: 1, Cost: 1.5, CostHigh: 2, Source: "scrimp estimate"}
	}},

	{"python", check.Unknown, "not checked", func(*check.Case) {}},
	{"python", check.Unknown, "nothing of this shell", func(c *check.Case) { c.Found = &check.Found{Elsewhere: true} }},
	{"python", check.Pass, "python3 as /v/bin/python3 (3.11.7), and the environment /v; PATH is this shell's: /v/bin, /b, /c and 1 more.",
		func(c *check.Case) {
			c.Found = &check.Found{Python: "/v/bin/python3 (3.11.7)", Environment: "/v", Path: []string{"/v/bin", "/b", "/c", "/d"}}
		}},
	{"python", check.Fail, "torchrun is not on PATH; jobs on this machine find no python3; PATH is this shell's: /b.",
		func(c *check.Case) { c.Found = &check.Found{Missing: "torchrun", Path: []string{"/b"}} }},
	{"python", check.Warn, "torchrun is not on PATH, unless setup installs it", func(c *check.Case) {
		c.Job.Setup, c.Found = "pip install torch", &check.Found{Missing: "torchrun"}
	}},

	{"machine", check.Pass, "nothing in particular", func(*check.Case) {}},
	{"machine", check.Pass, "4 of 5 machine types of its kind cost more", func(c *check.Case) {
		c.Job.Resources.Accelerator = "L4"
	}},
	{"machine", check.Warn, "dearer than 5 of 5", func(c *check.Case) { c.Job.Resources.Accelerator = "H200:8" }},
	{"machine", check.Warn, "dearer than 5 of 5", func(c *check.Case) { c.Job.Resources.CPUs.Min = 96 }},
	{"machine", check.Pass, "alternatives", func(c *check.Case) { c.Job.Resources.Accelerator = "H200:1..8" }},
	{"machine", check.Pass, "alternatives", func(c *check.Case) { c.Job.Resources.Accelerator = "H200:4+" }},
	{"machine", check.Pass, "used 82 %", func(c *check.Case) {
		c.Job.Resources.Accelerator = "H200:8"
		c.Facts = map[string]string{"utilisation": "82%"}
	}},
	{"machine", check.Warn, "aws/us-east-1/h100/on-demand at $55/h has that", func(c *check.Case) {
		c.Job.Resources.Accelerator = "H200:8"
		c.Estimate = &check.Estimate{PeakMemory: 82 * size.GB}
		c.Offers = []catalog.Listing{offer(c, "h100"), offer(c, "h200")}
	}},
	{"machine", check.Fail, "it needs", func(c *check.Case) {
		c.Job.Resources.Accelerator = "T4"
		c.Estimate = &check.Estimate{PeakMemory: 20 * size.GB}
	}},
	{"machine", check.Pass, "nothing that has that is cheaper", func(c *check.Case) {
		c.Job.Resources.Accelerator = "L4"
		c.Estimate = &check.Estimate{PeakMemory: 20 * size.GB}
	}},
	{"machine", check.Unknown, "no machine like that", func(c *check.Case) { c.Job.Resources.Accelerator = "B300:64" }},

	{"cost", check.Pass, "about $0.00167: 2.0s on aws/us-east-1/c/on-demand at $0.1/h, billed for 1m 00s at least", func(c *check.Case) { // a small cost is not free
		c.Job.Work.Time = spec.Duration(2 * time.Second)
	}},
	{"cost", check.Pass, "about $0.11: 1h 00m on aws/us-east-1/c/on-demand at $0.1/h, and 6m 00s to start", func(c *check.Case) {
		hours(c, 1)
		c.Offers = slices.Clone(c.Offers)
		for i := range c.Offers {
			c.Offers[i].Offer.Boot = 6 * time.Minute
		}
	}},
	{"precision", check.Unknown, "neither", func(c *check.Case) { c.Job.Resources.Accelerator = "L4" }},
	{"precision", check.Pass, "no accelerator", func(*check.Case) {}},
	{"precision", check.Pass, "command `bf16`", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Job.Command = "L4", "python t.py --precision bf16"
	}},
	{"precision", check.Warn, "T4 has no bf16", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Job.Command = "T4", "python t.py --precision bf16"
	}},
	{"precision", check.Pass, "env `fp16`", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Job.Env = "T4", map[string]string{"PRECISION": "fp16"}
	}},
	{"precision", check.Warn, "full precision", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Job.Command = "L4", "python t.py --precision 32"
	}},
	{"precision", check.Warn, "switched off", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Job.Args = "L4", []string{"t", "--bf16=False"}
	}},
	{"precision", check.Warn, "knows t.py:2", func(c *check.Case) {
		c.Job.Resources.Accelerator = "L4"
		c.Texts = []check.Text{{"t.py", "# bf16 is good\np.add_argument('--bf16')\n"}}
	}},
	{"precision", check.Pass, "t.py:3 `autocast`", func(c *check.Case) {
		c.Job.Resources.Accelerator = "L4"
		c.Texts = []check.Text{{"t.py", "import torch\np.add_argument('--bf16')\nwith torch.autocast('cuda'):\n"}}
	}},
	{"precision", check.Unknown, "", func(c *check.Case) {
		c.Job.Resources.Accelerator = "L4"
		c.Texts = []check.Text{{"t.py", "# with torch.autocast('cuda'):\n"}}
	}},
	{"precision", check.Warn, "you say fp32", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Facts = "L4", map[string]string{"precision": "fp32"}
	}},
	{"precision", check.Pass, "does not train", func(c *check.Case) {
		c.Job.Kind, c.Job.Resources.Accelerator = "inference", "L4"
	}},

	{"accumulation", check.Unknown, "", func(c *check.Case) { c.Job.Resources.Accelerator = "L4" }},
	{"accumulation", check.Pass, "", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Job.Command = "L4", "t --gradient_accumulation_steps 4"
	}},
	{"accumulation", check.Warn, "one piece", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Job.Command = "L4", "t --gradient-accumulation-steps=1"
	}},
	{"accumulation", check.Warn, "knows", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Texts = "L4", []check.Text{{"t.py", "p.add_argument('--grad_accum', default=4)"}}
	}},
	{"accumulation", check.Pass, "you say 8", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Facts = "L4", map[string]string{"accumulation": "8"}
	}},

	{"checkpoints", check.Fail, "every interruption", func(*check.Case) {}},
	{"checkpoints", check.Warn, "repeats up to", func(c *check.Case) { hours(c, 0.3) }},
	{"checkpoints", check.Warn, "never runs on", func(c *check.Case) { c.Job.Priority = "critical" }},
	{"checkpoints", check.Warn, "saves every 1h", func(c *check.Case) {
		c.Job.Checkpoint = spec.Checkpoint{Dir: "ck", Interval: "1h"}
	}},
	{"checkpoints", check.Warn, "aws gives 2m 00s", func(c *check.Case) {
		c.Job.Checkpoint.Dir, c.Job.Grace, c.Job.Resources.Accelerator = "ck", spec.Duration(5*time.Minute), "L4"
	}},
	{"checkpoints", check.Pass, "not seen to work", func(c *check.Case) { c.Job.Checkpoint.Dir = "ck" }},
	{"checkpoints", check.Pass, "j-1 has kept 7", func(c *check.Case) {
		c.Job.Checkpoint.Dir, c.Runs = "ck", []check.Run{{Job: "j-1", Checkpoints: 7}}
	}},

	{"checkpoints", check.Warn, "nothing in the programs was found that reads it", func(c *check.Case) {
		c.Job.Checkpoint.Dir = "ck"
		c.Texts = []check.Text{{"t.py", "model = AutoModel.from_pretrained('gpt2')\nx = np.load('data.npy')\ntorch.save(m, 'ck/m.pt')\n"}}
	}},
	{"checkpoints", check.Pass, "not seen to work", func(c *check.Case) {
		c.Job.Checkpoint.Dir = "ck"
		c.Texts = []check.Text{{"t.py", "if os.path.exists(f'{ckpt}/last.pt'):\n"}}
	}},
	{"checkpoints", check.Pass, "not seen to work", func(c *check.Case) {
		c.Job.Checkpoint.Dir = "ck"
		c.Texts = []check.Text{{"t.sh", "s=0; [ -f ckpt/s ] && s=$(cat ckpt/s)\n"}}
	}},
	{"checkpoints", check.Pass, "j-1 has kept 7", func(c *check.Case) { // it has resumed from one
		c.Job.Checkpoint.Dir, c.Texts = "ck", []check.Text{{"t.py", "torch.save(m, 'ck/m.pt')\n"}}
		c.Runs = []check.Run{{Job: "j-1", Checkpoints: 7, Resumes: []time.Duration{time.Second}}}
	}},

	{"spot", check.Unknown, "duration is unknown", func(*check.Case) {}},
	{"spot", check.Pass, "never runs on spot", func(c *check.Case) { c.Job.Priority = "critical" }},
	{"spot", check.Pass, "3h 00m of work", func(c *check.Case) { hours(c, 3) }},
	{"spot", check.Warn, "10m 00s of work", func(c *check.Case) { hours(c, 1.0/6) }},
	{"spot", check.Warn, "an interruption costs another start and all work since the first", func(c *check.Case) { hours(c, 1.0/3) }},
	{"spot", check.Warn, "kind is inference", func(c *check.Case) { c.Job.Kind = "inference" }},
	{"spot", check.Warn, "30m 00s of work, and spot pays above 30m 00s", func(c *check.Case) { hours(c, 0.5) }},
	{"spot", check.Pass, "31m 00s of work", func(c *check.Case) { hours(c, 31.0/60) }},
	{"spot", check.Warn, "j-1 took 20m 00s to start for 3h 00m of work", func(c *check.Case) {
		hours(c, 3)
		c.Runs = []check.Run{{Job: "j-1", Resumes: []time.Duration{20 * time.Minute}}}
	}},
	{"spot", check.Warn, "you say that it took 15m 00s to start", func(c *check.Case) { c.Facts = map[string]string{"resume": "15m"} }},

	{"resume", check.Unknown, "keeps no checkpoints", func(*check.Case) {}},
	{"resume", check.Unknown, "no earlier run", func(c *check.Case) { c.Job.Checkpoint.Dir = "ck" }},
	{"resume", check.Pass, "j-1 took 1m 30s", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-1", Resumes: []time.Duration{time.Minute, 90 * time.Second}}}
	}},
	{"resume", check.Fail, "5m 00s", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-1", Resumes: []time.Duration{5 * time.Minute}}}
	}},
	{"resume", check.Fail, "you say", func(c *check.Case) { c.Facts = map[string]string{"resume": "6m"} }},

	{"early-stopping", check.Warn, "no early stopping", func(*check.Case) {}},
	{"early-stopping", check.Warn, "no plateau", func(c *check.Case) { c.Job.Metric.Name = "loss" }},
	{"early-stopping", check.Pass, "500 steps", func(c *check.Case) {
		c.Job.Metric = spec.Metric{Name: "loss", Patience: 500}
	}},
	{"early-stopping", check.Pass, "reaching 0", func(c *check.Case) {
		c.Job.Metric = spec.Metric{Name: "loss", Target: new(float64)}
	}},
	{"early-stopping", check.Pass, "t.py:1", func(c *check.Case) {
		c.Texts = []check.Text{{"t.py", "callbacks=[EarlyStopping(monitor='val')]"}}
	}},
	{"early-stopping", check.Warn, "you say", func(c *check.Case) { c.Facts = map[string]string{"early_stopping": "no"} }},

	{"data-region", check.Unknown, "names no data", func(*check.Case) {}},
	{"data-region", check.Unknown, "s3://b/x", func(c *check.Case) { c.Job.Command = "t --data s3://b/x" }},
	{"data-region", check.Unknown, "has no region", func(c *check.Case) { c.Job.Data = []spec.Data{{Path: "s3://b/x"}} }},
	{"data-region", check.Warn, "reading it once: $4.00 in other regions of aws on the continent, $18.00 outside aws",
		func(c *check.Case) {
			c.Job.Data = []spec.Data{{Path: "s3://b/x", Size: 200 * size.GB, Region: "us-east-1"}}
		}},
	{"data-region", check.Warn, "$6.00 in other regions", func(c *check.Case) {
		c.Job.Data = []spec.Data{{Path: "s3://b/x", Size: 200 * size.GB, Region: "us-east-1"}}
		c.Charges = []catalog.TransferRate{{Provider: "aws", What: catalog.TransferRegion, Price: 3e10, Currency: "USD"}}
	}},
	{"data-region", check.Warn, "is unknown, and a run takes machines in us-east-1 only", func(c *check.Case) {
		c.Job.Data = []spec.Data{{Path: "hf://b/x", Size: size.GB, Region: "us-east-1"}}
	}},
	{"data-region", check.Warn, "names no place; without its size", func(c *check.Case) {
		c.Job.Data = []spec.Data{{Path: "s3://b/x", Region: "us-east-1"}}
	}},
	{"data-region", check.Fail, "eu-west-1 only", func(c *check.Case) {
		c.Job.Data, c.Job.Resources.Zones = []spec.Data{{Path: "s3://b/x", Region: "us-east-1"}}, []string{"eu-west-1"}
	}},
	{"data-region", check.Warn, "may run in", func(c *check.Case) {
		c.Job.Data, c.Job.Resources.Zones = []spec.Data{{Path: "s3://b/x", Region: "us-east-1"}},
			[]string{"us-east-1a", "eu-west-1"}
	}},
	{"data-region", check.Pass, "1 input", func(c *check.Case) {
		c.Job.Data, c.Job.Resources.Zones = []spec.Data{{Path: "s3://b/x", Region: "us-east-1"}}, []string{"us-east-1a"}
	}},
	{"data-region", check.Pass, "work folder", func(c *check.Case) { c.Job.Data = []spec.Data{{Path: "data/x"}} }},

	{"data-cached", check.Unknown, "", func(*check.Case) {}},
	{"data-cached", check.Pass, "HF_HOME", func(c *check.Case) { c.Job.Env = map[string]string{"HF_HOME": "/cache"} }},
	{"data-cached", check.Pass, "work folder", func(c *check.Case) { c.Job.Data = []spec.Data{{Path: "data/x"}} }},
	{"data-cached", check.Unknown, "", func(c *check.Case) { c.Job.Data = []spec.Data{{Path: "s3://b/x"}} }},
	{"data-cached", check.Warn, "", func(c *check.Case) { c.Facts = map[string]string{"data_cached": "no"} }},
	{"data-cached", check.Pass, "keeps inputs with a name", func(c *check.Case) {
		c.Job.Data = []spec.Data{{Name: "x", Path: "s3://b/x"}}
	}},
	{"data-cached", check.Unknown, "", func(c *check.Case) {
		c.Job.Data = []spec.Data{{Name: "x", Path: "s3://b/x"}, {Path: "s3://b/y"}}
	}},

	{"tags", check.Warn, "no team, no project, no environment", func(*check.Case) {}},
	{"tags", check.Warn, "team named; no project", func(c *check.Case) { c.Job.Tags = map[string]string{"team": "x"} }},
	{"tags", check.Pass, "", func(c *check.Case) { c.Job.Team, c.Job.Project, c.Job.Environment = "a", "b", "c" }},

	{"budget", check.Fail, "has no limit", func(*check.Case) {}},
	{"budget", check.Pass, "$5.00", func(c *check.Case) { c.Job.Budget.Dollars = dollars("5") }},
	{"budget", check.Fail, "needs $3.00 to $8.00", func(c *check.Case) {
		hours(c, 10)
		c.Job.Resources.Accelerator, c.Job.Budget.Dollars = "L4", dollars("2")
	}},
	{"budget", check.Warn, "may need", func(c *check.Case) {
		hours(c, 10)
		c.Job.Resources.Accelerator, c.Job.Budget.Dollars = "L4", dollars("5")
	}},
	{"budget", check.Warn, "price is not", func(c *check.Case) { c.Job.Budget.GPUHours = 5 }},
	{"budget", check.Pass, "$20.00 at most", func(c *check.Case) {
		c.Job.Budget.WallClock, c.Job.MaxPrice = spec.Duration(10*time.Hour), rate("2")
	}},

	{"cost", check.Pass, "lab/z/own", func(c *check.Case) { // only the offers that the job would use count, even if another is cheaper
		hours(c, 10)
		c.Job.Resources.Accelerator = ""
		own := catalog.Listing{Offer: market.Offer{ID: "lab/z/own", Machine: "own", CPUs: 2, Capacity: market.OnDemand,
			Currency: "USD"}, Quote: market.Quote{Rate: 900e12, Priced: true, At: c.Now}}
		c.Here, c.Offers = []catalog.Listing{own}, append(c.Offers, own)
	}},
	{"subset", check.Unknown, "no earlier run", func(*check.Case) {}},
	{"subset", check.Pass, "small itself", func(c *check.Case) { hours(c, 0.2) }},
	{"subset", check.Pass, "100 steps", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-1", State: "succeeded", Steps: 100}}
	}},
	{"subset", check.Pass, "j-profile did 40 steps", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-profile", State: "stopped", Steps: 40, Profile: true}}
	}},
	{"subset", check.Warn, "none of 1", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-profile", State: "failed", Steps: 40, Profile: true}}
	}},
	{"subset", check.Warn, "none of 1", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-1", State: "stopped", Steps: 40}}
	}},
	{"subset", check.Warn, "none of 1", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-1", State: "failed", Steps: 100}}
	}},
	{"subset", check.Warn, "you say", func(c *check.Case) { c.Facts = map[string]string{"subset_run": "no"} }},

	{"utilisation", check.Unknown, "", func(*check.Case) {}},
	{"utilisation", check.Fail, "40 %", func(c *check.Case) { c.Runs = []check.Run{{Utilisation: figure.Known(0.4)}} }},
	{"utilisation", check.Warn, "50 %", func(c *check.Case) { c.Runs = []check.Run{{Utilisation: figure.Known(0.5)}} }},
	{"utilisation", check.Warn, "70 %", func(c *check.Case) {
		c.Runs = []check.Run{{}, {Utilisation: figure.Known(0.7)}}
	}},
	{"utilisation", check.Pass, "71 %", func(c *check.Case) { c.Facts = map[string]string{"utilisation": "0.71"} }},
	{"utilisation", check.Fail, "0 %", func(c *check.Case) { c.Runs = []check.Run{{Utilisation: figure.Known(0)}} }},

	{"convergence", check.Warn, "nothing is seen", func(*check.Case) {}},
	{"convergence", check.Warn, "progress is seen", func(c *check.Case) { c.Job.Progress.Pattern = `(?P<loss>\S+)` }},
	{"convergence", check.Warn, "not a number", func(c *check.Case) { c.Job.Metric.Name = "loss" }},
	{"convergence", check.Pass, "500", func(c *check.Case) { c.Job.Metric = spec.Metric{Name: "loss", Patience: 500} }},

	{"spot-proven", check.Fail, "duration is unknown", func(*check.Case) {}},
	{"spot-proven", check.Fail, "10h", func(c *check.Case) {
		hours(c, 10)
		c.Runs = []check.Run{{Job: "j-1", Checkpoints: 3}}
	}},
	{"spot-proven", check.Warn, "forced", func(c *check.Case) { hours(c, 10); c.Force = true }},
	{"spot-proven", check.Pass, "not long", func(c *check.Case) { hours(c, 2) }},
	{"spot-proven", check.Pass, "never runs", func(c *check.Case) {
		hours(c, 10)
		c.Job.Resources.Capacity = []string{"on-demand"}
	}},
	{"spot-proven", check.Pass, "once", func(c *check.Case) {
		hours(c, 10)
		c.Runs = []check.Run{{Job: "j-1", Resumes: []time.Duration{time.Second}}}
	}},

	{"quantised", check.Unknown, "trains", func(c *check.Case) { c.Job.Command = "t --quantization awq" }},
	{"quantised", check.Pass, "awq", func(c *check.Case) {
		c.Job.Kind, c.Job.Command = "inference", "vllm serve m --dtype awq"
	}},
	{"quantised", check.Pass, "you say int8", func(c *check.Case) { c.Facts = map[string]string{"quantised": "int8"} }},
	{"quantised", check.Warn, "you say bf16", func(c *check.Case) { c.Facts = map[string]string{"quantised": "bf16"} }},
	{"quantised", check.Warn, "you say no", func(c *check.Case) { c.Facts = map[string]string{"quantised": "no"} }},
	{"pruning", check.Unknown, "", func(*check.Case) {}},
	{"pruning", check.Pass, "you say so", func(c *check.Case) { c.Facts = map[string]string{"pruning": "yes"} }},
	{"distillation", check.Unknown, "", func(*check.Case) {}},
	{"distillation", check.Warn, "you say no", func(c *check.Case) { c.Facts = map[string]string{"distillation": "no"} }},
	{"onnx", check.Unknown, "", func(*check.Case) {}},
	{"onnx", check.Pass, "onnxruntime", func(c *check.Case) {
		c.Job.Kind, c.Texts = "inference", []check.Text{{"s.py", "import onnxruntime as ort"}}
	}},
	{"prediction-cost", check.Unknown, "predictions per second", func(*check.Case) {}},
	{"prediction-cost", check.Pass, "$2.22 for a million, at 100 a second on aws/us-east-1/l4/on-demand",
		func(c *check.Case) {
			c.Job.Resources.Accelerator, c.Facts = "L4", map[string]string{"predictions_per_second": "100"}
		}},
	{"prediction-cost", check.Unknown, "no machine", func(c *check.Case) {
		c.Job.Resources.Accelerator, c.Facts = "B300:64", map[string]string{"predictions_per_second": "100"}
	}},

	{"scaling", check.Unknown, "not in production", func(*check.Case) {}},
	{"scaling", check.Unknown, "unknown whether", func(c *check.Case) { c.Job.Kind = "inference" }},
	{"scaling", check.Fail, "", func(c *check.Case) {
		c.Job.Kind, c.Facts = "inference", map[string]string{"scale_to_zero": "no"}
	}},
	{"scaling", check.Warn, "", func(c *check.Case) { c.Facts = map[string]string{"scale_to_zero": "no"} }},
	{"scaling", check.Pass, "s.yaml:2", func(c *check.Case) {
		c.Job.Kind, c.Texts = "inference", []check.Text{{"s.yaml", "spec:\nminReplicas: 0\n"}}
	}},
	{"scaling", check.Warn, "so many", func(c *check.Case) {
		c.Job.Kind, c.Texts = "inference", []check.Text{{"s.yaml", "minReplicas: 2\n"}}
	}},
	{"batching", check.Unknown, "", func(c *check.Case) { c.Job.Command = "vllm serve" }},
	{"batching", check.Pass, "vllm", func(c *check.Case) { c.Job.Kind, c.Job.Command = "inference", "vllm serve m" }},
	{"batching", check.Warn, "", func(c *check.Case) { c.Facts = map[string]string{"dynamic_batching": "false"} }},
	{"right-sizing", check.Unknown, "", func(*check.Case) {}},
	{"right-sizing", check.Pass, "2026-11-02", func(c *check.Case) {
		c.Facts = map[string]string{"reviewed": "2026-11-02"}
	}},
	{"right-sizing", check.Warn, "days ago", func(c *check.Case) {
		c.Facts = map[string]string{"reviewed": "2026-10-02"}
	}},
	{"right-sizing", check.Unknown, "no day that has been", func(c *check.Case) {
		c.Facts = map[string]string{"reviewed": "2027-10-02"}
	}},
	{"right-sizing", check.Unknown, "", func(c *check.Case) {
		c.Runs = []check.Run{{Utilisation: figure.Known(0.8), Finished: now.Add(-40 * 24 * time.Hour)}}
	}},
	{"right-sizing", check.Pass, "80 %", func(c *check.Case) {
		c.Runs = []check.Run{{Job: "j-1", Utilisation: figure.Known(0.8), Finished: now.Add(-20 * 24 * time.Hour)}}
	}},
	{"alerts", check.Unknown, "", func(*check.Case) {}},
	{"alerts", check.Fail, "neither", func(c *check.Case) { c.Job.Kind = "production" }},
	{"alerts", check.Warn, "nobody hears", func(c *check.Case) {
		c.Job.Kind, c.Job.Budget.Dollars = "production", dollars("5")
	}},
	{"alerts", check.Warn, "has no limit", func(c *check.Case) {
		c.Job.Kind, c.Job.Notify.Webhook = "production", "https://example.org/hook"
	}},
	{"alerts", check.Pass, "", func(c *check.Case) {
		c.Job.Budget.Dollars, c.Job.Notify.Webhook = dollars("5"), "https://example.org/hook"
	}},
	{"production-tags", check.Unknown, "", func(*check.Case) {}},
	{"production-tags", check.Fail, "no team", func(c *check.Case) { c.Job.Kind = "inference" }},
	{"production-tags", check.Warn, "model_version", func(c *check.Case) {
		c.Job.Kind, c.Job.Team, c.Job.Project, c.Job.Environment = "inference", "a", "b", "c"
	}},
	{"production-tags", check.Pass, "", func(c *check.Case) {
		c.Job.Kind, c.Job.Team, c.Job.Project, c.Job.Environment, c.Job.ModelVersion = "inference", "a", "b", "c", "v3"
	}},
}
