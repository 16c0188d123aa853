package searches

import (
	"context"
	"errors"
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/work/loop"
)

// asks answers a question, and stores it if it has changed the search.
func (d *Service) asks(ctx context.Context, s *search, a asker, b client.AskTrial) (loop.Answer, string,
	*reply.Refusal) {
	leased, note, no := d.leases(s, a, b)
	if no != nil {
		return loop.Answer{}, "", no
	}
	answer, changed, err := s.plan.Ask(b.Worker)
	switch {
	case err != nil:
		return answer, "", refusal(err)
	case answer.Do == loop.End:
		leased, note = nil, "" // nobody trains any more
	case changed || answer.Do != loop.Train:
		note = "" // the program before has left its trial
	}
	spent, known := d.spentBy(a)
	_, seen := s.spent[a.job]
	if !changed && leased == nil && (!known || seen) {
		return answer, note, nil
	}
	x := record{Ask: &b.Worker, Lease: leased}
	if known && !seen { // what the job has cost before is not the search's
		x.Job, x.Spent = a.job, &spent
	}
	return answer, note, d.keep(ctx, s, x)
}

// tells takes a value, and stores it if it has changed the search.
func (d *Service) tells(ctx context.Context, s *search, a asker, b client.TellTrial) (loop.Answer, *reply.Refusal) {
	if no := s.lost(b); no != nil {
		return loop.Answer{}, no
	}
	v, x, no := d.told(s, a, b)
	if no != nil {
		return loop.Answer{}, no
	}
	answer, changed, err := s.plan.Report(v)
	if err != nil {
		return answer, refusal(err)
	}
	if !changed {
		return answer, nil
	}
	x.Told = &v
	return answer, d.keep(ctx, s, x)
}

// longest bounds the seconds of a told value.
const longest = 10 * 365 * 24 * 3600

// told converts a value to the planner's form. Its cost is the one that it says, otherwise that of its seconds,
// otherwise what the asking job has cost since its value before.
func (d *Service) told(s *search, a asker, b client.TellTrial) (v loop.Told, x record, no *reply.Refusal) {
	wrong := func(field, title, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: title, Fix: fix}
	}
	v = loop.Told{Trial: b.Trial, At: b.At, Bad: b.Diverged}
	switch {
	case (b.Value == nil) != b.Diverged:
		return v, x, wrong("value", "a value is a number, and diverged says that there is none",
			"give either value or diverged: true")
	case b.Value != nil:
		v.Value = *b.Value
	}
	if b.Seconds != nil {
		if v.Seconds = *b.Seconds; !(v.Seconds >= 0 && v.Seconds <= longest) {
			return v, x, wrong("seconds", "the time is not from 0 s to ten years", "give the seconds of training since the "+
				"value before")
		}
	}
	v.Timed = b.Seconds != nil
	now, known := d.spentBy(a)
	if known {
		x.Job, x.Spent = a.job, &now
	}
	switch {
	case b.Cost != nil:
		v.Cost, v.Priced = *b.Cost, true
	case b.Seconds != nil && s.Def.PerHour != nil:
		v.Cost, v.Priced = s.Def.PerHour.Until(time.Duration(v.Seconds*float64(time.Second))), true
	case known:
		if before, seen := s.spent[a.job]; seen && now.Cmp(before) > 0 {
			v.Cost = now.Sub(before)
		}
		v.Priced = true
	case s.Def.Budget != nil:
		return v, x, wrong("cost", "the search has a budget in dollars, and the value has no cost",
			"tell its cost in dollars, or its seconds where the search has a price per hour")
	}
	if v.Cost.Sign() < 0 {
		return v, x, wrong("cost", "the cost is below zero", "give the dollars since the value before")
	}
	return v, x, nil
}

// spentBy returns what the asking job has cost so far, in dollars; false: there is no job, or its currency is another.
func (d *Service) spentBy(a asker) (spent money.Amount, known bool) {
	if a.job == "" {
		return spent, false
	}
	now := d.Control.Now()
	d.Control.Job(a.job, func(_ *core.Machine, j *core.Job) {
		if c := j.Terms().Currency; c == money.USD || c == "" {
			spent, known = j.Spent(now), true
		}
	})
	return spent, known
}

// refusal returns the answer for an error of the planner.
func refusal(err error) *reply.Refusal {
	no := &reply.Refusal{Status: http.StatusConflict, Title: err.Error()}
	switch {
	case errors.Is(err, loop.ErrUnknown):
		no.Status, no.Field, no.Fix = http.StatusNotFound, "trial", "tell a trial that an ask has answered"
	case errors.Is(err, loop.ErrInvalid):
		no.Status, no.Fix = http.StatusUnprocessableEntity, "correct the value"
	case errors.Is(err, loop.ErrTwice):
		no.Field, no.Fix = "value", "keep the value that was told first; a "+
			"second program needs a number of its own: worker=1, workers=2 (scrimp tune ask --worker 1, with parallel: 2)"
	case errors.Is(err, loop.ErrOrder):
		no.Field, no.Fix = "at", "tell the values of a trial in the order of its training"
	case errors.Is(err, loop.ErrEnded):
		no.Field, no.Fix = "trial", "ask, and train the trial of the answer"
	default:
		no.Fix = "open another search: it can start from this one's values"
	}
	return no
}
