package groups

import (
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/retrain"
)

// EndedWeek is the newest week of an open schedule that is over, for the webhook of the schedule.
type EndedWeek struct {
	Schedule, Name, User string
	Webhook              string
	Currency             money.Currency
	Week                 api.ScheduleWeek
	Text                 string // the sentence of scrimp pipeline status
}

// settles is how long after a week its report waits for costs that are not final, in market time.
const settles = 24 * time.Hour

// EndedWeeks returns the weeks that webhooks of open schedules should have by now.
func (d *Desk) EndedWeeks() (list []EndedWeek) {
	var names []string
	d.Control.Read(func(m *core.Machine) {
		for _, g := range m.State().Groups() {
			if g.Schedule != nil && g.Phase == state.GroupOpen && g.Terms.Schedule.Notify != "" {
				names = append(names, g.Name)
			}
		}
	})
	for _, name := range names {
		d.find(name, func(k known, g *state.Group) {
			if g.Schedule == nil {
				return
			}
			now := k.m.State().Now()
			if t := d.Control.Now(); t.After(now) {
				now = t
			}
			if w, ok := ended(d.weeks(k, g), now); ok {
				metric := ""
				if p := g.Terms.Schedule.When.Pays; p != nil {
					metric = p.Metric
				}
				t := g.Terms.Member
				one := retrain.Week{Begin: w.Begin, Runs: w.Runs, Skipped: w.Skipped, Cost: w.Cost, Open: w.CostOpen,
					OnDemand: w.OnDemand, Gain: w.Gain}
				list = append(list, EndedWeek{g.Name, t.Name, g.User(), g.Terms.Schedule.Notify, t.Currency, w,
					one.Text(metric, t.Currency)})
			}
		})
	}
	return list
}

// ended returns the newest week that is over, once its costs are final or have had the time to become so.
func ended(weeks []api.ScheduleWeek, now time.Time) (w api.ScheduleWeek, ok bool) {
	for i := len(weeks) - 1; i >= 0; i-- {
		end := weeks[i].Begin.AddDate(0, 0, 7)
		if now.Before(end) {
			continue
		}
		return weeks[i], !weeks[i].CostOpen || !now.Before(end.Add(settles))
	}
	return w, false
}
