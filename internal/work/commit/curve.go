package commit

// A curve is sorted demand with an index, to find quickly how much of it is above a level.
type curve struct {
	hours []float64 // sorted
	below []float64 // [i]: the sum of the first i hours
	start []int32   // [b]: the first hour that is not below b / scale
	scale float64
}

// curveParts is the number of equal parts of a curve: a lookup starts at the first hour of its part.
const curveParts = 4096

func newCurve(sorted []float64) *curve {
	c := &curve{hours: sorted, below: make([]float64, len(sorted)+1), start: make([]int32, curveParts+1),
		scale: curveParts / sorted[len(sorted)-1]}
	for i, d := range sorted {
		c.below[i+1] = c.below[i] + d
	}
	i := 0
	for b := range c.start {
		for i < len(sorted) && sorted[i]*c.scale < float64(b) {
			i++
		}
		c.start[b] = int32(i)
	}
	return c
}

// over returns the mean of the demand above a level.
func (c *curve) over(level float64) float64 {
	n := len(c.hours)
	b := level * c.scale
	if b >= curveParts {
		return 0
	}
	i := int(c.start[int(b)])
	for i < n && c.hours[i] <= level {
		i++
	}
	return (c.below[n] - c.below[i] - float64(float64(n-i)*level)) / float64(n)
}

// costs returns the mean cost of an hour of a month at each level.
type costs struct {
	*curve
	factor float64 // demand of the month relative to the curve's
	price  float64 // per hour of a committed unit
	floor  int64   // levels below it cost the same as it
}

func (c costs) at(level int64) float64 {
	l := float64(max(level, c.floor))
	cost := float64(c.price * l)
	if c.factor > 0 {
		cost += float64(c.factor * c.over(l/c.factor))
	}
	return cost
}
