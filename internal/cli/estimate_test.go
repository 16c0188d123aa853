package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/cli"
	"scrimp/internal/test/must"
)

// scrimp runs the program in this process, on an empty data folder.
func scrimp(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = cli.Main(append([]string{"--data", t.TempDir()}, args...), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

const runsHead = "id,family,task,model,params_b,layers,d_model,n_heads,n_kv_heads,d_ff,vocab,gpu,gpu_spec,gpu_mem_gb,n_gpus,precision,seq_len,micro_batch,global_batch,act_ckpt,sharding,fwd_gmacs,rows,trees,depth,machine,throughput,throughput_unit,peak_mem_gb,mem_unit,tokens_b,quality,source\n"

// A batch in the form of the published measurements gets one object per row, in the row's units, with null only for
// what cannot be known.
func TestEstimate_AnswersBatchRowByRow(t *testing.T) {
	t.Parallel()
	learn := write(t, "calib.csv", runsHead+
		"a,transformer-dense,pretrain,mine,7,32,4096,32,32,11008,32000,A100-SXM-80GB,A100-SXM-80GB,80,8,bf16,2048,4,32,none,FULL_SHARD,,,,,,20000,tokens/s,60,GB,,A,ours\n")
	ask := write(t, "rows.csv", runsHead+
		"q1,transformer-dense,pretrain,mine,7,32,4096,32,32,11008,32000,A100-SXM-80GB,A100-SXM-80GB,80,16,bf16,2048,4,64,none,FULL_SHARD,,,,,,,tokens/s,,GiB,2,,ours\n"+
		"q2,gbdt,train,xgboost,,,,,,,,V100-SXM2-16GB,V100-SXM2-16GB,16,1,,,,,,,,1000000,100,10,p3.2xlarge,,row-trees/s,,,,,other\n"+
		"q3,transformer-dense,pretrain,mine,7,32,4096,32,32,11008,32000,A100-SXM-80GB,A100-SXM-80GB,80,,bf16,2048,4,64,none,FULL_SHARD,,,,,,,tokens/s,,GiB,2,,ours\n")
	out, errOut, code := scrimp(t, "estimate", "--batch", ask, "--calibrate", learn, "--json")
	if code != 0 {
		t.Fatal(errOut)
	}
	type span struct{ Value, Low, High float64 }
	type line struct {
		ID         string
		Throughput *span
		Hours      *span
		Memory     *span `json:"peak_memory_gb"`
		Cost       *span `json:"cost_usd"`
		Fits       *bool
		Provenance string
	}
	got := map[string]line{}
	for l := range strings.Lines(out) {
		var raw map[string]any
		must.Do(t, json.Unmarshal([]byte(l), &raw))
		for _, k := range []string{"id", "throughput", "hours", "peak_memory_gb", "cost_usd", "fits", "provenance"} {
			if _, ok := raw[k]; !ok {
				t.Errorf("%s is missing in %s", k, l)
			}
		}
		var v line
		must.Do(t, json.Unmarshal([]byte(l), &v))
		got[v.ID] = v
	}
	q1, q2, q3 := got["q1"], got["q2"], got["q3"]
	if q1.Throughput == nil || q1.Throughput.Value < 33000 || q1.Throughput.Value > 42000 {
		t.Errorf("twice the accelerators of a run at 20000 tokens/s: %+v", q1.Throughput)
	}
	if q1.Hours == nil || q1.Cost == nil || q1.Fits == nil || q1.Memory == nil || !strings.Contains(q1.Provenance, "mine on 8 A100-SXM-80GB") {
		t.Errorf("%+v", q1)
	}
	if q2.Throughput == nil || q2.Hours == nil || q2.Fits != nil {
		t.Errorf("boosted trees: %+v", q2)
	}
	if q3.Throughput != nil || q3.Hours != nil || !strings.Contains(q3.Provenance, "how many accelerators is not stated") {
		t.Errorf("a row without its number of accelerators: %+v", q3)
	}
}

func TestEstimate_EveryKindOfModel(t *testing.T) {
	t.Parallel()
	config := write(t, "config.json", `{"model_type":"llama","hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":8192,"vocab_size":128256,"hidden_act":"silu","tie_word_embeddings":true}`)
	for _, args := range [][]string{
		{"--model", "llama-3-8b", "--tokens", "2B", "--precision", "bf16", "--gpu", "H100-SXM:8", "--zero", "3"},
		{"--model", config, "--tokens", "100M", "--lora", "--gpu", "L4"},
		{"--model", "transformer layers=12 dim=768 vocab=50257", "--seq", "1024", "--tokens", "1B", "--gpu", "T4:4"},
		{"--model", "cnn gmacs=4.1 activations=11.1 params=25.6M", "--rows", "1.28M", "--epochs", "90", "--resize", "128:0.5,224:0.5", "--gpu", "A10G", "--runs", "40", "--per", "week"},
		{"--model", "trees", "--rows", "10M", "--trees", "500", "--depth", "8", "--gpu", "T4"},
		{"--model", "measured: 120 samples/s on L4", "--rows", "1M", "--epochs", "3", "--gpu", "A10G"},
	} {
		out, errOut, code := scrimp(t, append([]string{"estimate", "--json"}, args...)...)
		var v struct {
			Throughput, Hours *struct{ Value, Low, High float64 }
			Cost              *struct{ Value float64 } `json:"cost_usd"`
			Programme         *struct {
				Year *struct{ Value float64 } `json:"year_usd"`
			}
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
			t.Fatalf("%v: %v %s%s", args, err, out, errOut)
		}
		if v.Throughput == nil || v.Hours == nil || v.Cost == nil || v.Hours.Low >= v.Hours.High || v.Cost.Value <= 0 {
			t.Errorf("%v: %s", args, out)
		}
		if args[len(args)-1] == "week" && (v.Programme == nil || v.Programme.Year == nil || v.Programme.Year.Value < 2000*v.Cost.Value) {
			t.Errorf("40 runs a week are %+v a year at %+v each", v.Programme, v.Cost)
		}
	}
}

// If a run does not fit, the answer does not suggest the flag that was given, and it proposes 4 bits if 16 do not fit.
func TestEstimate_DoesNotSuggestGivenFlag(t *testing.T) {
	t.Parallel()
	out, errOut, code := scrimp(t, "estimate", "--model", "meta-llama/Llama-3.1-8B-Instruct", "--tokens", "1B", "--gpu", "V100-16GB:1", "--lora")
	if code != 0 || strings.Contains(out, "--gpu") || !strings.Contains(out, "No V100-16GB:1 holds llama-3.1-8b") || !strings.Contains(out, "\n  --qlora  ") {
		t.Errorf("%d %s\n%s", code, errOut, out)
	}
	if _, errOut, code = scrimp(t, "estimate", "--model", "gpt2", "--gpu", "V100", "--precision", "fp8"); code != 1 || !strings.Contains(errOut, "multiplies no fp8") {
		t.Errorf("%d %s", code, errOut)
	}
	if _, errOut, code = scrimp(t, "estimate", "--model", "gpt2", "--gpu", "Inferentia2:1"); code != 1 || !strings.Contains(errOut, "trains none") {
		t.Errorf("%d %s", code, errOut)
	}
	out, errOut, code = scrimp(t, "estimate", "--model", "gpt2", "--tokens", "1B", "--gpu", "A10G:8")
	if code != 0 || !strings.Contains(out, "aws g5.48xlarge, 8 × A10G, 192 processors") || !strings.Contains(out, "$16.29 an hour") {
		t.Errorf("%d %s\n%s", code, errOut, out)
	}
	out, errOut, code = scrimp(t, "estimate", "--model", "trees features=200", "--rows", "10M", "--trees", "500", "--gpu", "T4")
	if code != 0 || strings.Contains(out, "--features") || strings.Contains(out, "bf16") {
		t.Errorf("%d %s\n%s", code, errOut, out)
	}
}

func TestEstimate_ListsPublishedModels(t *testing.T) {
	t.Parallel()
	out, errOut, code := scrimp(t, "estimate", "--models")
	if code != 0 || !strings.Contains(out, "meta-llama/Llama-3.1-8B") || !strings.Contains(out, "resnet-50") {
		t.Errorf("%d %s\n%s", code, errOut, out)
	}
	out, _, code = scrimp(t, "estimate", "--models", "--json")
	var first struct {
		Name string
		Hub  []string
	}
	if err := json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &first); err != nil || code != 0 || first.Name == "" || len(first.Hub) == 0 {
		t.Errorf("%v %d %+v", err, code, first)
	}
}

// A script gets more than an empty list of accelerators.
func TestEstimate_ReportsModelThatNothingHolds(t *testing.T) {
	t.Parallel()
	out, errOut, code := scrimp(t, "estimate", "--model", "transformer params=900e9 layers=100 dim=16384", "--json")
	if code != 0 || out != "" || !strings.HasPrefix(errOut, "No accelerator that has a price holds transformer") {
		t.Errorf("%d, %q, %q", code, out, errOut)
	}
}

func TestEstimate_RefusesInvalidInput(t *testing.T) {
	t.Parallel()
	png := write(t, "model.onnx", "\x89PNG\r\n")
	for want, args := range map[string][]string{
		"nothing to estimate":   {},
		"is neither a file nor": {"--model", "llama-99"},
		"model.onnx":            {"--model", png},
		"--tokens":              {"--model", "llama-3-8b", "--tokens", "lots"},
		"nothing is known":      {"--model", "llama-3-8b", "--gpu", "Abacus:8"},
		"price (--price) of -3": {"--model", "llama-3-8b", "--gpu", "L4", "--price", "-3"},
		"give one":              {"--model", "llama-3-8b", "--lora", "--qlora"},
		"--precision":           {"--model", "llama-3-8b", "--precision", "fp7"},
		"--resize":              {"--model", "resnet-50", "--resize", "wide"},
		"--per":                 {"--model", "resnet-50", "--per", "fortnight"},
		"read runs":             {"--batch", filepath.Join(t.TempDir(), "none.csv")},
		"this is not a table":   {"--batch", write(t, "x.csv", "a,b\n1,2\n")},
	} {
		_, errOut, code := scrimp(t, append([]string{"estimate"}, args...)...)
		if code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("%v: status %d, %q, want %q", args, code, errOut, want)
		}
	}
}

