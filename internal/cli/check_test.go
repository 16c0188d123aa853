package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/job/check"
	"scrimp/internal/test/must"
)

func findings(t *testing.T, dir string, args ...string) (map[string]check.Finding, int) {
	t.Helper()
	out, errs, code := call(t, dir, append([]string{"check", "--json"}, args...)...)
	var r check.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%d %v %s %s", code, err, out, errs)
	}
	all := map[string]check.Finding{}
	for _, f := range r.Findings {
		all[f.ID] = f
	}
	if r.OK != (code == 0) {
		t.Errorf("ok is %v, exit status %d", r.OK, code)
	}
	return all, code
}

func TestCheck_ReadsJobProgramAndFactsAndExitsWithVerdict(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	// The check looks for the job's python on the PATH, which this machine may not have.
	bin := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\necho Python 3.11.2\n"), 0o755))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	write(t, work, "train.py", "import torch\nwith torch.autocast('cuda'):\n    pass\n")
	write(t, work, "../secret.py", "EarlyStopping()\n")
	bad := write(t, work, "job.yaml", "name: bert\ncommand: python train.py ../secret.py --accum 4\nresources: {accelerator: 'H100:8'}\n")
	all, code := findings(t, dir, bad)
	if code != 2 || all["budget"].Verdict != check.Fail || all["spot-proven"].Verdict != check.Fail {
		t.Errorf("%d %+v", code, all)
	}
	if all["precision"].Verdict != check.Pass || all["precision"].Evidence != "train.py:2 `autocast`" {
		t.Errorf("%+v", all["precision"])
	}
	if all["early-stopping"].Verdict != check.Warn {
		t.Errorf("a file outside the work folder was read: %+v", all["early-stopping"])
	}
	good := write(t, work, "good.yaml", "name: bert\ncommand: python train.py\nwork: {time: 1h}\nbudget: $100\ncheckpoint: {dir: ck}\nresources: {accelerator: 'H100:8'}\n")
	facts := write(t, work, "facts.yaml", "utilisation: 82%\nreviewed: 2026-11-02\npredictions_per_second: 120\nonnx: no\n")
	all, code = findings(t, dir, good, "--facts", facts, "--fact", "onnx=yes")
	if code != 0 || all["utilisation"].Verdict != check.Pass || all["onnx"].Verdict != check.Pass || all["prediction-cost"].Verdict != check.Pass {
		t.Errorf("%d %+v", code, all)
	}
	all, _ = findings(t, dir, bad, "--force")
	if all["spot-proven"].Verdict != check.Warn {
		t.Errorf("%+v", all["spot-proven"])
	}
	for _, args := range [][]string{{"nowhere.yaml"}, {bad, "--fact", "colour=red"}, {bad, "--facts", "nowhere"}, {bad, "--facts", filepath.Join(work, "train.py")}, {facts}} {
		if _, _, code := call(t, dir, append([]string{"check"}, args...)...); code != 1 {
			t.Errorf("%v: %d", args, code)
		}
	}
	several := write(t, work, "several.yaml", "onnx: no\nutilisation: [1, 2]\n")
	above := write(t, work, "above.yaml", "onnx: no\nutilisation: 182%\n")
	for want, args := range map[string][]string{
		"--fact utilisation=182%: write a share from 0% to 100%":     {"--fact", "utilisation=182%"},
		"--fact onnx is given twice: give it once":                   {"--fact", "onnx=no", "--fact", "onnx=yes"},
		"--facts: " + above + ":2: utilisation=182%: write a share":  {"--facts", above},
		"--facts: " + several + ":2: utilisation has several values": {"--facts", several},
		"--facts: " + work + " is a folder, not a file":              {"--facts", work},
	} {
		if _, errs, code := call(t, dir, append([]string{"check", bad}, args...)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %s, which does not say %q", args, code, errs, want)
		}
	}
}

func TestCheck_UsesEstimateOfModel(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	const job = "name: m\ncommand: python train.py\nmodel: {config: MODEL}\nwork: {tokens: 50M}\nbudget: $500\ncheckpoint: {dir: ck}\nresources: {accelerator: 'H100:8'}\n"
	all, _ := findings(t, dir, write(t, work, "small.yaml", strings.Replace(job, "MODEL", "gpt2", 1)))
	if all["cost"].Verdict != check.Pass || all["machine"].Verdict == check.Unknown || all["machine"].Verdict == check.Fail {
		t.Errorf("%+v\n%+v", all["cost"], all["machine"])
	}
	all, code := findings(t, dir, write(t, work, "large.yaml", strings.Replace(job, "MODEL", "llama-3-8b", 1)))
	if code != 2 || all["machine"].Verdict != check.Fail || !strings.Contains(all["machine"].Evidence, "it needs") {
		t.Errorf("%d %+v", code, all["machine"])
	}
}
