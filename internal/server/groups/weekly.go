package groups

import (
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/retrain"
)

// EndedWeek is a week of an open schedule that is over, for the webhook of the schedule.
type EndedWeek struct {
	Schedule, Name, User string
	Webhook              string
	Currency             money.Currency
	Week                 api.ScheduleWeek
	Text                 string // the sentence of scrimp pipeline status
}

// settles is how long after a week its report waits for costs that are not final, in market time.
const settles = 24 * time.Hour

// missed is how long after its end a week is reported that nobody could report in time, in market time.
const missed = 30 * 24 * time.Hour

// EndedWeeks returns the weeks that webhooks of open schedules should have by now, the oldest of each schedule first.
func (d *Service) EndedWeeks() (list []EndedWeek) {
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
			for _, w := range ended(d.weeks(k, g), cut(g.Schedule), now) {
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

// cut reports whether the schedule has had runs that it does not keep, so that its first week may lack some.
func cut(s *state.Schedule) bool {
	all := s.Begun + s.Skipped
	for i := range s.Runs {
		all -= 1 + s.Runs[i].Same
	}
	return all > 0
}

// ended returns the weeks that are over and not older than missed, once their costs are final or have had the time to
// become so. An older week than the newest is left out if it lacks runs, because a report has all that are kept.
func ended(weeks []api.ScheduleWeek, cut bool, now time.Time) (list []api.ScheduleWeek) {
	for i, w := range weeks {
		end := w.Begin.AddDate(0, 0, 7)
		if now.Before(end) {
			break
		}
		newest := i+1 == len(weeks) || now.Before(weeks[i+1].Begin.AddDate(0, 0, 7))
		if !newest && (now.Sub(end) > missed || cut && i == 0) {
			continue
		}
		if !w.CostOpen || !now.Before(end.Add(settles)) {
			list = append(list, w)
		}
	}
	return list
}
