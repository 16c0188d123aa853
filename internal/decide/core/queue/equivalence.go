package queue

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// Equivalence is an equivalence class: the jobs that ask the same of a machine. What the
// market has not for one of them it has not for the others, whatever their deadlines and
// budgets: once a few were found unschedulable, the others are passed over until
// something changes. So a job that can run at once is found behind a million that fit nowhere.
type Equivalence struct {
	Key           string
	Groups        int       // in the queue that are of it
	failures      int       // jobs that were tried since something changed, and that the market had nothing for
	Unschedulable bool      // its jobs are passed over
	until         time.Time // an offer that refused a launch may be asked again then; zero: none did
}

const (
	// Alike is how many jobs of a class are found unschedulable before the others are
	// passed over: those that wait in a short queue all learn why.
	Alike = 16
	// MostGroups is how many groups are told apart at once. Jobs of further ones are
	// loose: they are tried one by one.
	MostGroups = 256
)

// Loose is the class of jobs of which nothing is known in common. They are never passed over.
const Loose = ""

// EquivalenceOf is the key of what a job asks for. A job with a ladder is loose: what it
// may use depends on how long it has waited.
func EquivalenceOf(n plan.Need) string {
	if len(n.Ladder) > 0 {
		return Loose
	}
	return n.Key()
}

// Group is the jobs in the queue that ask for the same and are of the same owner and
// user, so that every quota that ever will be holds all of them or none. Where quotas
// are set, groups change their classes, and not a million jobs.
type Group struct {
	Key         string // of its equivalence class and owner; "": jobs that are loose, which have nothing in common
	Equivalence *Equivalence
	Jobs        int
}

// ownerOf is the key of whom a job is of, as scopes see it.
func ownerOf(b []byte, o *ledger.Owner, user string) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(o.Team)
	text(o.Project)
	text(user)
	labels := o.Labels()
	if len(labels) == 0 {
		return b
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		text(k)
		text(labels[k])
	}
	return b
}

// enter counts j for its group when it comes into the queue.
func (q *Queue) enter(j *state.Job) {
	if At(j).Group != nil {
		return
	}
	equivalence := EquivalenceOf(j.Terms().Need)
	q.key = GroupOf(q.key[:0], equivalence, j)
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

// GroupOf writes the key of the group of a job of that equivalence class. It begins with the length of
// that of the class, so that no two groups have the same.
func GroupOf(b []byte, equivalence string, j *state.Job) []byte {
	b = binary.AppendUvarint(b, uint64(len(equivalence)))
	return ownerOf(append(b, equivalence...), &j.Terms().Owner, j.User())
}

// count is enter of a job that is loose or not already.
func (q *Queue) count(j *state.Job, of, key string) {
	if At(j).Loose {
		of, key = Loose, Loose
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

func (q *Queue) equivalence(key string) *Equivalence {
	if q.Equivalences == nil {
		q.Equivalences = map[string]*Equivalence{}
	}
	if q.Equivalences[key] == nil {
		q.Equivalences[key] = &Equivalence{Key: key}
	}
	return q.Equivalences[key]
}

// Leave is said of a job that is not in the queue any more: it runs, or is over.
func (q *Queue) Leave(j *state.Job) {
	g, p := At(j).Group, At(j).Subqueue
	if g == nil {
		return
	}
	At(j).Group, At(j).Subqueue, At(j).Loose = nil, nil, false
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

// Failed puts j among those that were tried without result. Where the market has nothing for
// what it asks (unschedulable), that counts for its equivalence class; until is when the
// backoff of an offer that refused ends, zero for none.
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

// home is the side on which the others of an unschedulable class stand: to be tried in their
// order when something changes.
func (q *Queue) home(j *state.Job) int {
	if p := At(j).Subqueue; len(p.Sides[1-q.fresh]) > 0 {
		return 1 - q.fresh
	}
	return q.fresh
}

// gather puts those few of a class that were tried back among the others, which are
// passed over now: the most urgent is to be the first again.
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

// EndBackoff lets the jobs be tried again whose offer may be asked again by now.
func (q *Queue) EndBackoff(now time.Time) {
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
