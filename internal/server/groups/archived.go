package groups

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
)

// known finds groups, the jobs of their stages and the best trials: those in memory, and archived ones that were read
// before, by name.
type known struct {
	m    *core.Machine
	past map[string]*state.Group
	jobs map[string]*core.Job
}

// job returns the job of a stage or a trial, or nil.
func (k known) job(id string) *core.Job {
	if j := k.m.State().Job(id); j != nil {
		return j
	}
	return k.jobs[id]
}

// group returns a group, or nil.
func (k known) group(name string) *state.Group {
	if g := k.m.State().Group(name); g != nil {
		return g
	}
	return k.past[name]
}

// all returns all groups, by name.
func (k known) all() []*state.Group { return k.with(k.m.State().Groups()) }

// with adds the archived groups to those in memory, by name.
func (k known) with(list []*state.Group) []*state.Group {
	for _, name := range slices.Sorted(maps.Keys(k.past)) {
		if k.m.State().Group(name) == nil {
			list = append(list, k.past[name])
		}
	}
	slices.SortStableFunc(list, func(a, b *state.Group) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// models returns the runs that have a version of a model, by team, project, name and version.
func (k known) models() []*state.Group {
	list := k.with(k.m.State().Models())
	slices.SortStableFunc(list, state.CompareModels)
	return list
}

// runs returns a group and those that use its budget, in the order of their start.
func (k known) runs(g *state.Group) []*state.Group {
	if g.Schedule == nil {
		return k.m.Runs(g)
	}
	list := []*state.Group{g}
	for n := range g.Schedule.Begun {
		if run := k.group(state.RunOf(g.Name, n+1)); run != nil {
			list = append(list, run)
		}
	}
	return list
}

// lastRuns names the runs that a schedule lists.
func lastRuns(g *state.Group) (names []string) {
	if g.Schedule != nil {
		for _, run := range g.Schedule.Runs {
			names = append(names, run.Group)
		}
	}
	return names
}

// allRuns names all runs of a schedule that may be archived and have not been read.
func allRuns(k known, g *state.Group) (groups, _ []string) {
	if g.Schedule == nil {
		return nil, nil
	}
	for n := range g.Schedule.Begun {
		name := state.RunOf(g.Name, n+1)
		if _, read := k.past[name]; !read && k.m.State().Group(name) == nil {
			groups = append(groups, name)
		}
	}
	return groups, nil
}

// find calls f with a group, archived or not, and the runs that it lists. It reports whether there is such a group.
func (d *Service) find(id string, f func(known, *state.Group)) bool {
	return d.findWith(id, func(k known, g *state.Group) (groups, jobs []string) { return k.lacks(g, lastRuns(g)) }, f)
}

// findWith is find with the archived groups and jobs that lacks names.
func (d *Service) findWith(id string, lacks func(known, *state.Group) (groups, jobs []string),
	f func(known, *state.Group)) bool {
	k := known{past: map[string]*state.Group{}, jobs: map[string]*core.Job{}}
	for {
		var groups, jobs []string
		found := d.Control.Group(id, func(m *core.Machine, g *state.Group) {
			k.m = m
			if groups, jobs = lacks(k, g); len(groups)+len(jobs) == 0 {
				f(k, g)
			}
		})
		if !found || len(groups)+len(jobs) == 0 {
			return found
		}
		if !d.reads(k, groups, jobs) {
			return false
		}
	}
}

// lacks returns the runs of a group, the jobs of its stages and that of its best trial, as far as they may be archived
// and have not been read.
func (k known) lacks(g *state.Group, runs []string) (groups, jobs []string) {
	job := func(id string) {
		if _, read := k.jobs[id]; id != "" && !read && k.m.State().Job(id) == nil {
			jobs = append(jobs, id)
		}
	}
	look := func(g *state.Group) {
		for n := range g.Stages {
			job(g.Stages[n].Job)
		}
		if y := g.Study; y != nil {
			for _, n := range []int{y.Best(g.Terms.Study), y.BestOnProxy(g.Terms.Study)} {
				if n >= 0 {
					job(g.MemberID(n))
				}
			}
		}
	}
	look(g)
	for _, name := range runs {
		if run := k.group(name); run != nil {
			look(run)
		} else if _, read := k.past[name]; name != "" && !read {
			groups = append(groups, name)
		}
	}
	return groups, jobs
}

// reads reads archived groups and jobs, and notes the names that the archive does not have.
func (d *Service) reads(k known, groups, jobs []string) bool {
	ctx := context.Background()
	past, ok := d.Control.KnownGroups(ctx, groups...)
	found, err := d.Control.ArchivedJobs(ctx, jobs...)
	if !ok || err != nil {
		return false
	}
	for _, name := range groups {
		k.past[name] = past[name]
	}
	for _, id := range jobs {
		k.jobs[id] = found[id]
	}
	return true
}

// archived reads the archived groups that the caller sees and the filter selects, or answers why it cannot.
func (d *Service) archived(w http.ResponseWriter, r *http.Request, filter func(view.ArchivedGroup) bool) (
	past map[string]*state.Group, ok bool) {
	c := auth.CallerOf(r)
	past, err := d.Control.PastGroups(r.Context(), func(g view.ArchivedGroup) bool {
		return c.Role(g.Team) >= identity.Viewer && filter(g)
	})
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read archived groups", "try again", err)
	}
	return past, err == nil
}

// Succeeded reports whether the caller sees a group, and of an archived one whether it succeeded.
func (d *Service) Succeeded(c identity.Caller, id string) (seen, archived, ok bool) {
	d.Control.Group(id, func(m *core.Machine, g *state.Group) {
		seen, archived, ok = sees(c, g) && g.Terms.Member != nil, m.State().Group(id) == nil, g.Succeeded()
	})
	return seen, archived, ok
}
