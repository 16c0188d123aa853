package anomaly

import (
	"math"
	"slices"
)

// tail holds the past values of a measure and ranks new ones.
type tail struct {
	ring   []float64 // in order of arrival, starting at oldest
	oldest int
	sorted []float64
}

func (t *tail) add(v float64) {
	if len(t.ring) < memory {
		t.ring = append(t.ring, v)
	} else {
		i, _ := slices.BinarySearch(t.sorted, t.ring[t.oldest])
		t.sorted = slices.Delete(t.sorted, i, i+1)
		t.ring[t.oldest] = v
		t.oldest = (t.oldest + 1) % memory
	}
	i, _ := slices.BinarySearch(t.sorted, v)
	t.sorted = slices.Insert(t.sorted, i, v)
}

// quantile returns the value below which a share p of the past lies; 0 if there is none.
func (t *tail) quantile(p float64) float64 {
	if len(t.sorted) == 0 {
		return 0
	}
	return t.sorted[int(p*float64(len(t.sorted)-1))]
}

// Beyond the largest past value the tail continues as a power law (Hill's estimate on the top hundredth).
const (
	fewest     = 20  // values needed before any surprise
	steepest   = 0.1 // the least estimate, since noise of a narrow range has no tail
	farthest   = 3   // most powers of ten that the law adds
	ofNothing  = 2   // powers of ten for the first value above a past of zeros
	topPart    = 100
	topAtLeast = 4
)

// surprise returns -log10 of the probability of a value of at least v, by the rank of v in the past.
func (t *tail) surprise(v float64) float64 {
	n := len(t.sorted)
	if n < fewest {
		return 0
	}
	below, _ := slices.BinarySearch(t.sorted, v)
	if below < n {
		return -math.Log10(float64(n-below+1) / float64(n+2))
	}
	rank, top := math.Log10(float64(n+2)), t.sorted[n-1]
	if top <= 0 {
		return rank + ofNothing
	}
	k := max(topAtLeast, n/topPart)
	base, law := max(t.sorted[n-1-k], top/100), 0.0
	for _, x := range t.sorted[n-k:] {
		law += math.Log(max(x, base) / base)
	}
	law = max(law/float64(k), steepest)
	return rank + min(farthest, math.Log10(v/top)/law)
}
