package budgets

import (
	"cmp"
	"errors"
	"net/http"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/fair"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// ShowShares lists the shares of the teams that the caller sees.
func (d *Service) ShowShares(w http.ResponseWriter, r *http.Request) {
	if no := d.Settled(r.Context()); no != nil {
		no.Answer(w)
		return
	}
	v := api.QueueShares{Teams: []api.QueueShare{}, Currency: money.USD}
	var list []fair.Share
	d.Control.Read(func(m *core.Machine) {
		now := d.Control.Now()
		if m.Now().After(now) {
			now = m.Now()
		}
		if list, v.Shared = m.Shares(now); v.Shared {
			rules, _ := m.Rules()
			v.HalfLife = rules.Fair.HalfLife
		}
	})
	for _, s := range list {
		if maySee(auth.CallerOf(r), budget.Scope("team:"+s.Name)) {
			v.Teams = append(v.Teams, shareOf(s))
		}
	}
	reply.JSON(w, v)
}

func shareOf(s fair.Share) client.QueueShare {
	var missed *float64
	if part, ok := s.MissShare(); ok {
		missed = &part
	}
	return client.QueueShare{Met: s.Met, Missed: s.Missed, MissShare: missed,
		Team: s.Name, Weight: s.Weight, Set: s.Set, Wanted: s.Wanted, Had: s.Had, Spent: s.Spent,
		Held: s.Held, Burn: s.Burn, Running: s.Running, Waits: s.Waits, Guarantee: s.Guarantee, Borrow: s.Borrow,
		Stopped: s.Stopped}
}

// PutShare changes the share of a team in the queue.
func (d *Service) PutShare(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.SetQueueShare](w, r)
	if !ok {
		return
	}
	d.setting.Lock()
	defer d.setting.Unlock()
	if err := d.settle(r.Context()); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read the budgets", "try again", err)
		return
	}
	v := d.rulesNow()
	next, wrong := d.sharesAfter(v.Fair, &b)
	if wrong == nil {
		wrong = wrongShare(fair.Check(next, v.Limits))
	}
	if wrong != nil {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, wrong.Field, wrong.Cause, wrong.Fix, nil)
		return
	}
	v.Fair = next
	object := "half-life of the queue's shares"
	if b.Team != "" {
		object = "share of team " + b.Team
	}
	d.tell(w, r, v, object)
}

// tell writes rules to the log, and answers the request.
func (d *Service) tell(w http.ResponseWriter, r *http.Request, v budget.Rules, object string) {
	d.Control.Prepare(r.Context(), &v) // jobs are still admitted under the old limits meanwhile
	if err := d.setRules(r.Context(), v, func(e core.Event) error {
		e.Actor = auth.Actor(auth.CallerOf(r).User)
		return d.Gate.Propose(r, object, e)
	}); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// wrongShare returns err as an error about a field; nil remains nil.
func wrongShare(err error) *fair.Wrong {
	var wrong *fair.Wrong
	if err != nil && !errors.As(err, &wrong) {
		wrong = &fair.Wrong{Field: "team", Cause: err.Error(), Fix: "scrimp queue set --help says more"}
	}
	return wrong
}

// sets reports whether a change sets something of a team.
func sets(b *api.SetQueueShare) bool {
	return b.Weight != nil || b.Guarantee != nil || b.Borrow != nil || b.NoBorrow
}

// together returns what is wrong with a change that sets nothing, or whose parts exclude each other.
func together(b *api.SetQueueShare) *fair.Wrong {
	some := sets(b)
	switch {
	case b.Team == "" && (some || b.Off):
		return &fair.Wrong{Field: "team", Cause: "the team is missing", Fix: "name one, as scrimp teams lists them"}
	case b.Team == "" && b.HalfLife == nil:
		return &fair.Wrong{Field: "team", Cause: "the change is empty", Fix: "send a team and its weight, or a half-life"}
	case b.Team != "" && !some && !b.Off:
		return &fair.Wrong{Field: "team", Cause: "the change sets nothing for team " + b.Team,
			Fix: "send its weight, guarantee or borrow, or a half-life without a team"}
	case b.Off && (some || b.HalfLife != nil):
		return &fair.Wrong{Field: "off", Cause: "off removes the whole setting of the team", Fix: "send nothing else with it"}
	case b.Borrow != nil && b.NoBorrow:
		return &fair.Wrong{Field: "borrow", Cause: "a limit and no limit exclude each other", Fix: "send one of them"}
	}
	return nil
}

// sharesAfter returns the rules after a change, or what is wrong with the change.
func (d *Service) sharesAfter(old *fair.Rules, b *api.SetQueueShare) (*fair.Rules, *fair.Wrong) {
	if wrong := together(b); wrong != nil {
		return nil, wrong
	}
	next := fair.Clone(old)
	if b.Team != "" {
		if wrong := d.changeTeam(&next, b); wrong != nil {
			return nil, wrong
		}
	}
	if b.HalfLife != nil {
		if next == nil {
			return nil, &fair.Wrong{Field: "half_life_ns", Cause: "no team has a share yet",
				Fix: "set the weight of a team first, with scrimp queue set --team"}
		}
		next.HalfLife = *b.HalfLife
	}
	return next, nil
}

// changeTeam changes or removes the setting of one team.
func (d *Service) changeTeam(rules **fair.Rules, b *api.SetQueueShare) *fair.Wrong {
	t, known := fair.Team{Name: b.Team, Weight: fair.DefaultWeight}, false
	if *rules != nil {
		t, known = fair.Of(*rules, b.Team)
	}
	if b.Off {
		if !known {
			return &fair.Wrong{Field: "team", Cause: "team " + b.Team + " has no setting",
				Fix: "scrimp queue shares lists those that do"}
		}
		*rules = fair.Remove(*rules, b.Team)
		return nil
	}
	if cause, fix := d.checkScope(budget.Scope("team:" + b.Team)); cause != "" {
		return &fair.Wrong{Field: "team", Cause: cause, Fix: fix}
	}
	if b.Weight != nil {
		t.Weight = *b.Weight
	}
	if b.Guarantee != nil {
		t.Guarantee = *b.Guarantee
	}
	if t.Borrow = cmp.Or(b.Borrow, t.Borrow); b.NoBorrow {
		t.Borrow = nil
	}
	*rules = fair.Set(*rules, t)
	return nil
}
