package incident

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
)

const (
	idleUse = ledger.Idle
	storage = ledger.Storage
)

// attempts counts the restarts of attempts per hour.
type attempts struct {
	of     map[string]map[string]bool // the attempts of each job
	seen   map[string]time.Time
	counts map[[2]string]*hourly // by team, and by team and job
	stakes map[[2]string]*past
}

func newAttempts() rule {
	return &attempts{map[string]map[string]bool{}, map[string]time.Time{}, map[[2]string]*hourly{}, map[[2]string]*past{}}
}

const (
	stormLeast  = 6    // attempts per hour
	stormChance = 1e-5 // the probability of so many by chance
)

func (a *attempts) slot(w *watch, list []piece) {
	s := a.count(w, list)
	for k := range s.began {
		at(a.counts, k)
	}
	for _, k := range slices.SortedFunc(maps.Keys(a.counts), compare) {
		h, stake := a.counts[k], at(a.stakes, k)
		n, most := h.add(w.now, s.began[k])
		stake.add(w.now, s.lost[k])
		stake.drop(w.now, time.Hour)
		if k[1] != "" && w.now.Sub(a.seen[k[1]]) > time.Hour {
			delete(a.counts, k)
			delete(a.stakes, k)
			continue
		}
		h.odd = h.odd || w.isNew(Interruptions, k[0], k[1])
		if n < stormLeast*w.factor(Interruptions, k[0], k[1]) {
			continue
		}
		if k[1] == "" {
			a.teamStorm(w, k[0], s.jobs[k[0]], n, most)
		} else if !w.isOpen(Interruptions, k[0], "") {
			a.say(w, k, s.jobs[k[0]], fmt.Sprintf("%s began %.0f attempts in an hour", k[1], n))
		}
	}
	for job, seen := range a.seen {
		if w.now.Sub(seen) > 7*24*time.Hour {
			delete(a.seen, job)
			delete(a.of, job)
		}
	}
}

// restarts is what one slot shows of attempts that begin again. The keys are a team, and a team with a job of it.
type restarts struct {
	began map[[2]string]float64 // attempts after the first
	lost  map[[2]string]float64 // the cost of lost work and of start-ups
	jobs  map[string][]string   // by team: the jobs, once for each attempt
}

// count remembers the attempts of a slot and returns those that begin again, with what they lost.
func (a *attempts) count(w *watch, list []piece) restarts {
	s := restarts{map[[2]string]float64{}, map[[2]string]float64{}, map[string][]string{}}
	for i := range list {
		p := &list[i]
		if p.Job == "" {
			continue
		}
		if p.Use == ledger.Lost || p.Use == ledger.StartUp {
			s.lost[[2]string{p.Team}] += p.cost
			s.lost[[2]string{p.Team, p.Job}] += p.cost
		}
		a.seen[p.Job] = w.now
		if p.Attempt == "" || a.of[p.Job][p.Attempt] {
			continue
		}
		if a.of[p.Job] == nil {
			a.of[p.Job] = map[string]bool{}
		} else {
			s.began[[2]string{p.Team}]++
			s.began[[2]string{p.Team, p.Job}]++
			s.jobs[p.Team] = append(s.jobs[p.Team], p.Job)
		}
		a.of[p.Job][p.Attempt] = true
	}
	return s
}

// teamStorm opens an alert for a team whose jobs began n attempts again in an hour, if that is far more than usual and
// no alert about one of its jobs says it already.
func (a *attempts) teamStorm(w *watch, team string, jobs []string, n, most float64) {
	k := [2]string{team}
	rate, h := 0.2, a.counts[k]
	if hours := float64(h.hours.n()); hours > 0 {
		rate = max(rate, 2*h.hours.sum()/hours)
	}
	usual := over(2, w.factor(Interruptions, team, "")) * most
	if !w.grown() || n <= usual || poissonTail(n, rate) > stormChance || w.saysOfJob(team, jobs) {
		return
	}
	a.say(w, k, jobs, fmt.Sprintf(
		"jobs of the team began %.0f attempts again in an hour, and %.0f at most in the two weeks before", n, most))
}

// say opens an alert of interruptions about a team, or about a job of it.
func (a *attempts) say(w *watch, k [2]string, jobs []string, text string) {
	a.counts[k].odd = true
	w.say(said{kind: Interruptions, team: k[0], about: k[1], since: w.now.Add(-time.Hour), stake: a.stakes[k].sum(),
		small: true, jobs: append(slices.Clone(jobs), k[1])[:max(1, len(jobs))],
		why: text + ": each new attempt loses the work since the last checkpoint: see scrimp explain JOB"})
}

// saysOfJob reports whether an Interruptions alert is open for one of the jobs.
func (w *watch) saysOfJob(team string, jobs []string) bool {
	return slices.ContainsFunc(jobs, func(j string) bool { return w.isOpen(Interruptions, team, j) })
}

// poissonTail returns the probability of n or more events if rate are expected.
func poissonTail(n, rate float64) float64 {
	term, below := math.Exp(-rate), 0.0
	for k := 0.0; k < n; k++ {
		below += term
		term *= rate / (k + 1)
	}
	return max(0, 1-below)
}

func compare(a, b [2]string) int { return slices.Compare(a[:], b[:]) }

// trials counts the jobs that each group starts.
type trials struct {
	groups map[[2]string]*begun // by team and group
	most   map[string]*past     // by team: jobs per finished group
}

// begun holds the jobs of a group, and the cost of those beyond the usual number.
type begun struct {
	project string
	jobs    map[string]bool
	extra   map[string]bool
	stake   float64
	since   time.Time
	seen    time.Time
	planned bool
}

func newTrials() rule { return &trials{map[[2]string]*begun{}, map[string]*past{}} }

