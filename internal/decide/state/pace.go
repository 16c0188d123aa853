package state

import (
	"cmp"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/quantity"
)

// sampleSpan is the shortest sample of steps. paceSpan is the length of the samples that determine the spread of the
// pace. After paceSpan of steady steps, or three restarts if that is longer, the measured pace weighs as much as the
// stated work.
const (
	sampleSpan = time.Second
	paceSpan   = time.Minute
)

// fewestSamples is the number of samples that outweigh the stated work.
const fewestSamples = 3

// seesPace measures the pace of j. The time before an attempt's first reported step is its warm-up (imports,
// caches, compilation), which is part of what a move takes. The pace counts from there on, without pauses that do
// not recur.
func (s *State) seesPace(j *Job, a *Attempt) {
	l, t := &j.runs().Learned, &a.tasks[0].r.Learned
	speed := cmp.Or(max(a.Speed(), 0), 1)
	if t.Step <= t.First {
		return
	}
	if t.Paced.IsZero() {
		t.Paced, t.PacedStep = s.now, t.Step
		t.FirstTook, t.FirstSteps = s.now.Sub(a.tasks[0].r.Started), t.Step-t.First
	}
	if took := s.now.Sub(t.Paced); took >= sampleSpan && t.Step > t.PacedStep {
		l.samples(t, policy.Span{Steps: t.Step - t.PacedStep, Time: took}, speed)
		t.Paced, t.PacedStep = s.now, t.Step
	}
	l.StepRate = j.expectedRate()
}

// mostWarming is the largest number of samples that may belong to an attempt's warm-up.
const mostWarming = 3

// samples records a sample of an attempt's steps.
func (l *learnedJob) samples(t *learnedTask, seen policy.Span, speed float64) {
	span := policy.Span{Steps: seen.Steps, Time: quantity.Scale(seen.Time, speed)}
	if t.Warming < mostWarming && l.Tempo.Looks >= fewestSamples && l.Tempo.Slow(span) { // the first steps are slow
		t.Warming++
		t.FirstTook += seen.Time
		t.FirstSteps += seen.Steps
		return
	}
	var steady policy.Span
	l.Tempo, steady = l.Tempo.See(span)
	l.Block.Steps += steady.Steps
	l.Block.Time += quantity.Over(steady.Time, speed)
	if l.Block.Time >= paceSpan {
		l.Pace = l.Pace.See(float64(l.Block.Steps)/l.Block.Time.Hours()/speed, l.Block.Time)
		l.Block = policy.Span{}
	}
	if l.Tempo.Looks < fewestSamples || t.Warming > mostWarming {
		return
	}
	t.Warming = mostWarming + 1
	steps := float64(t.FirstSteps + 1) // one more may have been nearly done
	warm := max(0, t.FirstTook-quantity.Hours(steps/l.Tempo.Rate()/speed))
	if l.WarmUp > 0 {
		warm = (2*l.WarmUp + warm) / 3
	}
	l.WarmUp = warm
}

// expectedRate is the expected number of steps per hour on speed 1: the measured pace, blended with the stated work
// while little is measured; 0: unknown.
func (j *Job) expectedRate() float64 {
	l, total, work := &j.runs().Learned, j.Total(), j.r.Terms.Work
	seen := l.Tempo.Rate()
	switch {
	case seen <= 0 || work <= 0 || total <= 0:
		return seen
	case l.Tempo.Looks < fewestSamples:
		return l.StepRate
	}
	trust := max(paceSpan, 3*j.Restart()).Hours()
	weight := l.Tempo.Steady.Time.Hours()
	weight /= weight + trust
	return 1 / (weight/seen + (1-weight)*work.Hours()/float64(total))
}

// Rate is the measured number of steps per hour on speed 1; 0: not yet measured. StepRate is the expected one.
func (j *Job) Rate() float64 { return j.run().Learned.Tempo.Rate() }

// Margin is how much longer than left the remaining steps may take, exceeded with a probability of at most 1 −
// promise. It covers the spread of the pace, and pauses.
func (j *Job) Margin(left time.Duration, promise float64) time.Duration {
	l := &j.run().Learned
	return l.Pace.Margin(left, promise) + l.Tempo.Margin(j.Total()-l.SavedStep, promise)
}

// Share returns d · part / whole, rounded down, for 0 ≤ part ≤ whole.
func Share(d time.Duration, part, whole int64) time.Duration { return quantity.Portion(d, part, whole) }
