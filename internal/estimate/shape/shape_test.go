package shape

import (
	"math"
	"testing"
)

func TestOpsBy_ConventionsDifferByUpToEighth(t *testing.T) {
	m, ok := Published("llama-3-8b")
	if !ok {
		t.Fatal("llama-3-8b is not published")
	}
	ours, _ := m.Ops(8192, Full, true)
	// 6·(8.03e9 - 128256·4096) + 6·32·4096·8192, by hand.
	if want := 6*(8.03e9-128256*4096) + 6.0*32*4096*8192; math.Abs(ours/want-1) > 1e-12 {
		t.Errorf("Ops is %g, by hand %g", ours, want)
	}
	if got := m.OpsBy(Megatron, 8192, Full); math.Abs(got/ours-1) > 1e-12 {
		t.Errorf("Megatron counts %g, Ops %g: both leave the embedding out and count attention causally", got, ours)
	}
	if r := m.OpsBy(Mosaic, 8192, Full) / ours; r < 1.05 || r > 1.25 {
		t.Errorf("Mosaic over Ops is %.3f", r)
	}
	lora, _ := m.Ops(8192, LoRA, true)
	if d := ours - lora; math.Abs(d/(2*m.Products())-1) > 1e-12 {
		t.Errorf("LoRA saves %g, the gradient of frozen weights is %g", d, 2*m.Products())
	}
}

func TestCount_MatchesPublishedParameters(t *testing.T) {
	n := 0
	for _, m := range Models() {
		if m.Kind != Transformer || m.FF == 0 || m.Vocab == 0 || !m.Gated {
			continue
		}
		all, active := m.Count(1)
		if math.Abs(all/m.Params-1) > 0.03 || all != active {
			t.Errorf("%s: counted %.3g of which %.3g active, published %.3g", m.Name, all, active, m.Params)
		}
		n++
	}
	if n < 15 {
		t.Errorf("only %d shapes were counted", n)
	}
	for _, c := range []struct {
		name    string
		experts float64
	}{{"mixtral-8x7b", 8}, {"qwen3-30b-a3b", 128}, {"qwen3-235b-a22b", 128}, {"gpt-oss-20b", 32}} {
		m, ok := Published(c.name)
		all, active := m.Count(c.experts)
		looked := m.Vocab * m.Dim // some publishers leave the input embedding out
		near := math.Min(math.Abs(active/m.Active-1), math.Abs((active-looked)/m.Active-1))
		if !ok || math.Abs(all/m.Params-1) > 0.05 || near > 0.05 {
			t.Errorf("%s: counted %.4g and %.4g active, published %.4g and %.4g", c.name, all, active, m.Params, m.Active)
		}
	}
}

func TestModels_HaveSources(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Models() {
		if m.Source == "" || m.Name == "" {
			t.Errorf("%+v names no source", m)
		}
		if seen[Key(m.Name)] {
			t.Errorf("%s stands twice", m.Name)
		}
		seen[Key(m.Name)] = true
		if m.Kind == Transformer && (m.Layers == 0 || m.Dim == 0 || m.Params == 0) {
			t.Errorf("%s lacks layers, width or parameters", m.Name)
		}
	}
}
