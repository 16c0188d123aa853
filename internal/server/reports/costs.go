package reports

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/wire/api"
)

// groups lists the dimensions that costs can be grouped by, for error messages.
const groups = "team, project, user, kind, environment, model_version, provider, region, sku, category, job or tag:KEY"

// groupBy returns a function from the owner of a job or posting to its group.
func groupBy(by string) (func(w ledger.Dimensions, job string) string, error) {
	if key, ok := strings.CutPrefix(by, "tag:"); ok && key != "" {
		return func(w ledger.Dimensions, _ string) string { return w.Tag(key) }, nil
	}
	switch by {
	case "team":
		return func(w ledger.Dimensions, _ string) string { return w.Team }, nil
	case "project":
		return func(w ledger.Dimensions, _ string) string { return w.Project }, nil
	case byJob:
		return func(_ ledger.Dimensions, job string) string { return job }, nil
	case "user":
		return func(w ledger.Dimensions, _ string) string { return w.User }, nil
	case "kind":
		return func(w ledger.Dimensions, _ string) string { return w.Kind }, nil
	case ledger.LabelEnvironment, ledger.LabelModelVersion:
		return func(w ledger.Dimensions, _ string) string { return w.Tag(by) }, nil
	case "provider":
		return func(w ledger.Dimensions, _ string) string { return w.Provider }, nil
	case "region":
		return func(w ledger.Dimensions, _ string) string { return w.Region }, nil
	case "sku":
		return func(w ledger.Dimensions, _ string) string { return w.SKU }, nil
	case "category":
		return func(w ledger.Dimensions, _ string) string { return string(w.Category) }, nil
	}
	return nil, fmt.Errorf("costs cannot be grouped by %.40q", by)
}

// nameBy is groupBy with users under the names that people know.
func (b *Books) nameBy(by string) (func(w ledger.Dimensions, job string) string, error) {
	name, err := groupBy(by)
	if by != "user" {
		return name, err
	}
	names := b.Names()
	return func(w ledger.Dimensions, _ string) string { return names.Of(w.User) }, nil
}

// byJob groups costs by job: the only grouping whose list grows with the ledger.
const byJob = "job"

// Costs reports what was spent, by whom and for what.
func (b *Books) Costs(w http.ResponseWriter, r *http.Request) {
	v := api.Costs{By: r.URL.Query().Get("by"), Lines: []api.CostLine{}}
	if v.By == "" {
		v.By = "team"
	}
	back := time.Duration(-1)
	if text := r.URL.Query().Get("since"); text != "" {
		d, err := spec.ParseDuration(text)
		if err != nil || d < 0 {
			reply.FieldProblem(w, http.StatusBadRequest, "since", "this is no span back from now",
				"write it with its unit, as in 7d or 12h", err)
			return
		}
		back = d
	}
	if _, err := groupBy(v.By); err != nil {
		reply.FieldProblem(w, http.StatusBadRequest, "by", "this is not a filter of costs",
			"write "+groups, err)
		return
	}
	if err := b.costs(r.Context(), auth.CallerOf(r), &v, back); err != nil {
		reply.Problem(w, http.StatusInternalServerError, "cannot read the log",
			"scrimp ledger verify says where it is broken", err)
		return
	}
	reply.JSON(w, v)
}

// lines collects the lines of a response, as far as the caller may see them.
type lines struct {
	name   func(w ledger.Dimensions, job string) string
	named  bool // grouped by job or kind, which idle machines lack
	bought bool // grouped by a property of the machine: a job may have used several, so runs are not counted
	items  bool // grouped by what was bought of a machine, such as its disk
	caller identity.Caller
	all    map[lineKey]*api.CostLine
}

type lineKey struct {
	name     string
	currency money.Currency
}

// of returns the line, or nil if the caller may not see the team.
func (l *lines) of(w ledger.Dimensions, job string, c money.Currency) *api.CostLine {
	if l.caller.Role(w.Team) < identity.Viewer {
		return nil
	}
	k := lineKey{l.name(w, job), c}
	if k.name == "" {
		idle := w.Rule == ledger.IdleRule || w.Rule == ledger.IdleExtraRule
		if name := charge.NoValue(l.named, idle, w.Rule); name != charge.None {
			k.name = name
		}
	}
	if l.all[k] == nil {
		l.all[k] = &api.CostLine{Name: k.name, Currency: c, Uses: map[client.Use]money.Amount{}}
	}
	return l.all[k]
}

func (l *lines) add(w ledger.Dimensions, job string, c money.Currency, u ledger.Use, a money.Amount) {
	if line := l.of(w, job, c); line != nil {
		l.use(line, w, u, a)
	}
}

