package shape

// contexts are the tokens of the longest sequence of published models: max_position_embeddings of their config.json,
// or n_positions. A model whose positions have no such bound (ALiBi: BLOOM, MPT) is left out.
var contexts = map[float64][]string{
	512:  {"bert-base", "bert-large", "roberta-base", "distilbert"},
	1024: {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"},
	2048: {"llama-7b", "llama-13b", "llama-33b", "llama-65b", "tiny-llama", "phi-1.5", "phi-2", "pythia-1b", "pythia-6.9b",
		"pythia-12b", "gpt-j-6b", "gpt3-175b", "falcon-7b", "falcon-40b", "falcon-180b"},
	4096: {"llama-2-7b", "llama-2-13b", "llama-2-70b", "phi-3-mini-4k-instruct", "phi-3-medium-4k-instruct", "olmo-2-7b",
		"stablelm-base-alpha-3b", "stablelm-base-alpha-7b"},
	8192: {"llama-3-8b", "llama-3-70b", "gemma-2b", "gemma-7b", "gemma-2-2b", "gemma-2-9b", "gemma-2-27b", "smollm2-135m",
		"smollm2-360m", "smollm2-1.7b"},
	16_384: {"codellama-7b", "codellama-34b", "phi-4"},
	32_768: {"mistral-7b", "mistral-small-24b", "mixtral-8x7b", "qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-3b"},
	40_960: {"qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen3-32b", "qwen3-30b-a3b",
		"qwen3-235b-a22b"},
	65_536: {"mixtral-8x22b"},
	131_072: {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-1b", "llama-3.2-3b", "qwen2-7b", "qwen2.5-7b",
		"qwen2.5-14b", "qwen2.5-32b", "qwen2.5-72b", "gpt-oss-20b", "gpt-oss-120b"},
	163_840: {"deepseek-v3"},
}

// longest is the tokens of the longest sequence of each published model, by its plain name.
var longest = func() map[string]float64 {
	all := map[string]float64{}
	for most, names := range contexts {
		for _, name := range names {
			all[Key(name)] = most
		}
	}
	return all
}()

// Context returns the tokens that a model reads and writes at most: what its own file says, or else what is published
// under its name. It is false where neither is known.
func (m Model) Context() (float64, bool) {
	if m.Most > 0 {
		return m.Most, true
	}
	most, ok := longest[Key(m.Name)]
	return most, ok
}