// H100 is sold in three forms, and all of them are weighed. If a run does not fit, the answer names the flags that make
// it fit, and those that cost less than the table's first row.
func TestEstimate_WeighsAllFormsAndProposesFlags(t *testing.T) {
	t.Parallel()
	out, errOut, code := scrimp(t, "estimate", "--model", "llama-3-8b", "--tokens", "2B", "--gpu", "H100:8", "--zero", "3", "--json")
	if n := strings.Count(out, "\n"); code != 0 || n < 2 || strings.Count(out, `"accelerator":"H100-`) != n || strings.Count(out, `"count":8`) != n {
		t.Errorf("%d %s\n%s", code, errOut, out)
	}
	for what, c := range map[string]struct {
		args  []string
		flags []string
		not   string
	}{
		"what does not fit":          {[]string{"--gpu", "H100:8"}, []string{"--zero 3", "--lora"}, ""},
		"one that does not fit":      {[]string{"--gpu", "A10G:8"}, []string{"--zero 3 --checkpointing full", "--qlora  "}, "--lora  "},
		"what fits and is dear":      {nil, []string{"--zero 3", "--qlora"}, ""},
		"what is as small as can be": {[]string{"--qlora", "--zero", "3", "--checkpointing", "full", "--gpu", "H100:8"}, nil, "It would fit"},
	} {
		out, errOut, code := scrimp(t, append([]string{"estimate", "--model", "llama-3-8b", "--tokens", "2B"}, c.args...)...)
		if code != 0 || c.not != "" && strings.Contains(out, c.not) {
			t.Errorf("%s: %d %s\n%s", what, code, errOut, out)
		}
		for _, f := range c.flags {
			if !strings.Contains(out, "\n  "+f+" ") {
				t.Errorf("%s: %s is not proposed:\n%s", what, f, out)
			}
		}
	}
	if _, errOut, code := scrimp(t, "estimate", "--model", "llama-3-8b", "--gpu", "H1000"); code != 1 || !strings.Contains(errOut, "nothing is known") {
		t.Errorf("%d %s", code, errOut)
	}
}

