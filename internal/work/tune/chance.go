package tune

// Chance is splitmix64, which other programs can easily reproduce in any language.
type Chance struct{ state uint64 }

// NewChance returns the generator of a seed.
func NewChance(seed uint64) *Chance { return &Chance{seed} }

// Next draws 64 bits.
func (c *Chance) Next() uint64 {
	c.state += 0x9e3779b97f4a7c15
	z := c.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float draws a number from 0 to below 1.
func (c *Chance) Float() float64 { return float64(c.Next()>>11) / (1 << 53) }

// Shuffled returns 0 to n-1 in an order given by the seed. For n = 10, seed 0 gives 6 3 2 9 8 1 4 7 0 5
// (TestShuffled_AgreesWithTheProtocol).
func Shuffled(n int, seed uint64) []int {
	c, list := NewChance(seed), make([]int, n)
	for i := range list {
		list[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := int(c.Next() % uint64(i+1))
		list[i], list[j] = list[j], list[i]
	}
	return list
}
