package bill

import "crypto/sha256"

// hash stands for the text of a row.
type hash [16]byte

func hashOf(text string) hash {
	sum := sha256.Sum256([]byte(text))
	return hash(sum[:16])
}

// repeated finds rows that come twice. It remembers the last rows only, so that it takes the same memory for any file:
// a provider that repeats a row does so within one file of a few hundred thousand rows.
type repeated struct {
	most         int
	young, older map[hash]int // line of each
}

// first returns the line of the same row before, and 0 where there was none.
func (r *repeated) first(sum hash, line int) int {
	if at := r.young[sum]; at > 0 {
		return at
	}
	if at := r.older[sum]; at > 0 {
		return at
	}
	if r.young == nil || len(r.young) >= r.most {
		r.young, r.older = map[hash]int{}, r.young
	}
	r.young[sum] = line
	return 0
}
