package estimate

import (
	"math"
	"strings"

	"scrimp/internal/estimate/shape"
)

// physics is the constants of the physical part. They are few, each has a
// meaning of its own, and none belongs to a model, a source or an accelerator.
type physics struct {
	product   float64 // share of the measured product rate that long products reach
	narrow    float64 // width at which half of it is left
	few       float64 // tokens in a micro-batch at which half of it is left
	attention float64 // share of the product rate of attention, all pairs counted
	traffic   float64 // bytes a layer and unit of width that what is no product moves, a token
	unfused   float64 // times the matrix of attention is moved where it is kept (s <= 512)
	routing   float64 // bytes a layer, expert and unit of width that routing moves, a token
	expert    float64 // width of an expert at which half the product rate is left
	passes    float64 // times what a convolution writes is moved, forward and backward
	deep      float64 // the same where convolutions are depthwise
	conv      float64 // share of the measured product rate that convolutions reach
	launch    float64 // seconds to start a kernel
	link      float64 // share of a link in a machine that is used
	network   float64 // GB/s an accelerator that is used between machines
	overlap   float64 // exponent with which computing and exchange add: 1 one after the other, ∞ the longer
	small     float64 // share of the product rate of sequences computed word by word
	balance   float64 // exponent by which narrow and few grow with operations a byte of the accelerator; 0: not
	plain     float64 // times conv that convolutions in 32 bit without matrix units reach (Winograd saves products)
	exchange  float64 // share of a link that experts reach, where all send to all
	grouped   float64 // times conv that convolutions in many small groups reach
	proposal  float64 // kernels started an image for each where regions are proposed first
}

// constants are the values in use, settled on the error of groups and whole
// sources left out of the public runs (TestSettle).
var constants = physics{
	product: 0.857, narrow: 245, few: 1040, attention: 0.64, traffic: 306, unfused: 4.18,
	routing: 32.7, expert: 557, passes: 21.1, deep: 60, conv: 0.542, launch: 19.2e-6,
	link: 0.527, network: 141, overlap: 2.49, small: 0.27, balance: 0.27,
	plain: 1.79, exchange: 0.757, grouped: 0.576, proposal: 1810,
}

// even is the operations a byte of memory, in 16 bit, of the accelerator that narrow and few
// are stated for: A100, 312e12 a second over 2.0e12 bytes a second.
const even = 156

// unit is the accelerator-seconds of one unit of throughput (a token, an image)
// and, apart, the seconds of exchanging gradients and shards that go with it.
func (k *physics) unit(r Row, m shape.Model, c Chip, class Precision, peak, count float64) (t, comm float64) {
	band, link := c.Band*1e9, c.Link*1e9
	if band <= 0 {
		band = 500e9
	}
	if link <= 0 {
		link = 31e9
	}
	cut := ParseParallel(r.Parallel)
	tp, pp, cp := math.Max(1, cut.TP), math.Max(1, cut.PP), math.Max(1, cut.CP)
	rate := c.ceiling() * peak * 1e12
	if class == FP32 {
		rate = 0.95 * peak * 1e12 // vector units reach what they state
	}
	half, ok := c.Peak(Half)
	if !ok || class == FP32 || class == TF32 {
		half = peak
	}
	wide := 2.0
	if class == FP32 || class == TF32 {
		wide = 4
	}
	units := unitsOf(r, m)
	load := or(r.Micro, 1) * units / cp                       // units in an accelerator's memory at a time
	step := math.Max(load, or(r.Global, 0)*units/count*tp*pp) // units a replica takes in before it exchanges gradients
	if !known(r.Global) {
		step = load
	}
	launches := 0.0
	switch {
	case m.Kind == shape.Transformer || m.Kind == shape.Experts || m.Kind == shape.Segments:
		t = k.token(r, m, c, rate, half*c.ceiling()*1e12, wide, band, link, tp)
		launches = 60 * m.Deep()
		if m.Kind == shape.Segments {
			launches *= 2 // positions relative to each other are products and shifts of their own
		}
		if !m.Tokens(r.Unit) {
			t *= or(r.Seq, 1)
		}
	case m.GMACs > 0:
		passes := k.passes
		if m.Depth {
			passes = k.deep
		}
		share := k.conv
		if class == FP32 {
			share *= k.plain
		}
		if m.Groups {
			share *= k.grouped
		}
		t = 6*m.GMACs*1e9/(share*rate) + m.Acts*1e6*wide*passes/band
		launches = 600
		if m.Regions {
			launches += k.proposal * or(r.Micro, 1)
		}
	case m.Kind == shape.Recurrent:
		ops, ok := m.Ops(1, shape.Full, false)
		if !ok {
			ops = shape.Typical(m.Kind)
		}
		t = ops / (k.small * rate)
		launches = 25 * 8 * 6 // words, layers, kernels
		if strings.HasPrefix(r.Unit, "mel") {
			launches = 860 * 250 // frames of the longest utterance, kernels a frame
		}
	case m.Kind == rated:
		t, _ = k.bound(m, rate, band, wide)
		return t, 0 // what else a step takes is in the rate that was measured
	default:
		ops, ok := m.Ops(or(r.Seq, 1), shape.Full, false)
		if !ok {
			ops = shape.Typical(m.Kind)
		}
		t = ops/(k.product*rate) + m.Acts*1e6*wide*k.passes/band
		launches = 100
	}
	if known(r.Micro) {
		// What starts one after another and what computes overlap in part.
		t = math.Sqrt(t*t + square1(launches*k.launch/load))
	}
	if r.Tuning() == shape.Full && m.Params > 0 {
		// The optimiser reads and writes weights, gradients and two moments once a step.
		shards := tp * pp
		if r.Sharding != "" || cut.FSDP > 0 || pp > 1 || tp > 1 {
			shards = count
		}
		if known(r.Micro) {
			t += 28 * m.Params / shards / band / (step / (tp * pp))
		}
	}
	if pp > 1 && known(r.Global) && known(r.Micro) {
		micros := math.Max(1, r.Global*tp*pp*cp/count/r.Micro)
		t *= 1 + (pp-1)/(micros*math.Max(1, cut.VP))
	}
	if count < 2 || m.Params <= 0 || math.IsNaN(load) || r.Tuning() != shape.Full {
		return t, 0
	}
	link *= k.link
	if count > 8 && !strings.HasPrefix(c.Name, "GB") {
		link = math.Min(link, k.network*1e9)
	}
	bytes, per := 2*wide*m.Params/(tp*pp), step
	if r.Sharding != "" {
		bytes, per = 6*m.Params/tp, load
	}
	if or(r.Micro, 0) == 0 {
		return t, 0
	}
	return t, bytes * (count - 1) / count / link / (per / (tp * pp))
}

