package main

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// size is the size of the trained model. A step takes about 10 ms on one core of 2020.
var size = shape{Vocab: vocabulary, Context: 48, Width: 48, Layers: 1, Heads: 4, Batch: 4}

// trainer is a run: it holds everything that determines the next step, and a checkpoint contains all of it except the
// text.
type trainer struct {
	text   *corpus
	seed   uint64
	step   int64
	random splitmix
	model  *model
	adam   *adam
	mean   float64           // of the loss, weighted towards recent steps, as printed
	digest [sha256.Size]byte // of the loss of every completed step

	tokens, targets []byte
}

func newTrainer(text *corpus, seed uint64) *trainer {
	m := newModel(size)
	t := &trainer{text: text, seed: seed, random: splitmix(seed), model: m, adam: newAdam(len(m.params.flat))}
	m.params.start(size, &t.random)
	t.tokens = make([]byte, size.Batch*size.Context)
	t.targets = make([]byte, size.Batch*size.Context)
	return t
}

// advance takes one step: a batch from random places of the text, its gradients, and an update of the weights.
func (t *trainer) advance() {
	for row := range size.Batch {
		t.place(row, t.text.train, t.random.below(len(t.text.train)-size.Context))
	}
	t.model.forward(t.tokens, size.Context)
	loss := t.model.loss(t.targets)
	t.model.backward(t.tokens, size.Context)
	t.step++
	t.adam.step(t.model.params.flat, t.model.grads.flat, t.step)

	if t.step == 1 {
		t.mean = loss
	}
	t.mean += float64(0.03 * (loss - t.mean))
	var link [sha256.Size + 8]byte
	copy(link[:], t.digest[:])
	binary.LittleEndian.PutUint64(link[sha256.Size:], math.Float64bits(loss))
	t.digest = sha256.Sum256(link[:])
}

// place fills a row of the batch from a position in the text.
func (t *trainer) place(row int, text []byte, at int) {
	copy(t.tokens[row*size.Context:][:size.Context], text[at:])
	copy(t.targets[row*size.Context:][:size.Context], text[at+1:])
}

// validate returns the loss, in nats per character, at the same held-out places each time. It changes nothing that
// the training depends on.
func (t *trainer) validate() float64 {
	const batches = 2
	places := batches * size.Batch
	stride := (len(t.text.val) - size.Context - 1) / places
	var sum float64
	for b := range batches {
		for row := range size.Batch {
			t.place(row, t.text.val, (b*size.Batch+row)*stride)
		}
		t.model.forward(t.tokens, size.Context)
		sum += t.model.loss(t.targets)
	}
	return sum / batches
}

// sample writes n characters that the model generates after prompt.
func (t *trainer) sample(prompt string, n int) string {
	random := splitmix(t.seed ^ 0x73616d706c65)
	text := make([]byte, 0, len(prompt)+n)
	for i := range len(prompt) {
		text = append(text, tokenOf(prompt[i]))
	}
	odds := make([]float64, size.Vocab)
	for range n {
		seen := text[max(0, len(text)-size.Context):]
		t.model.forward(seen, len(seen))
		for i, v := range t.model.logits[(len(seen)-1)*size.Vocab:][:size.Vocab] {
			odds[i] = v / 0.7 // below 1: fewer surprises
		}
		softmax(odds)
		left, next := random.uniform(), 0
		for next < len(odds)-1 && left >= odds[next] {
			left -= odds[next]
			next++
		}
		text = append(text, byte(next))
	}
	for i, c := range text {
		text[i] = characterOf(c)
	}
	return string(text)
}
