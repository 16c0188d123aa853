package main

import "math"

// shape is the size of the model. A batch consists of rows of context tokens.
type shape struct {
	Vocab   int `json:"vocab"`
	Context int `json:"context"`
	Width   int `json:"width"`
	Layers  int `json:"layers"`
	Heads   int `json:"heads"`
	Batch   int `json:"batch"`
}

// layer holds a block's parameters, or their gradients, as views into one slice.
type layer struct {
	gain1, qkv, proj []float64 // d, 3d×d, d×d
	gain2, up, down  []float64 // d, 4d×d, d×4d
}

// tensors holds all parameters, or all gradients, as views into flat.
type tensors struct {
	flat     []float64
	token    []float64 // vocab×d
	position []float64 // context×d
	layers   []layer
	gain     []float64 // d
	head     []float64 // vocab×d
}

func newTensors(s shape) *tensors {
	d := s.Width
	t := &tensors{}
	t.flat = make([]float64, 2*s.Vocab*d+s.Context*d+d+s.Layers*(2*d+12*d*d))
	rest := t.flat
	take := func(n int) []float64 {
		v := rest[:n:n]
		rest = rest[n:]
		return v
	}
	t.token = take(s.Vocab * d)
	t.position = take(s.Context * d)
	for range s.Layers {
		t.layers = append(t.layers, layer{
			gain1: take(d), qkv: take(3 * d * d), proj: take(d * d),
			gain2: take(d), up: take(4 * d * d), down: take(4 * d * d),
		})
	}
	t.gain = take(d)
	t.head = take(s.Vocab * d)
	return t
}

// start initialises the parameters: gains with 1, the rest uniform around 0 with the usual standard deviation of each
// place.
func (t *tensors) start(s shape, r *splitmix) {
	fill := func(w []float64, deviation float64) {
		for i := range w {
			w[i] = float64((r.uniform() - 0.5) * math.Sqrt(12) * deviation)
		}
	}
	ones := func(w []float64) {
		for i := range w {
			w[i] = 1
		}
	}
	d := float64(s.Width)
	fill(t.token, 0.3)
	fill(t.position, 0.1)
	for _, l := range t.layers {
		ones(l.gain1)
		fill(l.qkv, 1/math.Sqrt(d))
		fill(l.proj, 0.3/math.Sqrt(d))
		ones(l.gain2)
		fill(l.up, 1/math.Sqrt(d))
		fill(l.down, 0.1/math.Sqrt(d))
	}
	ones(t.gain)
	fill(t.head, 0.1/math.Sqrt(d))
}

// block holds what a layer's forward pass stores for its backward pass.
type block struct {
	in, norm1, inv1, qkv []float64
	odds, mix            []float64 // odds: rows·heads·context·context
	mid, norm2, inv2     []float64
	up, act              []float64
}

// model computes loss and gradients of one batch; it is not safe for concurrent use.
type model struct {
	shape  shape
	params *tensors
	grads  *tensors

	blocks             []block
	out, normed, inv   []float64
	logits             []float64
	dx, dnorm, dmix    []float64
	dqkv, dup, dlogits []float64
	wT, xT, doutT      []float64 // transposes, each as large as the largest
}

func newModel(s shape) *model {
	n, d := s.Batch*s.Context, s.Width
	f := func(k int) []float64 { return make([]float64, k) }
	m := &model{shape: s, params: newTensors(s), grads: newTensors(s)}
	for range s.Layers {
		m.blocks = append(m.blocks, block{
			in: f(n * d), norm1: f(n * d), inv1: f(n), qkv: f(n * 3 * d),
			odds: f(s.Batch * s.Heads * s.Context * s.Context), mix: f(n * d),
			mid: f(n * d), norm2: f(n * d), inv2: f(n), up: f(n * 4 * d), act: f(n * 4 * d),
		})
	}
	m.out, m.normed, m.inv = f(n*d), f(n*d), f(n)
	m.logits, m.dlogits = f(n*s.Vocab), f(n*s.Vocab)
	m.dx, m.dnorm, m.dmix = f(n*d), f(n*d), f(n*d)
	m.dqkv, m.dup = f(n*3*d), f(n*4*d)
	wide := max(4*d, s.Vocab)
	m.wT, m.xT, m.doutT = f(wide*d), f(n*wide), f(n*wide)
	return m
}

// forward stores in logits the model's prediction for the successor of each token. tokens are rows of length, at most
// Context.
func (m *model) forward(tokens []byte, length int) {
	s, d, n := m.shape, m.shape.Width, len(tokens)
	x := m.out[:n*d]
	if s.Layers > 0 {
		x = m.blocks[0].in[:n*d]
	}
	for i, c := range tokens {
		at, p := m.params.token[int(c)*d:][:d], m.params.position[(i%length)*d:][:d]
		for j := range d {
			x[i*d+j] = at[j] + p[j]
		}
	}
	for i := range m.blocks {
		b, l := &m.blocks[i], &m.params.layers[i]
		norm(b.norm1, b.in, l.gain1, b.inv1, n, d)
		matmul(b.qkv, b.norm1, l.qkv, n, 3*d, d, false)
		m.attend(b, n, length)
		copy(b.mid, b.in[:n*d])
		matmul(b.mid, b.mix, l.proj, n, d, d, true)
		norm(b.norm2, b.mid, l.gain2, b.inv2, n, d)
		matmul(b.up, b.norm2, l.up, n, 4*d, d, false)
		for j, v := range b.up[:n*4*d] {
			b.act[j] = 0
			if v > 0 {
				b.act[j] = float64(v * v)
			}
		}
		next := m.out
		if i+1 < len(m.blocks) {
			next = m.blocks[i+1].in
		}
		copy(next, b.mid[:n*d])
		matmul(next, b.act, l.down, n, d, 4*d, true)
	}
	norm(m.normed, m.out, m.params.gain, m.inv, n, d)
	matmul(m.logits, m.normed, m.params.head, n, s.Vocab, d, false)
}