// What a first reader of estimates asks: does QLoRA of 8B fit 24 GB as its programs run it, why is one form of an H100 ten
// times slower than another, what is it on spot, and what does sharing mean on one accelerator.
func TestEstimate_AnswersFirstQuestions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		code     int
		want, no string
	}{
		"QLoRA recomputes by default": {[]string{"--qlora", "--tokens", "10M", "--gpu", "A10G:1"}, 0, ", fits", "does not fit"},
		"unless told not to": {[]string{"--qlora", "--tokens", "10M", "--gpu", "A10G:1", "--checkpointing", "none"}, 0,
			"does not fit", ", fits\n"},
		"several machines are named": {[]string{"--tokens", "2B", "--gpu", "H100:8", "--zero", "3"}, 0,
			"8 × H100-NVL-94GB are 4 machines of 2 (azure Standard_NC80adis_H100_v5), joined by ", ""},
		"spot beside on-demand":   {[]string{"--lora", "--tokens", "2B", "--gpu", "L4:1"}, 0, "on spot", ""},
		"in the table too":        {[]string{"--qlora", "--tokens", "10M"}, 0, "ON SPOT", ""},
		"one has nobody to share": {[]string{"--zero", "3", "--gpu", "A10G:1"}, 1, "give --gpu A10G:2", ""},
		"nor is sharing proposed": {[]string{"--lora", "--tokens", "1M", "--gpu", "L4"}, 0, "--checkpointing full", "--zero 3 --checkpointing full"},
		"a part has no estimate":  {[]string{"--gpu", "L4-part", "--tokens", "1M"}, 1, "nothing is known of", ""},
	} {
		out, errs, code := scrimp(t, append([]string{"estimate", "--model", "llama-3-8b"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) || c.no != "" && strings.Contains(out, c.no) {
			t.Errorf("%s: %d %s\n%s", name, code, errs, out)
		}
	}
}
