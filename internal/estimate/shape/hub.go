package shape

import (
	"regexp"
	"strings"
)

// hub lists the names at huggingface.co of each shape here. Tuned forms of a model (-Instruct, -chat, -it) have its
// shape, and are found without an entry.
var hub = map[string][]string{
	"llama-7b":     {"huggyllama/llama-7b"},
	"llama-13b":    {"huggyllama/llama-13b"},
	"llama-2-7b":   {"meta-llama/Llama-2-7b-hf"},
	"llama-2-13b":  {"meta-llama/Llama-2-13b-hf"},
	"llama-2-70b":  {"meta-llama/Llama-2-70b-hf"},
	"llama-3-8b":   {"meta-llama/Meta-Llama-3-8B"},
	"llama-3-70b":  {"meta-llama/Meta-Llama-3-70B"},
	"llama-3.1-8b": {"meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"},
	"llama-3.1-70b": {
		"meta-llama/Llama-3.1-70B",
		"meta-llama/Llama-3.3-70B-Instruct",
		"deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
	},
	"llama-3.1-405b": {"meta-llama/Llama-3.1-405B"},
	"llama-3.2-1b":   {"meta-llama/Llama-3.2-1B"},
	"llama-3.2-3b":   {"meta-llama/Llama-3.2-3B"},
	"tiny-llama":     {"TinyLlama/TinyLlama-1.1B-Chat-v1.0"},
	"codellama-7b":   {"codellama/CodeLlama-7b-hf"},
	"codellama-34b":  {"codellama/CodeLlama-34b-hf"},
	"mistral-7b": {
		"mistralai/Mistral-7B-v0.1",
		"mistralai/Mistral-7B-v0.3",
		"HuggingFaceH4/zephyr-7b-beta",
	},
	"mistral-nemo-12b": {"mistralai/Mistral-Nemo-Base-2407", "mistralai/Mistral-Nemo-Instruct-2407"},
	"mistral-small-24b": {
		"mistralai/Mistral-Small-24B-Base-2501",
		"mistralai/Mistral-Small-24B-Instruct-2501",
	},
	"mixtral-8x7b":  {"mistralai/Mixtral-8x7B-v0.1"},
	"mixtral-8x22b": {"mistralai/Mixtral-8x22B-v0.1"},
	"phi-1.5":       {"microsoft/phi-1_5"},
	"phi-2":         {"microsoft/phi-2"},
	"phi-4":         {"microsoft/phi-4"},
	"phi-3-mini-4k-instruct": {
		"microsoft/Phi-3-mini-4k-instruct",
		"microsoft/Phi-3-mini-128k-instruct",
		"microsoft/Phi-3.5-mini-instruct",
	},
	"phi-3-medium-4k-instruct": {"microsoft/Phi-3-medium-4k-instruct"},
	"qwen2-7b":                 {"Qwen/Qwen2-7B"},
	"qwen2.5-0.5b":             {"Qwen/Qwen2.5-0.5B"},
	"qwen2.5-1.5b":             {"Qwen/Qwen2.5-1.5B"},
	"qwen2.5-3b":               {"Qwen/Qwen2.5-3B"},
	"qwen2.5-7b": {
		"Qwen/Qwen2.5-7B",
		"Qwen/Qwen2.5-Coder-7B",
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
	},
	"qwen2.5-14b": {"Qwen/Qwen2.5-14B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"},
	"qwen2.5-32b": {
		"Qwen/Qwen2.5-32B",
		"Qwen/Qwen2.5-Coder-32B",
		"Qwen/QwQ-32B",
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
	},
	"qwen2.5-72b":            {"Qwen/Qwen2.5-72B"},
	"qwen3-0.6b":             {"Qwen/Qwen3-0.6B"},
	"qwen3-1.7b":             {"Qwen/Qwen3-1.7B"},
	"qwen3-4b":               {"Qwen/Qwen3-4B"},
	"qwen3-8b":               {"Qwen/Qwen3-8B"},
	"qwen3-14b":              {"Qwen/Qwen3-14B"},
	"qwen3-32b":              {"Qwen/Qwen3-32B"},
	"qwen3-30b-a3b":          {"Qwen/Qwen3-30B-A3B"},
	"qwen3-235b-a22b":        {"Qwen/Qwen3-235B-A22B"},
	"gemma-2b":               {"google/gemma-2b"},
	"gemma-7b":               {"google/gemma-7b"},
	"gemma-2-2b":             {"google/gemma-2-2b"},
	"gemma-2-9b":             {"google/gemma-2-9b"},
	"gemma-2-27b":            {"google/gemma-2-27b"},
	"falcon-7b":              {"tiiuae/falcon-7b"},
	"falcon-40b":             {"tiiuae/falcon-40b"},
	"falcon-180b":            {"tiiuae/falcon-180B"},
	"stablelm-base-alpha-3b": {"stabilityai/stablelm-base-alpha-3b"},
	"stablelm-base-alpha-7b": {"stabilityai/stablelm-base-alpha-7b"},
	"pythia-1b":              {"EleutherAI/pythia-1b"},
	"pythia-6.9b":            {"EleutherAI/pythia-6.9b"},
	"pythia-12b":             {"EleutherAI/pythia-12b"},
	"gpt-j-6b":               {"EleutherAI/gpt-j-6b"},
	"gpt2":                   {"openai-community/gpt2"},
	"gpt2-medium":            {"openai-community/gpt2-medium"},
	"gpt2-large":             {"openai-community/gpt2-large"},
	"gpt2-xl":                {"openai-community/gpt2-xl"},
	"gpt-oss-20b":            {"openai/gpt-oss-20b"},
	"gpt-oss-120b":           {"openai/gpt-oss-120b"},
	"bloom-176b":             {"bigscience/bloom"},
	"mpt-7b":                 {"mosaicml/mpt-7b"},
	"mpt-30b":                {"mosaicml/mpt-30b"},
	"smollm2-135m":           {"HuggingFaceTB/SmolLM2-135M"},
	"smollm2-360m":           {"HuggingFaceTB/SmolLM2-360M"},
	"smollm2-1.7b":           {"HuggingFaceTB/SmolLM2-1.7B"},
	"olmo-2-7b":              {"allenai/OLMo-2-1124-7B"},
	"deepseek-v3":            {"deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1"},
	"bert-base":              {"google-bert/bert-base-uncased", "google-bert/bert-base-cased"},
	"bert-large":             {"google-bert/bert-large-uncased", "google-bert/bert-large-cased"},
	"roberta-base":           {"FacebookAI/roberta-base"},
	"distilbert":             {"distilbert/distilbert-base-uncased"},
	"resnet-18":              {"microsoft/resnet-18"},
	"resnet-34":              {"microsoft/resnet-34"},
	"resnet-50":              {"microsoft/resnet-50", "timm/resnet50"},
	"resnet-101":             {"microsoft/resnet-101"},
	"resnet-152":             {"microsoft/resnet-152"},
	"vit-b-16":               {"google/vit-base-patch16-224"},
	"convnext-tiny":          {"facebook/convnext-tiny-224"},
	"efficientnet-b0":        {"google/efficientnet-b0"},
	"efficientnet-b4":        {"google/efficientnet-b4"},
	"mobilenet-v2":           {"google/mobilenet_v2_1.0_224"},
}

