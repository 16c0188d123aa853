package diagnose

import (
	"math"
	"regexp"
	"slices"

	"scrimp/internal/wire/telemetry"
)

// Limits of what is a stall: a bucket in which fewer steps came than in most, or in which GPUs did less.
const (
	slowed     = 0.70    // of the usual use of GPUs
	writesMuch = 4 << 20 // bytes a second
	writesSome = 1 << 20 // of a program that says that it saves
	stalled    = 0.05    // of a bucket, where the agent has measured stalls
	mostLines  = 20_000
)

// What the lines of a program say that it does.
var (
	evaluates = regexp.MustCompile(`(?i)\b(eval(uat\w*|ing)?|val(id(at\w*)?)?|test(ing)?)\b.*` +
		`(acc|loss|score|metric|step|epoch|batch|[0-9])`)
	saves = regexp.MustCompile(`(?i)\b(sav(e|es|ed|ing)|checkpoint\w*|ckpt)\b`)
)

// stallsOf looks for times in which steps come slowly, again and again.
func (f *features) stallsOf(list []telemetry.Bucket) (s stalls) {
	s.listen(f.in.Lines)
	usual := usually(list, telemetry.GPU, 0.75)
	writes := usually(list, telemetry.TaskWriteCallBytes, 0.3)
	cpu := usually(list, telemetry.TaskCPU, 0.5)
	all := 0.0
	for i := range list {
		b := &list[i]
		lost, known := lostIn(b, usual)
		// The first and the last bucket of the work are only in part of it, which matters where it goes by GPUs.
		if edge := i == 0 || i == len(list)-1 || b.Covered < 0.5*float64(b.Width); !known || edge && !f.steps {
			continue
		}
		all += b.Covered
		if lost > 0 {
			s.count++
		}
		lost *= b.Covered
		written := value(b, telemetry.TaskWriteCallBytes)
		switch {
		case s.isSave(written, writes):
			s.writing += lost
			if lost > 0 {
				s.written = max(s.written, written)
			}
		case f.gpu || value(b, telemetry.TaskCPU) >= 0.6*cpu:
			s.other += lost
		}
	}
	if all > 0 {
		s.writing, s.other = s.writing/all, s.other/all
	}
	return s
}

// listen notes whether the newest lines of the program say that it evaluates or saves.
func (s *stalls) listen(lines []Line) {
	for _, l := range lines[max(0, len(lines)-mostLines):] {
		s.evaluates = s.evaluates || evaluates.MatchString(l.Text)
		s.saves = s.saves || saves.MatchString(l.Text)
	}
}

// isSave reports whether a program that wrote so many bytes a second in a bucket saves then. usual is what it writes in
// most buckets; a program that says that it saves needs to write less.
func (s *stalls) isSave(written, usual float64) bool {
	if s.saves {
		return written >= max(writesSome, 2*usual) || written >= writesMuch
	}
	return written >= writesMuch && (written >= 2*usual || usual >= writesMuch)
}

// lostIn is the share of a bucket in which work stopped: as the agent has measured it by the steps, else by how much
// less its GPUs did than usual.
func lostIn(b *telemetry.Bucket, usual float64) (lost float64, known bool) {
	if v := value(b, telemetry.TaskStalled); !math.IsNaN(v) {
		if v < stalled {
			v = 0
		}
		return v, true
	}
	v := value(b, telemetry.GPU)
	if math.IsNaN(v) || usual < 0.3 {
		return 0, false
	}
	if v >= slowed*usual {
		return 0, true
	}
	return 1 - v/usual, true
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