// use adds an amount to a line. Idle time of machines lowers the savings, because an on-demand machine would not
// have cost it. Tax, credits and commitments of a bill change no savings: the on-demand estimate leaves them out.
func (l *lines) use(line *api.CostLine, w ledger.Dimensions, u ledger.Use, a money.Amount) {
	if u == ledger.Invoiced {
		line.Billed = new(orNothing(line.Billed).Add(a))
		return
	}
	use := client.Use(u)
	line.Uses[use] = line.Uses[use].Add(a)
	if w.Rule == ledger.IdleRule {
		line.Saved = new(orNothing(line.Saved).Sub(a))
	}
}

// costs sums the ledger and the costs of live attempts that are not posted yet, for the time back from now; a
// negative back means all time. It reads the kept sums and the running jobs. It reads single postings only for the
// hour in which the span starts, or for the whole span if the grouping is by job.
func (b *Books) costs(ctx context.Context, c identity.Caller, v *api.Costs, back time.Duration) error {
	name, _ := b.nameBy(v.By)
	l := &lines{name: name, named: v.By == byJob || v.By == "kind", caller: c, all: map[lineKey]*api.CostLine{},
		items:  slices.Contains([]string{"sku", "category"}, v.By),
		bought: slices.Contains([]string{"provider", "region", "sku", "category"}, v.By)}
	b.spent.mu.Lock() // keeps the sums from running ahead of the core's state read below
	defer b.spent.mu.Unlock()
	end, since := uint64(0), time.Time{}
	listed := map[string]bool{} // the jobs in memory
	b.Control.Read(func(m *core.Machine) {
		end, v.Until = m.Seq(), b.Control.Now()
		if m.Now().After(v.Until) {
			v.Until = m.Now()
		}
		if back >= 0 {
			since = v.Until.Add(-back)
			v.Since = &since
		}
		l.live(m, since, v.Until)
		if l.bought {
			return
		}
		if v.By == byJob {
			m.HistoryJobs(since, func(j *core.Job, p core.History, c money.Currency) {
				listed[j.ID()] = true
				l.past(core.OwnerOf(j), j.ID(), c, p)
			})
			return
		}
		m.History(since, func(w core.HistoryOwner, p core.History) { l.past(w.Dimensions, "", w.Currency, p) })
	})
	if v.By == byJob {
		if err := b.archivedCosts(ctx, l, since, listed); err != nil {
			return err
		}
	}
	if err := b.spentTo(ctx, end); err != nil {
		return err
	}
	if err := b.booked(ctx, l, v.By, since, end); err != nil {
		return err
	}
	v.Lines = append(v.Lines, l.sorted()...)
	return nil
}

// unbooked adds idle cost that is not booked yet.
func (l *lines) unbooked(w ledger.Dimensions, c money.Currency, a money.Amount) {
	if line := l.of(w, "", c); line != nil {
		l.use(line, w, ledger.Idle, a)
		line.Unbooked = line.Unbooked.Add(a)
	}
}

// phases splits what was spent by how certain it is. A bill has one posting for all items of a machine, so the split
// is unknown by item.
func (l *lines) phases(line *api.CostLine) {
	if l.items {
		line.Billed, line.Accrued = nil, nil
		return
	}
	line.Billed = new(orNothing(line.Billed))
	line.Accrued = new(line.Spent.Sub(*line.Billed).Sub(line.Unbooked))
}

// sorted sums each line, and returns those with a job or a cost: the dearest first.
func (l *lines) sorted() (list []api.CostLine) {
	for _, line := range l.all {
		for u, a := range line.Uses {
			if line.Spent = line.Spent.Add(a); a.IsZero() {
				delete(line.Uses, u)
			}
		}
		l.phases(line)
		if line.Jobs > 0 || len(line.Uses) > 0 {
			list = append(list, *line)
		}
	}
	slices.SortFunc(list, func(a, b api.CostLine) int {
		if c := b.Spent.Cmp(a.Spent); c != 0 {
			return c
		}
		return strings.Compare(a.Name+"\x00"+string(a.Currency), b.Name+"\x00"+string(b.Currency))
	})
	return list
}

