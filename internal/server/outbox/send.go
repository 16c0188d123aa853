package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/mailer"
	"scrimp/internal/server/webhook"
)

// wantedEnd returns the event of a job's end, and whether n includes it. A job that a budget stops is over its budget,
// and it has also ended.
func wantedEnd(n spec.Notify, end core.Notify) (event string, wanted bool) {
	event = spec.Done
	if end.State == core.Failed {
		event = spec.Failed
	}
	wanted = n.Wants(event)
	if end.Why == core.LimitSpent || policy.Stop(end.Why).IsBudget() {
		event, wanted = spec.OverBudget, wanted || n.Wants(spec.OverBudget)
	}
	return event, wanted
}

// send reports w to everybody whom n names, at once, and records who cannot be reached. It returns false if ctx ends
// before: the report must be repeated.
func (o *Outbox) send(ctx context.Context, n spec.Notify, w word) bool {
	user, inputs, submitted := "", w.Job, time.Time{}
	o.Control.Job(w.Job, func(_ *core.Machine, j *core.Job) {
		user, inputs, submitted = j.User(), j.Inputs(), j.Submitted()
	})
	var all sync.WaitGroup
	if n.Webhook != "" {
		target := webhook.Address(n.Webhook, o.secrets(inputs))
		all.Go(func() {
			o.report(ctx, w, webhook.Host(target), o.Hooks.Deliver(ctx, target, user, w.Job, w.ID, message(target, w)))
		})
	}
	m := mailer.Message{Key: w.ID + "\n" + submitted.UTC().Format(time.RFC3339Nano), Date: time.Now(),
		Subject: w.line(), Text: w.text()}
	for _, to := range n.Email {
		all.Go(func() { o.report(ctx, w, to, o.Mails.Deliver(ctx, w.Job, to, m)) })
	}
	all.Wait()
	return ctx.Err() == nil
}

// report records that a receiver is not reached, if err says so.
func (o *Outbox) report(ctx context.Context, w word, to string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	o.Log.Warn("cannot report an event", "job", w.Job, "event", w.Event, "to", to, "refused",
		errors.Is(err, webhook.ErrRefused) || errors.Is(err, mailer.ErrRefused), "error", err)
	one := Failure{Event: w.Event, To: to, Error: err.Error(), At: time.Now().UTC()}
	if err := o.failed.add(o.Dir, w.Job, one); err != nil {
		o.Log.Warn("cannot record a report that failed", "job", w.Job, "error", err)
	}
}

// text returns the body of an e-mail.
func (w *word) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", strings.TrimPrefix(w.line(), "scrimp: "))
	fmt.Fprintf(&b, "event: %s\nstate: %s\n", w.Event, w.State)
	if w.Why != "" {
		fmt.Fprintf(&b, "why:   %s\n", w.Why)
	}
	if f := w.Forecast; f != nil {
		fmt.Fprintf(&b, "\n%s.\n\n%s\n", f.Detail, f.Fix)
	}
	fmt.Fprintf(&b, "\nscrimp status %s\n", w.Job)
	return b.String()
}
