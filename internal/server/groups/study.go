package groups

import (
	"fmt"
	"net/http"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
)

// limitsOf returns the limits of a group that are no money, and what is used of them.
func (d *Service) limitsOf(k known, g *state.Group) (v api.GroupLimits) {
	used, _ := k.m.GPUTime(g, d.Control.Now())
	v.GPUHours = used.Hours()
	wall, hours := g.Terms.Limits()
	if hours > 0 {
		v.GPULimit = &hours
	}
	if wall > 0 {
		v.WallClock = &wall
	}
	return v
}

// studyOf returns the state of a study.
func (d *Service) studyOf(k known, g *state.Group) *api.StudyState {
	spec, y := g.Terms.Study, g.Study
	v := &api.StudyState{Metric: spec.Metric, Maximize: spec.Maximize, Searcher: spec.Searcher, Ignored: y.Ignored,
		Plateau: (*api.StudyPlateau)(spec.Plateau), StoppedGain: y.Flat, Past: len(spec.Past),
		Warnings: groups.Warnings(spec, y.Trials, y.Reports, y.Ignored)}
	for _, q := range spec.Params {
		v.Params = append(v.Params, api.StudyParam{Name: q.Name, Values: q.Values, Min: q.Min, Max: q.Max, Int: q.Int,
			Log: q.Log, Q: q.Q, Mu: q.Mu, Sigma: q.Sigma})
	}
	v.GroupLimits = d.limitsOf(k, g)
	if spec.Fidelity.Name != "" {
		v.Fidelity = new(api.StudyFidelity(spec.Fidelity))
	}
	for n := range y.Trials {
		t := &y.Trials[n]
		if t.Phase == groups.Paused {
			v.Paused++
		}
		if t.Full(spec) && t.Promoted == (spec.Proxy != nil) {
			v.Full++
		}
	}
	v.Best = d.best(k, g, y.Best(spec))
	if spec.Proxy != nil {
		v.Proxy = &api.StudyProxyState{StudyProxy: api.StudyProxy(*spec.Proxy), Promoted: y.Promoted(),
			Best: d.best(k, g, y.BestOnProxy(spec))}
		v.Proxy.Reserve = spec.Share()
		rho, n, known := groups.Agreement(spec, y.Trials)
		if v.Proxy.Compared = n; known {
			v.Proxy.RankCorrelation = &rho
		}
	}
	return v
}

// best returns a trial with the details of its job; nil for a negative number.
func (d *Service) best(k known, g *state.Group, n int) *api.Trial {
	if n < 0 {
		return nil
	}
	best := shown(g, n, g.Terms.Study.Pool())
	if j := k.job(best.ID); j != nil {
		d.ofJob(&best, j)
	}
	return &best
}

// shown returns a trial without the details of its job.
func shown(g *state.Group, n int, pool [][]tune.Value) api.Trial {
	t, spec := g.Study.Trials[n], g.Terms.Study
	v := api.Trial{ID: g.MemberID(n), Number: n, Params: map[string]string{}, Values: t.Values}
	for d, text := range spec.Texts(pool, t.Config) {
		v.Params[spec.Params[d].Name] = text
	}
	f := spec.Length(t.Promoted)
	if v.Unit = length(f, t.Unit); t.Values > 0 {
		v.Last, v.Best, v.BestAt = new(t.Last), new(t.Best), length(f, t.At)
	}
	v.Proxy = spec.Proxy != nil && !t.Promoted
	if from := groups.FromProxy(g.Study.Trials, n); t.Promoted && from >= 0 {
		v.PromotedFrom = &from
	}
	return v
}

// ofJob adds the details of a trial's job.
func (d *Service) ofJob(v *api.Trial, j *core.Job) {
	v.State, v.Why, v.Cost = string(j.State()), j.Why(), j.Spent(d.Control.Now())
}

// Trials lists the trials of a study, with the values of their metric if the query asks for them.
func (d *Service) Trials(w http.ResponseWriter, r *http.Request) {
	curves := r.URL.Query().Get("curves")
	if curves != "" && curves != "1" {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "curves", "it is neither 1 nor left out", "write curves=1",
			fmt.Errorf("curves is %.40q", curves))
		return
	}
	switch v, ok := d.group(w, r); {
	case !ok:
	case v.Study == nil: // an array has no trials
		reply.JSON(w, []api.Trial{})
	case curves == "1":
		reply.JSON(w, d.curves(v.ID))
	default:
		reply.JSON(w, d.trials(v.ID))
	}
}

func (d *Service) trials(id string) []api.Trial {
	list := []api.Trial{}
	d.Control.Group(id, func(_ *core.Machine, g *state.Group) {
		pool := g.Terms.Study.Pool()
		for n := range g.Study.Trials {
			list = append(list, shown(g, n, pool))
		}
	})
	for n := range list {
		d.Control.Job(list[n].ID, func(_ *core.Machine, j *core.Job) { d.ofJob(&list[n], j) })
	}
	return list
}

// curves returns the trials with the values of their metric.
func (d *Service) curves(id string) []api.Trial {
	list := d.trials(id)
	d.Control.Group(id, func(_ *core.Machine, g *state.Group) {
		for _, r := range g.Study.Reports {
			if r.Phase != "" || r.Bad || r.Trial >= len(list) {
				continue
			}
			f := g.Terms.Study.Length(g.Study.Trials[r.Trial].Promoted)
			p := api.TrialPoint{Unit: length(f, r.Unit), Value: r.Value, CostUSD: r.Spent, GPUHours: r.GPUHours}
			if r.At > 0 {
				p.At = new(d.Control.Clock().ToWall(g.Opened.Add(r.At)))
			}
			list[r.Trial].Curve = append(list[r.Trial].Curve, p)
		}
	})
	return list
}

