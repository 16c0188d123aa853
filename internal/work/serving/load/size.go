package load

import (
	"fmt"
	"math"
	"strings"

	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
)

// A Format is how weights are kept in memory. Products are computed in 16 bit in each of them.
type Format struct {
	Name  string
	Bytes float64 // of a parameter
}

// Formats are the formats from the widest on. int4 keeps a 16 bit scale and a zero point for each group of 128
// parameters: 4 + 20/128 bits.
var Formats = []Format{{"fp16", 2}, {"int8", 1}, {"int4", (4 + 20.0/128) / 8}}

// ParseFormats reads names separated by commas.
func ParseFormats(text string) (list []Format, err error) {
	named := map[string]bool{}
	for name := range strings.SplitSeq(text, ",") {
		named[strings.ToLower(strings.TrimSpace(name))] = true
	}
	for _, f := range Formats {
		if named[f.Name] {
			list = append(list, f)
			delete(named, f.Name)
		}
	}
	if len(named) > 0 || len(list) == 0 {
		return nil, fmt.Errorf("%.60q: formats are fp16, int8 and int4, separated by commas", text)
	}
	return list, nil
}

// fill is the share of an accelerator's memory that weights and caches may take. The rest holds the context of the
// driver, activations and fragments.
const fill = 0.9

// MaxBatch is the largest batch that is tried.
const MaxBatch = 64

// A Model is what serving a model takes, for the requests of one trace.
type Model struct {
	Shape   shape.Model
	Context float64   // tokens of the longest request; 0: the model reads no tokens
	flops   []float64 // of each request's prompt, or of its one pass; nil: once is that of all
	once    float64
	read    []float64 // bytes of cache that decoding a request reads; nil where nothing is decoded
	steps   []int32   // tokens that are decoded after the first; nil: none
	tokens  []float64 // in and out; nil: perPass is that of all
	perPass float64
}

// TooLongError is the error of a trace with a request that is longer than the model's context.
type TooLongError struct{ Text string }

func (e *TooLongError) Error() string { return e.Text }

// ModelOf prepares a model for a trace. It is an error where scrimp does not know how long the model takes, and where a
// request is longer than its context.
func ModelOf(m shape.Model, t Trace) (*Model, error) {
	v := &Model{Shape: m}
	ops, ok := m.Ops(m.Seq(), shape.Full, true)
	switch {
	case !ok || m.Kind == shape.Trees || !m.Text() && m.GMACs <= 0 || m.Params <= 0:
		return nil, fmt.Errorf("--model %s: scrimp has no formula for the time that it takes: measure it (--measured)",
			m.Name)
	case !m.Text():
		v.once = ops / 3 // a training step is three times the forward pass
		return v, nil
	case m.Image:
		v.once, v.perPass, v.Context = ops/3*m.Seq(), m.Seq(), m.Seq()
		return v, nil
	case t.In == nil:
		return nil, fmt.Errorf("--model %s reads tokens, and the trace has no column input_tokens: add it, or measure "+
			"(--measured)", m.Name)
	}
	v.Context = float64(t.Longest())
	if most, ok := m.Context(); ok && v.Context > most {
		return nil, &TooLongError{fmt.Sprintf("--model %s takes %.0f tokens, and the longest request of the trace has %.0f, "+
			"in and out: give requests that it can answer, or a model with a longer context", m.Name, most, v.Context)}
	}
	for i := range t.At {
		in, out := float64(t.in(i)), math.Max(0, float64(t.out(i)-1))
		ops, _ := m.Ops(in, shape.Full, true)
		v.flops = append(v.flops, in*ops/3)
		v.tokens = append(v.tokens, in+out)
		if t.Out != nil {
			v.steps = append(v.steps, int32(out))
			v.read = append(v.read, v.cache()*out*(in+out/2))
		}
	}
	return v, nil
}

// cache is the bytes of keys and values of one token: 2 · layers · width of the key heads · 2 bytes.
//
// Worked: Llama-3-8B: 2 · 32 · 8 · 128 · 2 = 131,072.
func (m *Model) cache() float64 {
	s := m.Shape
	if !s.Text() || s.Image {
		return 0
	}
	width := s.HeadsWidth()
	if s.KV > 0 && s.Heads > 0 {
		width *= s.KV / s.Heads
	}
	return 2 * s.Deep() * width * 2
}

// each is the bytes that one request of a batch takes beside the weights, at most.
func (m *Model) each() float64 {
	held := m.Context
	if w := m.Shape.Window; w > 0 {
		held = math.Min(held, w)
	}
	return held*m.cache() + m.Shape.Acts*1e6*2
}

// Each returns the bytes that each request of a batch takes beside the weights, at most.
func (m *Model) Each() size.Bytes { return size.Bytes(math.Round(m.each())) }

// A Fit is how a model lies in the memory of a machine.
type Fit struct {
	Format  Format
	Shards  int // accelerators that hold one copy together
	Copies  int // in the machine: each answers one batch at a time
	Batch   int // largest that the memory holds
	Weights size.Bytes
	Need    size.Bytes // weights and the cache of one longest request
	Have    size.Bytes // memory of the accelerators of one copy that may be filled
}

// Fits returns how the model lies in a machine: in the widest of the formats that fits, on the fewest accelerators. It
// is false where the model is larger than the machine, with what it needs in the narrowest format.
func (m *Model) Fits(formats []Format, a accelerator.Accelerator, count int) (f Fit, ok bool) {
	have := float64(a.Usable()) * fill
	for _, format := range formats {
		weights := m.Shape.Params * format.Bytes
		for shards := 1; shards <= count; shards *= 2 {
			f = Fit{Format: format, Shards: shards, Copies: count / shards, Weights: size.Bytes(math.Round(weights)),
				Need: size.Bytes(math.Round(weights + m.each())), Have: size.Bytes(have * float64(shards))}
			left := have*float64(shards) - weights
			if left < m.each() || left <= 0 {
				if !m.Shape.Text() {
					break
				}
				continue
			}
			f.Batch = MaxBatch
			if m.each() > 0 {
				f.Batch = int(math.Min(MaxBatch, left/m.each()))
			}
			return f, true
		}
	}
	return f, false
}

// Needs returns the memory that the model needs in the narrowest of the formats, with the cache of one request.
func (m *Model) Needs(formats []Format) size.Bytes {
	return size.Bytes((m.Shape.Params*formats[len(formats)-1].Bytes + m.each()) / fill)
}
