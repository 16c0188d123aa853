package state

import (
	"cmp"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/quantity"
)

// A look is at a second of steps at least. The spread of the pace is that of looks of paceSpan, and so
// long, or three restarts, what a program shows weighs as much as what was said of its work.
const (
	lookSpan = time.Second
	paceSpan = time.Minute
)

// fewestLooks is how many looks tell more of a program than what was said of its work.
const fewestLooks = 3

// seesPace measures how fast j goes. What an attempt does before its first report of a step is its
// warm-up (imports, caches, compilation), which belongs to what a move takes; its pace
// counts from there on, without the pauses that do not come again.
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
	if took := s.now.Sub(t.Paced); took >= lookSpan && t.Step > t.PacedStep {
		l.looks(t, policy.Span{Steps: t.Step - t.PacedStep, Time: took}, speed)
		t.Paced, t.PacedStep = s.now, t.Step
	}
	l.StepRate = j.expectedRate()
}

// mostWarming is how many looks at an attempt may still be of its warm-up.
const mostWarming = 3

// looks takes some steps of an attempt in.
func (l *learnedJob) looks(t *learnedTask, seen policy.Span, speed float64) {
	span := policy.Span{Steps: seen.Steps, Time: quantity.Scale(seen.Time, speed)}
	if t.Warming < mostWarming && l.Tempo.Looks >= fewestLooks && l.Tempo.Slow(span) { // its first steps are slow
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
	if l.Tempo.Looks < fewestLooks || t.Warming > mostWarming {
		return
	}
	t.Warming = mostWarming + 1
	steps := float64(t.FirstSteps + 1) // another may have been nearly done
	warm := max(0, t.FirstTook-quantity.Hours(steps/l.Tempo.Rate()/speed))
	if l.WarmUp > 0 {
		warm = (2*l.WarmUp + warm) / 3
	}
	l.WarmUp = warm
}

// expectedRate is the steps an hour on speed 1 that are to be expected: as measured, and as long
// as little was seen of it also as was said of the work; 0: nobody knows yet.
func (j *Job) expectedRate() float64 {
	l, total, work := &j.runs().Learned, j.Total(), j.r.Terms.Work
	seen := l.Tempo.Rate()
	switch {
	case seen <= 0 || work <= 0 || total <= 0:
		return seen
	case l.Tempo.Looks < fewestLooks:
		return l.StepRate
	}
	trust := max(paceSpan, 3*j.Restart()).Hours()
	weight := l.Tempo.Steady.Time.Hours()
	weight /= weight + trust
	return 1 / (weight/seen + (1-weight)*work.Hours()/float64(total))
}

// Rate is the steps an hour on speed 1 as they were measured; 0: not yet. StepRate is what is to be expected.
func (j *Job) Rate() float64 { return j.run().Learned.Tempo.Rate() }

// Margin is how much longer than left the steps that are left may take, with a probability of no more
// than 1 − promise: by the spread of the pace, and by pauses.
func (j *Job) Margin(left time.Duration, promise float64) time.Duration {
	l := &j.run().Learned
	return l.Pace.Margin(left, promise) + l.Tempo.Margin(j.Total()-l.SavedStep, promise)
}