const (
	trialsLeast = 30 // jobs
	trialsMore  = 1.5
	groupsLeast = 5 // earlier groups needed for a comparison; with fewer, the limit is trialsFirst
	trialsFirst = 100
)

func (t *trials) slot(w *watch, list []piece) {
	for i := range list {
		if p := &list[i]; p.Group != "" && p.Job != "" {
			t.count(w, p)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.groups), compare) {
		g := t.groups[k]
		if w.now.Sub(g.seen) > 24*time.Hour {
			delete(t.groups, k)
			if !w.isOpen(RunawayTrials, k[0], k[1]) && g.since.IsZero() {
				at(t.most, k[0]).add(w.now, float64(len(g.jobs)))
				t.most[k[0]].drop(w.now, 2*forget)
			}
			continue
		}
		if n := float64(len(g.jobs)); n > t.limit(w, k) && !g.planned && g.seen.Equal(w.now) {
			w.say(said{kind: RunawayTrials, team: k[0], project: g.project, about: k[1], since: g.since, stake: g.stake,
				small: true, why: fmt.Sprintf("%s has begun %.0f jobs, and the largest group of the team before it had %.0f: "+
					"stop it with scrimp cancel %s, or raise its limit on purpose", k[1], n, at(t.most, k[0]).most(), k[1])})
		}
	}
}

// count adds a piece to its group: its job, and its cost if the job is beyond the usual number.
func (t *trials) count(w *watch, p *piece) {
	k := [2]string{p.Team, p.Group}
	g := t.groups[k]
	if g == nil {
		g = &begun{project: p.Project, jobs: map[string]bool{}, extra: map[string]bool{}}
		t.groups[k] = g
	}
	g.seen, g.planned = w.now, g.planned || p.Planned
	limit := t.limit(w, k)
	if !g.jobs[p.Job] {
		g.jobs[p.Job] = true
		if n := float64(len(g.jobs)); n > limit/trialsMore {
			if g.extra[p.Job] = true; g.since.IsZero() {
				g.since = w.now.Add(-Slot)
			}
		}
	}
	if g.extra[p.Job] {
		g.stake += p.cost
	}
}

// limit returns the number of jobs that a group, given by its team and name, may start.
func (t *trials) limit(w *watch, group [2]string) float64 {
	p, f := at(t.most, group[0]), w.factor(RunawayTrials, group[0], group[1])
	if p.n() < groupsLeast {
		return max(trialsFirst*f, over(trialsMore, f)*p.most())
	}
	return max(trialsLeast*f, over(trialsMore, f)*p.most())
}

// transfers watches the cost of transfer and storage by team and category.
type transfers struct{ of map[[2]string]*hourly }

func newTransfers() rule { return &transfers{map[[2]string]*hourly{}} }

func (t *transfers) slot(w *watch, list []piece) {
	costs, jobs := map[[2]string]float64{}, map[[2]string]map[string]float64{}
	for i := range list {
		p := &list[i]
		if p.Machine || p.Category != ledger.Transfer && p.Category != storage || p.Planned {
			continue
		}
		k := [2]string{p.Team, string(p.Category)}
		if costs[k] += p.cost; jobs[k] == nil {
			jobs[k] = map[string]float64{}
		}
		jobs[k][p.Job] += p.cost
	}
	for k := range costs {
		at(t.of, k)
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.of), compare) {
		h := t.of[k]
		n, most := h.add(w.now, costs[k])
		h.odd = h.odd || w.isNew(TransferStorm, k[0], k[1])
		if !w.grown() || n <= over(2, w.factor(TransferStorm, k[0], k[1]))*most || n-most < trifle {
			continue
		}
		h.odd = true
		dear := dearest(jobs[k])
		w.say(said{kind: TransferStorm, team: k[0], about: k[1], since: w.now.Add(-time.Hour), stake: n - most/2,
			jobs: dear[:min(1, len(dear))], why: fmt.Sprintf("%s cost %.2f in an hour, and %.2f at most in the two weeks "+
				"before%s", k[1], n, most, mostly(dear))})
	}
}

// dearest returns the names in order of falling cost.
func dearest(costs map[string]float64) []string {
	names := slices.Sorted(maps.Keys(costs))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(costs[b], costs[a]) })
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}

func mostly(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": most of it is of " + names[0]
}

// spending watches the total that a team spends. It raises an alert only if no other rule did.
type spending struct{ of map[string]*hourly }

func newSpending() rule { return &spending{map[string]*hourly{}} }

func (s *spending) slot(w *watch, list []piece) {
	costs, jobs := map[string]float64{}, map[string]map[string]float64{}
	for i := range list {
		p := &list[i]
		at(s.of, p.Team)
		if p.Planned {
			continue
		}
		if costs[p.Team] += p.cost; jobs[p.Team] == nil {
			jobs[p.Team] = map[string]float64{}
		}
		jobs[p.Team][p.Job] += p.cost
	}
	for _, team := range slices.Sorted(maps.Keys(s.of)) {
		h := s.of[team]
		n, most := h.add(w.now, costs[team])
		h.odd = h.odd || w.isNew(Spend, team, team)
		known := w.now.Sub(w.recent[team]) < rest/4 && !w.isOpen(Spend, team, team)
		if !w.grown() || n <= over(2, w.factor(Spend, team, team))*most || n-most < trifle || known {
			continue
		}
		h.odd = true
		dear := dearest(jobs[team])
		w.say(said{kind: Spend, team: team, about: team, since: w.now.Add(-time.Hour), stake: n - most,
			jobs: dear[:min(5, len(dear))], why: fmt.Sprintf("the team spent %.2f in an hour, and %.2f at most in the two "+
				"weeks before%s; where it is meant so, give its jobs the tag planned", n, most, mostly(dear))})
	}
}
