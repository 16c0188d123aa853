// Package physics computes the memory and the time of a run by arithmetic: from its operations and bytes, and the
// figures of its accelerators.
package physics

import (
	"math"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// Constants holds the constants of the physical part. They are few, each has its own meaning, and none belongs to a
// model, a source or an accelerator.
type Constants struct {
	Product   float64 // share of the measured product rate reached by long products
	Narrow    float64 // width at which half of that is left
	Few       float64 // tokens per micro-batch at which half of that is left
	Attention float64 // share of the product rate reached by attention, with all pairs counted
	Traffic   float64 // bytes moved by non-products per layer, unit of width and token
	Unfused   float64 // times the attention matrix is moved where it is stored (s <= 512)
	Routing   float64 // bytes moved by routing per layer, expert, unit of width and token
	Expert    float64 // width of an expert at which half the product rate is left
	Passes    float64 // times a convolution's output is moved, forward and backward
	Deep      float64 // passes for depthwise convolutions
	Conv      float64 // share of the measured product rate reached by convolutions
	Launch    float64 // seconds to start a kernel
	Link      float64 // share of a link within a machine that is used
	Network   float64 // GB/s per accelerator used between machines
	Overlap   float64 // exponent for combining computing and exchange: 1 sequential, ∞ the longer one
	Small     float64 // share of the product rate of sequences computed word by word
	Balance   float64 // exponent by which narrow and few grow with the accelerator's operations per byte; 0: none
	Plain     float64 // factor on conv of 32-bit convolutions without matrix units (Winograd saves products)
	Exchange  float64 // share of a link reached by experts, where all send to all
	Grouped   float64 // factor on conv of convolutions in many small groups
	Proposal  float64 // kernels started per image where regions are proposed first
}

// Fitted holds the current values, fitted on the error of groups and whole sources left out of the public runs
// (TestSettle).
var Fitted = Constants{
	Product: 0.857, Narrow: 245, Few: 1040, Attention: 0.64, Traffic: 306, Unfused: 4.18,
	Routing: 32.7, Expert: 557, Passes: 21.1, Deep: 60, Conv: 0.542, Launch: 19.2e-6,
	Link: 0.527, Network: 141, Overlap: 2.49, Small: 0.27, Balance: 0.27,
	Plain: 1.79, Exchange: 0.757, Grouped: 0.576, Proposal: 1810,
}

// even is the accelerator for which narrow and few are stated, as operations per byte of memory in 16 bit: A100, 312e12
// a second over 2.0e12 bytes a second.
const even = 156

// placed is a run on an accelerator, in the units of the arithmetic.
type placed struct {
	r          *runs.Row
	m          *shape.Model
	c          *hardware.Chip
	class      hardware.Precision
	cut        runs.Parallel
	tp, pp, cp float64
	count      float64
	band, link float64 // bytes a second: of memory, of a link between accelerators
	rate, half float64 // operations a second of long products: in the run's precision, and in 16 bit
	wide       float64 // bytes per value
	load       float64 // units in an accelerator's memory at a time
	step       float64 // units per replica between two gradient exchanges
	each       float64 // accelerators that the link joins: those of a machine, or of a whole rack
}

func place(r *runs.Row, m *shape.Model, c *hardware.Chip, class hardware.Precision, peak, count float64) placed {
	p := placed{r: r, m: m, c: c, class: class, cut: runs.ParseParallel(r.Parallel), count: count,
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
	if rack(c) {
		p.each = math.Inf(1)
	}
	p.tp, p.pp, p.cp = math.Max(1, p.cut.TP), math.Max(1, p.cut.PP), math.Max(1, p.cut.CP)
	p.rate = c.Ceiling() * peak * 1e12
	if class == hardware.FP32 {
		p.rate = 0.95 * peak * 1e12 // vector units reach their stated rate
	}
	full := class == hardware.FP32 || class == hardware.TF32
	half, ok := c.Peak(hardware.Half)
	if !ok || full {
		half = peak
	}
	p.half = half * c.Ceiling() * 1e12
	if full {
		p.wide = 4
	}
	units := UnitsOf(*r, *m)
	p.load = runs.Or(r.Micro, 1) * units / p.cp
	p.step = math.Max(p.load, runs.Or(r.Global, 0)*units/count*p.tp*p.pp)
	if !runs.Known(r.Global) {
		p.step = p.load
	}
	return p
}

// Unit returns the accelerator-seconds of one unit of throughput (a token, an image) and, separately, the seconds of
// its exchange of gradients and shards.
func (k *Constants) Unit(r runs.Row, m shape.Model, c hardware.Chip, class hardware.Precision, peak, count float64) (
	t, comm float64,
) {
	p := place(&r, &m, &c, class, peak, count)
	if m.Kind == Rated {
		t, _ = k.Bound(m, p.rate, p.band, p.wide)
		return t, 0 // the measured rate includes the rest of a step
	}
	t, launches := k.computing(&p)
	if runs.Known(r.Micro) {
		// Kernel starts and computing overlap in part.
		t = math.Sqrt(t*t + square1(launches*k.Launch/p.load))
	}
	t += p.optimiser()
	t *= p.bubble()
	return t, k.exchanging(&p)
}

func square1(v float64) float64 { return v * v }

// computing returns the accelerator-seconds of a unit in kernels, and the kernels started per step.
func (k *Constants) computing(p *placed) (t, launches float64) {
	m := p.m
	switch {
	case m.Kind == shape.Transformer || m.Kind == shape.Experts || m.Kind == shape.Segments:
		t = k.token(p)
		launches = 60 * m.Deep()
		if m.Kind == shape.Segments {
			launches *= 2 // relative positions need separate products and shifts
		}
		if !m.Tokens(p.r.Unit) {
			t *= runs.Or(p.r.Seq, 1)
		}
		return t, launches
	case m.GMACs > 0:
		return k.image(p)
	case m.Kind == shape.Recurrent:
		launches = 25 * 8 * 6 // words, layers, kernels
		if strings.HasPrefix(p.r.Unit, "mel") {
			launches = 860 * 250 // frames of the longest utterance, kernels per frame
		}
		return p.ops(1) / (k.Small * p.rate), launches
	}
	return p.ops(runs.Or(p.r.Seq, 1))/(k.Product*p.rate) + m.Acts*1e6*p.wide*k.Passes/p.band, 100
}

// ops returns the operations of a unit at the given length, or those of a typical model if the shape is unknown.
func (p *placed) ops(seq float64) float64 {
	if ops, ok := p.m.Ops(seq, shape.Full, false); ok {
		return ops
	}
	return shape.Typical(p.m.Kind)
}

// image returns the accelerator-seconds of an image of a convolutional model, and the kernels of a step.
func (k *Constants) image(p *placed) (t, launches float64) {
	m := p.m
	passes := k.Passes
	if m.Depth {
		passes = k.Deep
	}
	share := k.Conv
	if p.class == hardware.FP32 {
		share *= k.Plain
	}
	if m.Groups {
		share *= k.Grouped
	}
	launches = 600
	if m.Regions {
		launches += k.Proposal * runs.Or(p.r.Micro, 1)
	}
	return 6*m.GMACs*1e9/(share*p.rate) + m.Acts*1e6*p.wide*passes/p.band, launches
}

// optimiser returns the seconds per unit for reading and writing weights, gradients and two moments once a step.
func (p *placed) optimiser() float64 {
	if p.r.Tuning() != shape.Full || p.m.Params <= 0 || !runs.Known(p.r.Micro) {
		return 0
	}
	shards := p.tp * p.pp
	if shares(*p.r) || p.cut.FSDP > 0 || p.pp > 1 || p.tp > 1 {
		shards = p.count
	}
	return 28 * p.m.Params / shards / p.band / (p.step / (p.tp * p.pp))
}

// bubble returns the factor by which pipeline stages wait for each other; 1 means not at all.
func (p *placed) bubble() float64 {
	if p.pp <= 1 || !runs.Known(p.r.Global) || !runs.Known(p.r.Micro) {
		return 1
	}
	micros := math.Max(1, p.r.Global*p.tp*p.pp*p.cp/p.count/p.r.Micro)
	return 1 + (p.pp-1)/(micros*math.Max(1, p.cut.VP))
}

// exchanging returns the seconds per unit for exchanging gradients and shards.
//
//	no sharding, and stage 1   gradients summed once a step      2 · bytes · P
//	stages 2 and 3             weights twice, gradients, a batch 6P
//	frozen weights             gradients of 0.2 % once a step    0.002 · 2 · bytes · P
//	frozen weights, stage 3    weights twice a batch             4P, a quarter of it in 4 bits
func (k *Constants) exchanging(p *placed) float64 {
	r, m := p.r, p.m
	if p.count < 2 || m.Params <= 0 || math.IsNaN(p.load) || runs.Or(r.Micro, 0) == 0 {
		return 0
	}
	bytes, per := 2*p.wide*m.Params/(p.tp*p.pp), p.step
	zero, frozen := stage(*r, p.cut), r.Tuning() != shape.Full
	switch {
	case frozen && zero < 3:
		bytes *= smallShare
	case frozen && fourBit(*r):
		bytes, per = m.Params/p.tp, p.load
	case frozen:
		bytes, per = 4*m.Params/p.tp, p.load
	case shares(*r) && zero >= 2:
		bytes, per = 6*m.Params/p.tp, p.load
	}
	return bytes * (p.count - 1) / p.count / k.joined(p, p.count) / (per / (p.tp * p.pp))
}

// token returns the accelerator-seconds of a token of a transformer.
func (k *Constants) token(p *placed) float64 {
	r, m := p.r, p.m
	s, d, l := runs.Or(r.Seq, 1), m.Wide(), m.Deep()
	if m.Kind == shape.Segments {
		s = 384 // a segment of 192 and the previous one
	}
	tuning := r.Tuning()
	ops, ok := m.Ops(0, tuning, false)
	all, _ := m.Ops(s, tuning, false)
	if !ok {
		ops, all = shape.Typical(m.Kind), shape.Typical(m.Kind)
	}
	again, anew := recomputed(r, tuning)
	t := ops * again / (k.reached(p, d) * p.rate)
	t += (all - ops) * anew / (k.Attention * p.half)
	moved := l*d*k.Traffic*p.wide/2*again + 16*m.Vocab
	if s <= 512 && m.Heads > 0 {
		moved += l * m.Heads * s * p.wide * k.Unfused
	}
	if m.TopK > 0 {
		moved += l * d * m.TopK * k.Routing
	}
	t += moved / p.band
	if p.tp > 1 {
		t += 8 * p.wide * l * d * (p.tp - 1) / k.joined(p, p.tp)
	}
	if n := p.tp * p.pp; p.pp > 1 && r.Host.Apart(n) { // the activations between stages leave the machine
		t += 2 * p.wide * d * p.tp * (p.pp - 1) * p.each / k.between(p)
	}
	return t + k.routed(p, l*d)
}

// recomputed returns how often products and attention are computed under activation checkpointing, relative to once.
func recomputed(r *runs.Row, tuning shape.Tuning) (again, anew float64) {
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

// reached returns the share of the product rate that the layers of a transformer of width d reach.
func (k *Constants) reached(p *placed, d float64) float64 {
	tokens := p.r.Micro * p.r.Seq
	if !runs.Known(tokens) {
		tokens = 8192 // a batch that fills the accelerator
	}
	// An accelerator that computes fast relative to its memory needs wider matrices and more tokens, so both grow with
	// the operations per byte.
	tight := math.Pow(p.rate/p.band/even, k.Balance)
	good := k.Product * d / (d + k.Narrow*tight) * tokens / (tokens + k.Few*tight)
	if p.m.Kind == shape.Experts {
		f := p.m.FF
		if f <= 0 {
			f = d
		}
		good *= f / (f + k.Expert)
	}
	return good
}

// routed returns the seconds per token for sending it to experts elsewhere; ld is layers times width.
func (k *Constants) routed(p *placed, ld float64) float64 {
	ep := p.cut.EP
	if p.m.TopK <= 0 || p.c.Link <= 0 || !(ep > 1) {
		return 0
	}
	at := p.link * k.Exchange
	switch h := p.r.Host; {
	case !(ep > p.each):
	case h != nil && h.Each > 0: // each accelerator has its share of the network
		at = math.Min(at, k.between(p)/p.each)
	default:
		at = math.Min(p.link, k.Network*1e9)
	}
	return 8 * ld * math.Min(p.m.TopK, ep) * (ep - 1) / ep / at
}

// between returns the bytes per second of a machine's network that exchanges use.
func (k *Constants) between(p *placed) float64 {
	h := p.r.Host
	switch {
	case h == nil || h.Each <= 0:
	case h.Network > 0:
		return k.Link * h.Network / 8 * 1e9
	case h.Each < 8:
		return k.Link * hardware.SlowNetwork / 8 * 1e9
	}
	return k.Network * 1e9
}

// joined returns the bytes per second that an exchange among the given number of accelerators reaches. A ring passes
// through all accelerators of a machine and leaves it over its whole network.
//
// Example: eight A10G in one g5.48xlarge: 0.527 · 32 = 16.9 GB/s; in eight g5.xlarge with 2.5 Gbit/s: 0.527 · 0.31 =
// 0.16 GB/s.
func (k *Constants) joined(p *placed, among float64) float64 {
	link := p.link * k.Link
	if among > p.each {
		link = math.Min(link, k.between(p))
	}
	return link
}

// rack reports whether the accelerator's links reach beyond a machine.
func rack(c *hardware.Chip) bool {
	return strings.HasPrefix(c.Name, "GB") || strings.HasPrefix(c.Name, "TPU")
}

// UnitsOf returns the units of throughput in a sample.
func UnitsOf(r runs.Row, m shape.Model) float64 {
	switch {
	case strings.HasPrefix(r.Unit, "tokens") && (m.Kind == shape.Transformer || m.Kind == shape.Experts):
		return runs.Or(r.Seq, 2048)
	case strings.HasPrefix(r.Unit, "tokens") && m.Kind == shape.Recurrent:
		return 50 // a sentence pair of WMT
	case strings.HasPrefix(r.Unit, "tokens") && m.Kind == shape.Segments:
		return 192
	case strings.HasPrefix(r.Unit, "mel"):
		return 600 // frames of an utterance of LJSpeech, 7 s at 86 a second
	}
	return 1
}

// TableColumns returns the columns of a table, by default the usual number.
func TableColumns(features float64) float64 {
	if features > 0 {
		return features
	}
	return UsualColumns
}

// UsualColumns is the default number of columns of a table for boosted trees.
const UsualColumns = 12
