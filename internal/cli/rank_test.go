package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/cli/show/planning"
	"scrimp/internal/job/check"
)

func ranked(t *testing.T, dir string, args ...string) (planning.Ranking, string, int) {
	t.Helper()
	out, errs, code := call(t, dir, append([]string{"plan", "--catalog", "--json"}, args...)...)
	var v planning.Ranking
	if out != "" {
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%d %v %s %s", code, err, out, errs)
		}
	}
	return v, errs, code
}

const timed = "name: bert\ncommand: python train.py\nwork: {time: 10h}\nresources: {accelerator: 'A100-80GB:8'}\ncheckpoint: {dir: ck}\nmetric: {name: loss, patience: 500}\nany_of:\n  - {name: h100, resources: {accelerator: 'H100:8'}, throughput: 2.2x}\n"

func TestRank_NeedsNoServer(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	drawing := filepath.Join(work, "frontier.svg")
	v, errs, code := ranked(t, dir, write(t, work, "job.yaml", timed), "--svg", drawing)
	if code != 0 || !v.Answer.Feasible || len(v.Answer.Plans) < 4 || strings.Contains(errs, "not used yet") {
		t.Fatalf("%d %s %+v", code, errs, v)
	}
	as := map[string]bool{}
	for _, p := range v.Answer.Plans {
		as[p.Variant] = true
		if p.Variant == "h100" && !strings.Contains(string(p.ID), "p5.48xlarge") && !strings.Contains(strings.ToLower(string(p.ID)), "h100") && !strings.Contains(string(p.ID), "a3-highgpu") {
			t.Errorf("%s as h100", p.ID)
		}
	}
	if !as["h100"] || !as[""] {
		t.Errorf("variants %v", as)
	}
	if b, err := os.ReadFile(drawing); err != nil || !strings.HasPrefix(string(b), "<svg") {
		t.Errorf("%v %.20s", err, b)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the data folder has %v", entries)
	}
	if _, errs, code := call(t, dir, "plan", "--json", filepath.Join(work, "job.yaml")); code != 0 || !strings.Contains(errs, "the catalogue is ranked") {
		t.Errorf("without --catalog: %d %s", code, errs)
	}
	v, _, code = ranked(t, dir, write(t, work, "rich.yaml", timed+"deadline: in 7h\n"))
	if code != 0 || v.Answer.Plans[0].Variant != "h100" || len(v.Answer.Recommendations) == 0 {
		t.Errorf("in 7h: %d %+v", code, v.Answer.Plans)
	}
	v, _, code = ranked(t, dir, write(t, work, "poor.yaml", timed+"deadline: in 7h\nbudget: $20\n"))
	if code != 2 || v.Answer.Feasible || len(v.Answer.Nearest) == 0 || v.Answer.Nearest[0].Cost <= 20 {
		t.Errorf("for $20: %d %+v", code, v.Answer.Nearest)
	}
}

// A ranking with spot says why spot is poor for the job in the words of scrimp check.
func TestRank_SaysWhatCheckSaysOfSpot(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	job := write(t, work, "job.yaml", "name: short\ncommand: python train.py\nwork: {time: 20m}\nresources: {accelerator: 'A100-80GB:8'}\n")
	v, _, _ := ranked(t, dir, job)
	all, _ := findings(t, dir, job)
	if f := all["spot"]; f.Verdict != check.Warn || v.SpotPoor != f.Evidence+"; "+f.Fix {
		t.Errorf("the plan says %q, the check %+v", v.SpotPoor, f)
	}
	if text, _, _ := call(t, dir, "plan", "--catalog", job); !strings.Contains(strings.Join(strings.Fields(text), " "), "! spot is a poor choice for this job: 20m 00s of work, and spot pays above 30m 00s") {
		t.Errorf("the plan for people does not say it:\n%s", text)
	}
	if v, _, _ := ranked(t, dir, write(t, work, "long.yaml", timed)); v.SpotPoor != "" {
		t.Errorf("of ten hours with checkpoints: %q", v.SpotPoor)
	}
}

// TestRank_AgreesWithSimulation compares the arithmetic with a simulation of the code that would run the plan, on spot
// and on-demand. Notices make the simulated runs slightly cheaper.
func TestRank_AgreesWithSimulation(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	for _, job := range []string{timed, timed + "deadline: in 20h\n", strings.Replace(timed, "'A100-80GB:8'", "'A100-80GB:8', capacity: [on-demand]", 1) + "deadline: in 20h\n"} {
		v, _, code := ranked(t, dir, write(t, work, "job.yaml", job))
		if code != 0 || v.Played == nil || v.Played.Done < 0.99 || v.Played.InTime != nil && *v.Played.InTime < 0.99 {
			t.Fatalf("%d %+v", code, v.Played)
		}
		p := v.Answer.Plans[0]
		if ratio := p.Cost.Value / v.Played.Cost[1]; ratio < 0.98 || ratio > 1.12 {
			t.Errorf("%s: $%.2f by arithmetic, $%.2f lived", p.ID, p.Cost.Value, v.Played.Cost[1])
		}
		if ratio := p.Hours.Value / v.Played.Hours[1]; ratio < 0.85 || ratio > 1.15 {
			t.Errorf("%s: %.2f h by arithmetic, %.2f h lived", p.ID, p.Hours.Value, v.Played.Hours[1])
		}
	}
}

