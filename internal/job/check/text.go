package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// place is a line of the job file or of a program.
type place struct {
	name string // command, env, any_of, or a file with its line
	text string
	file bool
}

// lines returns the program's command and settings, followed by the programs' lines.
func (c *Case) lines() []place {
	var list []place
	add := func(name, text string) {
		if text != "" {
			list = append(list, place{name: name, text: text})
		}
	}
	env := func(name string, vars map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(vars)) {
			add(name, k+"="+vars[k])
		}
	}
	add("command", c.Job.Command)
	add("args", strings.Join(c.Job.Args, " "))
	env("env", c.Job.Env)
	for _, v := range c.Job.AnyOf {
		add("any_of", strings.Join(v.Args, " "))
		env("any_of", v.Env)
	}
	for _, t := range c.Texts {
		n := 0
		for line := range strings.Lines(t.Body) {
			n++
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//") {
				continue
			}
			list = append(list, place{name: fmt.Sprintf("%s:%d", t.Name, n), text: line, file: true})
		}
	}
	return list
}

// mention is a match of a pattern.
type mention struct {
	where string // "train.py:12 `autocast`"
	value string // the pattern's last group
	off   bool   // it is disabled there
	only  bool   // a program has such a flag, but the command does not pass it
}

var (
	offForm  = regexp.MustCompile(`(?i)^["']?\s*[=:,]?\s*["']?(false|no|off|none|0|32|fp32)\b`)
	flagForm = regexp.MustCompile(`add_argument\(|click\.option|flags?\.(Bool|String|Int|DEFINE)|DEFINE_`)
)

// find returns the best mention of a pattern. A passed setting beats one in a program, an enabled one beats a disabled
// one, and both beat a mere flag.
func (c *Case) find(re *regexp.Regexp) (mention, bool) {
	var best mention
	found := false
	rank := func(m mention) int {
		switch {
		case m.only:
			return 0
		case m.off:
			return 1
		}
		return 2
	}
	for _, p := range c.places {
		m := re.FindStringSubmatchIndex(p.text)
		if m == nil {
			continue
		}
		text := p.text[m[0]:m[1]]
		got := mention{where: fmt.Sprintf("%s `%s`", p.name, clip(text)), only: p.file && flagForm.MatchString(p.text),
			off: offForm.MatchString(p.text[m[1]:])}
		if n := len(m); n > 2 && m[n-2] >= 0 {
			got.value = p.text[m[n-2]:m[n-1]]
		}
		if !found || rank(got) > rank(best) {
			best, found = got, true
		}
	}
	return best, found
}

func clip(s string) string {
	if r := []rune(strings.TrimSpace(s)); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return strings.TrimSpace(s)
}

// Names that programs and their flags use.
var (
	precisionForm = regexp.MustCompile(
		`(?i)(\bbf16(?:-mixed|-true)?\b|\bfp16\b|\bfp8\b|\bnvfp4\b|bfloat16|float16|\b16-mixed\b|autocast|` +
			`GradScaler|--amp\b|amp\.initialize|--half\b|mixed_float16|mixed_bfloat16)`)
	fullForm  = regexp.MustCompile(`(?i)(precision[ =:"']+(?:32|fp32|float32|no)\b|--no-amp\b|--fp32\b)`)
	accumForm = regexp.MustCompile(
		`(?i)(?:gradient[_-]accumulation[_-]steps|accumulate[_-]grad[_-]batches|grad[_-]accum\w*|accum(?:` +
			`ulation)?[_-]steps|--accum\w*|(?:^|\s)ACCUM\w*)["']?[ =:,]*["']?(\d+|auto)?`)
	earlyForm = regexp.MustCompile(`(?i)(early[_-]?stop\w*|\bpatience\b)`)
	cacheForm = regexp.MustCompile(
		`(?i)(HF_DATASETS_CACHE|HF_HOME|cache[_-]dir|StreamingDataset|local_cache|--cache\b|\.cache\()`)
	remoteForm = regexp.MustCompile(`(?i)\b((?:s3|gs|gcs|az|abfs|hf)://[^\s"']+|load_dataset\()`)
	quantForm  = regexp.MustCompile(
		`(?i)(\bawq\b|\bgptq\b|\bint8\b|\bint4\b|\bnf4\b|load_in_[48]bit|bitsandbytes|--quantization\b|gguf|` +
			`quantize_dynamic|\bq[458]_[k0]\w*)`)
	onnxForm     = regexp.MustCompile(`(?i)(onnx\w*|tensorrt\w*|trtexec|openvino|torch\.compile|torch\.export)`)
	batchingForm = regexp.MustCompile(
		`(?i)(\bvllm\b|text-generation-launcher|tritonserver|dynamic_batching|max_batch_delay|batch[_-]timeout|` +
			`sglang|lmdeploy|--max-num-seqs)`)
	scaleForm = regexp.MustCompile(
		`(?i)(min[_-]?replicas|scale[_-]to[_-]zero|knative|autoscal\w+|HorizontalPodAutoscaler|keda)["']?[ =:]*["']?(\d+)?`)
)
