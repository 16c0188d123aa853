package fair

import (
	"math"
	"math/big"
	"math/bits"
	"time"

	"scrimp/internal/lib/money"
)

// Spent is what a team spent, with decay, as it counted at the time At.
type Spent struct {
	At     time.Time    `json:"at"`
	Amount money.Amount `json:"amount"`
}

// Add returns s with an amount that was spent at t, which may be before s.At.
func (s Spent) Add(amount money.Amount, t time.Time, halfLife time.Duration) Spent {
	if t.Before(s.At) {
		return Spent{At: s.At, Amount: s.Amount.Add(Spent{t, amount}.In(s.At, halfLife))}
	}
	return Spent{At: t, Amount: s.In(t, halfLife).Add(amount)}
}

// fractionBits is the number of binary digits of a part of a half-life.
const fractionBits = 20

// In returns what is left of the amount at t: half of it after each half-life. It uses integers alone, so that every
// processor gives the same result.
func (s Spent) In(t time.Time, halfLife time.Duration) money.Amount {
	since := t.Sub(s.At)
	if since <= 0 || halfLife <= 0 || s.Amount.IsZero() {
		return s.Amount
	}
	whole := since / halfLife
	if whole > 200 { // an amount has 128 bits
		return money.Amount{}
	}
	hi, lo := bits.Mul64(uint64(since%halfLife), 1<<fractionBits)
	part, _ := bits.Div64(hi, lo, uint64(halfLife))
	if micros, picos, ok := s.Amount.Micros(); ok && micros >= 0 && picos >= 0 && micros < 1<<43 {
		return money.Picos(int64(halved(uint64(micros*1e6+picos), part, whole)))
	}
	n := s.Amount.Big()
	for i, root := range roots {
		if part>>(fractionBits-1-i)&1 == 1 {
			n.Rsh(n.Mul(n, root), rootBits)
		}
	}
	left, _ := money.FromBig(n.Quo(n, new(big.Int).Lsh(big.NewInt(1), uint(whole))))
	return left
}

// rootBits is the number of binary digits after the point in roots.
const rootBits = 128

// roots are the factors of decay after a half, a quarter, an eighth … of a half-life.
var roots = func() (list [fractionBits]*big.Int) {
	x := new(big.Int).Lsh(big.NewInt(1), rootBits-1) // a half
	for i := range list {
		x = new(big.Int).Sqrt(new(big.Int).Lsh(x, rootBits))
		list[i] = x
	}
	return list
}()

// halved is In for an amount of 64 bits, with the same result: a queue decays the amounts of all its teams in each
// step.
func halved(n, part uint64, whole time.Duration) uint64 {
	for part != 0 {
		digit := bits.Len64(part) - 1
		part &^= 1 << digit
		root := &halfRoots[fractionBits-1-digit]
		high, low := bits.Mul64(n, root[0])
		carried, _ := bits.Mul64(n, root[1])
		_, carry := bits.Add64(low, carried, 0)
		n = high + carry
	}
	return n >> uint64(whole)
}

// halfRoots are roots in two words, the higher one first.
var halfRoots = func() (list [fractionBits][2]uint64) {
	for i, root := range roots {
		list[i] = [2]uint64{new(big.Int).Rsh(root, 64).Uint64(), new(big.Int).And(root, maxWord).Uint64()}
	}
	return list
}()

var maxWord = new(big.Int).SetUint64(math.MaxUint64)
