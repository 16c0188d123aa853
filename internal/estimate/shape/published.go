package shape

import (
	"strings"
)

// Sources of the public shapes. Nothing here was fitted.
const (
	hf   = "the model's config.json at huggingface.co"
	timm = "timm, results/benchmark tables (GMACs and activations at the training resolution)"
	tv   = "torchvision, documentation of the pretrained weights (GFLOPS column, multiply-adds)"
	dle  = "NVIDIA DeepLearningExamples, model configuration of the README"
)

// llama returns a dense transformer with grouped queries and a gated feed-forward.
func llama(name string, params, l, d, h, kv, ff, v float64) Model {
	return Model{Name: name, Kind: Transformer, Params: params * 1e9, Layers: l, Dim: d, Heads: h, KV: kv, FF: ff,
		Vocab: v, Gated: true, Source: hf}
}

// gpt returns a dense transformer with a plain feed-forward of four widths.
func gpt(name string, params, l, d, h, v float64, tied bool, source string) Model {
	return Model{Name: name, Kind: Transformer, Params: params * 1e9, Layers: l, Dim: d, Heads: h, KV: h, FF: 4 * d,
		Vocab: v, Tied: tied, Source: source}
}

func conv(name string, kind Kind, params, gmacs, acts float64, source string) Model {
	return Model{Name: name, Kind: kind, Params: params * 1e6, GMACs: gmacs, Acts: acts, Source: source}
}

func headed(m Model, head float64) Model { m.Head = head; return m }

func tied(m Model) Model { m.Tied = true; return m }

func regions(m Model) Model { m.Regions = true; return m }

func grouped(m Model) Model { m.Groups = true; return m }

func depthwise(m Model) Model { m.Depth = true; return m }

