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

// register keeps what the log alone knows of jobs: what they were expected to cost
// when first looked at. It reads on where it stopped.
type register struct {
	after     uint64
	estimates map[string]money.Amount // jobs without one are not foreseeable
}

// registered brings the register up to date and returns it. The caller holds s.logs.
func (s *Server) registered(ctx context.Context) (*register, error) {
	g := &s.register
	if g.estimates == nil {
		g.estimates = map[string]money.Amount{}
	}
	for {
		records, err := s.store.Records(ctx, g.after, 1000)
		if err != nil || len(records) == 0 {
			return g, err
		}
		for _, r := range records {
			if len(r.Decisions) == 0 {
				g.after = r.Seq
				continue
			}
			_, decisions, err := control.Decode(r)
			if err != nil {
				return g, err
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

// groupBy returns what costs are listed by; users and kinds are by job.
func groupBy(by string, users, kinds map[string]string) (func(o ledger.Owner) string, error) {
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
		return func(o ledger.Owner) string { return users[o.Job] }, nil
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
	users, kinds := map[string]string{}, map[string]string{}
	name, _ := groupBy(v.By, users, kinds)
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
	var done []comparison
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
			if len(j.Attempts) == 0 || !sees(c, j) { // most of a long queue has cost nothing
				continue
			}
			users[j.ID], kinds[j.ID] = j.User(), cmp.Or(j.Terms.JobKind, "experiment")
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
			if d, ok := compared(m, j, since); ok {
				d.line = l
				done = append(done, d)
			}
		}
	})
	if err := s.compareCosts(r.Context(), done); err != nil {
		return err
	}
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

// comparison is a job that is done, and all of it within the span.
type comparison struct {
	line     *api.CostLine
	job      string
	cost     money.Amount
	onDemand *money.Amount
}

func compared(m *core.Machine, j *core.Job, since time.Time) (comparison, bool) {
	if j.State != core.Succeeded || !closed(j) || j.Submitted.Before(since) {
		return comparison{}, false
	}
	return comparison{job: j.ID, cost: j.Spent(m.Now()), onDemand: onDemand(m, j)}, true
}

// compareCosts adds what is known beside the costs of jobs that are done. The log is
// read for it, and only where there are any.
func (s *Server) compareCosts(ctx context.Context, done []comparison) error {
	if len(done) == 0 {
		return nil
	}
	s.logs.Lock()
	defer s.logs.Unlock()
	g, err := s.registered(ctx)
	if err != nil {
		return err
	}
	for _, d := range done {
		l := d.line
		if e, ok := g.estimates[d.job]; ok {
			l.Estimated = ptr(orNothing(l.Estimated).Add(e))
			l.Actual = ptr(orNothing(l.Actual).Add(d.cost))
			l.Foreseen++
		}
		if o := d.onDemand; o != nil {
			l.OnDemand = ptr(orNothing(l.OnDemand).Add(*o))
			l.Saved = ptr(orNothing(l.Saved).Add(o.Sub(d.cost)))
			l.Compared++
		}
	}
	return nil
}

func orNothing(a *money.Amount) money.Amount {
	if a == nil {
		return money.Amount{}
	}
	return *a
}
