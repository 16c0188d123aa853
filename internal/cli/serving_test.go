package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// requests writes a trace of three chats a minute for a quarter of an hour.
func (h *home) requests() {
	text := "time,input_tokens,output_tokens,bytes_out\n"
	for i := range 45 {
		text += fmt.Sprintf("2026-03-02T00:%02d:%02dZ,200,%d,800\n", i/3, 20*(i%3), 20+i%5)
	}
	h.write("requests.csv", text)
}

// A trace is planned over the catalogue: each line of JSON is an offer and a rule, the cheapest first, and a manifest has the
// rule of the first.
func TestServePlan_PlansATraceOverTheCatalogue(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.requests()
	plan := []string{"serve-plan", "--trace", "requests.csv", "--model", "llama-3-8b", "--latency", "p99<=20s", "--gpu", "L4:1"}
	text := h.out(append(plan, "--json")...)
	type line struct {
		Offer, Meets, Rule string
		Total              string `json:"total_cost"`
		Estimated          bool   `json:"service_time_estimated"`
	}
	var first line
	if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), &first); err != nil || first.Meets == "no" || !first.Estimated ||
		!strings.HasPrefix(first.Offer, "gcp/us-central1/g2-standard-4/") || first.Total == "" {
		t.Errorf("%v: %s", err, text)
	}
	if again := h.out(append(plan, "--json")...); again != text {
		t.Errorf("the same again: %s", again)
	}
	if text := h.out(append(plan, "--rule", "autoscale", "--manifest", "hpa", "-o", "hpa.yaml")...); !strings.Contains(text, "autoscale") {
		t.Errorf("%s", text)
	}
	if text, err := os.ReadFile(filepath.Join(h.dir, "hpa.yaml")); err != nil || !strings.Contains(string(text), "kind: HorizontalPodAutoscaler") {
		t.Errorf("%v: %s", err, text)
	}
	h.out(append(plan, "--warm", "0-1", "--rule", "warm-hours", "--manifest", "keda", "-o", "keda.yaml", "--deployment", "chat")...)
	if text, err := os.ReadFile(filepath.Join(h.dir, "keda.yaml")); err != nil || !strings.Contains(string(text), "start: 0 0 * * *") ||
		!strings.Contains(string(text), "name: chat") {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := h.try(append(plan, "--manifest", "hpa", "-o", "hpa.yaml")...); err == nil || !strings.Contains(text, "hpa.yaml exists: choose another name") {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := h.try(append(plan, "--rule", "scale-to-zero", "--cold-start", "1s", "--manifest", "hpa", "-o", "no.yaml")...); err == nil ||
		!strings.Contains(text, "an HPA cannot express") {
		t.Errorf("%v: %s", err, text)
	}
}

// What no rule meets, and a model that no machine holds, end with status 2 and say what comes nearest.
func TestServePlan_EndsWithTwoWhereNothingMeetsTheTarget(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.requests()
	h.write("times.csv", "accelerator,batch,seconds\nL4,1,0.1\n")
	h.write("long.csv", "time,input_tokens,output_tokens\n0,30000,100\n")
	for args, says := range map[string]string{
		"--model llama-3-8b --latency p99<=1ms --gpu L4:1":                                 "no rule meets p99<=1ms: the nearest is fixed, machines: ",
		"--model llama-3.1-405b --latency p99<=20s --gpu L4:1..4":                          "the model needs 234.4 GB in int4",
		"--measured times.csv --latency p99<=20s --gpu none --provider gcp --machine n1-*": "nobody measured it",
		"--measured times.csv --latency p99<=20s --machine g6.xlarge --batch 8":            "the largest batch of the measurements is 1",
		"--measured times.csv --latency p99<=20s --machine g6.xlarge --rule batched":       "no offer is planned with a batch of 2",
		"--trace long.csv --model llama-3.1-8b --latency p99<=20s --machine g6.xlarge --format fp16 --batch 8": "8 caches of 3.9 GB do not fit into the memory " +
			"beside the weights, and the largest batch that fits into an offer is 1",
	} {
		cmd := h.command(append([]string{"serve-plan", "--trace", "requests.csv"}, strings.Fields(args)...)...)
		text, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(text), says) {
			t.Errorf("%s: status %d: %s, want %q", args, cmd.ProcessState.ExitCode(), text, says)
		}
	}
}

