package interval

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"

	"scrimp/internal/work/pipeline"
)

// How the examples are resampled.
const (
	Resamples = 4000
	Seed      = 1
)

// Of is the interval of the gain: the mean of value less that of base, or, with minimize, the other way around. Base
// nil stands for the number against. The interval is the two-sided percentile interval at the confidence; low is its
// lower bound, exactly. Examples are paired where both name the same ones: then their differences are resampled, so
// what makes an example hard for both runs cancels out.
func Of(value, base *Examples, against, confidence *big.Rat, minimize bool) (in pipeline.Interval, low *big.Rat,
	err error) {
	in = pipeline.Interval{Examples: value.Len(), Resamples: Resamples, Seed: Seed}
	draws := rand.NewPCG(Seed, 0)
	var gains []*big.Rat
	switch order, paired := value.pairs(base); {
	case base == nil:
		gains, err = means(draws, value.values, against)
	case paired:
		in.Others, in.Paired = base.Len(), true
		list := make([]*big.Rat, len(value.values))
		for i, v := range value.values {
			list[i] = new(big.Rat).Sub(v, base.values[order[i]])
		}
		gains, err = means(draws, list, new(big.Rat))
	default:
		in.Others = base.Len()
		if gains, err = means(draws, value.values, new(big.Rat)); err != nil {
			break
		}
		var others []*big.Rat
		if others, err = means(draws, base.values, new(big.Rat)); err != nil {
			break
		}
		for i := range gains {
			gains[i].Sub(gains[i], others[i])
		}
	}
	if err != nil {
		return in, nil, err
	}
	if minimize {
		for _, g := range gains {
			g.Neg(g)
		}
	}
	slices.SortFunc(gains, (*big.Rat).Cmp)
	at := tail(confidence)
	low, high := gains[at], gains[len(gains)-1-at]
	in.Low, in.High = pipeline.Written(low), pipeline.Written(high)
	return in, low, nil
}

// tail is how many of the resamples lie outside the interval on each side, rounded down: the wider interval counts.
func tail(confidence *big.Rat) int {
	out := new(big.Rat).Sub(big.NewRat(1, 1), confidence)
	out.Mul(out, big.NewRat(Resamples, 2))
	return int(new(big.Int).Quo(out.Num(), out.Denom()).Int64())
}

// pairs is where the other examples have those of e, if both name the same ones.
func (e *Examples) pairs(other *Examples) (order []int, ok bool) {
	if other == nil || e.names == nil || len(e.names) != len(other.names) {
		return nil, false
	}
	at := make(map[string]int, len(other.names))
	for i, name := range other.names {
		at[name] = i
	}
	for _, name := range e.names {
		i, there := at[name]
		if !there {
			return nil, false
		}
		order = append(order, i)
	}
	return order, true
}

// means are the means of resamples, less a number.
func means(draws *rand.PCG, values []*big.Rat, less *big.Rat) ([]*big.Rat, error) {
	whole, scale, err := scaled(values)
	if err != nil {
		return nil, err
	}
	n := uint64(len(whole))
	count := new(big.Rat).Mul(scale, new(big.Rat).SetInt64(int64(n)))
	list := make([]*big.Rat, Resamples)
	for i := range list {
		sum := int64(0)
		for range n {
			at, _ := bits.Mul64(draws.Uint64(), n)
			sum += whole[at]
		}
		list[i] = new(big.Rat).SetInt64(sum)
		list[i].Quo(list[i], count).Sub(list[i], less)
	}
	return list, nil
}

// maxDigits is how many digits after the point values keep at most.
const maxDigits = 18

// scaled are the values as whole numbers of 1/scale, so that sums are exact whatever the order. The scale is the
// smallest power of ten that leaves every value as it is. Where the sum of all would not fit, digits at the end are
// rounded away.
func scaled(values []*big.Rat) (list []int64, scale *big.Rat, err error) {
	digits, largest := 0, new(big.Rat)
	for _, v := range values {
		d, exact := v.FloatPrec()
		if !exact {
			return nil, nil, fmt.Errorf("%s is no decimal number", pipeline.Written(v))
		}
		digits = max(digits, d)
		if a := new(big.Rat).Abs(v); a.Cmp(largest) > 0 {
			largest = a
		}
	}
	digits = min(digits, maxDigits)
	room := new(big.Rat).SetInt64((1 << 62) / int64(len(values)))
	for ; digits >= 0; digits-- {
		scale = new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
		if new(big.Rat).Mul(largest, scale).Cmp(room) < 0 {
			break
		}
	}
	if digits < 0 {
		return nil, nil, fmt.Errorf("a value of %s is too large", pipeline.Written(largest))
	}
	list = make([]int64, len(values))
	half := big.NewRat(1, 2)
	for i, v := range values {
		x := new(big.Rat).Mul(v, scale)
		if x.Sign() < 0 {
			x.Sub(x, half)
		} else {
			x.Add(x, half)
		}
		list[i] = new(big.Int).Quo(x.Num(), x.Denom()).Int64()
	}
	return list, scale, nil
}
