package modelfile_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/estimate/shape"
)

const llama = `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,
"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"hidden_act":"silu","tie_word_embeddings":false}`

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got/want-1) > within {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

func TestConfig_FamiliesHavePublishedSizes(t *testing.T) {
	for name, c := range map[string]struct {
		text        string
		all, active float64
	}{
		"llama-3-8b":                       {llama, 8.03e9, 8.03e9},
		"gpt2":                             {`{"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"vocab_size":50257,"n_inner":null}`, 124e6, 124e6},
		"bert-large":                       {`{"model_type":"bert","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16,"intermediate_size":4096,"vocab_size":30522,"hidden_act":"gelu"}`, 336e6, 336e6},
		"gemma-7b":                         {`{"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"intermediate_size":24576,"vocab_size":256000,"hidden_act":"gelu"}`, 8.54e9, 8.54e9},
		"mixtral":                          {`{"model_type":"mixtral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000,"num_local_experts":8,"num_experts_per_tok":2,"hidden_act":"silu"}`, 46.7e9, 12.9e9},
		"qwen3-moe":                        {`{"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"intermediate_size":6144,"moe_intermediate_size":768,"vocab_size":151936,"num_experts":128,"num_experts_per_tok":8,"hidden_act":"silu"}`, 30.5e9, 3.3e9},
		"llama-3-8b, as little as it says": {`{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}`, 8.03e9, 8.03e9},
		"t5-base":                          {`{"model_type":"t5","d_model":768,"d_ff":3072,"d_kv":64,"num_layers":12,"num_decoder_layers":12,"num_heads":12,"vocab_size":32128,"is_encoder_decoder":true,"feed_forward_proj":"relu"}`, 223e6, 223e6},
		"t5-11b":                           {`{"model_type":"t5","d_model":1024,"d_ff":65536,"d_kv":128,"num_layers":24,"num_heads":128,"vocab_size":32128,"is_encoder_decoder":true}`, 11.3e9, 11.3e9},
		"flan-t5-xl":                       {`{"model_type":"t5","d_model":2048,"d_ff":5120,"d_kv":64,"num_layers":24,"num_decoder_layers":24,"num_heads":32,"vocab_size":32128,"is_encoder_decoder":true,"feed_forward_proj":"gated-gelu","tie_word_embeddings":false}`, 2.85e9, 2.85e9},
		"bart-large":                       {`{"model_type":"bart","d_model":1024,"encoder_layers":12,"decoder_layers":12,"encoder_attention_heads":16,"decoder_attention_heads":16,"encoder_ffn_dim":4096,"decoder_ffn_dim":4096,"vocab_size":50265,"is_encoder_decoder":true,"num_hidden_layers":12,"max_position_embeddings":1024}`, 406e6, 406e6},
		"whisper-large":                    {`{"model_type":"whisper","d_model":1280,"encoder_layers":32,"decoder_layers":32,"encoder_attention_heads":20,"encoder_ffn_dim":5120,"decoder_ffn_dim":5120,"vocab_size":51865,"is_encoder_decoder":true,"num_hidden_layers":32,"max_source_positions":1500,"max_target_positions":448}`, 1.54e9, 1.54e9},
		"deepseek-v3":                      {`{"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61,"num_attention_heads":128,"num_key_value_heads":128,"intermediate_size":18432,"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3,"vocab_size":129280,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"tie_word_embeddings":false}`, 671e9, 37.6e9},
		"opt-1.3b":                         {`{"model_type":"opt","hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":32,"ffn_dim":8192,"vocab_size":50272}`, 1.316e9, 1.316e9},
		"mpt-7b":                           {`{"model_type":"mpt","d_model":4096,"n_layers":32,"n_heads":32,"vocab_size":50432,"expansion_ratio":4,"max_seq_len":2048}`, 6.65e9, 6.65e9},
		"pythia-6.9b":                      {`{"model_type":"gpt_neox","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"intermediate_size":16384,"vocab_size":50432,"hidden_act":"gelu"}`, 6.86e9, 6.86e9},
		"distilbert":                       {`{"model_type":"distilbert","dim":768,"n_layers":6,"n_heads":12,"hidden_dim":3072,"vocab_size":30522}`, 66e6, 66e6},
		"albert-base":                      {`{"model_type":"albert","hidden_size":768,"embedding_size":128,"num_hidden_layers":12,"num_hidden_groups":1,"num_attention_heads":12,"intermediate_size":3072,"vocab_size":30000}`, 11.1e6, 89e6},
		"vit-b-16":                         {`{"model_type":"vit","hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,"intermediate_size":3072,"image_size":224,"patch_size":16}`, 86e6, 86e6},
		"llava-7b":                         {`{"model_type":"llava","text_config":{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"intermediate_size":11008,"vocab_size":32064},"vision_config":{"model_type":"clip_vision_model","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16,"intermediate_size":4096,"image_size":336,"patch_size":14}}`, 7.06e9, 7.06e9},
		"vision":                           {`{"model_type":"some_vl","text_config":{"hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"hidden_act":"silu"}}`, 8.03e9, 8.03e9},
	} {
		m, err := modelfile.Read(name+"/config.json", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		near(t, name+" parameters", m.Params, c.all, 0.03)
		active := m.Active
		if active == 0 {
			active = m.Params
		}
		near(t, name+" active parameters", active, c.active, 0.05)
	}
}

func TestRead_RefusesInvalidModelWithFileFieldAndFix(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "is empty"},
		"torn":  {`{"hidden_size": 4096`, "no JSON object, or is torn"},
		"list":  {`[1, 2]`, "no JSON object"},
		"wide":  {strings.Replace(llama, "4096", "1e12", 1), "hidden_size: 1e+12 wide is absurd; no model"},
		"quoted": {strings.Replace(llama, "4096", `"4096"`, 1),
			`hidden_size: "4096" is not a number from 0 up; write`},
		"other": {`{"name":"my package","version":"1.0"}`, "num_hidden_layers"},
		"word":  {strings.Replace(llama, "4096", `"wide"`, 1), "hidden_size"},
		"negative": {strings.Replace(llama, `"num_hidden_layers":32`, `"num_hidden_layers":-3`, 1),
			"num_hidden_layers"},
		"absurd": {strings.Replace(llama, "14336", "1e300", 1), "absurd"},
		"heads": {strings.Replace(llama, `"num_attention_heads":32`, `"num_attention_heads":33`, 1),
			"do not divide"},
		"more kv": {strings.Replace(llama, `"num_key_value_heads":8`, `"num_key_value_heads":64`, 1),
			"more than the 32 heads"},
		"kv that do not divide": {strings.Replace(llama, `"num_key_value_heads":8`, `"num_key_value_heads":7`, 1),
			"num_key_value_heads: 7 do not divide the 32 heads"},
		"half a layer": {strings.Replace(llama, `"num_hidden_layers":32`, `"num_hidden_layers":32.5`, 1),
			"num_hidden_layers: 32.5 is not a whole number"},
		"list, in words": {`[1, 2]`, "is JSON, but no JSON object: array;"},
		"too large":      {strings.Replace(llama, "4096", "1e400", 1), "number 1e400 is more than numbers hold"},
		"state": {`{"model_type":"mamba","hidden_size":2560,"num_hidden_layers":64,"vocab_size":50280}`,
			`"mamba" passes a state from token to token`},
		"towers": {`{"model_type":"clip","text_config":{"hidden_size":512,"num_hidden_layers":12},"vision_config":{}}`,
			`"clip" has two parts`},
		"stages": {`{"model_type":"swin","hidden_size":768,"depths":[2,2,6,2]}`,
			`"swin" is no stack of equal layers`},
		"adapter": {`{"peft_type":"LORA","base_model_name_or_path":"some/base-7b"}`,
			"give the config.json of some/base-7b, with --lora"},
		"elsewhere": {`{"model_type":"llava","text_config":{"model_type":"llama","vocab_size":32064}}`,
			"text_config: it states no layers"},
		"no top k":       {strings.Replace(llama, "{", `{"num_local_experts":8,`, 1), "num_experts_per_tok"},
		"text":           {"this is a README", "neither JSON nor an ONNX"},
		"picture":        {"\x89PNG\r\n\x1a\n\x00\x00", "neither JSON nor an ONNX"},
		"onnx, no nodes": {string(message(7, nil)), "no nodes"},
	} {
		_, err := modelfile.Read("some.file", []byte(c.text))
		var bad *modelfile.Bad
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "some.file") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	m, err := modelfile.Spec("transformer layers=32 dim=4096 heads=32 kv=8 ff=14336 vocab=128256 gated=1")
	if err != nil || m.Kind != shape.Transformer {
		t.Fatal(m, err)
	}
	near(t, "parameters", m.Params, 8.03e9, 0.01)
	if m, err = modelfile.Spec("cnn: gmacs=4.1, activations=11.1, params=25.6M"); err != nil || m.GMACs != 4.1 ||
		m.Params != 25.6e6 {
		t.Error(m, err)
	}
	if m, err = modelfile.Spec("trees"); err != nil || m.Kind != shape.Trees {
		t.Error(m, err)
	}
	for line, want := range map[string]string{
		"": "is empty", "llama-99": "is neither a file nor", "transformer": "layers", "transformer width=3": "width",
		"cnn params=3M":                "gmacs",
		"transformer layers=32 dim=-1": "dim", "transformer layers=x dim=3": "layers",
		"transformer layers=1e9 dim=10": "absurd",
	} {
		if _, err := modelfile.Spec(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// The few protobuf messages of an ONNX file, written by hand.

func varint(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func number(tag int, v uint64) []byte { return append(varint(uint64(tag)<<3), varint(v)...) }

func message(tag int, b []byte) []byte {
	return append(append(varint(uint64(tag)<<3|2), varint(uint64(len(b)))...), b...)
}

func join(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func text(tag int, s string) []byte { return message(tag, []byte(s)) }

func weight(name string, dims ...uint64) []byte {
	var b []byte
	for _, d := range dims {
		b = append(b, number(1, d)...)
	}
	return message(5, join(b, number(2, 1), text(8, name)))
}

func value(tag int, name string, dims ...int) []byte {
	var shape []byte
	for _, d := range dims {
		dim := number(1, uint64(d))
		if d < 0 {
			dim = text(2, "batch")
		}
		shape = append(shape, message(1, dim)...)
	}
	return message(tag, join(text(1, name), message(2, message(1, join(number(1, 1), message(2, shape))))))
}

func ints(name string, list ...uint64) []byte {
	b := text(1, name)
	for _, v := range list {
		b = append(b, number(8, v)...)
	}
	return message(5, b)
}

func node(op string, in, out []string, attributes ...[]byte) []byte {
	b := text(4, op)
	for _, s := range in {
		b = append(b, text(1, s)...)
	}
	for _, s := range out {
		b = append(b, text(2, s)...)
	}
	return message(1, append(b, join(attributes...)...))
}

// small returns the first layers of ResNet-50 and a head.
func small(batch int) []byte {
	return message(7, join(
		text(2, "small"), value(11, "x", batch, 3, 224, 224),
		weight("w1", 64, 3, 7, 7), weight("w2", 1000, 64),
		node("Conv", []string{"x", "w1"}, []string{"a"}, ints("strides", 2, 2), ints("pads", 3, 3, 3, 3)),
		node("Relu", []string{"a"}, []string{"b"}),
		node("MaxPool", []string{"b"}, []string{"c"}, ints("kernel_shape", 3, 3), ints("strides", 2, 2),
			ints("pads", 1, 1, 1, 1)),
		node("GlobalAveragePool", []string{"c"}, []string{"d"}),
		node("Flatten", []string{"d"}, []string{"e"}),
		node("Gemm", []string{"e", "w2"}, []string{"y"}, message(5, join(text(1, "transB"), number(3, 1)))),
	))
}

func TestONNX_CountsProductsParametersAndActivations(t *testing.T) {
	for _, batch := range []int{1, 8, -1} {
		m, err := modelfile.Read("small.onnx", small(batch))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "parameters", m.Params, 64*3*49+1000*64, 1e-9)
		near(t, "GMACs", m.GMACs*1e9, 112*112*64*3*49+1000*64, 1e-9)
		near(t, "activations", m.Acts*1e6, 112*112*64+1000, 1e-9)
	}
}

func TestONNX_WithoutSizesNamesFix(t *testing.T) {
	_, err := modelfile.Read("m.onnx",
		message(7, join(text(2, "g"), value(11, "x", -1, 3, -1, -1), weight("w", 64, 3, 7, 7),
			node("Conv", []string{"x", "w"}, []string{"y"}))))
	if err == nil || !strings.Contains(err.Error(), "infer_shapes") || !strings.Contains(err.Error(), "size of y") {
		t.Errorf("%v", err)
	}
}

// Reading any file terminates, with a shape or an error that names the file.
func FuzzRead(f *testing.F) {
	f.Add([]byte(llama))
	f.Add(small(1))
	f.Add(small(-1)[:60])
	f.Add([]byte{0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := modelfile.Read("f", b)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f") {
				t.Errorf("no file: %v", err)
			}
			return
		}
		if m.Params < 0 || m.GMACs < 0 || math.IsNaN(m.Params) || math.IsInf(m.GMACs, 0) {
			t.Errorf("%+v", m)
		}
	})
}

func TestLine_HoldsAllThatEstimateNeeds(t *testing.T) {
	c, err := modelfile.Read("config.json", []byte(llama))
	if err != nil {
		t.Fatal(err)
	}
	models := []shape.Model{c}
	for _, name := range []string{"llama-3-8b", "mixtral-8x7b", "resnet-50", "efficientnet-b0", "bert-large"} {
		m, ok := shape.Published(name)
		if !ok {
			t.Fatalf("%s is not published", name)
		}
		models = append(models, m)
	}
	for _, m := range models {
		line, ok := modelfile.Line(m)
		back, err := modelfile.Spec(line)
		if !ok || err != nil {
			t.Errorf("%s: %q %v %v", m.Name, line, ok, err)
			continue
		}
		back.Name, back.Source, back.FF = m.Name, m.Source, m.FF // unstated values are filled in
		if back != m {
			t.Errorf("%s:\n%+v\n%+v\n%s", m.Name, m, back, line)
		}
	}
	if line, ok := modelfile.Line(shape.Model{Kind: shape.Recurrent, Params: 1e6}); ok {
		t.Errorf("%q stands for a model that no line says", line)
	}
}