// One file of measurements serves several questions: what no offer uses, and what several kinds share, is a note.
func TestServePlan_NotesWhichMeasurementsHold(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.requests()
	h.write("times.csv", "accelerator,batch,seconds\nL4,1,1\nL4,64,1.1\ng6.xlarge,1,0.5\nA100,1,1\nfn,1,8\n")
	for args, says := range map[string]string{
		"--machine g6.xlarge": "note: measurements that no selected offer uses: A100, L4 (",
		"--gpu L4:1":          "note: measurements of a name that the catalogue does not have: fn (",
		"--gpu A100:1":        "note: the measurements of A100 hold for 3 kinds: A100-PCIe-80GB, A100-SXM-40GB, A100-SXM-80GB;",
	} {
		text, err := h.command(append([]string{"serve-plan", "--trace", "requests.csv", "--measured", "times.csv", "--latency", "p99<=20s"},
			strings.Fields(args)...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(text), says) {
			t.Errorf("%s: %v: %s, want %q", args, err, text, says)
		}
	}
}

// Where a manifest cannot do what the plan says, it says so itself and on stderr.
func TestServePlan_NotesWhatAManifestDoesNot(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.requests()
	plan := []string{"serve-plan", "--trace", "requests.csv", "--model", "llama-3-8b", "--gpu", "L4:1", "--keep-alive", "2h", "-o"}
	for file, x := range map[string]struct{ args, says string }{
		"a.yaml": {"--latency p99<=200s --rule scale-to-zero --manifest keda", "with no pod running, no pod exports requests_in_flight"},
		"b.yaml": {"--latency p99<=200s --rule scale-to-zero --manifest keda", "only the last pod stays for 2h"},
		"c.yaml": {"--latency p99<=200s --rule autoscale --manifest hpa", "keeps an idle machine for 2h, and Kubernetes waits for 1h at most"},
		"d.yaml": {"--latency p99<=3s --rule autoscale --manifest hpa", "the plan is uncertain"},
	} {
		text, err := h.command(append(append(plan, file), strings.Fields(x.args)...)...).CombinedOutput()
		inside, _ := os.ReadFile(filepath.Join(h.dir, file))
		plain := strings.ReplaceAll(string(inside), "\n# ", " ")
		if err != nil || !strings.Contains(string(text), "note: "+file+": ") || !strings.Contains(string(text), x.says) || !strings.Contains(plain, x.says) {
			t.Errorf("%s: %v: %s\n%s, want %q", x.args, err, text, inside, x.says)
		}
	}
}

func TestServePlan_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.requests()
	h.write("bare.csv", "time\n0\n1\n")
	h.write("empty.csv", "")
	h.write("zero.csv", "time,count\n0,0\n")
	h.write("times.csv", "accelerator,batch,seconds\nL4,1,0.1\n")
	h.write("other.csv", "accelerator,batch,seconds\nZX81,1,0.1\n")
	h.write("fn.csv", "accelerator,batch,seconds\nL4,1,0.1\nfn,1,2\nfm,1,2\n")
	h.write("long.csv", "time,input_tokens,output_tokens\n0,1000,25\n")
	h.write("fn.yaml", "functions:\n  - {name: fn, memory: 2GiB, per_request: 0, per_gib_second: 0.00001, cold_start: 1s, source: example}\n")
	h.write("bad.yaml", "functions:\n  - {name: fn, memory: 2GiB, per_request: -1, per_gib_second: 0.00001, cold_start: 1s, source: example}\n")
	for args, says := range map[string]string{
		"--trace nowhere.csv --model gpt2 --latency p99<=1s":                                            "read --trace: open nowhere.csv",
		"--trace empty.csv --model gpt2 --latency p99<=1s":                                              "empty.csv: line 1: the file is empty",
		"--trace zero.csv --model gpt2 --latency p99<=1s":                                               "zero.csv: the demand is zero",
		"--trace times.csv --model gpt2 --latency p99<=1s":                                              "times.csv: line 1: \"accelerator\" begins no trace",
		"--trace bare.csv --model gpt2 --latency p99<=1s":                                               "the trace has no column input_tokens",
		"--trace bare.csv --latency p99<=1s":                                                            "--model MODEL for an estimate, or --measured FILE",
		"--trace bare.csv --model gpt99 --latency p99<=1s":                                              "is neither a file nor a published model nor a shape",
		"--trace bare.csv --measured other.csv --latency p99<=1s":                                       "--measured names \"ZX81\"",
		"--trace bare.csv --measured bare.csv --latency p99<=1s":                                        "bare.csv: line 1: \"time\" is not the header",
		"--trace bare.csv --measured times.csv --latency p99<=1s --format int8":                         "--format needs --model",
		"--trace bare.csv --measured times.csv --latency 300ms":                                         "--latency: \"300ms\" is no bound",
		"--trace bare.csv --measured times.csv --latency p99<=1s --gpu H999":                            "no on-demand offer in dollars matches --gpu H999",
		"--trace bare.csv --measured times.csv --latency p99<=1s --batch 0":                             "--batch 0: give 1 to 64",
		"--trace bare.csv --measured times.csv --latency p99<=1s --max-machines 9999":                   "--max-machines 9999: give 1 to 1000",
		"--trace bare.csv --measured times.csv --latency p99<=1s --machines 2 --max-machines 3":         "do not go together",
		"--trace bare.csv --measured times.csv --latency p99<=1s --wait -1s":                            "--wait \"-1s\" is not a span",
		"--trace bare.csv --measured times.csv --latency p99<=1s --cold-start 9999h":                    "--cold-start \"9999h\" is not a span",
		"--trace bare.csv --measured times.csv --latency p99<=1s --warm 8":                              "--warm \"8\" is no part of a day",
		"--trace bare.csv --measured times.csv --latency p99<=1s --rule fixed --warm 8-18":              "--warm is for warm-hours",
		"--trace bare.csv --measured times.csv --latency p99<=1s --batch 1 --wait 1s":                   "a batch of one request does not wait",
		"--trace bare.csv --measured times.csv --latency p99<=1s --batch 4 --rule fixed":                "--batch and --rule do not go together",
		"--trace bare.csv --measured times.csv --latency p99<=1s --poll 1s --rule fixed,batched":        "--poll is for rules that start machines",
		"--trace bare.csv --measured times.csv --latency p99<=1s --rule magic":                          "--rule \"magic\" is none of fixed",
		"--trace bare.csv --measured times.csv --latency p99<=1s --manifest helm -o a":                  "--manifest \"helm\" is none of hpa, keda",
		"--trace bare.csv --measured times.csv --latency p99<=1s --manifest keda":                       "--manifest needs --output",
		"--trace bare.csv --measured times.csv --latency p99<=1s -o a.yaml":                             "add --manifest hpa or --manifest keda",
		"--trace bare.csv --measured times.csv --latency p99<=1s --manifest keda -o a --deployment a:b": "is not the name of a Kubernetes object",
		"--trace bare.csv --measured times.csv --latency p99<=1s --manifest keda -o a --prometheus x":   "is not an address",
		"--trace bare.csv --measured times.csv --latency p99<=1s --serverless fn.yaml":                  "function fn: its time is unknown: add a row fn,1,SECONDS",
		"--trace bare.csv --measured times.csv --latency p99<=1s --serverless bad.yaml":                 "bad.yaml:2: `functions[0].per_request`",
		"--trace bare.csv --measured fn.csv --latency p99<=1s --serverless fn.yaml --machine g6.xlarge": "--measured names \"fm\"",
		"--trace bare.csv --measured times.csv --latency p99<=1s --warm 8-18":                           "its hours of the day are unknown",
		"--trace bare.csv --measured times.csv --latency p99<=1s --rule warm-hours":                     "its hours of the day are unknown",
		"--trace long.csv --model gpt2 --measured times.csv --latency p99<=1s":                          "or a model with a longer context\n",
		"--trace long.csv --model gpt2 --latency p99<=1s":                                               "--model gpt2 takes 1024 tokens, and the longest request of the trace has 1025",
	} {
		cmd := h.command(append([]string{"serve-plan"}, strings.Fields(args)...)...)
		text, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(text), says) {
			t.Errorf("scrimp serve-plan %s: status %d: %s, want %q", args, cmd.ProcessState.ExitCode(), text, says)
		}
	}
}
