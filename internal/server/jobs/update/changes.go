package update

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// none is the value that removes a term.
const none = "none"

// changesOf parses new terms; now is market time.
func changesOf(c api.Changes, now time.Time) (v core.Changes, no *reply.Refusal) {
	for _, f := range []struct {
		field string
		text  *string
		read  func(text string) error
	}{
		{"deadline", c.Deadline, func(text string) error { return readDeadline(&v, text, now) }},
		{"budget", c.Budget, func(text string) error { return readBudget(&v, text) }},
		{"gpu_hours", c.GPUHours, func(text string) error { return readHours(&v, text) }},
		{"wall_clock", c.WallClock, func(text string) error { return readWallClock(&v, text) }},
		{"priority", c.Priority, func(text string) error { return readPriority(&v, text) }},
	} {
		if f.text == nil {
			continue
		}
		if err := f.read(strings.TrimSpace(*f.text)); err != nil {
			return v, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: f.field, Title: "the value is not valid",
				Fix: fixOf(f.field), Err: err}
		}
	}
	return v, nil
}

// fixOf returns the syntax of a term, for error messages.
func fixOf(field string) string {
	return map[string]string{
		"deadline":  "write in 6h, a time with its zone such as 2026-12-01T18:00Z or 2026-12-01 18:00 +01:00, or none",
		"budget":    "write $25.00, or none",
		"gpu_hours": "write a number of hours such as 40, or none", "wall_clock": "write a span such as 12h, or none",
		"priority": "write critical, normal or low",
	}[field]
}

func readDeadline(v *core.Changes, text string, now time.Time) error {
	var d spec.Deadline
	if text != none {
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return err
		}
	}
	at := d.Resolve(now)
	if d.Zoneless {
		return fmt.Errorf("%q names no time zone: end it with Z for UTC, or with the zone as +01:00", text)
	}
	if text != none && !at.After(now) {
		return fmt.Errorf("%q has passed already", text)
	}
	if text != none && !quantity.AllowsTime(at, now) {
		return fmt.Errorf("%q is more than ten years away", text)
	}
	v.Deadline = &at
	return nil
}

func readBudget(v *core.Changes, text string) error {
	if text == none {
		v.NoBudget = true
		return nil
	}
	a, err := spec.ParseBudget(text)
	v.Budget = &a
	return err
}

func readHours(v *core.Changes, text string) error {
	h := 0.0
	if text != none {
		var err error
		if h, err = strconv.ParseFloat(text, 64); err != nil || h <= 0 || !quantity.GPUHours.Allows(h) {
			return fmt.Errorf("%q is not a number of hours above zero, and at most %.0f", text, quantity.GPUHours.Most)
		}
	}
	v.GPUHours = &h
	return nil
}

func readWallClock(v *core.Changes, text string) error {
	d := time.Duration(0)
	if text != none {
		var err error
		if d, err = spec.ParseDuration(text); err == nil && d <= 0 {
			err = fmt.Errorf("%q is not above zero", text)
		}
		if err == nil && d > quantity.Decade {
			err = fmt.Errorf("%q is above ten years", text)
		}
		if err != nil {
			return err
		}
	}
	v.WallClock = &d
	return nil
}

func readPriority(v *core.Changes, text string) error {
	p, ok := map[string]int{"critical": 2, "normal": 1, "low": 0}[text]
	if !ok {
		return fmt.Errorf("%q is none of critical, normal, low", text)
	}
	v.Priority = &p
	return nil
}

// tooSoon returns that a job with known work misses the new deadline at its pace, unless the caller accepts that. It
// would move to on-demand machines at once, at a higher price, and be late nevertheless.
func tooSoon(m *core.Machine, j *core.Job, c core.Changes, accepted bool) *reply.Refusal {
	if accepted || c.Deadline == nil || c.Deadline.IsZero() {
		return nil
	}
	speed := 1.0
	if a := j.Live(); a != nil {
		speed = a.Speed()
	}
	left, _, known := j.Left(speed)
	restart := j.Restart()
	if a := j.Live(); a != nil && !a.Started().IsZero() {
		restart = 0
		if since := m.Now().Sub(a.Started()); j.SavedStep() == 0 {
			left -= min(left, since) // the work since its start is not in a checkpoint yet
		}
	}
	until := j.Terms().Window.Deadline(m.Now(), *c.Deadline, j.Restart())
	if needs := left + restart; known && m.Now().Add(needs).After(until) {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "accept_late",
			Title: fmt.Sprintf("at its pace job %s needs about %s, and its deadline would be in %s: it would be late, and move "+
				"to on-demand machines", j.ID(), draw.Span(needs), draw.Span(c.Deadline.Sub(m.Now()))),
			Fix: "give a later deadline, or accept that with accept_late (scrimp update --force)"}
	}
	return nil
}

// usedUp returns which limit of a job is used up, and how to raise it.
func usedUp(m *core.Machine, j *core.Job, t core.Terms) *reply.Refusal {
	no := &reply.Refusal{Status: http.StatusConflict, Title: fmt.Sprintf("job %s has used up a limit of its own", j.ID())}
	switch m.Exhausted(j, t) {
	case core.BudgetGone:
		no.Field, no.Fix = "budget", "give it a larger one with --budget, or --budget none"
		no.Err = fmt.Errorf("it has spent %s of its budget of %s", money.Short(j.Spent(m.Now()), t.Currency),
			money.Short(t.Budget, t.Currency))
	case core.TimeGone:
		no.Field, no.Fix = "wall_clock", "give it more time with --wall-clock, or --wall-clock none"
		no.Err = fmt.Errorf("its wall-clock budget is %v", t.WallClock)
	case core.HoursGone:
		no.Field, no.Fix = "gpu_hours", "give it more with --gpu-hours, or --gpu-hours none"
		no.Err = fmt.Errorf("it has used %.4g of its %g GPU-hours", j.GPUServed().Hours(), t.GPUHours)
	default:
		return nil
	}
	return no
}