// hubs maps the names at the hub, with and without owner, to shapes.
var hubs = func() map[string]string {
	m := map[string]string{}
	for name, list := range hub {
		for _, id := range list {
			_, short, _ := strings.Cut(id, "/")
			m[Key(id)], m[Key(short)] = name, name
		}
	}
	return m
}()

// tuned matches endings of names that change the weights but not the shape: how and when a model was tuned, and its
// storage format.
var tuned = regexp.MustCompile(`(?i)[-_](instruct|chat|it|base|hf|sft|dpo|v[0-9.]+|[0-9]{4}|` +
	`(un)?cased|bnb-4bit|unsloth|awq|gptq|fp8|bf16)$`)

// Hub returns a published model's names at huggingface.co, or none.
func Hub(name string) []string { return hub[name] }

// Named returns the published model of a name: its own, its name at the hub, or that of a tuned form at the hub by any
// owner: unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit is llama-3.1-8b.
func Named(name string) (Model, bool) {
	if m, ok := Published(name); ok {
		return m, true
	}
	owner, short, owned := strings.Cut(name, "/")
	if !owned {
		owner, short = "", name
	}
	for {
		if n, ok := hubs[Key(owner+short)]; ok {
			return Published(n)
		}
		if n, ok := hubs[Key(short)]; ok {
			return Published(n)
		}
		if m, ok := shapes[Key(short)]; ok {
			return m, true
		}
		less := tuned.ReplaceAllString(short, "")
		if less == short {
			break
		}
		short = less
	}
	if rest, ok := strings.CutPrefix(strings.ToLower(short), "meta-"); ok {
		return Named(rest)
	}
	return Model{}, false
}