// length returns units of training in epochs or steps.
func length(f study.Fidelity, unit int) float64 {
	if f.Name == "" {
		return float64(unit)
	}
	return min(f.Max, float64(unit)*f.Min)
}

// studyReceipt divides the cost of a study by purpose. lines are those of its trials.
func (d *Service) studyReceipt(v api.Group, lines []api.GroupMember) *api.StudyReceipt {
	trials := d.trials(v.ID)
	rec := &api.StudyReceipt{Best: v.Study.Best, Trials: len(trials), Full: v.Study.Full}
	most := 1.0
	if f := v.Study.Fidelity; f != nil {
		most = f.Max
	}
	cost, sum, proxy := map[string]money.Amount{}, money.Amount{}, money.Amount{}
	full, onProxy := map[string]bool{}, map[string]bool{}
	for _, t := range trials {
		end := most
		if p := v.Study.Proxy; t.Proxy && p.Max > 0 {
			end = p.Max
		}
		full[t.ID], onProxy[t.ID] = t.Unit >= end, t.Proxy
	}
	for _, l := range lines {
		cost[l.ID], sum = l.Cost, sum.Add(l.Cost)
		if onProxy[l.ID] {
			proxy = proxy.Add(l.Cost)
		}
		if l.Interruptions > 0 {
			rec.Interrupted = rec.Interrupted.Add(l.Cost)
		}
		switch {
		case l.State == string(core.Failed) || l.Why == string(policy.Diverged):
			rec.Failed = rec.Failed.Add(l.Cost)
		case !full[l.ID] && (l.State == string(core.Stopped) || l.State == string(core.Paused)):
			rec.Pruned = rec.Pruned.Add(l.Cost)
		}
	}
	if n := len(trials); n > 0 {
		rec.PerTrial = new(sum.Float() / float64(n))
	}
	if rec.Full > 0 {
		rec.PerFull = new(sum.Float() / float64(rec.Full))
	}
	if rec.AllFull = allFull(trials, cost, most); v.Study.Proxy != nil {
		rec.AllFull, rec.OnProxy = allPromoted(trials, cost, most), &proxy
	}
	d.Control.Group(v.ID, func(_ *core.Machine, g *state.Group) { course(rec, g.Terms.Study, g.Study, sum.Float()) })
	return rec
}

// course adds how a search went to its receipt. Cost is that of its trials.
func course(rec *api.StudyReceipt, spec *study.Spec, y *state.Study, cost float64) {
	marks := func(promoted bool) (list []api.StudyMark) {
		for _, m := range groups.BestBySpend(spec, promoted, y.Trials, y.Reports, cost) {
			list = append(list, api.StudyMark{SpentUSD: m.Spent, Best: m.Best})
		}
		return list
	}
	if rec.BestBySpend = marks(spec.Proxy != nil); spec.Proxy != nil {
		rec.ProxyBySpend = marks(false)
	}
	for _, r := range groups.Rungs(spec, y.Trials, y.Reports) {
		rec.Rungs = append(rec.Rungs, api.StudyRung{Unit: length(spec.Length(false), r.Unit), Reached: r.Reached,
			Continued: r.Continued, Best: r.Best})
	}
	if x := groups.ImportanceOf(spec, spec.Pool(), y.Trials, y.Reports); x != nil {
		rec.Importance = &api.StudyImportance{Unit: length(spec.Length(false), x.Unit), Trials: x.Trials,
			Shares: map[string]float64{}}
		for d, share := range x.Shares {
			rec.Importance.Shares[spec.Params[d].Name] = share
		}
	}
}

// allFull estimates what the trials would have cost without pruning. One that trained in full, ended by itself, failed
// or diverged has cost what it cost. One that the search left, or that still runs, counts its cost per unit of training
// times most, the full length. It is nil where no trial has trained, or where one of the latter has no unit yet: its
// cost per unit is unknown. Cost is by trial.
func allFull(trials []api.Trial, cost map[string]money.Amount, most float64) *float64 {
	trained, all := false, 0.0
	for _, t := range trials {
		own := cost[t.ID].Float()
		trained = trained || t.Unit > 0
		switch {
		case t.Unit >= most || own <= 0 || t.Why == string(policy.Diverged) || t.State == string(core.Failed) ||
			t.State == string(core.Succeeded):
			all += own
		case t.Unit > 0:
			all += own / t.Unit * most
		default:
			return nil
		}
	}
	if !trained {
		return nil
	}
	return &all
}

// allPromoted estimates what it would have cost to train each configuration of a search on a proxy in full: the mean
// cost of the trials that were trained in full for each. It is nil if there is none. Cost is by trial.
func allPromoted(trials []api.Trial, cost map[string]money.Amount, most float64) *float64 {
	configs, full, sum := 0, 0, 0.0
	for _, t := range trials {
		switch {
		case t.Proxy:
			configs++
		case t.Unit >= most:
			full, sum = full+1, sum+cost[t.ID].Float()
		}
	}
	if full == 0 {
		return nil
	}
	return new(sum / float64(full) * float64(configs))
}
