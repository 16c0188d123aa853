package retrain

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/pipeline"
)

// Past is an earlier run of a schedule that has reported the metric.
type Past struct {
	At    time.Time     // when it began
	Value string        // of the metric, as a written decimal
	New   int           // objects that were new for it
	Cost  *money.Amount // nil: not final yet
}

// gain is how much better a run was than the run before it.
type gain struct {
	by   *big.Rat
	new  int           // objects that were new for the run
	hour int           // age of the run before it, in hours
	cost *money.Amount // of the run
}

// gains returns the gains of runs over the runs before them.
func gains(past []Past, minimize bool) (list []gain) {
	var was *big.Rat
	var at time.Time
	for _, p := range past {
		value := decimal(p.Value)
		if value == nil {
			continue
		}
		if was != nil {
			by := new(big.Rat).Sub(value, was)
			if minimize {
				by.Neg(by)
			}
			list = append(list, gain{by, p.New, hours(p.At.Sub(at)), p.Cost})
		}
		was, at = value, p.At
	}
	return list
}

func hours(d time.Duration) int { return int(d / time.Hour) }

// decide compares what a run is worth with what it costs.
func (x *Pays) decide(f Facts, counts bool) Check {
	list := gains(f.Past, x.Goal == pipeline.Minimize)
	fig := &PaysCheck{Gains: len(list)}
	c := Check{Condition: WhenItPays, Pays: fig}
	if len(list) < x.AtLeast {
		c.Pass = true
		c.Why = fmt.Sprintf("%s of earlier runs, and an estimate needs %d: the run begins", plural(len(list), "gain"),
			x.AtLeast)
		return c
	}
	var costs []money.Amount
	for _, p := range f.Past {
		if p.Cost != nil {
			costs = append(costs, *p.Cost)
		}
	}
	if len(costs) == 0 {
		c.Pass, c.Why = true, "no earlier run has a final cost yet: the run begins"
		return c
	}
	fig.costs(costs)
	age, fresh := hours(f.Now.Sub(f.Last)), 0
	if f.Data != nil {
		fresh = f.Data.New
	}
	expected := fig.estimate(list, counts, age, fresh)
	worth, ok := x.worth(expected)
	if !ok {
		c.Pass, c.Why = true, "the expected gain is out of bounds: the run begins"
		return c
	}
	fig.Worth, c.Pass = &worth, worth.Cmp(*fig.Cost) >= 0
	point, _ := pipeline.Decimal(x.Point) // Check has parsed it
	inPoints := func(v *big.Rat) string { return shown(new(big.Rat).Quo(v, point)) }
	low, high := extremes(list)
	short := func(a money.Amount) string { return money.Short(a, f.currency()) }
	c.Why = fmt.Sprintf("an expected gain of %s points (%s; they gained %s to %s) is worth %s, "+
		"and a run costs %s (%s to %s)", inPoints(expected), fig.Estimator, inPoints(low), inPoints(high), short(worth),
		short(*fig.Cost), short(*fig.LeastCost), short(*fig.MostCost))
	if !c.Pass && x.Latest > 0 && age >= 24*x.Latest {
		c.Pass, c.Why = true, c.Why+fmt.Sprintf("; the last run is %d days old, so it begins anyway", age/24)
	}
	return c
}

// costs sets the expected cost, the average of earlier runs, and its range.
func (c *PaysCheck) costs(list []money.Amount) {
	sum, least, most := money.Amount{}, list[0], list[0]
	for _, a := range list {
		sum = sum.Add(a)
		least = money.Min(least, a)
		if a.Cmp(most) > 0 {
			most = a
		}
	}
	mean := sum.Over(len(list))
	c.Cost, c.LeastCost, c.MostCost = &mean, &least, &most
}

// estimate sets and returns the expected gain: the average of the earlier gains or, from lineFrom of them, the value of
// the least-squares line through them, against the new objects or else the age. The line is not continued beyond what
// was observed.
func (c *PaysCheck) estimate(list []gain, counts bool, age, fresh int) *big.Rat {
	low, high := extremes(list)
	c.Low, c.High = shown(low), shown(high)
	at, of, against := age, func(g gain) int { return g.hour }, "age"
	if counts {
		at, of, against = fresh, func(g gain) int { return g.new }, "new objects"
	}
	expected := mean(list, func(g gain) *big.Rat { return g.by })
	c.Estimator = fmt.Sprintf("average of %s", plural(len(list), "run"))
	if slope, ok := slope(list, of); ok && len(list) >= lineFrom {
		least, most := of(list[0]), of(list[0])
		for _, g := range list {
			least, most = min(least, of(g)), max(most, of(g))
		}
		x := new(big.Rat).SetInt64(int64(min(max(at, least), most)))
		x.Sub(x, mean(list, func(g gain) *big.Rat { return new(big.Rat).SetInt64(int64(of(g))) }))
		expected.Add(expected, x.Mul(x, slope))
		c.Estimator = fmt.Sprintf("line through %d runs against %s", len(list), against)
	}
	c.Gain = shown(expected)
	return expected
}

// extremes returns the smallest and the largest gain.
func extremes(list []gain) (low, high *big.Rat) {
	low, high = list[0].by, list[0].by
	for _, g := range list {
		if g.by.Cmp(low) < 0 {
			low = g.by
		}
		if g.by.Cmp(high) > 0 {
			high = g.by
		}
	}
	return low, high
}

func mean(list []gain, of func(gain) *big.Rat) *big.Rat {
	sum := new(big.Rat)
	for _, g := range list {
		sum.Add(sum, of(g))
	}
	return sum.Quo(sum, new(big.Rat).SetInt64(int64(len(list))))
}

// slope returns the slope of the least-squares line of the gains; false: all lie at one place.
func slope(list []gain, of func(gain) int) (*big.Rat, bool) {
	x0 := mean(list, func(g gain) *big.Rat { return new(big.Rat).SetInt64(int64(of(g))) })
	y0 := mean(list, func(g gain) *big.Rat { return g.by })
	both, square := new(big.Rat), new(big.Rat)
	for _, g := range list {
		dx := new(big.Rat).SetInt64(int64(of(g)))
		dx.Sub(dx, x0)
		dy := new(big.Rat).Sub(g.by, y0)
		both.Add(both, dy.Mul(dy, dx))
		square.Add(square, dx.Mul(dx, dx))
	}
	if square.Sign() == 0 {
		return nil, false
	}
	return both.Quo(both, square), true
}

// worth returns what a gain is worth, rounded down to the smallest unit.
func (x *Pays) worth(gain *big.Rat) (money.Amount, bool) {
	point, err := pipeline.Decimal(x.Point)
	if err != nil || point.Sign() <= 0 {
		return money.Amount{}, false
	}
	v := new(big.Rat).Quo(gain, point)
	v.Mul(v, new(big.Rat).SetInt(x.Value.Big()))
	whole := new(big.Int).Div(v.Num(), v.Denom())
	if whole.BitLen() > mostWorth {
		return money.Amount{}, false
	}
	return money.FromBig(whole)
}

// mostWorth bounds the bits of what a gain is worth, in the smallest unit: about 10^15 dollars.
const mostWorth = 90

// shown formats a number with at most six decimal places.
func shown(v *big.Rat) string {
	text := v.FloatString(6)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}
