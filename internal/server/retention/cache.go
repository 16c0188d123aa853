package retention

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/work/evict"
	"scrimp/internal/work/groups"
)

// made is the outputs of a stage, with where they come from.
type made struct {
	evict.Entry
	group, stage  string
	team, project string
}

// Cache lists the kept outputs of stages that the caller sees.
func (d *Service) Cache(w http.ResponseWriter, r *http.Request) {
	c := auth.CallerOf(r)
	list, err := d.made(r.Context(), func(team string) bool { return c.Role(team) >= identity.Viewer })
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read archived pipelines", "try again", err)
		return
	}
	now := d.Control.Now()
	v := client.Cache{Entries: []client.CacheEntry{}, Currency: money.USD}
	byJob, order := map[string]*made{}, []evict.Entry{}
	for i := range list {
		m := &list[i]
		for range m.Uses {
			v.Saved = v.Saved.Add(m.Cost)
		}
		if m.Bytes > 0 {
			byJob[m.Job], order = m, append(order, m.Entry)
		}
	}
	evict.Order(order, now)
	for i := range order {
		e := entryOf(byJob[order[i].Job], now, d.Control.Clock().ToWall)
		v.Entries, v.Bytes = append(v.Entries, e), v.Bytes+e.Bytes
	}
	reply.JSON(w, v)
}

func entryOf(m *made, now time.Time, wall func(time.Time) time.Time) client.CacheEntry {
	e := client.CacheEntry{Job: m.Job, Group: m.group, Stage: m.stage, Team: m.team, Project: m.project, Bytes: m.Bytes,
		Made: wall(m.Made), Uses: len(m.Uses), Odds: m.Odds(now), Needed: m.Needed}
	if n := len(m.Uses); n > 0 {
		e.Used = new(wall(slices.MaxFunc(m.Uses, time.Time.Compare)))
	}
	if value, ok := m.Value(now); ok {
		e.Cost, e.Value = &m.Cost, &value
	}
	return e
}

// made returns the outputs that stages of pipelines of some teams have made, with their bytes on disk; 0: they are
// gone.
func (d *Service) made(ctx context.Context, sees func(team string) bool) ([]made, error) {
	past, err := d.Control.PastGroups(ctx, func(g view.ArchivedGroup) bool {
		return g.Kind == groups.Pipeline && sees(g.Team)
	})
	if err != nil {
		return nil, err
	}
	makers, uses, needed := map[string]*made{}, map[string][]time.Time{}, map[string]bool{}
	collect := func(g *state.Group) {
		for n := range g.Stages {
			switch s := &g.Stages[n]; {
			case s.Job == "":
			case s.Phase == groups.Reused:
				uses[s.Job] = append(uses[s.Job], g.Opened)
			case s.Phase == groups.Done:
				m := &made{group: g.Name, stage: g.Terms.Pipeline.Stages[n].Name, team: g.Terms.Owner.Team,
					project: g.Terms.Owner.Project, Entry: evict.Entry{Job: s.Job, Made: s.Ended}}
				if m.Made.IsZero() {
					m.Made = g.Opened
				}
				makers[s.Job] = m
			}
		}
	}
	d.Control.Read(func(m *core.Machine) {
		needed = m.State().StageJobs()
		for _, g := range m.State().Groups() {
			if g.Terms.Kind == groups.Pipeline && g.Terms.Pipeline != nil && sees(g.Terms.Owner.Team) {
				collect(g)
				delete(past, g.Name)
			}
		}
	})
	for _, g := range past {
		if g.Terms.Pipeline != nil {
			collect(g)
		}
	}
	var list []made
	for job, m := range makers {
		dir := filepath.Join(d.Dir, "blobs", "jobs", job)
		m.Bytes = disk.Used(filepath.Join(dir, "outputs")) + disk.Used(filepath.Join(dir, "objects", "kept"))
		m.Uses, m.Needed = uses[job], needed[job]
		m.Priced = d.Control.Job(job, func(machine *core.Machine, j *core.Job) {
			m.Cost = j.Spent(machine.Now())
			m.Needed = m.Needed || !j.State().Over() || j.Costs()
		})
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b made) int { return a.Made.Compare(b.Made) })
	return list, nil
}

// fits removes outputs of stages until those that stay take at most the rules' space.
func (t *taking) fits() error {
	list, err := t.d.made(t.ctx, func(string) bool { return true })
	if err != nil {
		return err
	}
	now, entries := t.d.Control.Now(), []evict.Entry{}
	for i := range list {
		if m := &list[i]; m.Bytes > 0 {
			m.Needed = m.Needed || slices.Contains(t.rules.keep, m.Job)
			entries = append(entries, m.Entry)
		}
	}
	for _, e := range evict.Choose(entries, *t.rules.fit, now) {
		why := fmt.Sprintf("%.0f %% odds of a use in 30 days", 100*e.Odds(now))
		if e.Priced {
			why += ", made for " + money.Short(e.Cost, money.USD)
		}
		if !t.mayBeRead(e.Job) { // a pipeline may have begun meanwhile
			t.dropOutputs(e.Job, filepath.Join(t.d.Dir, "blobs", "jobs", e.Job), e.Bytes, why)
		}
	}
	return nil
}