// attend mixes each token's values with those before it.
func (m *model) attend(b *block, n, length int) {
	d, heads := m.shape.Width, m.shape.Heads
	hs := d / heads
	scale := 1 / math.Sqrt(float64(hs))
	for row := range n / length {
		for h := range heads {
			for t := range length {
				at := row*length + t
				q := b.qkv[at*3*d+h*hs:][:hs]
				odds := b.odds[((row*heads+h)*length+t)*length:][:t+1]
				for u := range odds {
					odds[u] = float64(dot(q, b.qkv[(row*length+u)*3*d+d+h*hs:][:hs]) * scale)
				}
				softmax(odds)
				mix := b.mix[at*d+h*hs:][:hs]
				clear(mix)
				for u, f := range odds {
					axpy(mix, b.qkv[(row*length+u)*3*d+2*d+h*hs:][:hs], f)
				}
			}
		}
	}
}

// loss returns the mean cross-entropy of targets, in nats per token, under the logits of the last forward pass, and
// stores its gradient in dlogits.
func (m *model) loss(targets []byte) float64 {
	v, n := m.shape.Vocab, len(targets)
	var sum float64
	f := 1 / float64(n)
	for i, c := range targets {
		row := m.dlogits[i*v:][:v]
		copy(row, m.logits[i*v:][:v])
		at := row[c]
		sum += softmax(row) - at
		row[c]--
		for j, p := range row {
			row[j] = float64(p * f)
		}
	}
	return float64(sum * f)
}

// backward fills grads from dlogits, for the tokens of the last forward pass.
func (m *model) backward(tokens []byte, length int) {
	s, d, n := m.shape, m.shape.Width, len(tokens)
	clear(m.grads.flat)
	dnorm, dx := m.dnorm[:n*d], m.dx[:n*d]
	clear(dnorm)
	m.matmulBack(dnorm, m.grads.head, m.dlogits, m.normed, m.params.head, n, s.Vocab, d)
	clear(dx)
	normBack(dx, m.grads.gain, dnorm, m.out, m.params.gain, m.inv, n, d)
	for i := len(m.blocks) - 1; i >= 0; i-- {
		b, l, g := &m.blocks[i], &m.params.layers[i], &m.grads.layers[i]
		dup := m.dup[:n*4*d]
		clear(dup)
		m.matmulBack(dup, g.down, dx, b.act, l.down, n, d, 4*d)
		for j, v := range b.up[:n*4*d] {
			if v > 0 {
				dup[j] = float64(dup[j] * 2 * v)
			} else {
				dup[j] = 0
			}
		}
		clear(dnorm)
		m.matmulBack(dnorm, g.up, dup, b.norm2, l.up, n, 4*d, d)
		normBack(dx, g.gain2, dnorm, b.mid, l.gain2, b.inv2, n, d)

		clear(m.dmix[:n*d])
		m.matmulBack(m.dmix, g.proj, dx, b.mix, l.proj, n, d, d)
		m.attendBack(b, n, length)
		clear(dnorm)
		m.matmulBack(dnorm, g.qkv, m.dqkv, b.norm1, l.qkv, n, 3*d, d)
		normBack(dx, g.gain1, dnorm, b.in, l.gain1, b.inv1, n, d)
	}
	for i, c := range tokens {
		from := dx[i*d:][:d]
		axpy(m.grads.token[int(c)*d:][:d], from, 1)
		axpy(m.grads.position[(i%length)*d:][:d], from, 1)
	}
}

// matmulBack adds the gradients of out = x·wᵀ (x n×k, w o×k) to dx and dw.
func (m *model) matmulBack(dx, dw, dout, x, w []float64, n, o, k int) {
	transpose(m.wT, w, o, k)
	matmul(dx, dout, m.wT, n, k, o, true)
	transpose(m.doutT, dout, n, o)
	transpose(m.xT, x, n, k)
	matmul(dw, m.doutT, m.xT, o, k, n, true)
}

// attendBack writes to dqkv the gradient of attend, given the gradient of mix in dmix.
func (m *model) attendBack(b *block, n, length int) {
	d, heads := m.shape.Width, m.shape.Heads
	hs := d / heads
	scale := 1 / math.Sqrt(float64(hs))
	clear(m.dqkv[:n*3*d])
	for row := range n / length {
		for h := range heads {
			for t := range length {
				at := row*length + t
				odds := b.odds[((row*heads+h)*length+t)*length:][:t+1]
				dmix := m.dmix[at*d+h*hs:][:hs]
				score := m.doutT[:t+1]
				var s float64
				for u, p := range odds {
					from := (row*length+u)*3*d + 2*d + h*hs
					score[u] = dot(dmix, b.qkv[from:][:hs])
					s += float64(score[u] * p)
					axpy(m.dqkv[from:][:hs], dmix, p)
				}
				q, dq := b.qkv[at*3*d+h*hs:][:hs], m.dqkv[at*3*d+h*hs:][:hs]
				for u, p := range odds {
					from := (row*length+u)*3*d + d + h*hs
					f := float64(p * (score[u] - s) * scale)
					axpy(dq, b.qkv[from:][:hs], f)
					axpy(m.dqkv[from:][:hs], q, f)
				}
			}
		}
	}
}
