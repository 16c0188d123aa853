package class

import "strings"

// frameworks maps words to frameworks. The first match wins: special frameworks precede the library that they use.
var frameworks = []struct {
	is    Framework
	words []string
}{
	{Lightning, []string{"lightning", "litgpt"}},
	{HuggingFace, []string{"transformers", "huggingface", "accelerate launch", "trainingarguments", "run_clm",
		"run_glue", "trl "}},
	{TensorFlow, []string{"tensorflow", "keras"}},
	{PyTorch, []string{"torch"}},
}

// FrameworkOf guesses the framework from texts such as the command, its output, and operators of a profile; empty if
// they do not tell.
func FrameworkOf(texts ...string) Framework {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for _, f := range frameworks {
		for _, w := range f.words {
			if strings.Contains(all, w) {
				return f.is
			}
		}
	}
	if strings.Contains(all, "aten::") {
		return PyTorch
	}
	return ""
}
