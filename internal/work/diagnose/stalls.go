package diagnose

import (
	"fmt"
	"math"
	"regexp"

	"scrimp/internal/lib/size"
	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/series"
)

// Limits of a stall: a bucket with fewer steps than most, or with less GPU use.
const (
	slowed     = 0.70    // of the usual use of GPUs
	writesMuch = 4 << 20 // bytes per second
	writesSome = 1 << 20 // for a program whose output mentions saves
	stalled    = 0.05    // of a bucket, if the agent has measured stalls
	mostLines  = 20_000
	savedBytes = 256 << 20 // that a program serialises and writes per second
)

// Patterns of a program's output lines.
var (
	evaluates = regexp.MustCompile(`(?i)\b(eval(uat\w*|ing)?|val(id(at\w*)?)?|test(ing)?)\b.*` +
		`(acc|loss|score|metric|step|epoch|batch|[0-9])`)
	saves = regexp.MustCompile(`(?i)\b(sav(e|es|ed|ing)|checkpoint\w*|ckpt)\b`)
)

// stallsOf looks for repeated times of slow steps.
func (f *features) stallsOf(list []telemetry.Bucket) (s stalls) {
	s.listen(f.in.Lines)
	usual := f.usualWork(list)
	writes := series.Usually(list, telemetry.TaskWriteCallBytes, 0.3)
	cpu := series.Usually(list, telemetry.TaskCPU, 0.5)
	all := 0.0
	for i := range list {
		b := &list[i]
		lost, known := f.lostIn(b, usual)
		// The first and the last bucket of the work are partial, which matters if GPUs determine the work.
		if edge := i == 0 || i == len(list)-1 || b.Covered < 0.5*float64(b.Width); !known || edge && !f.steps {
			continue
		}
		all += b.Covered
		if lost > 0 {
			s.count++
		}
		lost *= b.Covered
		written := series.Value(b, telemetry.TaskWriteCallBytes)
		switch {
		case s.isSave(written, writes):
			s.writing += lost
			if lost > 0 {
				s.written = max(s.written, written)
			}
		case f.gpu || f.steps && series.Value(b, telemetry.TaskCPU) >= 0.6*cpu:
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

// usualWork returns the use of GPUs, or else of processors, while the program does not pause.
func (f *features) usualWork(list []telemetry.Bucket) float64 {
	if f.gpu || f.cores == 0 {
		return series.Usually(list, telemetry.GPU, 0.9)
	}
	return series.Usually(list, telemetry.TaskCPU, 0.9) / f.cores
}

// lostIn returns the share of a bucket in which work stopped: measured by the agent from the steps, or else from the
// drop in the use of GPUs, or of processors if there are no GPUs.
func (f *features) lostIn(b *telemetry.Bucket, usual float64) (lost float64, known bool) {
	if v := series.Value(b, telemetry.TaskStalled); !math.IsNaN(v) {
		if v < stalled {
			v = 0
		}
		return v, true
	}
	v := series.Value(b, telemetry.GPU)
	if !f.gpu {
		v = series.Value(b, telemetry.TaskCPU) / f.cores
	}
	if math.IsNaN(v) || usual < 0.3 {
		return 0, false
	}
	if v >= slowed*usual {
		return 0, true
	}
	return 1 - v/usual, true
}

// again reports whether work has stopped more than once.
func (f *features) again() bool { return f.stalls.count >= 3 || f.steps && f.stalls.count == 2 }

func checkpointing(f *features) (finding, bool) {
	share, text := 0.0, ""
	a, written := f.in.Account, f.get(telemetry.TaskWriteCallBytes)
	switch {
	case f.stalls.writing >= small && f.again():
		share = f.stalls.writing
		text = fmt.Sprintf("steps stop again and again while the program writes up to %s a second",
			size.About(f.stalls.written))
	case a.SaveSeconds != nil && a.Checkpoints > 1 && f.work > 0 && written > 0:
		// Most of a save may be the agent's upload, during which the program goes on: it only stops while it writes.
		share = min(0.9, float64(a.Checkpoints)**a.SaveSeconds/f.work, written/savedBytes)
		text = fmt.Sprintf("%d saves, and the program writes %s a second", a.Checkpoints, size.About(written))
	}
	if share < small {
		return finding{}, false
	}
	return finding{class.Checkpointing, fmt.Sprintf("%s: %s of the time", text, percent(share)),
		f.whole(around(share, 0.5, 1.3)), false}, true
}

func evaluation(f *features) (finding, bool) {
	share := f.stalls.other
	least := small
	if !f.stalls.evaluates { // only the pace suggests it
		least = 0.15
	}
	if share < least || !f.again() && !f.stalls.evaluates {
		return finding{}, false
	}
	text := fmt.Sprintf("steps stop again and again, %s of the time, while the program is busy", percent(share))
	if f.stalls.evaluates {
		text += ", and its output speaks of evaluation"
	}
	return finding{class.Evaluation, text, f.whole(around(share, 0.4, 1)), false}, true
}
