package queue

import (
	"slices"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/money"
)

// Equivalence is an equivalence class: the jobs with the same requirements of a machine. If the market has nothing
// for one of them, it has nothing for the others, whatever their deadlines and budgets. Once a few were found
// unschedulable, the others are skipped until something changes. So the queue finds a job that can run at once
// behind a million that fit nowhere.
type Equivalence struct {
	Key           string
	Groups        int    // groups of the class in the queue
	failures      int    // jobs tried since the last change that the market had nothing for
	Unschedulable bool   // its jobs are skipped
	step          uint64 // in which lowest was computed
	lowest        money.Rate
	offered       bool      // lowest is known
	until         time.Time // when an offer that refused a launch may be tried again; zero: none refused
}

const (
	// Alike is the number of jobs of a class that must be unschedulable before the others are skipped. In a short
	// queue all jobs are tried and have a reason.
	Alike = 16
	// MostGroups is the largest number of groups. Jobs of further groups are loose: they are tried one by one.
	MostGroups = 256
)

// Loose is the class of jobs that share nothing known. They are never skipped.
const Loose = ""

// EquivalenceOf returns the class key of a job's requirements. A job with a ladder is loose, because what it may
// use depends on how long it has waited.
func EquivalenceOf(n plan.Need) string {
	if len(n.Ladder) > 0 {
		return Loose
	}
	return n.Key()
}

// Group is the queued jobs with the same requirements, owner, tags and user, so that any quota covers all of them
// or none. When quotas are set, groups change their classes instead of a million jobs.
type Group struct {
	Key         string // of its equivalence class and owner; of loose jobs: of their team
	Equivalence *Equivalence
	Jobs        int
}

// enter counts j in its group when it enters the queue.
func (q *Queue) enter(j *state.Job) {
	if At(j).Group != nil {
		return
	}
	equivalence := EquivalenceOf(j.Terms().Need)
	q.key = step.GroupKey(q.key[:0], equivalence, j)
	g := q.Groups[string(q.key)]
	if equivalence == Loose || g == nil && len(q.Groups) >= MostGroups {
		At(j).Loose = true
	}
	if g != nil && !At(j).Loose {
		g.Jobs++
		At(j).Group = g
		return
	}
	q.count(j, equivalence, string(q.key))
}

// count is enter for a job that is loose or starts a new group.
func (q *Queue) count(j *state.Job, of, key string) {
	if At(j).Loose {
		of, key = Loose, q.looseKey(j)
	}
	g := q.Groups[key]
	if g == nil {
		if q.Groups == nil {
			q.Groups = map[string]*Group{}
		}
		g = &Group{Key: key, Equivalence: q.equivalence(of)}
		g.Equivalence.Groups++
		q.Groups[key] = g
	}
	g.Jobs++
	At(j).Group = g
}

// looseKey returns the key of the group of a loose job: one for each team, so that the teams' jobs are in heaps of
// their own. If there are too many groups, the job is in the group of the jobs without a team.
func (q *Queue) looseKey(j *state.Job) string {
	key := Loose
	if team := j.Terms().Owner.Team; team != "" {
		key = looseTeam + fair.Key(team)
	}
	if q.Groups[key] == nil && len(q.Groups) >= 2*MostGroups {
		return Loose
	}
	return key
}

// looseTeam begins the keys of the groups of loose jobs with a team. No key of step.GroupKey begins with it in a group,
// because that key is of the empty equivalence class, which is Loose.
const looseTeam = "\x00"

// loose reports whether the group has loose jobs.
func (g *Group) loose() bool { return g.Equivalence.Key == Loose }

func (q *Queue) equivalence(key string) *Equivalence {
	if q.Equivalences == nil {
		q.Equivalences = map[string]*Equivalence{}
	}
	if q.Equivalences[key] == nil {
		q.Equivalences[key] = &Equivalence{Key: key}
	}
	return q.Equivalences[key]
}

// Leave must be called when a job has left the queue for good: it runs or has ended.
func (q *Queue) Leave(j *state.Job) {
	g, p := At(j).Group, At(j).Subqueue
	if g == nil {
		return
	}
	At(j).Group, At(j).Subqueue, At(j).Loose, At(j).pressed = nil, nil, false, false
	if x := At(j).sharing; x != nil {
		x.press = time.Time{}
	}
	if p != nil {
		At(j).class = p.Class
	}
	if g.Jobs--; g.Jobs > 0 {
		return
	}
	delete(q.Groups, g.Key)
	for _, c := range q.Classes {
		c.Subqueues = slices.DeleteFunc(c.Subqueues, func(p *subqueue) bool { return p.Group == g })
	}
	if g.Equivalence.Groups--; g.Equivalence.Groups == 0 {
		delete(q.Equivalences, g.Equivalence.Key)
	}
}

// Failed puts j among the jobs tried without success. If the market has nothing for its requirements
// (unschedulable), that counts for its equivalence class. until is when the backoff of an offer that refused ends;
// zero: none.
func (q *Queue) Failed(j *state.Job, unschedulable bool, until time.Time) {
	k := At(j).Group.Equivalence
	if k.Key == Loose || !unschedulable {
		q.Tried(j)
		return
	}
	if k.failures++; k.failures >= Alike && !k.Unschedulable {
		k.Unschedulable = true
		for _, c := range q.Classes {
			for _, p := range c.Subqueues {
				if p.Group.Equivalence == k {
					q.gather(p)
				}
			}
		}
	}
	if k.Unschedulable && !until.IsZero() {
		k.until = until
		if q.RetryAt.IsZero() || until.Before(q.RetryAt) {
			q.RetryAt = until
		}
	}
	if !k.Unschedulable {
		q.Tried(j)
		return
	}
	q.Push(j, q.home(j))
}

// home is the side that holds the other jobs of an unschedulable class, to be tried in order when something
// changes.
func (q *Queue) home(j *state.Job) int {
	if p := At(j).Subqueue; len(p.Sides[1-q.fresh]) > 0 {
		return 1 - q.fresh
	}
	return q.fresh
}

// gather puts the few jobs of a class that were tried back among the others, which are now skipped, so that the
// most urgent comes first again.
func (q *Queue) gather(p *subqueue) {
	if few := p.Sides[1-q.fresh]; len(few) < Alike && len(p.Sides[q.fresh]) > 0 {
		for _, j := range slices.Clone(few) {
			q.Remove(j)
			q.Add(j)
		}
	}
}

// clearBackoff lets the jobs of every equivalence class be tried again.
func (q *Queue) clearBackoff() {
	for _, k := range q.Equivalences {
		k.failures, k.Unschedulable, k.until = 0, false, time.Time{}
	}
	q.RetryAt = time.Time{}
}

// EndBackoff lets jobs be tried again once the backoff of their offer has ended. It begins the step at now.
func (q *Queue) EndBackoff(now time.Time) {
	q.now = now
	q.press(now)
	if q.RetryAt.IsZero() || now.Before(q.RetryAt) {
		return
	}
	q.RetryAt = time.Time{}
	for _, k := range q.Equivalences {
		switch {
		case k.until.IsZero():
		case !now.Before(k.until):
			k.failures, k.Unschedulable, k.until = 0, false, time.Time{}
		case q.RetryAt.IsZero() || k.until.Before(q.RetryAt):
			q.RetryAt = k.until
		}
	}
	q.again = q.again || slices.ContainsFunc(q.Classes, func(c *class) bool { return c.first(1-q.fresh) != nil })
}
