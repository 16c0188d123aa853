package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/spec"
)

// register keeps what the log alone knows of jobs: who submitted them, and what
// they were expected to cost when first looked at. It reads on where it stopped.
type register struct {
	after     uint64
	users     map[string]string
	estimates map[string]money.Amount // jobs without one are not foreseeable
}

// registered brings the register up to date and returns it. The caller holds s.logs.
func (s *Server) registered(ctx context.Context) (*register, error) {
	g := &s.register
	if g.users == nil {
		g.users, g.estimates = map[string]string{}, map[string]money.Amount{}
	}
	for {
		records, err := s.store.Records(ctx, g.after, 1000)
		if err != nil || len(records) == 0 {
			return g, err
		}
		for _, r := range records {
			e, decisions, err := control.Decode(r)
			if err != nil {
				return g, err
			}
			if b, ok := e.Body.(core.JobSubmitted); ok && g.users[b.Job] == "" {
				g.users[b.Job] = userOf(e.Actor)
			}
			for _, d := range decisions {
				if _, known := g.estimates[d.Job]; known || d.Expect == nil {
					continue
				}
				best := -1.0
				for _, v := range []*float64{d.Expect.Wait, d.Expect.Spot, d.Expect.OnDemand} {
					if v != nil && (best < 0 || *v < best) {
						best = *v
					}
				}
				if a, ok := money.Estimated(best); ok && best >= 0 {
					g.estimates[d.Job] = a
				}
			}
			g.after = r.Seq
		}
	}
}

// userOf is the user that an event's actor names.
func userOf(actor string) string {
	if name, ok := strings.CutPrefix(actor, "user:"); ok {
		return name
	}
	return ownerName
}

// groupBy returns what costs are listed by; kinds are by job.
func groupBy(by string, g *register, kinds map[string]string) (func(o ledger.Owner) string, error) {
	if key, ok := strings.CutPrefix(by, "tag:"); ok && key != "" {
		return ledger.ByTag(key), nil
	}
	switch by {
	case "team":
		return ledger.ByTeam, nil
	case "project":
		return ledger.ByProject, nil
	case "job":
		return ledger.ByJob, nil
	case "user":
		return func(o ledger.Owner) string { return g.users[o.Job] }, nil
	case "kind":
		return func(o ledger.Owner) string { return kinds[o.Job] }, nil
	}
	return nil, fmt.Errorf("%q is not team, project, user, kind, job or tag:KEY", by)
}

func (s *Server) getCosts(w http.ResponseWriter, r *http.Request) {
	v := api.Costs{By: r.URL.Query().Get("by"), Lines: []api.CostLine{}}
	if v.By == "" {
		v.By = "team"
	}
	back := time.Duration(-1)
	if text := r.URL.Query().Get("since"); text != "" {
		d, err := spec.ParseDuration(text)
		if err != nil {
			fieldProblem(w, http.StatusBadRequest, "since", "since is not a span of market time", "write it with its unit, as in 7d or 12h", err)
			return
		}
		back = d
	}
	if _, err := groupBy(v.By, nil, nil); err != nil {
		fieldProblem(w, http.StatusBadRequest, "by", "costs are not listed by that", "write team, project, user, kind, job or tag:KEY", err)
		return
	}
	if err := s.costs(r, &v, back); err != nil {
		problem(w, http.StatusInternalServerError, "the log was not read", "scrimp ledger verify says where it is broken", err)
		return
	}
	answer(w, v)
}

// costs sums the ledger's postings, and of live attempts what is not posted yet:
// so far back as asked, below zero for all.
func (s *Server) costs(r *http.Request, v *api.Costs, back time.Duration) error {
	s.logs.Lock()
	defer s.logs.Unlock()
	g, err := s.registered(r.Context())
	if err != nil {
		return err
	}
	kinds := map[string]string{}
	name, _ := groupBy(v.By, g, kinds)
	since := time.Time{}
	type key struct {
		name     string
		currency money.Currency
	}
	sums := map[key]*api.CostLine{}
	line := func(o ledger.Owner, rule string, c money.Currency) *api.CostLine {
		k := key{name(o), c}
		if k.name == "" && rule == "reserved" {
			k.name = "(reserved, unused)" // paid for, and used by nobody
		}
		if sums[k] == nil {
			sums[k] = &api.CostLine{Name: k.name, Currency: c, Uses: map[ledger.Use]money.Amount{}}
		}
		return sums[k]
	}
	c := callerOf(r)
	end := uint64(0)
	s.control.Read(func(m *core.Machine) {
		end, v.Until = m.Seq(), s.control.Now()
		if m.Now().After(v.Until) {
			v.Until = m.Now()
		}
		if back >= 0 {
			since = v.Until.Add(-back)
			v.Since = &since
		}
		for j := range m.Jobs() {
			if !sees(c, j) {
				continue
			}
			kinds[j.ID] = cmp.Or(j.Terms.JobKind, "experiment")
			o := j.Terms.Owner
			o.Job = j.ID
			var l *api.CostLine
			for _, a := range j.Attempts {
				if a.Instance == "" || !a.Until.IsZero() && a.Until.Before(since) {
					continue
				}
				l = line(o, "", a.Currency)
				if a.Live() { // what is not posted yet
					l.Uses[ledger.Open] = l.Uses[ledger.Open].Add(a.Cost(v.Until).Sub(a.Posted))
				}
			}
			if l == nil {
				continue
			}
			l.Jobs++
			if !closed(j) {
				l.Live++
			}
			compareCosts(l, m, j, g, since)
		}
	})
	for p, err := range s.store.Postings(r.Context(), "default", "") {
		if err != nil {
			return err
		}
		if p.Event > end { // later than what was read above
			break
		}
		if p.At.Before(since) || c.Role(p.Owner.Team) < identity.Viewer {
			continue
		}
		l := line(p.Owner, p.Rule, p.Currency)
		if _, use, ok := p.To.IsCost(); ok {
			l.Uses[use] = l.Uses[use].Add(p.Amount)
		}
		if _, use, ok := p.From.IsCost(); ok {
			l.Uses[use] = l.Uses[use].Sub(p.Amount)
		}
	}
	for _, l := range sums {
		for u, a := range l.Uses {
			if l.Spent = l.Spent.Add(a); a.IsZero() {
				delete(l.Uses, u)
			}
		}
		v.Lines = append(v.Lines, *l)
	}
	slices.SortFunc(v.Lines, func(a, b api.CostLine) int {
		if c := b.Spent.Cmp(a.Spent); c != 0 {
			return c
		}
		return strings.Compare(a.Name+"\x00"+string(a.Currency), b.Name+"\x00"+string(b.Currency))
	})
	return nil
}

// compareCosts adds what is known beside the cost of a job that is done, and all of it within the span.
func compareCosts(l *api.CostLine, m *core.Machine, j *core.Job, g *register, since time.Time) {
	if j.State != core.Succeeded || !closed(j) || j.Submitted.Before(since) {
		return
	}
	cost := j.Spent(m.Now())
	if e, ok := g.estimates[j.ID]; ok {
		l.Estimated = ptr(orNothing(l.Estimated).Add(e))
		l.Actual = ptr(orNothing(l.Actual).Add(cost))
		l.Foreseen++
	}
	if o := onDemand(m, j); o != nil {
		l.OnDemand = ptr(orNothing(l.OnDemand).Add(*o))
		l.Saved = ptr(orNothing(l.Saved).Add(o.Sub(cost)))
		l.Compared++
	}
}

func orNothing(a *money.Amount) money.Amount {
	if a == nil {
		return money.Amount{}
	}
	return *a
}
