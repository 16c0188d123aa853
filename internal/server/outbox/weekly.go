package outbox

import (
	"context"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/notices"
	"scrimp/internal/server/webhook"
	"scrimp/money"
)

// Weekly is a week of a schedule for its webhook.
type Weekly struct {
	User    string // who opened the schedule
	Webhook string // may name secrets
	Report  WeekReport
}

// WeekReport is the body of a call about a week of a schedule.
type WeekReport struct {
	ID       string              `json:"id"`    // the same at each try, so that receivers can drop repeats
	Event    string              `json:"event"` // week
	Schedule string              `json:"schedule"`
	Name     string              `json:"name"` // of the pipeline
	Currency money.Currency      `json:"currency"`
	Week     client.ScheduleWeek `json:"week"`
	Text     string              `json:"text"` // the sentence of scrimp pipeline status
}

// week is the event of a WeekReport.
const week = "week"

// weeksEvery is the interval between two looks for weeks that are over.
const weeksEvery = time.Minute

// NewWeek returns the report of a week.
func NewWeek(schedule, name string, c money.Currency, w client.ScheduleWeek, text string) WeekReport {
	return WeekReport{ID: week + "/" + schedule + "/" + w.Begin.UTC().Format(time.DateOnly), Event: week,
		Schedule: schedule, Name: name, Currency: c, Week: w, Text: text}
}

// ReportWeeks reports the weeks of schedules until ctx ends. A webhook that does not answer delays no other.
func (o *Outbox) ReportWeeks(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for wait.For(ctx, weeksEvery) == nil {
		all.Go(func() { o.WeekPass(ctx) })
	}
}

// WeekPass reports the weeks that are over and that nobody has reported, those of a schedule in order, and returns when
// it has. A week whose webhook refuses it is not sent again.
func (o *Outbox) WeekPass(ctx context.Context) {
	var all sync.WaitGroup
	of := map[string][]Weekly{}
	for _, one := range o.Weeks() {
		of[one.Report.Schedule] = append(of[one.Report.Schedule], one)
	}
	for name, weeks := range of {
		all.Go(func() {
			for _, one := range weeks {
				isolate.Retry(ctx, o.Log, "weekly report of "+name, func() { o.reportWeek(ctx, one) })
			}
		})
	}
	all.Wait()
}

// reportWeek reports one week.
func (o *Outbox) reportWeek(ctx context.Context, one Weekly) {
	r := one.Report
	entry := ""
	o.Control.Read(func(m *core.Machine) {
		if is := m.State().StoredOf(r.Schedule); is != nil {
			entry = is.Vault
		}
	})
	target := webhook.Address(one.Webhook, o.secrets(r.Schedule, entry))
	w := word{ID: r.ID, Job: r.Schedule, Event: week, week: r.Week.Begin.UTC().Format(time.DateOnly)}
	o.once(ctx, &w, byWebhook, webhook.Host(target),
		func(e notices.Entry) (int, error) {
			var body any = r
			if webhook.IsChat(target) {
				body = chatOf("scrimp: " + r.Name + ", " + r.Text)
			}
			return o.Hooks.Deliver(ctx, target, one.User, r.Schedule, r.ID, body, o.progress(&w, e))
		})
}
