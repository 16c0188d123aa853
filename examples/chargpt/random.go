package main

// splitmix is the generator of Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators" (OOPSLA 2014). Its value is its whole state.
type splitmix uint64

func (r *splitmix) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// uniform returns a multiple of 2^-53 in [0, 1).
func (r *splitmix) uniform() float64 { return float64(r.next()>>11) / (1 << 53) }

// below returns a number in [0, n); the bias of the remainder is below n/2^64.
func (r *splitmix) below(n int) int { return int(r.next() % uint64(n)) }
