package modelfile

import (
	"encoding/json"
	"fmt"
	"strings"

	"scrimp/internal/estimate/shape"
)

// Config reads a config.json in the form of Hugging Face's transformers.
func Config(name string, content []byte) (shape.Model, error) {
	bad := func(field, why, mend string) (shape.Model, error) {
		return shape.Model{}, &Bad{File: name, Field: field, Why: why, Mend: mend}
	}
	var c map[string]any
	if err := json.Unmarshal(content, &c); err != nil {
		return bad("", "is no JSON object, or is torn: "+err.Error(), forms)
	}
	// Models that see and read keep the shape of the part that reads below.
	if t, ok := c["text_config"].(map[string]any); ok {
		for k, v := range t {
			if _, ok := c[k]; !ok {
				c[k] = v
			}
		}
	}
	var wrong *Bad
	called := map[string]string{}
	num := func(what string, keys ...string) float64 {
		called[what] = keys[0]
		for _, k := range keys {
			v, ok := c[k]
			if !ok || v == nil {
				continue
			}
			called[what] = k
			f, ok := v.(float64)
			if !ok || f < 0 {
				if wrong == nil {
					said, _ := json.Marshal(v) // it was read from JSON
					wrong = &Bad{File: name, Field: k, Why: fmt.Sprintf("%s is no number from 0 up", said), Mend: "write a number such as 32, without quotes"}
				}
				return 0
			}
			return f
		}
		return 0
	}
	flag := func(key string, other bool) bool {
		if v, ok := c[key].(bool); ok {
			return v
		}
		return other
	}
	kind, _ := c["model_type"].(string)
	m := shape.Model{
		Name: kind, Kind: shape.Transformer, Source: name,
		Layers: num("layers", "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
		Dim:    num("dim", "hidden_size", "n_embd", "d_model"),
		Heads:  num("heads", "num_attention_heads", "n_head", "n_heads"),
		KV:     num("kv", "num_key_value_heads", "num_kv_heads", "n_head_kv"),
		Head:   num("head", "head_dim"),
		FF:     num("ff", "intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size"),
		Vocab:  num("vocab", "vocab_size"),
		Window: num("window", "sliding_window"),
	}
	if s, ok := c["_name_or_path"].(string); ok && s != "" {
		m.Name = s[strings.LastIndexByte(s, '/')+1:]
	}
	// Older families share the embedding unless they say otherwise, newer ones do not.
	m.Tied = flag("tie_word_embeddings", kind == "gpt2" || kind == "bert" || kind == "bloom" || strings.HasPrefix(kind, "gemma"))
	act, _ := c["hidden_act"].(string)
	if act == "" {
		act, _ = c["hidden_activation"].(string)
	}
	m.Gated = act == "silu" || act == "swish" || strings.HasPrefix(kind, "gemma") || strings.Contains(act, "glu")
	if use, ok := c["use_sliding_window"].(bool); ok && !use {
		m.Window = 0
	}
	if mq, ok := c["multi_query"].(bool); ok && mq && m.KV == 0 {
		m.KV = 1
	}
	if m.KV == 0 {
		m.KV = m.Heads
	}
	experts := num("experts", "num_local_experts", "n_routed_experts", "num_experts")
	if experts > 1 {
		m.Kind = shape.Experts
		m.TopK = num("topk", "num_experts_per_tok", "experts_per_token")
		if m.TopK == 0 {
			return bad("num_experts_per_tok", "a model with experts must say how many a token passes", "add it, a number from 1 up")
		}
		if m.TopK > experts {
			return bad("num_experts_per_tok", fmt.Sprintf("%g is more than the %g experts", m.TopK, experts), "give at most as many as there are experts")
		}
		if f := num("expert width", "moe_intermediate_size"); f > 0 {
			m.FF = f
		}
		if m.FF == 0 {
			m.FF = 4 * m.Dim
		}
		m.Gated = true
	}
	if wrong != nil {
		return shape.Model{}, wrong
	}
	if m.Layers == 0 || m.Dim == 0 {
		return bad("num_hidden_layers, hidden_size", "it states no layers or no width, so it is the config of no transformer that is known here", forms)
	}
	if m.FF == 0 {
		m.FF = 4 * m.Dim
	}
	if experts > 1 {
		m.Params, m.Active = m.Count(experts)
	}
	return settle(name, m, called)
}
