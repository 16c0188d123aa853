// Package fact lists what a user may state about a job where scrimp has no other source, and parses it.
package fact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/nearest"
)

// Fact is a statement that the user may make if there is no other source.
type Fact struct {
	Name, Doc, Example string
	form               form
}

// A form is a set of accepted values.
type form struct {
	values *regexp.Regexp
	sound  func(value string) bool // nil: all of values
	says   string                  // what to write, with the bounds
}

// mostSpan bounds the spans that a user may state.
const mostSpan = 1000 * time.Hour

var (
	yesNo = form{regexp.MustCompile(`^(?i:yes|no|true|false)$`), nil, "yes or no"}
	// Only number formats used for computation count as a fact.
	trained = form{values: regexp.MustCompile(
		`^(?i:no|32|fp32|float32|tf32|16|fp16|float16|half|bf16|bfloat16|(bf)?16-(mixed|true)|(mixed_)?b?float16|` +
			`amp|amp_(bf|fp)16|mixed|fp8|mxfp8|fp4|mxfp4|nvfp4)$`), says: "a format such as fp32, tf32, fp16, bf16 or fp8"}
	deployedIn = form{values: regexp.MustCompile(
		`^(?i:yes|true|no|none|false|u?int[2-8]|fp[468]|mxfp[468]|nvfp4|nf4|[2-8][- ]?bit|awq|gptq|gguf|hqq|` +
			`w\d{1,2}a\d{1,2}|i?q[2-8](_\w{1,8})?|32|fp32|float32|tf32|16|fp16|float16|bf16|bfloat16)$`),
		says: "no, or a format such as int8, fp8, nf4, awq or bf16"}
	wide = regexp.MustCompile(`^(?i:32|fp32|float32|tf32|16|fp16|float16|bf16|bfloat16)$`)
	span = form{regexp.MustCompile(`^\d+(\.\d+)?(ms|s|m|h)$`), func(v string) bool {
		d, err := time.ParseDuration(v)
		return err == nil && d <= mostSpan
	}, "a time with its unit (ms, s, m or h), up to 1000h"}
	share = form{regexp.MustCompile(`^(\d{1,2}(\.\d+)?|100) ?%$|^0?\.\d+$|^1(\.0+)?$`), nil,
		"a share from 0% to 100%, or from 0.0 to 1.0"}
	number = form{regexp.MustCompile(`^\d{1,12}(\.\d{1,6})?$`), nil,
		"a number from 0 to 999999999999, with at most six decimals"}
	day = form{regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`), func(v string) bool {
		_, err := time.Parse(time.DateOnly, v)
		return err == nil
	}, "a day of the calendar, as YYYY-MM-DD"}
)

// All lists all facts that a user may state.
var All = []Fact{
	{"precision", "number format of the matrix products (fp32, tf32, fp16, bf16, fp8, …)", "bf16", trained},
	{"accumulation", "micro-batches a step", "4", number},
	{"early_stopping", "whether the program stops itself on a plateau", "yes", yesNo},
	{"resume", "how long a machine takes until the program goes on from a checkpoint", "90s", span},
	{"data_same_region", "whether the data lies where the job runs", "yes", yesNo},
	{"data_cached", "whether a second attempt finds the data on its machine or in a cache beside it", "yes", yesNo},
	{"subset_run", "whether a small part of the data went through first", "yes", yesNo},
	{"utilisation", "mean utilisation of the accelerators in earlier runs", "82%", share},
	{"quantised", "number format of the model that is deployed (int8, fp8, nf4, awq, bf16, …), or no", "int8", deployedIn},
	{"pruning", "whether pruning was weighed", "yes", yesNo},
	{"distillation", "whether distillation was weighed", "yes", yesNo},
	{"onnx", "whether it is deployed in ONNX or a compiled form", "yes", yesNo},
	{"predictions_per_second", "what one machine serves", "120", number},
	{"scale_to_zero", "whether the service scales with its load, down to none", "yes", yesNo},
	{"dynamic_batching", "whether requests are served in batches", "yes", yesNo},
	{"data_versioned", "whether the version of the data is recorded", "yes", yesNo},
	{"data_checked", "whether labels, duplicates and leaks between training and test data were checked", "yes", yesNo},
	{"baseline", "whether a simple baseline was measured", "yes", yesNo},
	{"held_out", "whether quality was measured on data that training never saw", "yes", yesNo},
	{"seeds", "runs with different seeds behind the reported quality", "3", number},
	{"latency", "95th percentile of a request's time, measured under load", "80ms", span},
	{"latency_goal", "95th percentile of a request's time that users need", "100ms", span},
	{"rollback", "whether the previous model can be put back at once", "yes", yesNo},
	{"drift", "whether drift of inputs and quality is watched", "yes", yesNo},
	{"cold_start", "time from no replica to the first answer", "40s", span},
	{"reviewed", "day of the last review of utilisation and size", "2026-11-02", day},
	{"alerts", "whether cost and failures of the service raise alerts", "yes", yesNo},
	{"data_rights", "whether license, source and consent of the data are recorded", "yes", yesNo},
	{"personal_data", "whether personal data was removed, or may be used", "yes", yesNo},
	{"code_versioned", "whether the version of the program is recorded", "yes", yesNo},
	{"model_card", "whether purpose, data and limits of the model are written down", "yes", yesNo},
	{"parity", "whether the deployed model gives the answers of the trained one", "yes", yesNo},
	{"peak_requests", "requests a second at the peak", "300", number},
	{"health", "whether a replica that hangs is restarted", "yes", yesNo},
	{"commitment", "whether a commitment was weighed for the steady part of the use", "yes", yesNo},
	{"production_tags", "whether what serves it is tagged with its owner", "yes", yesNo},
}

// Parse parses name=value. Its error names the value, what is allowed, and an example.
func Parse(s string) (name, value string, err error) {
	name, value, ok := strings.Cut(s, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	i := slices.IndexFunc(All, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return "", "", unknown(name)
	}
	f := All[i]
	if !ok || !f.form.values.MatchString(value) || f.form.sound != nil && !f.form.sound(value) {
		return "", "", fmt.Errorf("%s=%.60s: write %s, such as %s=%s (%s)", name, value, f.form.says, name, f.Example, f.Doc)
	}
	return name, value, nil
}

// unknown returns the error for a fact that does not exist.
func unknown(name string) error {
	var names []string
	for _, f := range All {
		names = append(names, f.Name)
	}
	if near := nearest.Of(name, names); near != "" {
		return fmt.Errorf("%.60q is not a fact: did you mean %s? scrimp check --help lists all", name, near)
	}
	return fmt.Errorf("%.60q is not a fact: use one of %s", name, strings.Join(names, ", "))
}

// Supply asks for a fact.
func Supply(name string) string {
	i := slices.IndexFunc(All, func(f Fact) bool { return f.Name == name })
	return fmt.Sprintf("say it with --fact %s=%s", name, All[i].Example)
}

// Wide reports whether a number format has 16 bits or more.
func Wide(format string) bool { return wide.MatchString(format) }