// live adds the jobs that hold a machine, with their costs that are not posted yet.
func (l *lines) live(m *core.Machine, since, until time.Time) {
	seen := map[string]bool{}
	for _, a := range m.Live() {
		j, ok := m.Job(a.Job())
		if !ok || seen[j.ID()] {
			continue
		}
		seen[j.ID()] = true
		var line *api.CostLine
		for _, a := range j.Attempts() {
			if !a.Until().IsZero() && a.Until().Before(since) {
				continue
			}
			w := core.OwnerOf(j)
			w.Bought = state.BoughtAs(a.Machine())
			if line = l.of(w, j.ID(), a.Currency()); line == nil {
				break
			}
			if a.Live() {
				due := a.Cost(until).Sub(a.Posted())
				line.Uses[client.Open], line.Unbooked = line.Uses[client.Open].Add(due), line.Unbooked.Add(due)
			}
		}
		if line != nil && !l.bought {
			line.Jobs++
			line.Live++
		}
	}
	for _, u := range m.Unused(since, until) {
		l.unbooked(ledger.Dimensions{Team: u.Team, Rule: state.ReservedRule}, u.Currency, u.Amount)
	}
	for _, i := range m.State().Waiting() {
		idle, _ := i.Idle()
		w := ledger.DimensionsOf(ledger.Posting{Owner: idle.Owner}, idle.User, "")
		w.Bought = state.BoughtAs(i.Machine())
		l.unbooked(w, i.Machine().Currency, i.Cost(until).Sub(i.Posted()))
	}
}

// past adds a job that held a machine earlier and holds none now.
func (l *lines) past(w ledger.Dimensions, job string, c money.Currency, p core.History) {
	line := l.of(w, job, c)
	if line == nil {
		return
	}
	line.Jobs, line.Live = line.Jobs+p.Jobs, line.Live+p.Open
	if p.Foreseen != 0 {
		line.Foreseen += p.Foreseen
		line.Estimated, line.Actual = new(orNothing(line.Estimated).Add(p.Estimated)),
			new(orNothing(line.Actual).Add(p.Actual))
	}
	if p.Compared != 0 {
		line.Compared += p.Compared
		line.OnDemand, line.Saved = new(orNothing(line.OnDemand).Add(p.OnDemand)), new(orNothing(line.Saved).Add(p.Saved))
	}
}

// archivedCosts adds the archived jobs whose last machine ended at or after since. It skips the listed ones, which
// were in memory a moment ago.
func (b *Books) archivedCosts(ctx context.Context, l *lines, since time.Time, listed map[string]bool) error {
	for j, err := range b.Control.Past(ctx, view.ArchivedPage{}) {
		if err != nil {
			return err
		}
		if w, p, last, ok := core.HistoryOf(j); ok && !last.Before(since) && !listed[j.ID()] {
			l.past(w.Dimensions, j.ID(), w.Currency, p)
		}
	}
	return nil
}

// booked adds the postings from since up to the event end. The caller holds b.spent.mu.
func (b *Books) booked(ctx context.Context, l *lines, by string, since time.Time, end uint64) error {
	sums := b.spent.sums
	if by == byJob {
		from, some := sums.From(since)
		if !some {
			return nil
		}
		return b.walk(ctx, l, from, end, func(p ledger.Posting) bool { return !p.At.Before(since) })
	}
	type cell struct {
		whose  int
		column ledger.Column
	}
	found := map[cell]*api.CostLine{}
	cut, isCut := sums.Since(since, func(whose int, c ledger.Column, a money.Amount) {
		k := cell{whose, c}
		line, known := found[k]
		if !known {
			line = l.of(sums.Dimensions()[whose], "", c.Currency)
			found[k] = line
		}
		if line != nil {
			l.use(line, sums.Dimensions()[whose], c.Use, a)
		}
	})
	if !isCut {
		return nil
	}
	return b.walk(ctx, l, cut.First, cut.Last, cut.Holds)
}

// walk adds single postings: those of the events that wanted selects.
func (b *Books) walk(ctx context.Context, l *lines, first, last uint64, wanted func(ledger.Posting) bool) error {
	for after := first - 1; after < last; {
		next := min(last, after+spentStride)
		var list []ledger.Posting
		for p, err := range b.Log.PostingsOf(ctx, b.Control.Tenant(), after, next) {
			if err != nil {
				return err
			}
			if wanted(p) {
				list = append(list, p)
			}
		}
		users, kinds, err := b.ofJobs(ctx, list)
		if err != nil {
			return err
		}
		for i, p := range list {
			p.Parts(func(u ledger.Use, a money.Amount) {
				l.add(ledger.DimensionsOf(p, users[i], kinds[i]), p.Owner.Job, p.Currency, u, a)
			})
			if a, is := p.Invoiced(); is {
				l.add(ledger.DimensionsOf(p, users[i], kinds[i]), p.Owner.Job, p.Currency, ledger.Invoiced, a)
			}
		}
		after = next
	}
	return nil
}

func orNothing(a *money.Amount) money.Amount {
	if a == nil {
		return money.Amount{}
	}
	return *a
}