func square1(v float64) float64 { return v * v }

// token is the accelerator-seconds of a token of a transformer.
func (k *physics) token(r Row, m shape.Model, c Chip, rate, half, wide, band, link, tp float64) float64 {
	s, d, l := or(r.Seq, 1), m.Wide(), m.Deep()
	if m.Kind == shape.Segments {
		s = 384 // a segment of 192 and the one before
	}
	tuning := r.Tuning()
	ops, ok := m.Ops(0, tuning, false)
	all, _ := m.Ops(s, tuning, false)
	if !ok {
		ops, all = shape.Typical(m.Kind), shape.Typical(m.Kind)
	}
	again, anew := 1.0, 1.0
	switch {
	case r.Ckpt == "full":
		again, anew = 4.0/3, 4.0/3
		if tuning != shape.Full {
			again = 1.5
		}
	case strings.HasPrefix(r.Ckpt, "selective"):
		again, anew = 1.08, 1.15
	}
	tokens := r.Micro * r.Seq
	if !known(tokens) {
		tokens = 8192 // a batch that fills the accelerator
	}
	// What memory feeds more slowly than it is computed needs wider matrices and
	// more tokens, so both grow with the operations a byte.
	tight := math.Pow(rate/band/even, k.balance)
	good := k.product * d / (d + k.narrow*tight) * tokens / (tokens + k.few*tight)
	if m.Kind == shape.Experts {
		f := m.FF
		if f <= 0 {
			f = d
		}
		good *= f / (f + k.expert)
	}
	t := ops * again / (good * rate)
	t += (all - ops) * anew / (k.attention * half)
	moved := l*d*k.traffic*wide/2*again + 16*m.Vocab
	if s <= 512 && m.Heads > 0 {
		moved += l * m.Heads * s * wide * k.unfused
	}
	if m.TopK > 0 {
		moved += l * d * m.TopK * k.routing
	}
	t += moved / band
	if tp > 1 {
		t += 8 * wide * l * d * (tp - 1) / (k.link * link)
	}
	if m.TopK > 0 && c.Link > 0 {
		if ep := ParseParallel(r.Parallel).EP; ep > 1 {
			at := link * k.exchange
			if ep > 8 && !strings.HasPrefix(c.Name, "GB") {
				at = math.Min(link, k.network*1e9)
			}
			t += 8 * l * d * math.Min(m.TopK, ep) * (ep - 1) / ep / at
		}
	}
	return t
}