var published = []Model{
	llama("llama-7b", 6.74, 32, 4096, 32, 32, 11008, 32000),
	llama("llama-13b", 13.02, 40, 5120, 40, 40, 13824, 32000),
	llama("llama-33b", 32.5, 60, 6656, 52, 52, 17920, 32000),
	llama("llama-65b", 65.2, 80, 8192, 64, 64, 22016, 32000),
	llama("llama-2-7b", 6.74, 32, 4096, 32, 32, 11008, 32000),
	llama("llama-2-13b", 13.02, 40, 5120, 40, 40, 13824, 32000),
	llama("llama-2-70b", 68.98, 80, 8192, 64, 8, 28672, 32000),
	llama("llama-3-8b", 8.03, 32, 4096, 32, 8, 14336, 128256),
	llama("llama-3-70b", 70.6, 80, 8192, 64, 8, 28672, 128256),
	llama("llama-3.1-8b", 8.03, 32, 4096, 32, 8, 14336, 128256),
	llama("llama-3.1-70b", 70.6, 80, 8192, 64, 8, 28672, 128256),
	llama("llama-3.1-405b", 405.9, 126, 16384, 128, 8, 53248, 128256),
	tied(llama("llama-3.2-1b", 1.24, 16, 2048, 32, 8, 8192, 128256)),
	tied(llama("llama-3.2-3b", 3.21, 28, 3072, 24, 8, 8192, 128256)),
	llama("tiny-llama", 1.1, 22, 2048, 32, 4, 5632, 32000),
	llama("codellama-7b", 6.74, 32, 4096, 32, 32, 11008, 32016),
	llama("codellama-34b", 33.7, 48, 8192, 64, 8, 22016, 32000),
	llama("mistral-7b", 7.24, 32, 4096, 32, 8, 14336, 32000),
	llama("phi-3-mini-4k-instruct", 3.82, 32, 3072, 32, 32, 8192, 32064),
	llama("qwen2-7b", 7.62, 28, 3584, 28, 4, 18944, 152064),
	llama("qwen2.5-7b", 7.62, 28, 3584, 28, 4, 18944, 152064),
	llama("qwen2.5-14b", 14.77, 48, 5120, 40, 8, 13824, 152064),
	llama("qwen2.5-32b", 32.76, 64, 5120, 40, 8, 27648, 152064),
	tied(llama("qwen2.5-0.5b", 0.494, 24, 896, 14, 2, 4864, 151936)),
	tied(llama("qwen2.5-1.5b", 1.54, 28, 1536, 12, 2, 8960, 151936)),
	tied(llama("qwen2.5-3b", 3.09, 36, 2048, 16, 2, 11008, 151936)),
	tied(headed(llama("qwen3-0.6b", 0.596, 28, 1024, 16, 8, 3072, 151936), 128)),
	tied(headed(llama("qwen3-1.7b", 1.72, 28, 2048, 16, 8, 6144, 151936), 128)),
	tied(headed(llama("qwen3-4b", 4.02, 36, 2560, 32, 8, 9728, 151936), 128)),
	headed(llama("qwen3-8b", 8.19, 36, 4096, 32, 8, 12288, 151936), 128),
	headed(llama("qwen3-14b", 14.77, 40, 5120, 40, 8, 17408, 151936), 128),
	headed(llama("qwen3-32b", 32.76, 64, 5120, 64, 8, 25600, 151936), 128),
	headed(llama("mistral-nemo-12b", 12.25, 40, 5120, 32, 8, 14336, 131072), 128),
	headed(llama("mistral-small-24b", 23.57, 40, 5120, 32, 8, 32768, 131072), 128),
	llama("phi-3-medium-4k-instruct", 13.96, 40, 5120, 40, 10, 17920, 32064),
	llama("phi-4", 14.66, 40, 5120, 40, 10, 17920, 100352),
	tied(llama("smollm2-135m", 0.1345, 30, 576, 9, 3, 1536, 49152)),
	tied(llama("smollm2-360m", 0.362, 32, 960, 15, 5, 2560, 49152)),
	tied(llama("smollm2-1.7b", 1.71, 24, 2048, 32, 32, 8192, 49152)),
	llama("olmo-2-7b", 7.30, 32, 4096, 32, 32, 11008, 100352),
	llama("qwen2.5-72b", 72.7, 80, 8192, 64, 8, 29568, 152064),
	{Name: "gemma-2b", Kind: Transformer, Params: 2.51e9, Layers: 18, Dim: 2048, Heads: 8, KV: 1, Head: 256, FF: 16384,
		Vocab: 256000, Tied: true, Gated: true, Source: hf},
	{Name: "gemma-7b", Kind: Transformer, Params: 8.54e9, Layers: 28, Dim: 3072, Heads: 16, KV: 16, Head: 256,
		FF: 24576, Vocab: 256000, Tied: true, Gated: true, Source: hf},
	{Name: "gemma-2-2b", Kind: Transformer, Params: 2.61e9, Layers: 26, Dim: 2304, Heads: 8, KV: 4, Head: 256, FF: 9216,
		Vocab: 256000, Tied: true, Gated: true, Source: hf},
	{Name: "gemma-2-9b", Kind: Transformer, Params: 9.24e9, Layers: 42, Dim: 3584, Heads: 16, KV: 8, Head: 256,
		FF: 14336, Vocab: 256000, Tied: true, Gated: true, Source: hf},
	{Name: "gemma-2-27b", Kind: Transformer, Params: 27.2e9, Layers: 46, Dim: 4608, Heads: 32, KV: 16, Head: 128,
		FF: 36864, Vocab: 256000, Tied: true, Gated: true, Source: hf},
	{Name: "falcon-7b", Kind: Transformer, Params: 7.22e9, Layers: 32, Dim: 4544, Heads: 71, KV: 1, FF: 18176,
		Vocab: 65024, Tied: true, Source: hf},
	{Name: "falcon-40b", Kind: Transformer, Params: 41.8e9, Layers: 60, Dim: 8192, Heads: 128, KV: 8, FF: 32768,
		Vocab: 65024, Tied: true, Source: hf},
	{Name: "falcon-180b", Kind: Transformer, Params: 179.5e9, Layers: 80, Dim: 14848, Heads: 232, KV: 8, FF: 59392,
		Vocab: 65024, Source: hf},
	gpt("phi-1.5", 1.42, 24, 2048, 32, 51200, false, hf),
	gpt("phi-2", 2.78, 32, 2560, 32, 51200, false, hf),
	gpt("stablelm-base-alpha-3b", 3.64, 16, 4096, 32, 50688, false, hf),
	gpt("stablelm-base-alpha-7b", 7.88, 16, 6144, 48, 50688, false, hf),
	gpt("pythia-1b", 1.01, 16, 2048, 8, 50304, false, hf),
	gpt("pythia-6.9b", 6.86, 32, 4096, 32, 50432, false, hf),
	gpt("pythia-12b", 11.85, 36, 5120, 40, 50688, false, hf),
	gpt("gpt2", 0.124, 12, 768, 12, 50257, true, hf),
	gpt("gpt2-medium", 0.355, 24, 1024, 16, 50257, true, hf),
	gpt("gpt2-large", 0.774, 36, 1280, 20, 50257, true, hf),
	gpt("gpt2-xl", 1.558, 48, 1600, 25, 50257, true, hf),
	gpt("gpt-j-6b", 6.05, 28, 4096, 16, 50400, false, hf),
	gpt("gpt3-175b", 174.6, 96, 12288, 96, 51200, true, "Brown et al. 2020, table 2.1"),
	gpt("gpt3-5b", 5.2, 24, 4096, 32, 51200, true, "NeMo framework recipes"),
	gpt("gpt3-20b", 20.5, 44, 6144, 48, 51200, true, "NeMo framework recipes"),
	gpt("nemotron-22b", 22, 40, 6144, 48, 256000, false, "NeMo framework recipes"),
	gpt("bloom-176b", 176.2, 70, 14336, 112, 250880, true, hf),
	gpt("bert-base", 0.110, 12, 768, 12, 30522, true, hf),
	gpt("bert-large", 0.336, 24, 1024, 16, 30522, true, hf),
	gpt("roberta-base", 0.125, 12, 768, 12, 50265, true, hf),
	gpt("distilbert", 0.066, 6, 768, 12, 30522, true, hf),
	gpt("mpt-125m", 0.1253, 12, 768, 12, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-350m", 0.356, 24, 1024, 16, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-760m", 0.7605, 24, 1536, 12, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-1b", 1.316, 24, 2048, 16, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-3b", 2.6518, 32, 2560, 20, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-7b", 6.6589, 32, 4096, 32, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-13b", 12.854, 40, 5120, 40, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-30b", 29.9752, 48, 7168, 56, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	gpt("mpt-70b", 64.8624, 80, 8192, 64, 50368, true, "mosaicml/llm-foundry, scripts/train/yamls/pretrain"),
	{Name: "deepseek-v3", Kind: Experts, Params: 671e9, Active: 37e9, Layers: 61, Dim: 7168, Heads: 128, KV: 128,
		Head: 160, FF: 2048, Vocab: 129280, TopK: 9, Gated: true,
		Source: hf + " (head: mean of 192 for keys and 128 for values)"},
	{Name: "gpt-oss-120b", Kind: Experts, Params: 116.8e9, Active: 5.1e9, Layers: 36, Dim: 2880, Heads: 64, KV: 8,
		Head: 64, FF: 2880, Vocab: 201088, TopK: 4, Gated: true, Source: hf},
	{Name: "gpt-oss-20b", Kind: Experts, Params: 20.9e9, Active: 3.6e9, Layers: 24, Dim: 2880, Heads: 64, KV: 8,
		Head: 64, FF: 2880, Vocab: 201088, TopK: 4, Gated: true, Source: hf},
	{Name: "qwen3-30b-a3b", Kind: Experts, Params: 30.5e9, Active: 3.3e9, Layers: 48, Dim: 2048, Heads: 32, KV: 4,
		Head: 128, FF: 768, Vocab: 151936, TopK: 8, Gated: true, Source: hf},
	{Name: "qwen3-235b-a22b", Kind: Experts, Params: 235e9, Active: 22e9, Layers: 94, Dim: 4096, Heads: 64, KV: 4,
		Head: 128, FF: 1536, Vocab: 151936, TopK: 8, Gated: true, Source: hf},
	{Name: "mixtral-8x7b", Kind: Experts, Params: 46.7e9, Active: 12.9e9, Layers: 32, Dim: 4096, Heads: 32, KV: 8,
		FF: 14336, Vocab: 32000, TopK: 2, Gated: true, Source: hf},
	{Name: "mixtral-8x22b", Kind: Experts, Params: 140.6e9, Active: 39.1e9, Layers: 56, Dim: 6144, Heads: 48, KV: 8,
		FF: 16384, Vocab: 32768, TopK: 2, Gated: true, Source: hf},
	{Name: "transformer-xl base", Kind: Segments, Params: 192e6, Active: 65e6, Layers: 16, Dim: 512, Heads: 8, FF: 2048,
		Source: dle},
	{Name: "transformer-xl large", Kind: Segments, Params: 285e6, Active: 220e6, Layers: 18, Dim: 1024, Heads: 16,
		FF: 4096, Source: dle},
	conv("resnet-18", Conv, 11.69, 1.82, 2.48, timm),
	conv("resnet-34", Conv, 21.80, 3.67, 3.74, timm),
	conv("resnet-50", Conv, 25.56, 4.11, 11.11, timm),
	conv("resnet-101", Conv, 44.55, 7.83, 16.23, timm),
	conv("resnet-152", Conv, 60.19, 11.56, 22.56, timm),
	grouped(conv("resnext-101-32x4d", Conv, 44.18, 8.01, 21.23, timm)),
	grouped(conv("se-resnext-101-32x4d", Conv, 48.96, 8.02, 21.26, timm)),
	depthwise(conv("efficientnet-b0", Conv, 5.29, 0.40, 6.75, timm)),
	depthwise(conv("efficientnet-b4", Conv, 19.34, 4.51, 50.04, timm)),
	depthwise(conv("efficientnet-widese-b0", Conv, 9.2, 0.40, 6.75, timm)),
	depthwise(conv("efficientnet-widese-b4", Conv, 32.3, 4.51, 50.04, timm)),
	conv("vgg-16", Conv, 138.36, 15.47, 13.56, timm),
	depthwise(conv("mobilenet-v2", Conv, 3.50, 0.31, 6.74, timm)),
	conv("densenet-121", Conv, 7.98, 2.83, 6.90, timm),
	depthwise(conv("convnext-tiny", Conv, 28.59, 4.47, 13.44, timm)),
	conv("vit-b-16", Conv, 86.57, 17.58, 23.90, timm),
	conv("ssd300-r50", Detect, 22.9, 20.5, 40, dle+"; multiply-adds summed over its layers at 300 x 300"),
	regions(conv("maskrcnn-r50-fpn", Detect, 44.4, 134.38, 300, tv)),
	conv("retinanet", Detect, 34.0, 151.54, 330, tv),
	{Name: "transformer-big", Kind: Transformer, Params: 213e6, Layers: 12, Dim: 1024, Heads: 16, KV: 16, FF: 4096,
		Vocab: 37000, Tied: true, Source: "Vaswani et al. 2017, table 3"},
	{Name: "jasper", Kind: Recurrent, Params: 333e6, Source: "Li et al. 2019 (Jasper 10x5 DR)"},
	{Name: "efficientdet-d0", Kind: Detect, Params: 3.9e6, GMACs: 2.5, Source: "Tan et al. 2020, table 2"},
	{Name: "gnmt", Kind: Recurrent, Params: 160e6, Active: 65e6,
		Source: dle + " (4+4 layers of 1024; products a token, source and target counted)"},
	{Name: "tacotron2", Kind: Recurrent, Params: 28.2e6, Source: dle},
	{Name: "waveglow", Kind: Recurrent, Params: 87.9e6, Source: dle},
	{Name: "ncf", Kind: Recommend, Params: 31.8e6, Active: 0.11e6, Acts: 0.0008,
		Source: dle + " (products of the dense part)"},
}

// shapes maps plain names to published models.
var shapes = func() map[string]Model {
	m := map[string]Model{}
	for _, p := range published {
		m[Key(p.Name)] = p
	}
	for alias, name := range map[string]string{
		"resnet50v1.5": "resnet50", "resnet50v1.5mxnet": "resnet50", "bertlargesquad": "bertlarge",
		"bertbasesquad":             "bertbase",
		"bertlargepretraintotarget": "bertlarge", "llama270bloratotarget": "llama270b", "retinanetssdtotarget": "retinanet",
		"llama38binstruct": "llama38b", "tinyllama1.1b": "tinyllama", "mistral7bv0.1": "mistral7b", "bert": "bertbase",
	} {
		m[alias] = m[name]
	}
	return m
}()

// Published returns the shape of a public model by any usual spelling of its name.
func Published(name string) (Model, bool) {
	p := Key(name)
	m, ok := shapes[p]
	if !ok && strings.HasPrefix(p, "bloomcand") {
		// Candidates of one project: they share the vocabulary, but not the shape.
		return Model{Name: name, Kind: Transformer, Vocab: 250880, Tied: true,
			Source: "bigscience-workshop, tokenizer of tr11-176B-ml"}, true
	}
	return m, ok
}

// Variant returns the published model that name is a variant of: the longest published name that starts it without
// ending inside a number.
func Variant(name string) (Model, bool) {
	if m, ok := Published(name); ok {
		return m, true
	}
	p := Key(name)
	for i := len(p) - 1; i >= 4; i-- {
		if m, ok := shapes[p[:i]]; ok && (p[i] < '0' || p[i] > '9') {
			return m, true
		}
	}
	return Model{}, false
}

// Typical returns the training operations per unit of an unknown model of a family: those of BERT-Base per token, of
// ResNet-50 per image, and so on.
func Typical(k Kind) float64 {
	switch k {
	case Transformer, Experts, Segments:
		return 6.6e8
	case Conv:
		return 2.5e10
	case Detect:
		return 3e11
	case Recurrent:
		return 4e8
	case Recommend:
		return 1e6
	case Trees:
	}
	return 1e10
}

// Models returns every published shape in table order.
func Models() []Model { return append([]Model(nil), published...) }

// Key removes the differences between spellings of one name.
func Key(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, s)
}
