package incident

import (
	"fmt"
	"time"
)

// unused watches resources that cost money while nobody uses them, and for how long.
type unused struct {
	kind  Kind
	least time.Duration
	// of returns the resource that a piece belongs to, and whether it is idle.
	of      func(p *piece, busy map[string]bool) (about string, idle bool)
	why     string
	spans   map[string]*span
	usually map[string]*past // by team: hours of the spans that ended
}

// span is a time in which a resource is unused.
type span struct {
	team, project string
	since, seen   time.Time
	cost          float64
}

const (
	idleLeast   = 45 * time.Minute
	orphanLeast = 30 * time.Minute
)

// newIdle watches machines without a task.
func newIdle() rule {
	return &unused{kind: IdleMachine, least: idleLeast, why: "the machine %s has had no task for %s; idle " +
		"times of the team usually end within %s: release it, or ask why it was kept",
		of: func(p *piece, busy map[string]bool) (string, bool) {
			return p.Instance, p.Machine && p.Use == idleUse && !busy[p.Instance]
		},
		spans: map[string]*span{}, usually: map[string]*past{}}
}

// newOrphans watches volumes whose machine no longer runs.
func newOrphans() rule {
	return &unused{kind: OrphanVolume, least: orphanLeast, why: "the volume of %s costs money, and its machine has " +
		"been gone for %s; volumes of the team are usually removed within %s: delete it at the provider",
		of: func(p *piece, busy map[string]bool) (string, bool) {
			return p.Instance, p.Category == storage && !busy[p.Instance]
		},
		spans: map[string]*span{}, usually: map[string]*past{}}
}

func (u *unused) slot(w *watch, list []piece) {
	busy := map[string]bool{}
	for i := range list {
		p := &list[i]
		if p.Machine && (p.Use != idleUse || u.kind == OrphanVolume) {
			busy[p.Instance] = true
		}
	}
	for i := range list {
		p := &list[i]
		about, idle := u.of(p, busy)
		if about == "" || !idle {
			continue
		}
		s := u.spans[about]
		if s == nil {
			s = &span{team: p.Team, project: p.Project, since: w.now.Add(-Slot)}
			if p.Begin.After(s.since) {
				s.since = p.Begin
			}
			u.spans[about] = s
		}
		s.cost, s.seen = s.cost+p.cost, w.now
	}
	for about, s := range u.spans {
		usually := at(u.usually, s.team)
		if s.seen.Before(w.now) {
			delete(u.spans, about)
			if w.ended[key{u.kind, s.team, about}].Before(s.since) && !w.isOpen(u.kind, s.team, about) {
				usually.add(w.now, s.seen.Sub(s.since).Hours())
				usually.drop(w.now, forget)
			}
			continue
		}
		often := time.Duration(usually.quantile(0.95) * float64(time.Hour))
		f := w.factor(u.kind, s.team, about)
		if long := w.now.Sub(s.since); long >= max(longer(u.least, f), longer(often, over(2, f))) {
			w.say(said{kind: u.kind, team: s.team, project: s.project, about: about, since: s.since, stake: s.cost, small: true,
				why: fmt.Sprintf(u.why, about, long, max(often, Slot))})
		}
	}
}

// unpriced watches machines without a known price.
type unpriced struct {
	known map[string]float64 // the last hourly price by SKU
	since map[[2]string]time.Time
	stake map[[2]string]float64
	seen  map[[2]string]time.Time
}

func newUnpriced() rule {
	return &unpriced{map[string]float64{}, map[[2]string]time.Time{}, map[[2]string]float64{}, map[[2]string]time.Time{}}
}

// unpricedFor is how long a price may be missing before an alert.
const unpricedFor = 3 * Slot

func (u *unpriced) slot(w *watch, list []piece) {
	jobs := map[[2]string][]string{}
	for i := range list {
		p := &list[i]
		if !p.Machine {
			continue
		}
		k := [2]string{p.Team, p.SKU}
		if p.Price.Known {
			u.known[p.SKU] = p.Price.Rate.Float()
			continue
		}
		if u.seen[k].Before(w.now.Add(-Slot)) {
			u.since[k], u.stake[k] = w.now.Add(-Slot), 0
		}
		u.seen[k] = w.now
		u.stake[k] += u.known[p.SKU] * p.hours
		jobs[k] = append(jobs[k], p.Job)
	}
	for k, list := range jobs {
		if long := w.now.Sub(u.since[k]); long >= longer(unpricedFor, w.factor(Unpriced, k[0], k[1])) {
			w.say(said{kind: Unpriced, team: k[0], about: k[1], since: u.since[k], stake: u.stake[k], small: true, jobs: list,
				why: fmt.Sprintf("machines of %s have run for %s without a price; at the last one known they would cost %.2f so "+
					"far: check the engine's price feed", k[1], long, u.stake[k])})
		}
	}
}

// stalls watches how busy the accelerators of jobs are.
type stalls struct{ jobs map[string]*work }

// work holds the busy shares of a job's accelerators.
type work struct {
	before, last past
	costs        past
	seen         time.Time
}

func newStalls() rule { return &stalls{map[string]*work{}} }

const (
	stallSlots  = 6  // slots in a row that must all be slow
	stallBefore = 12 // earlier slots needed for a comparison
	stallUsual  = 0.2
)

func (s *stalls) slot(w *watch, list []piece) {
	for i := range list {
		p := &list[i]
		if !p.BusyKnown || p.Job == "" || p.Use == idleUse {
			continue
		}
		j := at(s.jobs, p.Job)
		j.seen = w.now
		j.last.add(w.now, p.Busy)
		j.costs.add(w.now, p.cost)
		usual := j.before.quantile(0.5)
		if j.last.n() > stallSlots {
			if first := j.last.values[0]; first > usual/2 || usual < stallUsual {
				j.before.add(j.last.times[0], first)
				j.before.drop(w.now, forget)
				j.costs.values, j.costs.times = j.costs.values[1:], j.costs.times[1:]
			}
			j.last.values, j.last.times = j.last.values[1:], j.last.times[1:]
		}
		if j.last.n() == stallSlots && j.before.n() >= stallBefore && usual >= stallUsual && j.last.most() < usual/2 &&
			j.last.sum() < stallSlots*usual/(3*w.factor(Stall, p.Team, p.Job)) {
			since := j.costs.times[0].Add(-Slot)
			w.say(said{kind: Stall, team: p.Team, project: p.Project, about: p.Job, since: since, stake: j.costs.sum(),
				small: true, jobs: []string{p.Job},
				why: fmt.Sprintf("the accelerators of %s have been busy %.0f %% of the time for %s, and %.0f %% before, at the "+
					"same price: look at its data loader, or pause it", p.Job, 100*j.last.sum()/stallSlots, w.now.Sub(since),
					100*usual)})
		}
	}
	for job, j := range s.jobs {
		if w.now.Sub(j.seen) > time.Hour {
			delete(s.jobs, job)
		}
	}
}
