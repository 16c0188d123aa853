package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// regain counts as useful what the attempt before a seemed to have lost. a starts at a later step than the newest
// checkpoint we heard of (saved), so a checkpoint was published whose report was lost with its machine. The share
// of the lost money is the share of the lost time.
func (ts *Attempts) regain(j *state.Job, a *state.Attempt, from, saved int64, f *state.TaskStarted) {
	i := slices.Index(j.Attempts(), a) - 1
	if i < 0 || from <= saved {
		return
	}
	last := j.Attempts()[i]
	if last.Live() || last.LostTime() <= 0 || last.Started().IsZero() {
		return
	}
	speed := cmp.Or(max(last.Speed(), 0), 1)
	d := unheard(j, last, from, saved)
	for _, k := range last.Tasks() {
		part := min(k.LostTime(), d)
		if lost := k.Uses()[ledger.Lost]; lost.Sign() > 0 && part > 0 {
			ts.books.Move(j, k, money.Portion(lost, money.Picos(int64(part)), money.Picos(int64(k.LostTime()))),
				ledger.Lost, ledger.Useful,
				"restored_later")
		}
		if k.LostTime() > 0 {
			f.Lost = append(f.Lost, state.LostTime{Attempt: last.ID(), Node: k.Rank(), Lost: k.LostTime() - part})
		}
	}
	f.Work = quantity.Add(f.Work, quantity.Scale(min(d, last.LostTime()), speed))
}

// unheard is how long an attempt took from step saved to step from: at the job's pace, or, if that is unknown, at
// the attempt's own pace up to its newest reported checkpoint.
func unheard(j *state.Job, last *state.Attempt, from, saved int64) time.Duration {
	steps, done := from-saved, saved-last.First()
	switch {
	case j.StepRate() > 0:
		return quantity.Hours(float64(steps) / (j.StepRate() * cmp.Or(max(last.Speed(), 0), 1)))
	case done > 0:
		took := max(0, last.Kept().Sub(last.Started())-last.LostTime())
		return quantity.Nanoseconds(float64(took) / float64(done) * float64(steps))
	}
	return 0
}

// forfeit counts as lost what was settled as useful and must be repeated. The attempt starts at an earlier step
// than the newest checkpoint we heard of (saved), because that one was torn or is missing. Each earlier attempt
// gives up the share of its useful money that the repeated steps have of its useful steps.
func (ts *Attempts) forfeit(j *state.Job, a *state.Attempt, from, saved int64, f *state.TaskStarted) {
	end := saved // end of the useful steps of the attempt in the loop
	for i := slices.Index(j.Attempts(), a) - 1; i >= 0 && end > from; i-- {
		last := j.Attempts()[i]
		if last.Started().IsZero() || last.Live() {
			continue
		}
		first := min(last.First(), end)
		again, all := end-max(first, from), end-first
		end = first
		if again <= 0 || all <= 0 || last.Uses()[ledger.Useful].Sign() <= 0 {
			continue
		}
		d := state.Share(max(0, last.Kept().Sub(last.Started())-last.LostTime()), again, all)
		for _, k := range last.Tasks() {
			if useful := k.Uses()[ledger.Useful]; useful.Sign() > 0 {
				ts.books.Move(j, k, money.Portion(useful, money.Picos(again), money.Picos(all)), ledger.Useful, ledger.Lost,
					"restored_before")
			}
			f.Lost = append(f.Lost, state.LostTime{Attempt: last.ID(), Node: k.Rank(), Lost: quantity.Add(k.LostTime(), d)})
		}
		f.Work = max(0, f.Work-quantity.Scale(d, cmp.Or(max(last.Speed(), 0), 1)))
	}
}
