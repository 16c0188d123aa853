// Package shape holds the properties of a model that its cost depends on: the numbers of its shape, the values derived
// from them, and the public shapes by name.
package shape

import (
	"math"
	"strings"
)

// Kind is a family of models with a common set of formulas.
type Kind string

// The kinds with formulas. Measurements may name others (rnn, gnn, recsys, diffusion): their operations follow from the
// parameters.
const (
	Transformer Kind = "transformer-dense"
	Experts     Kind = "transformer-moe"
	Recurrent   Kind = "rnn"
	Segments    Kind = "transformer-xl"
	Conv        Kind = "cnn"
	Detect      Kind = "cnn-detect"
	Recommend   Kind = "recsys"
	Trees       Kind = "gbdt"
)

// Model is the shape of a model, from which its cost is computed. Zero always means unknown, never none.
type Model struct {
	Name    string
	Kind    Kind
	Params  float64 // all parameters
	Active  float64 // parameters a token passes through; equals Params without experts
	Layers  float64
	Dim     float64 // width of the residual stream
	Heads   float64
	KV      float64 // key and value heads
	Head    float64 // width of a head; zero for Dim/Heads
	FF      float64 // width of the feed-forward layer (of one expert)
	Vocab   float64
	TopK    float64 // experts a token passes through
	Tied    bool    // input embedding and output head are one matrix
	Gated   bool    // feed-forward of three matrices (SwiGLU, GeGLU)
	Window  float64 // tokens a layer looks back on at most, averaged over the layers; zero for all
	GMACs   float64 // forward multiply-accumulates per sample, in 1e9
	Acts    float64 // activations per sample that the layers write, in 1e6
	Depth   bool    // most of its convolutions are depthwise
	Groups  bool    // its convolutions are in many small groups (ResNeXt)
	Regions bool    // it proposes regions first and processes each: many small steps per image
	Most    float64 // tokens of the longest sequence; zero if not stated
	Columns float64 // of the boosted trees' table
	Image   bool    // a transformer that takes an image as Most tokens
	Source  string  // where the shape was published
	Note    string  // what a reader of its estimate must know about how it was read
}

// usual is the default number of tokens per sample.
const usual = 2048

// Text reports whether the model reads sequences of tokens.
func (m Model) Text() bool { return m.Kind == Transformer || m.Kind == Experts }

// Photographs reports whether a sample is an image, which must be decoded.
func (m Model) Photographs() bool { return m.Kind == Conv || m.Kind == Detect || m.Image }

// Seq returns the default number of tokens per sample of a transformer: 2048, or the model's maximum if that is lower.
func (m Model) Seq() float64 {
	if m.Most > 0 && (m.Most < usual || m.Image) {
		return m.Most
	}
	return usual
}

// Pass returns the parameters that a token passes through.
func (m Model) Pass() float64 {
	if m.Active > 0 {
		return m.Active
	}
	return m.Params
}

// Tokens reports whether a unit of throughput counts tokens; all others count samples.
func (m Model) Tokens(unit string) bool {
	return strings.Contains(strings.ToLower(unit), "tok")
}

// HeadsWidth returns the total width of the attention heads.
func (m Model) HeadsWidth() float64 {
	if m.Head > 0 && m.Heads > 0 {
		return m.Head * m.Heads
	}
	return m.Wide()
}

// Deep returns the number of layers. Deep and Wide guess an unstated shape from the parameters: N = 12·L·d² with d =
// 128·L, the proportions of GPT-3.
func (m Model) Deep() float64 {
	if m.Layers > 0 {
		return m.Layers
	}
	if m.Dim > 0 {
		return math.Max(1, m.Params/(12*m.Dim*m.Dim))
	}
	return math.Cbrt(m.Params / (12 * 128 * 128))
}

// Wide returns the width of the residual stream.
func (m Model) Wide() float64 {
	if m.Dim > 0 {
		return m.Dim
	}
	if m.Layers > 0 {
		return math.Max(1, math.Sqrt(m.Params/(12*m.Layers)))
	}
	return 128 * m.Deep()
}

