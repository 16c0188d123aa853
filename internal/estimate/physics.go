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

// placed is a run on an accelerator, in the units that the arithmetic goes by.
type placed struct {
	r          *Row
	m          *shape.Model
	c          *Chip
	class      Precision
	cut        Parallel
	tp, pp, cp float64
	count      float64
	band, link float64 // bytes a second: of memory, of a link between accelerators
	rate, half float64 // operations a second of long products: in the run's precision, and in 16 bit
	wide       float64 // bytes of a value
	load       float64 // units in an accelerator's memory at a time
	step       float64 // units a replica takes in before it exchanges gradients
	each       float64 // accelerators that the link joins: those of a machine, all of a rack
}

func place(r *Row, m *shape.Model, c *Chip, class Precision, peak, count float64) placed {
	p := placed{r: r, m: m, c: c, class: class, cut: ParseParallel(r.Parallel), count: count,
		band: c.Band * 1e9, link: c.Link * 1e9, wide: 2}
	if p.band <= 0 {
		p.band = 500e9
	}
	if p.link <= 0 {
		p.link = 31e9
	}
	p.each = 8
	if h := r.Host; h != nil && h.Each > 0 {
		p.each = h.Each
		if h.Link > 0 {
			p.link = h.Link * 1e9
		}
	}
	if c.rack() {
		p.each = math.Inf(1)
	}
	p.tp, p.pp, p.cp = math.Max(1, p.cut.TP), math.Max(1, p.cut.PP), math.Max(1, p.cut.CP)
	p.rate = c.ceiling() * peak * 1e12
	if class == FP32 {
		p.rate = 0.95 * peak * 1e12 // vector units reach what they state
	}
	full := class == FP32 || class == TF32
	half, ok := c.Peak(Half)
	if !ok || full {
		half = peak
	}
	p.half = half * c.ceiling() * 1e12
	if full {
		p.wide = 4
	}
	units := unitsOf(*r, *m)
	p.load = or(r.Micro, 1) * units / p.cp
	p.step = math.Max(p.load, or(r.Global, 0)*units/count*p.tp*p.pp)
	if !known(r.Global) {
		p.step = p.load
	}
	return p
}

// unit is the accelerator-seconds of one unit of throughput (a token, an image)
// and, apart, the seconds of exchanging gradients and shards that go with it.
func (k *physics) unit(r Row, m shape.Model, c Chip, class Precision, peak, count float64) (t, comm float64) {
	p := place(&r, &m, &c, class, peak, count)
	if m.Kind == rated {
		t, _ = k.bound(m, p.rate, p.band, p.wide)
		return t, 0 // what else a step takes is in the rate that was measured
	}
	t, launches := k.computing(&p)
	if known(r.Micro) {
		// What starts one after another and what computes overlap in part.
		t = math.Sqrt(t*t + square1(launches*k.launch/p.load))
	}
	t += p.optimiser()
	t *= p.bubble()
	return t, k.exchanging(&p)
}

func square1(v float64) float64 { return v * v }

// computing is the accelerator-seconds of a unit in kernels, and how many kernels a step starts.
func (k *physics) computing(p *placed) (t, launches float64) {
	m := p.m
	switch {
	case m.Kind == shape.Transformer || m.Kind == shape.Experts || m.Kind == shape.Segments:
		t = k.token(p)
		launches = 60 * m.Deep()
		if m.Kind == shape.Segments {
			launches *= 2 // positions relative to each other are products and shifts of their own
		}
		if !m.Tokens(p.r.Unit) {
			t *= or(p.r.Seq, 1)
		}
		return t, launches
	case m.GMACs > 0:
		return k.image(p)
	case m.Kind == shape.Recurrent:
		launches = 25 * 8 * 6 // words, layers, kernels
		if strings.HasPrefix(p.r.Unit, "mel") {
			launches = 860 * 250 // frames of the longest utterance, kernels a frame
		}
		return p.ops(1) / (k.small * p.rate), launches
	}
	return p.ops(or(p.r.Seq, 1))/(k.product*p.rate) + m.Acts*1e6*p.wide*k.passes/p.band, 100
}

// ops is the operations of a unit at that length, those of a typical model where the shape is not known.
func (p *placed) ops(seq float64) float64 {
	if ops, ok := p.m.Ops(seq, shape.Full, false); ok {
		return ops
	}
	return shape.Typical(p.m.Kind)
}

// image is the accelerator-seconds of an image of a convolutional model, and the kernels of a step.
func (k *physics) image(p *placed) (t, launches float64) {
	m := p.m
	passes := k.passes
	if m.Depth {
		passes = k.deep
	}
	share := k.conv
	if p.class == FP32 {
		share *= k.plain
	}
	if m.Groups {
		share *= k.grouped
	}
	launches = 600
	if m.Regions {
		launches += k.proposal * or(p.r.Micro, 1)
	}
	return 6*m.GMACs*1e9/(share*p.rate) + m.Acts*1e6*p.wide*passes/p.band, launches
}

