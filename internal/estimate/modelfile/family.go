package modelfile

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/estimate/shape"
)

// The families by their model_type in transformers, where what a config.json leaves out
// follows from it: its class fills in what is not written. A name matches what begins with it
// up to an underscore or a digit: llama is llama4_text too.
var (
	// gatedKinds have a feed-forward of three matrices, and a head of their own.
	gatedKinds = []string{"llama", "mistral", "mixtral", "ministral", "qwen", "gemma", "phi3", "phimoe", "olmo",
		"deepseek", "granite", "glm", "chatglm", "internlm", "baichuan", "yi", "stablelm", "exaone", "minicpm",
		"smollm", "cohere", "dbrx", "gpt_oss"}
	// ownHead have a head of their own and a plain feed-forward.
	ownHead = []string{"gpt_neox", "gptj", "codegen", "phi", "persimmon", "nemotron"}
	// sharesHead are among the gated, and tie head and embedding all the same.
	sharesHead = []string{"gemma", "cohere"}
	// carried are no transformers: a state goes from token to token.
	carried = []string{"mamba", "falcon_mamba", "rwkv", "jamba", "zamba", "bamba", "recurrent_gemma", "xlstm",
		"nemotron_h", "lfm"}
	// towers have two stacks of their own and no one sequence.
	towers = []string{"clip", "siglip", "align", "blip", "flava", "owlvit", "chinese_clip"}
	// stages change their width on the way.
	stages = []string{"resnet", "regnet", "convnext", "mobilenet", "efficientnet", "swin", "segformer", "pvt", "levit",
		"poolformer", "van", "focalnet", "cvt", "unet"}
)

// matches says whether a model_type is one of those families.
func matches(kind string, families []string) bool {
	kind = strings.ToLower(kind)
	return slices.ContainsFunc(families, func(f string) bool {
		rest, ok := strings.CutPrefix(kind, f)
		return ok && (rest == "" || rest[0] == '_' || rest[0] >= '0' && rest[0] <= '9' || f == "gemma" || f == "swin" ||
			f == "convnext")
	})
}

// foreign is why a config is of no transformer, and "" where it may be one.
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

// experts is how many there are in a layer, and what stands beside them.
type experts struct {
	each   float64 // that are chosen from
	shared float64 // that all tokens pass
	width  float64 // of those that all tokens pass, together, where it is said
	first  float64 // layers at the start without any
	plain  float64 // width of the feed-forward in those
}

// experts reads how a model routes; fewer than two are none.
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

// withExperts counts all parameters and those a token passes.
//
// Worked: DeepSeek-V3, 61 layers of 7168, the first 3 of 18432, then 256 of 2048 and one that
// is shared, 8 a token, attention of 187e6 a layer through narrow queries, keys and values:
// 58·257·3·7168·2048 + 3·3·7168·18432 + 61·187e6 + 2·129280·7168 = 671e9, and 37.6e9 a token.
func (c *config) withExperts(m *shape.Model, x experts) {
	attention := 0.0 // besides what Count has, a layer
	if kv := c.num("kv rank", "kv_lora_rank"); kv > 0 {
		// Queries, keys and values go through narrow matrices, and keys have a part that turns.
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
		defer func() { m.Head = (still + turned + v) / 2 }() // for the pairs: keys and values differ in width
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
