package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/mailer"
	"scrimp/internal/server/notices"
	"scrimp/internal/server/tries"
	"scrimp/internal/server/webhook"
)

// The ways to a receiver, as client.Notice names them.
const (
	byEmail   = "email"
	byWebhook = "webhook"
)

// longestOpen is how long after its first try a report may be sent: nobody needs the news of last month.
const longestOpen = 72 * time.Hour

// result is what became of a report.
type result int

const (
	made        result = iota // everybody has it, or never will
	open                      // a mail server is missing: the next start goes on
	interrupted               // ctx ended: the next start goes on
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

// send reports w to everybody whom n names, at once, except to those whom an earlier server or call has reached.
func (o *Outbox) send(ctx context.Context, n spec.Notify, w word) result {
	job := o.about(w.Job)
	var all sync.WaitGroup
	var missing atomic.Bool
	if n.Webhook != "" {
		target := webhook.Address(n.Webhook, o.secrets(w.Job, job.secrets))
		all.Go(func() {
			o.once(ctx, &w, byWebhook, webhook.Host(target), func(e notices.Entry) (int, error) {
				return o.Hooks.Deliver(ctx, target, job.user, w.Job, w.ID, message(target, w), o.progress(&w, e))
			})
		})
	}
	m := mailer.Message{Key: w.ID + "\n" + job.submitted.UTC().Format(time.RFC3339Nano), Date: time.Now(),
		Subject: w.line(), Text: w.text(job)}
	for _, to := range n.Email {
		all.Go(func() {
			if o.once(ctx, &w, byEmail, to, func(e notices.Entry) (int, error) {
				return o.Mails.Deliver(ctx, w.Job, to, m, o.progress(&w, e))
			}) {
				missing.Store(true)
			}
		})
	}
	all.Wait()
	switch {
	case ctx.Err() != nil:
		return interrupted
	case missing.Load():
		return open
	}
	return made
}

// progress goes on with the tries of an earlier server, and records each that fails.
func (o *Outbox) progress(w *word, e notices.Entry) tries.Progress {
	p := tries.Progress{Tries: e.Notice.Tries}
	if e.Notice.Next != nil {
		p.Next = *e.Notice.Next
	}
	p.Failed = func(n int, next time.Time, err error) {
		one := e
		one.Notice.State, one.Notice.Tries, one.Notice.Error, one.Notice.Next = client.Retrying, n, err.Error(), &next
		o.record(w, one)
	}
	return p
}

// once makes a report to a receiver unless one was made, and records what became of it. It returns true if the report
// waits for a server that sends e-mail.
func (o *Outbox) once(ctx context.Context, w *word, by, to string, do func(notices.Entry) (int, error)) (waits bool) {
	n := client.Notice{Job: w.Job, Event: w.Event, By: by, To: to, Alert: w.alert, Anomaly: w.anomaly,
		Week: w.week}
	e, done, ok, err := o.Past.Begin(w.ID, n)
	if err != nil { // better twice than never
		o.Log.Warn("cannot read to whom an event was reported", "of", w.of(), "error", err)
		e, done, ok = notices.Entry{Key: w.ID, Notice: n}, func() {}, true
	}
	if !ok { // another call makes this report
		return false
	}
	defer done()
	if s := e.Notice.State; s == client.Delivered || s == client.Refused {
		return false
	}
	tries, err := e.Notice.Tries, errTooOld
	if e.First.IsZero() || time.Since(e.First) < longestOpen {
		tries, err = do(e)
	}
	if err != nil && ctx.Err() != nil {
		return false
	}
	last := e.Notice.Error
	e.Notice.Tries, e.Notice.Next, e.Notice.Error = tries, nil, ""
	switch {
	case err == nil:
		e.Notice.State = client.Delivered
	case errors.Is(err, mailer.ErrNone):
		e.Notice.State, e.Notice.Error, waits = client.Waiting, last, true
	default:
		e.Notice.State, e.Notice.Error = client.Refused, err.Error()
	}
	if err != nil {
		o.Log.Warn("cannot report an event", "of", w.of(), "event", w.Event, "to", to, "refused",
			errors.Is(err, webhook.ErrRefused) || errors.Is(err, mailer.ErrRefused), "error", err)
	}
	o.record(w, e)
	return waits
}

// errTooOld ends a report that no server has sent in time.
var errTooOld = errors.New("no server could send it within three days")

// record writes what became of a report.
func (o *Outbox) record(w *word, e notices.Entry) {
	e.Notice.At = time.Now().UTC()
	if err := o.Past.Add(e); err != nil {
		o.Log.Warn("cannot record a report; the next start may repeat it", "of", w.of(), "error", err)
	}
}