// Products returns the parameters that are multiplied with each token: all except an input embedding that is only
// looked up.
func (m Model) Products() float64 {
	n := m.Pass()
	if !m.Tied && n > m.Vocab*m.Wide() {
		n -= m.Vocab * m.Wide()
	}
	return n
}

// Tuning selects the parameters that a run changes.
type Tuning int

// Ways to train.
const (
	Full      Tuning = iota
	LoRA             // small matrices beside frozen 16-bit weights
	QLoRA            // small matrices beside frozen 4-bit weights
	Adapter          // a learned prefix in the upper layers
	AdapterV2        // plus a scale and bias on every linear layer
)

// Ops returns the floating-point operations per token (per sample for models without tokens) of a training step,
// forward and backward, without recomputation. This is the only convention inside scrimp.
//
//	transformer: 6·M + 6·L·w·s   M parameters multiplied, w width of the heads,
//	                             s tokens looked back on, causal: half of them
//	LoRA:        4·M + 6·L·w·s   the gradient of frozen weights is not computed
//	convolution: 6·GMACs·1e9
//	otherwise:   6·parameters
//
// Worked: Llama-3-8B, s 8192, M 8.03e9-0.525e9: 4.50e10 + 6·32·4096·8192 =
// 0.64e10, together 5.15e10.
func (m Model) Ops(s float64, tuning Tuning, causal bool) (float64, bool) {
	if m.GMACs > 0 {
		return 6 * m.GMACs * 1e9, true
	}
	if m.Params <= 0 {
		return 0, false
	}
	k := 6.0
	if tuning != Full {
		k = 4
	}
	ops := k * m.Products()
	if m.Kind == Transformer || m.Kind == Experts {
		back := s
		if m.Window > 0 && m.Window < s {
			back = m.Window
		}
		a := 12.0
		if causal {
			a = 6
		}
		ops += a * m.Deep() * m.HeadsWidth() * back
	}
	return ops, true
}

// Convention is a publisher's way to count operations.
type Convention string

// The published conventions from which rows are converted.
const (
	Mosaic   Convention = "mosaic"   // 6N + 12·L·d·s
	Megatron Convention = "megatron" // 6(N - V·d) + 6·L·d·s, LoRA 4(N - V·d)
	Plain    Convention = "6N"       // 6N
)

// OpsBy returns the operations per token in a publisher's convention. The conventions differ by up to an eighth, so a
// published rate is never compared with Ops directly.
func (m Model) OpsBy(c Convention, s float64, tuning Tuning) float64 {
	n, l, d := m.Pass(), m.Deep(), m.Wide()
	switch c {
	case Mosaic:
		return 6*n + 12*l*d*s
	case Megatron:
		k := 6.0
		if tuning != Full {
			k = 4
		}
		return k*(n-m.Vocab*d) + 6*l*m.HeadsWidth()*s
	case Plain:
	}
	return 6 * n
}

// Count returns the parameters of a transformer of this shape: all of them, and those that a token passes through, if
// each feed-forward is one of the given number of experts.
//
// Example: Llama-3-8B: 32 layers of 4096·4096·2 + 4096·1024·2 + 3·4096·14336, and 2·128256·4096 for the vocabulary:
// 8.03e9.
func (m Model) Count(experts float64) (all, active float64) {
	d, w := m.Dim, m.HeadsWidth()
	kv := w
	if m.KV > 0 && m.Heads > 0 {
		kv = w / m.Heads * m.KV
	}
	attention := 2*d*w + 2*d*kv + 4*d
	mats := 2.0
	if m.Gated {
		mats = 3
	}
	forward := mats * d * m.FF
	table := m.Vocab * d
	if !m.Tied {
		table *= 2
	}
	pass := math.Max(1, m.TopK)
	all = m.Layers*(attention+forward*math.Max(1, experts)) + table
	active = m.Layers*(attention+forward*math.Min(pass, math.Max(1, experts))) + table
	return all, active
}
