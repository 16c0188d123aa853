package shape

// contexts lists published models by the longest sequence that they accept, in tokens: max_position_embeddings, or
// n_positions, of the config.json that their authors publish, the larger one where the versions of a name differ.
// Models without such a bound (ALiBi: BLOOM, MPT) are not listed. A model's own file overrides the list.
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
	32_768: {"mistral-7b", "mistral-small-24b", "mixtral-8x7b", "qwen2.5-0.5b", "qwen2.5-3b"},
	40_960: {"qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen3-32b", "qwen3-30b-a3b",
		"qwen3-235b-a22b"},
	65_536: {"mixtral-8x22b"},
	131_072: {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-1b", "llama-3.2-3b", "qwen2-7b",
		"qwen2.5-1.5b", "qwen2.5-7b",
		"qwen2.5-14b", "qwen2.5-32b", "qwen2.5-72b", "gpt-oss-20b", "gpt-oss-120b"},
	163_840: {"deepseek-v3"},
}

// longest maps the plain name of each listed model to its longest sequence, in tokens.
var longest = func() map[string]float64 {
	all := map[string]float64{}
	for most, names := range contexts {
		for _, name := range names {
			all[Key(name)] = most
		}
	}
	return all
}()

// Context returns the most tokens that a model can read and write in one sequence: the value of its own file, or the
// published one of its name. ok is false if neither is known.
func (m Model) Context() (float64, bool) {
	if m.Most > 0 {
		return m.Most, true
	}
	most, ok := longest[Key(m.Name)]
	return most, ok
}
