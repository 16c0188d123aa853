package telemetry

import "math"

// tier is the width of buckets up to an age, in seconds.
type tier struct{ width, age int64 }

// tiers keep ten seconds for an hour, then about 360 buckets per tier: 1,800 in a quarter of a year.
var tiers = []tier{
	{Least, 3600}, {60, 7 * 3600}, {600, 60 * 3600}, {3600, 15 * 86400}, {6 * 3600, 90 * 86400}, {86400, math.MaxInt64},
}

// widthAt returns the width of buckets at an age.
func widthAt(age int64) int64 {
	for _, t := range tiers {
		if age < t.age {
			return t.width
		}
	}
	return tiers[len(tiers)-1].width
}

// Compact merges old buckets, by their age relative to the newest: the older, the wider. The list is in order of
// time. Merged buckets can be merged again, with the same result in any order except for rounding.
func Compact(list []Bucket) []Bucket {
	if len(list) == 0 {
		return nil
	}
	now := list[len(list)-1].End()
	var out, open []Bucket
	var slot, width int64
	flush := func() {
		if len(open) == 1 && open[0].Width >= width {
			out = append(out, open[0])
		} else if len(open) > 0 {
			out = append(out, Merge(open, slot, width))
		}
		open = nil
	}
	for _, b := range list {
		at, w := slotOf(&b, now)
		if at != slot || w != width {
			flush()
			slot, width = at, w
		}
		open = append(open, b)
	}
	flush()
	return out
}

// slotOf returns the slot that a bucket is merged into: the widest one that is entirely old enough for its width.
func slotOf(b *Bucket, now int64) (start, width int64) {
	for i := len(tiers) - 1; i > 0; i-- {
		w := tiers[i].width
		at := b.Start - b.Start%w
		if w > b.Width && widthAt(now-at-w) >= w {
			return at, w
		}
	}
	return b.Start, b.Width
}

// Merge merges buckets into one: means weighted by covered time, and the highest peak.
func Merge(list []Bucket, start, width int64) Bucket {
	out := Bucket{Start: start, Width: width}
	for i := range list {
		out.Covered += list[i].Covered
	}
	for m := range Metrics {
		n := 0
		for i := range list {
			n = max(n, len(list[i].V[m]))
		}
		for index := range n {
			out.V[m] = append(out.V[m], mergeValue(list, m, index))
		}
	}
	return out
}

func mergeValue(list []Bucket, m Metric, index int) Value {
	sum, weight, most := 0.0, 0.0, math.Inf(-1)
	for i := range list {
		if v := list[i].Value(m, index); v.Known() {
			sum += float64(v.Mean * list[i].Covered)
			weight += list[i].Covered
			most = max(most, v.Max)
		}
	}
	if weight == 0 {
		return Unknown
	}
	return Value{sum / weight, most}
}

// Stat summarizes a metric over all telemetry.
type Stat struct {
	Average, Peak float64
	Seconds       float64 // time with values, summed over machines, cores and GPUs
}

// Known reports whether there are any values.
func (s Stat) Known() bool { return s.Seconds > 0 }

// Sum returns the total amount of a rate.
func (s Stat) Sum() float64 { return s.Average * s.Seconds }

// Summary holds each metric over machines, cores and GPUs.
type Summary struct {
	Seconds float64 // time with telemetry, summed over machines
	Of      [Metrics]Stat
	// Begun is the use of the GPUs since the first work of one of them on each machine: loading and compiling before
	// that say nothing about how well the program feeds them.
	Begun Stat
}

// Add adds the buckets of one more machine.
func (s *Summary) Add(list []Bucket) {
	begun := false
	for i := range list {
		b := &list[i]
		s.Seconds += b.Covered
		for m := range Metrics {
			for _, v := range b.V[m] {
				s.Of[m].add(v, b.Covered)
			}
		}
		for _, v := range b.V[GPU] {
			begun = begun || v.Known() && v.Max >= atWork
		}
		for _, v := range b.V[GPU] {
			if begun {
				s.Begun.add(v, b.Covered)
			}
		}
	}
}

func (s *Stat) add(v Value, seconds float64) {
	if !v.Known() || seconds <= 0 {
		return
	}
	if s.Seconds == 0 {
		s.Peak = v.Max
	}
	s.Seconds += seconds
	s.Average += (v.Mean - s.Average) * seconds / s.Seconds
	s.Peak = max(s.Peak, v.Max)
}
