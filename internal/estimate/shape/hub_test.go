package shape

import (
	"math"
	"testing"
)

func TestNamed_FindsHubNames(t *testing.T) {
	for name, want := range map[string]string{
		"meta-llama/Meta-Llama-3-8B":                  "llama-3-8b",
		"meta-llama/Llama-3.1-8B-Instruct":            "llama-3.1-8b",
		"unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit": "llama-3.1-8b",
		"meta-llama/Llama-2-7b-chat-hf":               "llama-2-7b",
		"mistralai/Mistral-7B-Instruct-v0.2":          "mistral-7b",
		"mistralai/Mixtral-8x7B-Instruct-v0.1":        "mixtral-8x7b",
		"Qwen/Qwen2.5-7B-Instruct":                    "qwen2.5-7b",
		"Qwen/Qwen3-4B-Base":                          "qwen3-4b",
		"google/gemma-2-9b-it":                        "gemma-2-9b",
		"google-bert/bert-base-uncased":               "bert-base",
		"bert-base-uncased":                           "bert-base",
		"openai-community/gpt2":                       "gpt2",
		"Llama-3.2-1B-Instruct":                       "llama-3.2-1b",
		"gpt2":                                        "gpt2",
		"google/vit-base-patch16-224":                 "vit-b-16",
		"somebody/not-a-model":                        "",
		"meta-llama/Llama-9-8B":                       "",
		"somebody/my-bert-base":                       "",
		"Qwen/Qwen2.5-VL-7B-Instruct":                 "",
		"deepseek-ai/DeepSeek-R1-Distill-Llama-8B":    "llama-3.1-8b",
		"microsoft/Phi-3.5-mini-instruct":             "phi-3-mini-4k-instruct",
		"HuggingFaceTB/SmolLM2-1.7B-Instruct":         "smollm2-1.7b",
		"TinyLlama/TinyLlama-1.1B-Chat-v1.0":          "tiny-llama",
		"mistralai/Mistral-Small-24B-Instruct-2501":   "mistral-small-24b",
	} {
		if m, ok := Named(name); m.Name != want || ok != (want != "") {
			t.Errorf("%q is taken for %q, it is %q", name, m.Name, want)
		}
	}
}

func TestHub_EveryNameFindsItsShape(t *testing.T) {
	for name, list := range hub {
		if m, ok := Published(name); !ok || m.Name != name {
			t.Errorf("%s has no shape", name)
		}
		for _, id := range list {
			if m, _ := Named(id); m.Name != name {
				t.Errorf("%s finds %q, not %s", id, m.Name, name)
			}
		}
	}
}

// The stated parameters equal those of the shape.
func TestHub_ParametersFollowFromShapes(t *testing.T) {
	for _, m := range Models() {
		if m.Kind != Transformer || !m.Gated || len(Hub(m.Name)) == 0 {
			continue
		}
		if n, _ := m.Count(1); math.Abs(n/m.Params-1) > 0.015 {
			t.Errorf("%s: %.4g counted, %.4g stated", m.Name, n, m.Params)
		}
	}
}