func TestRank_UsesModelOfJob(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	const job = "name: llama\ncommand: python train.py\nmodel: {config: llama-3-8b}\nwork: {tokens: 100M}\nresources: {accelerator: 'H100:8'}\ncheckpoint: {dir: ck}\nmetric: {name: loss, patience: 500}\n"
	v, errs, code := ranked(t, dir, write(t, work, "job.yaml", job))
	proposed := func() map[string]bool {
		names := map[string]bool{}
		for _, l := range v.Answer.Recommendations {
			names[l.Plan.Variant] = true
		}
		return names
	}
	if can := proposed(); code != 2 || !can["zero-3"] || !can["lora"] || !can["any-accelerator"] || v.Answer.Recommendations[0].Saves != nil {
		t.Errorf("whole on each accelerator: %d %s %+v", code, errs, v.Answer.Recommendations)
	}
	v, errs, code = ranked(t, dir, write(t, work, "any.yaml", strings.Replace(job, "llama-3-8b", "gpt2, batch: 2", 1)+"any_of: [{name: h200, resources: {accelerator: 'H200:8'}}]\ndata: [{path: 's3://corpus', size: 100GB, region: us-east-1}]\n"))
	as, gcp := map[string]bool{}, 0.0
	for _, p := range v.Answer.Plans {
		as[p.Variant] = true
		if strings.HasPrefix(string(p.ID), "gcp/") {
			gcp = p.Cost.Low
		}
		if len(p.Missing) > 0 {
			t.Errorf("%s: nobody knows its %v", p.ID, p.Missing)
		}
	}
	if can := proposed(); code != 0 || !as[""] || !as["h200"] || !can["larger-batch"] || !can["distillation"] || gcp < 9 {
		t.Errorf("%d %s: plans as %v, proposals %v, from $%.2f where 100 GB are brought for $9", code, errs, as, can, gcp)
	}
	v, errs, code = ranked(t, dir, write(t, work, "small.yaml", strings.Replace(job, "llama-3-8b", "gpt2", 1)))
	if code != 0 || v.Answer.Plans[0].Source == "" || v.Answer.Plans[0].Hours.High <= v.Answer.Plans[0].Hours.Low {
		t.Errorf("%d %s %+v", code, errs, v.Answer.Plans)
	}
	for name, text := range map[string]string{
		"no work":          "command: x\nresources: {accelerator: L4}\n",
		"no size":          "command: x\nmodel: {config: llama-3-8b}\n",
		"no shape":         "command: x\nmodel: {shape: nonsense}\nwork: {tokens: 1M}\n",
		"half a shape":     "command: x\nmodel: {layers: 32}\nwork: {tokens: 1M}\n",
		"absurd":           "command: x\nmodel: {parameters: 1e30}\nwork: {tokens: 1M}\n",
		"large batch":      "command: x\nmodel: {config: gpt2, batch: 100000000}\nwork: {tokens: 1M}\n",
		"tokens of images": "command: x\nmodel: {config: resnet-50}\nwork: {tokens: 1M}\n",
		"no model":         "command: x\nmodel: {config: nowhere.json}\nwork: {tokens: 1M}\n",
	} {
		if _, errs, code := ranked(t, dir, write(t, work, "bad.yaml", text)); code != 1 || errs == "" {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
}

// A job for any GPU gets whole GPUs whose speed is known, each machine once; no change of it proposes a TPU.
func TestRank_JobForAnyGPUGetsWholeKnownGPUs(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	const job = "name: a\ncommand: torchrun train.py\nresources: {accelerator: 'any:1'}\ncheckpoint: {dir: c}\n"
	for name, text := range map[string]string{
		"model.yaml": job + "model: {config: gpt2, sequence: 1024, batch: 8}\nwork: {tokens: 200M}\n",
		"time.yaml":  job + "work: {time: 2h}\n",
	} {
		v, errs, code := ranked(t, dir, write(t, work, name, text), "--limit", "0")
		if code != 0 || len(v.Answer.Plans) < 10 {
			t.Fatalf("%s: %d %s: %d plans", name, code, errs, len(v.Answer.Plans))
		}
		ids := []string{}
		for _, p := range v.Answer.Plans {
			ids = append(ids, string(p.ID))
		}
		for _, r := range v.Answer.Recommendations {
			ids = append(ids, string(r.Plan.ID))
		}
		for _, id := range ids {
			for _, no := range []string{"/g6f.", "/gr6f.", "TPU", "/g4ad.", "/trn", "/preemptible"} {
				if strings.Contains(id, no) {
					t.Errorf("%s: %s is planned or proposed", name, id)
				}
			}
		}
	}
}
