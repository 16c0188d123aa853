package physics

import (
	"math"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// Setup holds the parameters of a run that its memory depends on. Zero is unknown; each field states the assumption.
type Setup struct {
	Model  shape.Model
	Tuning shape.Tuning
	Class  hardware.Precision
	Pure   bool    // weights, gradients and optimizer entirely in 16 bit
	N      float64 // accelerators; default 1
	Micro  float64 // samples in an accelerator's memory at a time
	Seq    float64 // tokens per sample
	Keep   runs.Recompute
	Cut    runs.Parallel
	Stage  int     // ZeRO: 1 shards the optimizer, 2 also gradients, 3 also weights (FSDP is 3)
	Stated bool    // Stage is stated: it shards frozen weights even if they would fit
	Nested bool    // the constants of 4-bit weights are quantized, too
	Train  float64 // trained parameters beside frozen ones; default 0.2 % of all
	All    bool    // small matrices beside every linear layer, not only beside attention
	Own    bool    // the program has a separate head although the model shares it with the embedding
	Whole  bool    // each process loads all weights before sharding
	Rows   float64 // boosted trees: rows in memory
	// boosted trees: columns of a row; default a dozen
	Features float64
	Card     float64 // GB on one accelerator
}

// smallShare is the default share of small matrices beside frozen weights.
const smallShare = 0.002

// Memory is the peak on one accelerator by component, in GB of 1e9 bytes.
type Memory struct {
	Weights     float64 `json:"weights_gb"`
	Gradients   float64 `json:"gradients_gb"`
	Optimiser   float64 `json:"optimiser_gb"`
	Activations float64 `json:"activations_gb"`
	Logits      float64 `json:"logits_gb"`
	Overhead    float64 `json:"overhead_gb"`
}

// Total returns the sum of all components.
func (m Memory) Total() float64 {
	return m.Weights + m.Gradients + m.Optimiser + m.Activations + m.Logits + m.Overhead
}

// Memory returns the peak by arithmetic alone. It returns false if batch, sequence or parameters are unknown.
//
//	bytes a parameter   pure 16 bit 2+2+4; autocast 6+4+8; 32 bit and sharded 4+4+8; Megatron 2+4+12/DP; LoRA 2;
//	                    QLoRA 0.56
//	activations         gated      2·s·b·(6d + 2kv + 4f) a layer
//	                    plain      2·s·b·(7d + 2f) a layer
//	                    weights in 32 bit and no sharding: see inFloat
//	                    recomputed 2·s·b·d a layer and one layer in full
//	                    all in 32 bit where nothing is computed in less: twice as much
//	logits              10·s·b·V: in 16 bit, in 32 bit, and the gradient in 32 bit; 12 where all is in 32 bit
//	                    autocast 14, 32 bit 16: PyTorch's loss holds also its own result and that one's gradient
//
// Worked: stablelm-base-alpha-3b, LoRA, b 2, s 1034: weights 3.64e9·2 = 7.28 GB,
// activations 2·1034·2·16·4096·15 = 4.07 GB, logits 10·1034·2·50688 = 1.05 GB.
func (s Setup) Memory() (Memory, bool) {
	m := s.Model
	if m.Kind == shape.Trees {
		// A value and a bin for each column, and gradient and leaf for each row.
		return Memory{Activations: (5*TableColumns(s.Features) + 4) * s.Rows / 1e9}, s.Rows > 0
	}
	if m.Params <= 0 || s.Micro <= 0 || m.Kind == Rated {
		return Memory{}, false
	}
	if m.Kind == shape.Transformer || m.Kind == shape.Experts {
		if s.Seq <= 0 {
			return Memory{}, false
		}
		return s.transformer(), true
	}
	if m.Acts <= 0 {
		return Memory{}, false
	}
	bytes := 2.0
	if s.all32() {
		bytes = 4
	}
	// The backward pass needs two and a half copies of what each layer writes.
	return Memory{
		Weights: 4 * m.Params / 1e9, Gradients: 4 * m.Params / 1e9, Optimiser: 4 * m.Params / 1e9,
		Activations: 2.5 * bytes * m.Acts * 1e6 * s.Micro / 1e9, Overhead: 0.6,
	}, true
}

func (s Setup) transformer() Memory {
	m := s.Model
	at := func(v float64) float64 { return math.Max(1, v) }
	n := at(s.N)
	tp, pp, cp := at(s.Cut.TP), at(s.Cut.PP), at(s.Cut.CP)
	dp := at(n / (tp * pp * cp))
	shards := at(n / (tp * pp))
	d, l, f := m.Wide(), m.Deep(), m.FF
	// The first and the last stage of a pipeline hold the embedding, too.
	table := math.Min(m.Vocab*d, m.Params)
	p := (m.Params-table)/(tp*pp) + table/tp
	if f <= 0 {
		f = 4 * d
	}
	kv := d
	if m.KV > 0 && m.Heads > 0 {
		kv = m.HeadsWidth() / m.Heads * m.KV
	}
	var g Memory
	g.Overhead = 0.2
	switch s.Tuning {
	case shape.Full:
		s.full(&g, p, dp, shards)
	default:
		s.frozen(&g, d, n, tp*pp, shards)
	}
	tokens := s.Micro * s.Seq / cp
	wide, between, logit := s.kept(d, f, kv), 2*d, 10.0
	if s.inFull() {
		wide, between = s.inFloat(wide, d)
		logit = 14
	}
	switch s.Keep {
	case runs.KeepEnds:
		ends := between * l
		if s.Stage == 3 {
			ends /= tp // FSDP with tensor parallelism splits the sequence between layers
		}
		g.Activations = tokens * (ends + wide/tp)
	case runs.KeepSome:
		g.Activations = tokens * wide * l / 2 / tp
	default:
		g.Activations = tokens * wide * l / tp
	}
	if s.all32() {
		g.Activations, logit = 2*g.Activations, logit+2
	}
	g.Activations /= 1e9
	g.Logits = logit * tokens * m.Vocab / tp / 1e9
	return g
}

// all32 reports whether the run computes nothing in less than 32 bits.
func (s Setup) all32() bool { return s.Class == hardware.FP32 || s.Class == hardware.TF32 }

// inFull reports whether each accelerator trains all parameters from weights in 32 bits, as PyTorch's autocast does.
func (s Setup) inFull() bool { return s.Tuning == shape.Full && !s.Pure && s.Stage == 0 }

// inFloat returns the bytes per token of a layer and between two layers for a run inFull, whose layers pass values in
// 32 bits. The caller doubles them for a run without 16 bits.
//
//	plain   autocast 20d + 4f: each of two norms keeps its input in 32 bits (4d), and the next product a copy in 16
//	        (2d), beside query, key, value and attention's result (8d); pure 16 bit keeps 14d + 4f.
//	        32 bit 32d + 8f
//	gated   autocast 30d + 4kv + 8f: a norm in Python also keeps its result (4d), and five products have a copy each
//	        32 bit 32d + 8kv + 16f
//
// Worked: GPT-2 small, autocast, 16 · 1024 tokens: 16384 · 12 · 36 · 768 = 5.44 GB, logits
// 14 · 16384 · 50257 = 11.53 GB.
func (s Setup) inFloat(wide, d float64) (layer, between float64) {
	gated := s.Model.Gated || s.Model.Kind == shape.Experts
	switch {
	case s.all32() && gated:
		return wide + 4*d, 2 * d
	case s.all32():
		return wide + 2*d, 2 * d
	case gated:
		return wide + 18*d, 4 * d
	}
	return wide + 6*d, 4 * d
}

// kept returns the bytes per token and layer that are kept for the backward pass, for a layer of width d, a
// feed-forward of width f, and keys and values of width kv.
func (s Setup) kept(d, f, kv float64) float64 {
	m := s.Model
	wide := 2 * (7*d + 2*f)
	in := 3 * (3*d + f) // inputs of a block's linear layers, kept beside their 16-bit copies
	out := 5*d + f
	if m.Gated {
		wide = 2 * (6*d + 2*kv + 4*f)
		out += f
	}
	if m.Kind == shape.Experts && m.Active > 0 {
		// Shared layers and the experts of a token, from the active parameters.
		wide = 2 * (8*d + 4*math.Max(f, (m.Pass()/m.Deep()-4*d*d)/(3*d)))
	}
	switch s.Tuning {
	case shape.QLoRA:
		wide += in
		if s.All {
			wide += 2 * (6*d + f)
		}
	case shape.LoRA:
		if s.All {
			wide += 2 * (6*d + f)
		}
	case shape.AdapterV2:
		wide += 3 * out
	case shape.Full, shape.Adapter:
	}
	return wide
}

// full adds the permanent bytes when every parameter is trained.
func (s Setup) full(g *Memory, p, dp, shards float64) {
	w, gr, o := 4.0, 4.0, 8.0
	share := func(stage int, by float64) float64 {
		if s.Stage >= stage {
			return by
		}
		return 1
	}
	switch {
	case s.Pure:
		w, gr, o = 2, 2, 4
	case s.Stage == 1 || s.Stage == 2:
		w, gr, o = 2, 4, 12
	case s.Stage == 0 && !s.all32():
		w = 6 // autocast keeps a copy in 16 bits until the backward pass is over
	}
	g.Weights = w * p / share(3, shards) / 1e9
	g.Gradients = gr * p / share(2, shards) / 1e9
	g.Optimiser = o * p / share(1, dp) / 1e9
	if s.Stage == 3 {
		// Two layers are gathered in 16 bit at a time.
		g.Overhead += 2 * 2 * p / s.Model.Deep() / 1e9
		g.Optimiser = o * p / shards / 1e9
	}
}

// frozen adds the permanent bytes when small matrices are trained beside frozen weights.
func (s Setup) frozen(g *Memory, d, n, cut, shards float64) {
	m := s.Model
	table := m.Vocab * d
	p, embed := m.Params, table
	if !m.Tied {
		embed += table
	} else if s.Own {
		p += table
		embed += table
	}
	bytes := 2 * p
	if s.Tuning == shape.QLoRA || s.Class == hardware.FP4 {
		each := 0.5 + 4.0/64
		if s.Nested {
			each = 0.5 + 1.0/64
		}
		bytes = 2*embed + each*math.Max(0, p-embed)
	}
	bytes /= cut
	switch {
	case s.Whole && n > 1:
		bytes *= 1 + 1/n
	case n > 1 && (s.Stage == 3 || !s.Stated && s.Card > 0 && bytes > 0.7*s.Card*1e9):
		bytes /= shards
	}
	g.Weights = bytes / 1e9
	t := s.Train
	if t <= 0 {
		t = smallShare * m.Params
	}
	g.Weights += 2 * t / 1e9
	g.Gradients = 2 * t / 1e9
	g.Optimiser = 8 * t / 1e9
}