// optimiser is the seconds a unit in which weights, gradients and two moments are read and written once a step.
func (p *placed) optimiser() float64 {
	if p.r.Tuning() != shape.Full || p.m.Params <= 0 || !known(p.r.Micro) {
		return 0
	}
	shards := p.tp * p.pp
	if p.r.shares() || p.cut.FSDP > 0 || p.pp > 1 || p.tp > 1 {
		shards = p.count
	}
	return 28 * p.m.Params / shards / p.band / (p.step / (p.tp * p.pp))
}

// bubble is by how much the stages of a pipeline wait for each other: 1 is not at all.
func (p *placed) bubble() float64 {
	if p.pp <= 1 || !known(p.r.Global) || !known(p.r.Micro) {
		return 1
	}
	micros := math.Max(1, p.r.Global*p.tp*p.pp*p.cp/p.count/p.r.Micro)
	return 1 + (p.pp-1)/(micros*math.Max(1, p.cut.VP))
}

// exchanging is the seconds a unit in which gradients and shards are exchanged.
//
//	no sharding, and stage 1   gradients summed once a step      2 · bytes · P
//	stages 2 and 3             weights twice, gradients, a batch 6P
//	frozen weights             gradients of 0.2 % once a step    0.002 · 2 · bytes · P
//	frozen weights, stage 3    weights twice a batch             4P, a quarter of it in 4 bits
func (k *physics) exchanging(p *placed) float64 {
	r, m := p.r, p.m
	if p.count < 2 || m.Params <= 0 || math.IsNaN(p.load) || or(r.Micro, 0) == 0 {
		return 0
	}
	bytes, per := 2*p.wide*m.Params/(p.tp*p.pp), p.step
	stage, frozen := r.stage(p.cut), r.Tuning() != shape.Full
	switch {
	case frozen && stage < 3:
		bytes *= smallShare
	case frozen && r.fourBit():
		bytes, per = m.Params/p.tp, p.load
	case frozen:
		bytes, per = 4*m.Params/p.tp, p.load
	case r.shares() && stage >= 2:
		bytes, per = 6*m.Params/p.tp, p.load
	}
	return bytes * (p.count - 1) / p.count / k.joined(p, p.count) / (per / (p.tp * p.pp))
}

// rack says whether the accelerator's links reach beyond a machine.
func (c *Chip) rack() bool {
	return strings.HasPrefix(c.Name, "GB") || strings.HasPrefix(c.Name, "TPU")
}

// token is the accelerator-seconds of a token of a transformer.
func (k *physics) token(p *placed) float64 {
	r, m := p.r, p.m
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
	again, anew := recomputed(r, tuning)
	t := ops * again / (k.reached(p, d) * p.rate)
	t += (all - ops) * anew / (k.attention * p.half)
	moved := l*d*k.traffic*p.wide/2*again + 16*m.Vocab
	if s <= 512 && m.Heads > 0 {
		moved += l * m.Heads * s * p.wide * k.unfused
	}
	if m.TopK > 0 {
		moved += l * d * m.TopK * k.routing
	}
	t += moved / p.band
	if p.tp > 1 {
		t += 8 * p.wide * l * d * (p.tp - 1) / k.joined(p, p.tp)
	}
	if n := p.tp * p.pp; p.pp > 1 && r.Host.apart(n) { // what a stage hands to the next leaves the machine
		t += 2 * p.wide * d * p.tp * (p.pp - 1) * p.each / k.between(p)
	}
	return t + k.routed(p, l*d)
}

// recomputed is how often products and attention are computed under activation checkpointing, against once.
func recomputed(r *Row, tuning shape.Tuning) (again, anew float64) {
	switch {
	case r.Ckpt == "full" && tuning != shape.Full:
		return 1.5, 4.0 / 3
	case r.Ckpt == "full":
		return 4.0 / 3, 4.0 / 3
	case strings.HasPrefix(r.Ckpt, "selective"):
		return 1.08, 1.15
	}
	return 1, 1
}

// reached is the share of the product rate that the layers of a transformer d wide reach.
func (k *physics) reached(p *placed, d float64) float64 {
	tokens := p.r.Micro * p.r.Seq
	if !known(tokens) {
		tokens = 8192 // a batch that fills the accelerator
	}
	// What memory feeds more slowly than it is computed needs wider matrices and
	// more tokens, so both grow with the operations a byte.
	tight := math.Pow(p.rate/p.band/even, k.balance)
	good := k.product * d / (d + k.narrow*tight) * tokens / (tokens + k.few*tight)
	if p.m.Kind == shape.Experts {
		f := p.m.FF
		if f <= 0 {
			f = d
		}
		good *= f / (f + k.expert)
	}
	return good
}

// routed is the seconds a token in which it is sent to experts elsewhere; ld is layers times width.
func (k *physics) routed(p *placed, ld float64) float64 {
	ep := p.cut.EP
	if p.m.TopK <= 0 || p.c.Link <= 0 || !(ep > 1) {
		return 0
	}
	at := p.link * k.exchange
	switch h := p.r.Host; {
	case !(ep > p.each):
	case h != nil && h.Each > 0: // each accelerator has its part of the network
		at = math.Min(at, k.between(p)/p.each)
	default:
		at = math.Min(p.link, k.network*1e9)
	}
	return 8 * ld * math.Min(p.m.TopK, ep) * (ep - 1) / ep / at
}
