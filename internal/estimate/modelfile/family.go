package modelfile

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/estimate/shape"
)

// Model families by their model_type in transformers. What a config.json omits follows from the family, because its
// class has defaults. A name matches types that start with it up to an underscore or a digit: llama matches
// llama4_text.
var (
	// gatedKinds have a feed-forward of three matrices, and a separate head.
	gatedKinds = []string{"llama", "mistral", "mixtral", "ministral", "qwen", "gemma", "phi3", "phimoe", "olmo",
		"deepseek", "granite", "glm", "chatglm", "internlm", "baichuan", "yi", "stablelm", "exaone", "minicpm",
		"smollm", "cohere", "dbrx", "gpt_oss"}
	// ownHead have a separate head and a plain feed-forward.
	ownHead = []string{"gpt_neox", "gptj", "codegen", "phi", "persimmon", "nemotron"}
	// sharesHead are gated families that tie head and embedding all the same.
	sharesHead = []string{"gemma", "cohere"}
	// carried are not transformers: they carry a state from token to token.
	carried = []string{"mamba", "falcon_mamba", "rwkv", "jamba", "zamba", "bamba", "recurrent_gemma", "xlstm",
		"nemotron_h", "lfm"}
	// towers have two separate stacks, and not one common sequence.
	towers = []string{"clip", "siglip", "align", "blip", "flava", "owlvit", "chinese_clip"}
	// stages change their width from stage to stage.
	stages = []string{"resnet", "regnet", "convnext", "mobilenet", "efficientnet", "swin", "segformer", "pvt", "levit",
		"poolformer", "van", "focalnet", "cvt", "unet"}
)

// matches reports whether a model_type belongs to one of the families.
func matches(kind string, families []string) bool {
	kind = strings.ToLower(kind)
	return slices.ContainsFunc(families, func(f string) bool {
		rest, ok := strings.CutPrefix(kind, f)
		return ok && (rest == "" || rest[0] == '_' || rest[0] >= '0' && rest[0] <= '9' || f == "gemma" || f == "swin" ||
			f == "convnext")
	})
}

// foreign returns why a config is not a transformer, or "" if it may be one.
func (c *config) foreign(kind string) string {
	switch {
	case matches(kind, carried), c.value["ssm_cfg"] != nil, c.value["state_size"] != nil, c.value["mamba_d_state"] != nil:
		return fmt.Sprintf("%q passes a state from token to token, for which there are no formulas here", kind)
	case matches(kind, towers) && c.value["text_config"] != nil:
		return fmt.Sprintf("%q has two parts with sequences of their own, for which there are no formulas here", kind)
	case matches(kind, stages):
		return fmt.Sprintf("%q is no stack of equal layers, so its shape does not say how much it computes", kind)
	}
	return ""
}

// experts describes a model's routing.
type experts struct {
	each   float64 // routed experts
	shared float64 // shared experts, which all tokens pass through
	width  float64 // total width of the shared experts, if stated
	first  float64 // leading layers without experts
	plain  float64 // width of the feed-forward in those layers
}

// experts reads a model's routing; fewer than two experts count as none.
func (c *config) experts(m *shape.Model) (experts, error) {
	x := experts{
		each:   c.num("experts", "num_local_experts", "n_routed_experts", "num_experts"),
		shared: c.num("shared experts", "n_shared_experts"), width: c.num("shared width", "shared_expert_intermediate_size"),
		first: c.num("dense layers", "first_k_dense_replace"), plain: m.FF,
	}
	if x.each <= 1 {
		return experts{}, nil
	}
	m.Kind, m.Gated = shape.Experts, true
	m.TopK = c.num("topk", "num_experts_per_tok", "experts_per_token")
	switch {
	case m.TopK == 0:
		return x, &Bad{File: c.name, Field: "num_experts_per_tok",
			Why: "a model with experts must say how many a token passes", Fix: "add it, a number from 1 up"}
	case m.TopK > x.each:
		return x, &Bad{File: c.name, Field: "num_experts_per_tok",
			Why: fmt.Sprintf("%g is more than the %g experts", m.TopK, x.each),
			Fix: "give at most as many as there are experts"}
	case x.first > m.Layers:
		return x, &Bad{File: c.name, Field: "first_k_dense_replace",
			Why: fmt.Sprintf("%g is more than the %g layers", x.first, m.Layers),
			Fix: "give at most as many as there are layers"}
	}
	if f := c.num("expert width", "moe_intermediate_size"); f > 0 {
		m.FF = f
	}
	if m.FF == 0 {
		m.FF = 4 * m.Dim
	}
	return x, nil
}

// withExperts counts all parameters, and those that a token passes through.
//
// Example: DeepSeek-V3, 61 layers of width 7168, the first 3 with 18432, then 256 experts of 2048 and a shared one, 8
// per token, attention of 187e6 per layer through narrow queries, keys and values: 58·257·3·7168·2048 + 3·3·7168·18432
// + 61·187e6 + 2·129280·7168 = 671e9, and 37.6e9 per token.
func (c *config) withExperts(m *shape.Model, x experts) {
	attention := 0.0 // in addition to Count, per layer
	if kv := c.num("kv rank", "kv_lora_rank"); kv > 0 {
		// Queries, keys and values pass through narrow matrices, and keys have a rotary part.
		d, h := m.Dim, m.Heads
		still, turned, v := c.num("still", "qk_nope_head_dim"), c.num("turned", "qk_rope_head_dim"),
			c.num("value", "v_head_dim")
		query := d * h * (still + turned)
		if q := c.num("query rank", "q_lora_rank"); q > 0 {
			query = d*q + q*h*(still+turned)
		}
		own := query + d*(kv+turned) + kv*h*(still+v) + h*v*d
		m.Head, m.KV = 0, m.Heads
		attention = own - 4*d*m.HeadsWidth()
		defer func() { m.Head = (still + turned + v) / 2 }() // for the attention pairs: keys and values differ in width
	}
	one := 3 * m.Dim * m.FF
	beside := x.shared * one
	if x.width > 0 {
		beside = 3 * m.Dim * x.width
	}
	m.Params, m.Active = m.Count(x.each)
	more := m.Layers*attention + (m.Layers-x.first)*beside
	m.Params += more - x.first*x.each*one
	m.Active += more - x.first*m.TopK*one
	if x.first > 0 && x.plain > 0 {
		m.Params += x.first * 3 * m.Dim * x.plain
		m.Active += x.first * 3 * m.Dim * x.plain
	}
	m.TopK += x.shared
}
