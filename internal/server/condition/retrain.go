package condition

import (
	"context"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/retrain"
)

// Reader reads the facts for the conditions of schedules.
type Reader struct {
	Control *control.Control
	Stores  artifacts.Stores // which addresses the users of the server may name
}

// Resolve answers a planner that wants to start a run: it returns the move, or one that skips the run or lets it wait.
func (r *Reader) Resolve(ctx context.Context, s groups.Snapshot, v groups.Move) (groups.Move, error) {
	if v.Do != groups.Start || v.Run == nil || s.Schedule == nil || !s.Schedule.When.Any() {
		return v, nil
	}
	when := s.Schedule.When
	f := retrain.Facts{Now: s.Now, Since: s.DueSince(v.Run)}
	var mark retrain.Mark
	user := ""
	r.Control.Read(func(m *core.Machine) {
		g := m.State().Group(s.Group)
		mark, user, f.Last = g.Schedule.Mark, g.User(), g.Schedule.Last
		f.Currency = g.Terms.Member.Currency
		if when.Pays != nil {
			f.Past = past(m, g, when.Pays)
		}
		if when.Price != nil {
			f.Price, f.Offer = dearest(m.State().Sale(), g.Terms.Run.Stages)
		}
	})
	if when.Data != nil {
		seen, err := r.look(ctx, user, when.Data.Path, mark)
		if err != nil {
			return v, err
		}
		f.Data = &seen
	}
	return v.Under(&s, when.Decide(f)), nil
}

// look lists a path, if its user may name it.
func (r *Reader) look(ctx context.Context, user, path string, since retrain.Mark) (retrain.Seen, error) {
	address, err := Address(path)
	if err != nil {
		return retrain.Seen{Mark: since, Err: err.Error()}, nil
	}
	if !r.Stores.OfJob(user, address) {
		return retrain.Seen{Mark: since, Err: "schedules of this server may not read " + path + " any more"}, nil
	}
	return List(ctx, address, since)
}

// past returns the runs of a schedule that have its metric. The cost of one is nil until it is final.
func past(m *core.Machine, g *state.Group, p *retrain.Pays) (list []retrain.Past) {
	for i := range g.Schedule.Runs {
		x := &g.Schedule.Runs[i]
		run := m.State().Group(x.Group)
		if run == nil || run.Phase != state.GroupOver {
			continue
		}
		value, ok := Metric(run, p)
		if !ok {
			continue
		}
		one := retrain.Past{At: run.Opened, Value: value, Cost: FinalCost(m, run)}
		for _, c := range x.Checks {
			if c.Data != nil {
				one.New = c.Data.New
			}
		}
		list = append(list, one)
	}
	return list
}

// Metric returns the metric of a run for when_it_pays; false: it has none, because its stage failed or was skipped.
// A run that took the outputs of an earlier run has their value: it changed nothing, a gain of 0.
func Metric(run *state.Group, p *retrain.Pays) (value string, ok bool) {
	n := run.Terms.Pipeline.Find(p.Stage)
	if n < 0 || run.Stages[n].Phase != groups.Done && run.Stages[n].Phase != groups.Reused {
		return "", false
	}
	value, ok = run.Stages[n].Metrics[p.Figure]
	return value, ok
}

// FinalCost returns the cost of a run that is over; nil: a machine of it is not billed yet.
func FinalCost(m *core.Machine, run *state.Group) *money.Amount {
	for n := range run.Began {
		if j := m.State().Job(run.MemberID(n)); j != nil && !j.Priced() { // archived jobs are billed
			return nil
		}
	}
	return new(m.GroupSpent(run, m.Now()))
}

// dearest returns the price of the machine on which each stage costs least, for the stage with the highest one; nil: no
// machine for sale does some stage.
func dearest(sale []*state.Listing, stages []core.Terms) (most *money.Rate, offer string) {
	for i := range stages {
		rate, name, ok := cheapest(sale, &stages[i].Need)
		if !ok {
			return nil, ""
		}
		if most == nil || rate > *most {
			most, offer = new(rate), name
		}
	}
	return most, offer
}

// cheapest returns the price of the available offer on which a unit of work costs least, as if no spot machine were
// interrupted.
func cheapest(sale []*state.Listing, need *plan.Need) (rate money.Rate, offer string, ok bool) {
	speed := 0.0
	for _, l := range sale {
		x := l.Plan()
		if !x.Quote.Available {
			continue
		}
		pace, fits := need.Fits(x)
		if fits && (!ok || x.Quote.Rate.Float()*speed < rate.Float()*pace) {
			rate, speed, offer, ok = x.Quote.Rate, pace, string(x.Offer.ID), true
		}
	}
	return rate, offer, ok
}
