package modelfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"scrimp/internal/estimate/shape"
)

// config is a config.json being read: values by key, and the first error.
type config struct {
	name   string
	value  map[string]any
	wrong  *Bad
	called map[string]string // the file's name for each field of a line
}

// num returns the first of these keys that exists and is not null, or zero.
func (c *config) num(what string, keys ...string) float64 {
	if c.called[what] == "" {
		c.called[what] = keys[0]
	}
	for _, k := range keys {
		v, ok := c.value[k]
		if !ok || v == nil {
			continue
		}
		c.called[what] = k
		f, ok := v.(float64)
		if !ok || f < 0 {
			if c.wrong == nil {
				said, _ := json.Marshal(v) // it was read from JSON
				c.wrong = &Bad{File: c.name, Field: k, Why: fmt.Sprintf("%s is not a number from 0 up", said),
					Fix: "write a number such as 32, without quotes"}
			}
			return 0
		}
		return f
	}
	return 0
}

func (c *config) text(keys ...string) string {
	for _, k := range keys {
		if s, ok := c.value[k].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func (c *config) flag(key string, other bool) bool {
	if v, ok := c.value[key].(bool); ok {
		return v
	}
	return other
}

// part returns a nested config, such as that of the text part.
func (c *config) part(key string) (*config, bool) {
	v, ok := c.value[key].(map[string]any)
	return &config{name: c.name, value: v, called: map[string]string{}}, ok
}

// Config reads a config.json in the format of Hugging Face's transformers.
func Config(name string, content []byte) (shape.Model, error) {
	c := &config{name: name, called: map[string]string{}}
	if err := json.Unmarshal(content, &c.value); err != nil {
		return shape.Model{}, c.bad("", torn(err), forms)
	}
	if bad := c.unfit(); bad != nil {
		return shape.Model{}, bad
	}
	kind, sees := c.reading()
	m := c.stack(kind)
	m.Name, m.Source = c.text("model_type"), name
	if s := c.text("_name_or_path"); s != "" {
		m.Name = s[strings.LastIndexByte(s, '/')+1:]
	}
	experts, err := c.experts(&m)
	switch {
	case c.wrong != nil:
		return shape.Model{}, c.wrong
	case err != nil:
		return shape.Model{}, err
	case (m.Layers == 0 || m.Dim == 0) && sees:
		return shape.Model{}, c.bad("text_config", "it states no layers or no width of the part that reads",
			"give the config.json of that part, which is the larger one by far")
	case m.Layers == 0 || m.Dim == 0:
		return shape.Model{}, c.bad("num_hidden_layers, hidden_size",
			"it states no layers or no width, so it is the config of no transformer that is known here", forms)
	}
	if m.FF == 0 {
		m.FF = 4 * m.Dim
	}
	m.Most = c.longest()
	c.count(&m, experts)
	c.images(&m)
	if c.wrong != nil {
		return shape.Model{}, c.wrong
	}
	return settle(name, m, c.called)
}

func (c *config) bad(field, why, fix string) *Bad {
	return &Bad{File: c.name, Field: field, Why: why, Fix: fix}
}

// unfit returns why a config cannot be described as a model, or nil.
func (c *config) unfit() *Bad {
	if why := c.foreign(c.text("model_type")); why != "" {
		return c.bad("model_type", why,
			"describe it by a line such as \"cnn gmacs=4.1 activations=11.1 params=25.6M\", by an ONNX file, or by "+
				"what it does: \"measured: 120 samples/s on L4\"")
	}
	if c.text("peft_type") == "" {
		return nil
	}
	base := c.text("base_model_name_or_path")
	if base == "" {
		base = "the model that it adapts"
	}
	return c.bad("peft_type", "it is the configuration of an adapter, which states no shape",
		"give the config.json of "+base+", with --lora")
}

// reading returns the kind of the text part. Multimodal models nest its shape; reading adds it below the config's own
// values.
func (c *config) reading() (kind string, sees bool) {
	kind = c.text("model_type")
	reads, sees := c.part("text_config")
	if !sees {
		return kind, false
	}
	for k, v := range reads.value {
		if own, ok := c.value[k]; !ok || own == nil {
			c.value[k] = v
		}
	}
	if t := reads.text("model_type"); t != "" {
		kind = t
	}
	return kind, true
}

// count counts the parameters of the text part.
func (c *config) count(m *shape.Model, x experts) {
	switch {
	case x.each > 1:
		c.withExperts(m, x)
	case c.num("decoder layers", "decoder_layers", "num_decoder_layers") > 0 || c.flag("is_encoder_decoder", false):
		c.encodes(m)
	case c.num("groups", "num_hidden_groups") > 0: // ALBERT: few layers, each applied several times
		layers := m.Layers
		_, m.Active = m.Count(1)
		m.Layers = c.num("groups", "num_hidden_groups")
		m.Params, _ = m.Count(1)
		m.Layers = layers
	default:
		m.Params, m.Active = m.Count(1)
	}
	// A narrow embedding table, and a matrix from it to the model's width.
	if e := c.num("embedding", "embedding_size", "word_embed_proj_dim"); e > 0 && e < m.Dim {
		less := (m.Vocab*(m.Dim-e) - e*m.Dim)
		if !m.Tied {
			less *= 2
		}
		m.Params, m.Active = m.Params-less, m.Active-less
	}
}

// images adds the image parts of a model: patches, and a vision tower.
func (c *config) images(m *shape.Model) {
	if px, patch := c.num("pixels", "image_size"), c.num("patch", "patch_size"); px > 0 && patch > 0 && m.Vocab == 0 {
		m.Most, m.Image = (px/patch)*(px/patch)+1, true // the patches, and the token that stands for the image
	}
	if m.Vocab == 0 && !m.Image {
		m.Note = "vocab_size is not stated, so memory and time leave out what is done with words"
	}
	v, ok := c.part("vision_config")
	if !ok {
		return
	}
	eye := v.stack(v.text("model_type"))
	if eye.FF == 0 {
		eye.FF = 4 * eye.Dim
	}
	more, _ := eye.Count(1)
	m.Params += more // it holds these weights, although most tokens do not pass through them
	if m.Note = "tokens of images count as tokens"; more == 0 {
		m.Note += ", and the part that sees is left out: its config states no layers or no width"
	}
	if v.wrong != nil {
		c.wrong = v.wrong
	}
}

// torn explains why a content is not a JSON object.
func torn(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Value == "array" || kind.Value == "string" || kind.Value == "bool" || kind.Value == "number" {
			return "is JSON, but no JSON object: " + kind.Value
		}
		return "is no JSON object that can be read: " + kind.Value + " is more than numbers hold"
	}
	return "is no JSON object, or is torn: " + err.Error()
}

// stack returns the shape of one stack of layers, from all names that the families use for its numbers.
func (c *config) stack(kind string) shape.Model {
	m := shape.Model{
		Kind:   shape.Transformer,
		Layers: c.num("layers", "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
		Dim:    c.num("dim", "hidden_size", "n_embd", "d_model", "dim"),
		Heads:  c.num("heads", "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"),
		KV:     c.num("kv", "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
		Head:   c.num("head", "head_dim", "d_kv"),
		FF: c.num("ff", "intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "hidden_dim",
			"encoder_ffn_dim"),
		Vocab:  c.num("vocab", "vocab_size", "padded_vocab_size"),
		Window: c.num("window", "sliding_window"),
	}
	if r := c.num("ratio", "expansion_ratio"); m.FF == 0 && r > 0 {
		m.FF = r * m.Dim
	}
	act := c.text("hidden_act", "hidden_activation", "feed_forward_proj")
	m.Gated = act == "silu" || act == "swish" || matches(kind, gatedKinds) || strings.Contains(act, "glu") ||
		strings.HasPrefix(act, "gated")
	// If transformers omits the field, the embedding is tied, except in the newer families.
	m.Tied = c.flag("tie_word_embeddings", matches(kind, sharesHead) || !m.Gated && !matches(kind, ownHead))
	if use, ok := c.value["use_sliding_window"].(bool); ok && !use {
		m.Window = 0
	}
	if c.flag("multi_query", false) && m.KV == 0 {
		m.KV = 1
	}
	if m.KV == 0 {
		m.KV = m.Heads
	}
	return m
}

// longest returns the model's longest sequence, or zero if it is not stated.
func (c *config) longest() float64 {
	return max(c.num("most", "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length",
		"seq_length"),
		c.num("most heard", "max_source_positions"))
}

// encodes counts a model of two stacks. A sample has --seq input tokens and as many output tokens, and throughput
// counts tokens of either side, so a token passes through both stacks.
//
// Example: T5-base, 12 and 12 layers of width 768, 3072 in the feed-forward, 32128 words in one table: 12·(4·768² +
// 2·768·3072) + 12·(8·768² + 2·768·3072) + 32128·768 = 223e6.
func (c *config) encodes(m *shape.Model) {
	in, out := *m, *m
	in.Layers = max(m.Layers, c.num("layers", "encoder_layers"))
	out.Layers = m.Layers
	if n := c.num("decoder layers", "decoder_layers", "num_decoder_layers"); n > 0 {
		out.Layers = n
	}
	if f := c.num("decoder ff", "decoder_ffn_dim"); f > 0 {
		out.FF = f
	}
	out.Vocab = 0
	first, _ := in.Count(1)
	second, _ := out.Count(1)
	across := out.Layers * 4 * m.Dim * m.HeadsWidth() // cross-attention to the input
	m.Params = first + second + across
	m.Active = m.Params
	m.Layers = in.Layers + out.Layers
	m.Note = "tokens are counted on one side, as many in as out"
}
