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

func TestConfigsOfTheFamiliesGiveTheirPublishedSizes(t *testing.T) {
	for name, c := range map[string]struct {
		text        string
		all, active float64
	}{
		"llama-3-8b": {llama, 8.03e9, 8.03e9},
		"gpt2":       {`{"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"vocab_size":50257,"n_inner":null}`, 124e6, 124e6},
		"bert-large": {`{"model_type":"bert","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16,"intermediate_size":4096,"vocab_size":30522,"hidden_act":"gelu"}`, 336e6, 336e6},
		"gemma-7b":   {`{"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"intermediate_size":24576,"vocab_size":256000,"hidden_act":"gelu"}`, 8.54e9, 8.54e9},
		"mixtral":    {`{"model_type":"mixtral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000,"num_local_experts":8,"num_experts_per_tok":2,"hidden_act":"silu"}`, 46.7e9, 12.9e9},
		"qwen3-moe":  {`{"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"intermediate_size":6144,"moe_intermediate_size":768,"vocab_size":151936,"num_experts":128,"num_experts_per_tok":8,"hidden_act":"silu"}`, 30.5e9, 3.3e9},
		"vision":     {`{"model_type":"some_vl","text_config":{"hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"hidden_act":"silu"}}`, 8.03e9, 8.03e9},
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

func TestWhatIsNoModelIsRefusedWithFileFieldAndMend(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", "is empty"},
		"torn":           {`{"hidden_size": 4096`, "no JSON object, or is torn"},
		"list":           {`[1, 2]`, "no JSON object"},
		"wide":           {strings.Replace(llama, "4096", "1e12", 1), "hidden_size: 1e+12 wide is absurd; no model"},
		"quoted":         {strings.Replace(llama, "4096", `"4096"`, 1), `hidden_size: "4096" is no number from 0 up; write`},
		"other":          {`{"name":"my package","version":"1.0"}`, "num_hidden_layers"},
		"word":           {strings.Replace(llama, "4096", `"wide"`, 1), "hidden_size"},
		"negative":       {strings.Replace(llama, `"num_hidden_layers":32`, `"num_hidden_layers":-3`, 1), "num_hidden_layers"},
		"absurd":         {strings.Replace(llama, "14336", "1e300", 1), "absurd"},
		"heads":          {strings.Replace(llama, `"num_attention_heads":32`, `"num_attention_heads":33`, 1), "do not divide"},
		"more kv":        {strings.Replace(llama, `"num_key_value_heads":8`, `"num_key_value_heads":64`, 1), "more than the 32 heads"},
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
	if m, err = modelfile.Spec("cnn: gmacs=4.1, activations=11.1, params=25.6M"); err != nil || m.GMACs != 4.1 || m.Params != 25.6e6 {
		t.Error(m, err)
	}
	if m, err = modelfile.Spec("trees"); err != nil || m.Kind != shape.Trees {
		t.Error(m, err)
	}
	for line, want := range map[string]string{
		"": "is empty", "llama-99": "is no file", "transformer": "layers", "transformer width=3": "width", "cnn params=3M": "gmacs",
		"transformer layers=32 dim=-1": "dim", "transformer layers=x dim=3": "layers", "transformer layers=1e9 dim=10": "absurd",
	} {
		if _, err := modelfile.Spec(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// The few messages of protobuf that an ONNX file is made of, written by hand.

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

// small is the first layers of ResNet-50 and a head.
func small(batch int) []byte {
	return message(7, join(
		text(2, "small"), value(11, "x", batch, 3, 224, 224),
		weight("w1", 64, 3, 7, 7), weight("w2", 1000, 64),
		node("Conv", []string{"x", "w1"}, []string{"a"}, ints("strides", 2, 2), ints("pads", 3, 3, 3, 3)),
		node("Relu", []string{"a"}, []string{"b"}),
		node("MaxPool", []string{"b"}, []string{"c"}, ints("kernel_shape", 3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 1, 1)),
		node("GlobalAveragePool", []string{"c"}, []string{"d"}),
		node("Flatten", []string{"d"}, []string{"e"}),
		node("Gemm", []string{"e", "w2"}, []string{"y"}, message(5, join(text(1, "transB"), number(3, 1)))),
	))
}

func TestONNXCountsProductsParametersAndActivations(t *testing.T) {
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

func TestONNXWithoutSizesSaysWhatMendsIt(t *testing.T) {
	_, err := modelfile.Read("m.onnx", message(7, join(text(2, "g"), value(11, "x", -1, 3, -1, -1), weight("w", 64, 3, 7, 7), node("Conv", []string{"x", "w"}, []string{"y"}))))
	if err == nil || !strings.Contains(err.Error(), "infer_shapes") || !strings.Contains(err.Error(), "size of y") {
		t.Errorf("%v", err)
	}
}

// Whatever the file holds, reading it ends, and gives a shape or an error with its name.
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

func TestALineSaysAllThatAnEstimateDependsOn(t *testing.T) {
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
		back.Name, back.Source, back.FF = m.Name, m.Source, m.FF // what is not stated is filled in
		if back != m {
			t.Errorf("%s:\n%+v\n%+v\n%s", m.Name, m, back, line)
		}
	}
	if line, ok := modelfile.Line(shape.Model{Kind: shape.Recurrent, Params: 1e6}); ok {
		t.Errorf("%q stands for a model that no line says", line)
	}
}
