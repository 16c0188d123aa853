package onnxrun

import (
	"math"
	"math/rand/v2"
	"strings"

	"scrimp/internal/work/onnx"
)

// glyphs are the ten digits in 5 by 7 pixels.
const glyphs = `
.###. ..#.. .###. .###. ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..`

const (
	pixels  = 64 // 8 by 8
	hidden  = 256
	classes = 10
)

// Sample is an image of a digit.
type Sample struct {
	Pixels [pixels]float64
	Digit  int
}

// Digits draws n images: each a shifted glyph with noise.
func Digits(n int, seed uint64) []Sample {
	rng := rand.New(rand.NewPCG(seed, 1))
	rows := strings.Split(strings.TrimSpace(glyphs), "\n")
	list := make([]Sample, n)
	for i := range list {
		s := &list[i]
		s.Digit = rng.IntN(classes)
		dx, dy := rng.IntN(4), rng.IntN(2)
		for j := range s.Pixels {
			s.Pixels[j] = 0.3 * rng.NormFloat64()
			if x, y := j%8-dx, j/8-dy; x >= 0 && x < 5 && y >= 0 && y < 7 && rows[y][6*s.Digit+x] == '#' {
				s.Pixels[j]++
			}
		}
	}
	return list
}

// mlp is a network with one hidden layer. Weights have the shape outputs by inputs, as PyTorch exports them.
type mlp struct{ w1, b1, w2, b2 []float64 }

func (m *mlp) forward(x []float64) (h, y []float64) {
	h, y = make([]float64, hidden), make([]float64, classes)
	for i := range h {
		h[i] = m.b1[i]
		for j, v := range x {
			h[i] += m.w1[i*pixels+j] * v
		}
		h[i] = max(0, h[i])
	}
	for i := range y {
		y[i] = m.b2[i]
		for j, v := range h {
			y[i] += m.w2[i*hidden+j] * v
		}
	}
	return h, softmax(Value{[]int{classes}, y}).V
}

func (m *mlp) step(s Sample, rate float64) {
	h, y := m.forward(s.Pixels[:])
	y[s.Digit]--
	back := make([]float64, hidden)
	for i, d := range y {
		for j, v := range h {
			back[j] += d * m.w2[i*hidden+j]
			m.w2[i*hidden+j] -= rate * d * v
		}
		m.b2[i] -= rate * d
	}
	for i, v := range h {
		if v == 0 {
			continue
		}
		for j, x := range s.Pixels {
			m.w1[i*pixels+j] -= rate * back[i] * x
		}
		m.b1[i] -= rate * back[i]
	}
}

// Classifier trains a classifier of digits and returns it as an ONNX model of opset 17 with any batch.
func Classifier(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 2))
	normal := func(n int, size float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = size * rng.NormFloat64()
		}
		return v
	}
	m := &mlp{normal(hidden*pixels, math.Sqrt(2.0/pixels)), make([]float64, hidden),
		normal(classes*hidden, math.Sqrt(2.0/hidden)), make([]float64, classes)}
	for epoch := range 4 {
		for _, s := range Digits(3000, seed) {
			m.step(s, 0.02/float64(1+epoch))
		}
	}
	g := &Graph{Opset: 17}
	g.Value(false, "pixels", -1, pixels)
	g.Value(true, "odds", -1, classes)
	g.Floats("fc1.weight", false, narrow(m.w1), hidden, pixels)
	g.Floats("fc1.bias", false, narrow(m.b1), hidden)
	g.Floats("fc2.weight", false, narrow(m.w2), classes, hidden)
	g.Floats("fc2.bias", false, narrow(m.b2), classes)
	g.Node("Gemm", []string{"pixels", "fc1.weight", "fc1.bias"}, "h", Int("transB", 1))
	g.Node("Relu", []string{"h"}, "r")
	g.Node("Gemm", []string{"r", "fc2.weight", "fc2.bias"}, "y", Int("transB", 1))
	g.Node("Softmax", []string{"y"}, "odds", Int("axis", 1))
	return g.Bytes()
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// Accuracy returns the share of samples that a classifier reads correctly, one at a time.
func Accuracy(m *onnx.Model, list []Sample) (float64, error) {
	right := 0
	for _, s := range list {
		y, err := Run(m, Value{[]int{1, pixels}, s.Pixels[:]})
		if err != nil {
			return 0, err
		}
		best := 0
		for i, v := range y.V {
			if v > y.V[best] {
				best = i
			}
		}
		if best == s.Digit {
			right++
		}
	}
	return float64(right) / float64(len(list)), nil
}
