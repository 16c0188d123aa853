package record

import "crypto/sha256"

// hash identifies the text of a row.
type hash [16]byte

func hashOf(text string) hash {
	sum := sha256.Sum256([]byte(text))
	return hash(sum[:16])
}

// Repeated finds duplicate rows. It remembers only the latest rows, so its memory is bounded for any file: a provider
// that repeats a row does so within one file of a few hundred thousand rows.
type Repeated struct {
	Most         int
	young, older map[hash]int // line of each row
}

// First returns the line of the first identical row, or 0.
func (r *Repeated) First(sum hash, line int) int {
	if at := r.young[sum]; at > 0 {
		return at
	}
	if at := r.older[sum]; at > 0 {
		return at
	}
	if r.young == nil || len(r.young) >= r.Most {
		r.young, r.older = map[hash]int{}, r.young
	}
	r.young[sum] = line
	return 0
}
