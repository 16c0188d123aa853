package main

import (
	"math"
	"slices"
	"testing"
)

// The analytic gradient of every kind of parameter equals the slope of the loss.
func TestBackward_IsTheSlopeOfTheLoss(t *testing.T) {
	s := shape{Vocab: 11, Context: 5, Width: 8, Layers: 2, Heads: 2, Batch: 3}
	m := newModel(s)
	r := splitmix(7)
	m.params.start(s, &r)
	for i := range m.params.flat { // gains other than 1, and no layer near zero
		m.params.flat[i] += 0.3 * (r.uniform() - 0.5)
	}
	tokens, targets := make([]byte, s.Batch*s.Context), make([]byte, s.Batch*s.Context)
	for i := range tokens {
		tokens[i], targets[i] = byte(r.below(s.Vocab)), byte(r.below(s.Vocab))
	}
	loss := func() float64 {
		m.forward(tokens, s.Context)
		return m.loss(targets)
	}
	loss()
	m.backward(tokens, s.Context)
	got := slices.Clone(m.grads.flat)

	const h = 1e-5
	var worst, size float64
	for i, g := range got {
		keep := m.params.flat[i]
		m.params.flat[i] = keep + h
		up := loss()
		m.params.flat[i] = keep - h
		down := loss()
		m.params.flat[i] = keep
		want := (up - down) / (2 * h)
		worst = max(worst, math.Abs(g-want))
		size = max(size, math.Abs(want))
		if math.Abs(g-want) > 1e-7+1e-5*math.Abs(want) {
			t.Fatalf("parameter %d: gradient %g, slope of the loss %g", i, g, want)
		}
	}
	if size < 0.01 {
		t.Fatalf("the largest slope is %g: the test compares nothing", size)
	}
	t.Logf("%d parameters, largest slope %.3g, largest difference %.1e", len(got), size, worst)
}

// The blocked kernel gives the same bits as plain sums for any shape.
func TestMatmul_EqualsPlainSums(t *testing.T) {
	r := splitmix(3)
	fill := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = r.uniform() - 0.5
		}
		return v
	}
	for range 200 {
		n, m, k := 1+r.below(7), 1+r.below(11), 1+r.below(9)
		a, b, out := fill(n*k), fill(m*k), fill(n*m)
		add := r.below(2) == 0
		want := slices.Clone(out)
		for i := range n {
			for j := range m {
				var s float64
				for p := range k {
					s += float64(a[i*k+p] * b[j*k+p])
				}
				if add {
					s += want[i*m+j]
				}
				want[i*m+j] = s
			}
		}
		matmul(out, a, b, n, m, k, add)
		if !slices.Equal(out, want) {
			t.Fatalf("%d×%d×%d add=%v: %v, want %v", n, m, k, add, out, want)
		}
	}
}

func TestExpAndLn_AreCloseToTheLibrary(t *testing.T) {
	r := splitmix(5)
	for range 100_000 {
		x := -r.uniform() * 690
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-13*want {
			t.Fatalf("exp(%g) = %g, want %g", x, got, want)
		}
		y := math.Exp(r.uniform()*1000 - 500)
		if got, want := ln(y), math.Log(y); math.Abs(got-want) > 1e-14*max(1, math.Abs(want)) {
			t.Fatalf("ln(%g) = %g, want %g", y, got, want)
		}
	}
	if exp(0) != 1 || exp(-1000) != 0 || ln(1) != 0 {
		t.Fatal("exp(0), exp(-1000), ln(1) are not 1, 0, 0")
	}
}

func TestTokens_RoundTrip(t *testing.T) {
	for b := range 256 {
		c := tokenOf(byte(b))
		if c >= vocabulary {
			t.Fatalf("tokenOf(%d) = %d, outside the vocabulary", b, c)
		}
		if c < vocabulary-1 && characterOf(c) != byte(b) {
			t.Fatalf("characterOf(tokenOf(%q)) = %q", byte(b), characterOf(c))
		}
	}
}

func BenchmarkStep(b *testing.B) {
	tr := newTrainer(tinyText(), 1)
	tr.advance()
	if !(tr.mean > 4 && tr.mean < 5) {
		b.Fatalf("first loss %g, want about ln %d", tr.mean, vocabulary)
	}
	for b.Loop() {
		tr.advance()
	}
	b.ReportMetric(float64(b.N*len(tr.tokens))/b.Elapsed().Seconds(), "tokens/s")
}

// tinyText returns a text that needs no file.
func tinyText() *corpus {
	r := splitmix(11)
	words := []string{"func ", "return ", "err ", "nil\n", "if ", "x := ", "range ", "{\n\t", "}\n"}
	var text []byte
	for len(text) < 20_000 {
		text = append(text, words[r.below(len(words))]...)
	}
	for i, c := range text {
		text[i] = tokenOf(c)
	}
	return &corpus{train: text[:18_000], val: text[18_000:], hash: "tiny", from: "tiny"}
}
