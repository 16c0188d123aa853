package diagnose

import (
	"math"
	"regexp"
	"slices"

	"scrimp/internal/wire/telemetry"
)

// Limits of what is a stall: a bucket in which fewer steps came than in most, or in which GPUs did less.
const (
	slowed       = 0.70    // of the usual pace
	halted       = 0.50    // likewise, where nothing but the pace tells
	mostSteps    = 3.0     // steps that a bucket usually has, or their number says nothing
	writesMuch   = 4 << 20 // bytes a second
	readsMuch    = 8 << 20
	longWait     = 4.0 // times as long as a step usually takes, and
	leastWait    = 0.4 // seconds
	measureEvery = 5.0 // seconds between two measurements of an agent
	mostLines    = 20_000
)

// What the lines of a program say that it does.
var (
	evaluates = regexp.MustCompile(`(?i)\b(eval(uat\w*|ing)?|val(id(at\w*)?)?|test(ing)?)\b.*(acc|loss|score|metric|step|epoch|batch|[0-9])`)
	saves     = regexp.MustCompile(`(?i)\b(sav(e|es|ed|ing)|checkpoint\w*|ckpt)\b`)
)

// stallsOf looks for times in which steps come slowly, again and again.
func stallsOf(list []telemetry.Bucket, lines []Line, gpu bool) (s stalls) {
	lines = lines[max(0, len(lines)-mostLines):]
	for _, l := range lines {
		s.evaluates = s.evaluates || evaluates.MatchString(l.Text)
		s.saves = s.saves || saves.MatchString(l.Text)
	}
	pace, usual := paces(list, gpu)
	if usual <= 0 {
		return s
	}
	writes := usually(list, telemetry.TaskWriteCallBytes, 0.3)
	cpu := usually(list, telemetry.TaskCPU, 0.7)
	all, before := 0.0, false
	for i := range list {
		b := &list[i]
		if math.IsNaN(pace[i]) {
			continue
		}
		all += b.Covered
		slow := pace[i] < slowed*usual
		if slow && !before {
			s.count++
		}
		before = slow
		if !slow {
			continue
		}
		lost := b.Covered * (1 - pace[i]/usual)
		written, read := value(b, telemetry.TaskWriteCallBytes), value(b, telemetry.TaskReadCallBytes)
		switch {
		case written >= writesMuch && written >= 2*writes:
			s.writing += lost
			s.written = max(s.written, written)
		case read >= readsMuch:
			s.reading += lost
		case gpu || pace[i] < halted*usual && value(b, telemetry.TaskCPU) >= 0.7*cpu:
			s.other += lost
		}
	}
	if all > 0 {
		s.writing, s.reading, s.other = s.writing/all, s.reading/all, s.other/all
	}
	return s
}

// paces are how fast each bucket went, and how fast most did: in steps where they are many enough, else in the use
// of the GPUs. NaN is unknown.
func paces(list []telemetry.Bucket, gpu bool) (pace []float64, usual float64) {
	steps := usually(list, telemetry.TaskSteps, 0.75)
	bySteps := steps*telemetry.Least >= mostSteps
	if !bySteps && !gpu {
		return nil, 0
	}
	// The first and the last bucket of the work are only in part of it.
	pace = make([]float64, len(list))
	for i := range list {
		m := telemetry.GPU
		if bySteps {
			m = telemetry.TaskSteps
		}
		pace[i] = value(&list[i], m)
		if i == 0 || i == len(list)-1 || list[i].Covered < 0.5*float64(list[i].Width) {
			pace[i] = math.NaN()
		}
	}
	if bySteps {
		return pace, steps
	}
	if usual = usually(list, telemetry.GPU, 0.75); usual < 0.3 {
		return nil, 0
	}
	return pace, usual
}

// value is the mean of a metric in a bucket, of all its GPUs; NaN: unknown.
func value(b *telemetry.Bucket, m telemetry.Metric) float64 {
	sum, n := 0.0, 0.0
	for _, v := range b.V[m] {
		if v.Known() {
			sum, n = sum+v.Mean, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / n
}

// usually is a quantile of a metric over buckets; 0: unknown.
func usually(list []telemetry.Bucket, m telemetry.Metric, q float64) float64 {
	var all []float64
	for i := range list {
		if v := value(&list[i], m); !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}

// waits is the share of the time in which the program waits for a step much longer than for most, where that
// happens in every few seconds: then no bucket is slower than another. It is a lower bound.
func (f *features) waits() float64 {
	wait, steps := f.get(telemetry.TaskStepWait), f.get(telemetry.TaskSteps)
	if !(steps > 0) || !(wait >= leastWait) || wait < longWait/steps {
		return 0
	}
	return min(0.9, (wait-1/steps)/measureEvery)
}
