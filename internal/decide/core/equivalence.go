package core

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
)

// equivalence is an equivalence class: the jobs that ask the same of a machine. What the
// market has not for one of them it has not for the others, whatever their deadlines and
// budgets: once a few were found unschedulable, the others are passed over until
// something changes. So a job that can run at once is found behind a million that fit nowhere.
type equivalence struct {
	key           string
	groups        int       // in the queue that are of it
	failures      int       // jobs that were tried since something changed, and that the market had nothing for
	unschedulable bool      // its jobs are passed over
	until         time.Time // an offer that refused a launch may be asked again then; zero: none did
}

const (
	// alike is how many jobs of a class are found unschedulable before the others are
	// passed over: those that wait in a short queue all learn why.
	alike = 16
	// mostGroups is how many groups are told apart at once. Jobs of further ones are
	// loose: they are tried one by one.
	mostGroups = 256
)

// loose is the class of jobs of which nothing is known in common. They are never passed over.
const loose = ""

// equivalenceOf is the key of what a job asks for. A job with a ladder is loose: what it
// may use depends on how long it has waited.
func equivalenceOf(n plan.Need) string {
	if len(n.Ladder) > 0 {
		return loose
	}
	return n.Key()
}

// group is the jobs in the queue that ask for the same and are of the same owner and
// user, so that every quota that ever will be holds all of them or none. Where quotas
// are set, groups change their classes, and not a million jobs.
type group struct {
	key         string // of its equivalence class and owner; "": jobs that are loose, which have nothing in common
	equivalence *equivalence
	jobs        int
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
func (q *queue) enter(j *Job) {
	if at(j).group != nil {
		return
	}
	equivalence := equivalenceOf(j.Terms().Need)
	q.key = groupOf(q.key[:0], equivalence, j)
	g := q.groups[string(q.key)]
	if equivalence == loose || g == nil && len(q.groups) >= mostGroups {
		at(j).loose = true
	}
	if g != nil && !at(j).loose {
		g.jobs++
		at(j).group = g
		return
	}
	q.count(j, equivalence, string(q.key))
}

// groupOf writes the key of the group of a job of that equivalence class. It begins with the length of
// that of the class, so that no two groups have the same.
func groupOf(b []byte, equivalence string, j *Job) []byte {
	b = binary.AppendUvarint(b, uint64(len(equivalence)))
	return ownerOf(append(b, equivalence...), &j.Terms().Owner, j.User())
}

// count is enter of a job that is loose or not already.
func (q *queue) count(j *Job, of, key string) {
	if at(j).loose {
		of, key = loose, loose
	}
	g := q.groups[key]
	if g == nil {
		if q.groups == nil {
			q.groups = map[string]*group{}
		}
		g = &group{key: key, equivalence: q.equivalence(of)}
		g.equivalence.groups++
		q.groups[key] = g
	}
	g.jobs++
	at(j).group = g
}

func (q *queue) equivalence(key string) *equivalence {
	if q.equivalences == nil {
		q.equivalences = map[string]*equivalence{}
	}
	if q.equivalences[key] == nil {
		q.equivalences[key] = &equivalence{key: key}
	}
	return q.equivalences[key]
}

// leave is said of a job that is not in the queue any more: it runs, or is over.
func (q *queue) leave(j *Job) {
	g, p := at(j).group, at(j).subqueue
	if g == nil {
		return
	}
	at(j).group, at(j).subqueue, at(j).loose = nil, nil, false
	if p != nil {
		at(j).class = p.class
	}
	if g.jobs--; g.jobs > 0 {
		return
	}
	delete(q.groups, g.key)
	for _, c := range q.classes {
		c.subqueues = slices.DeleteFunc(c.subqueues, func(p *subqueue) bool { return p.group == g })
	}
	if g.equivalence.groups--; g.equivalence.groups == 0 {
		delete(q.equivalences, g.equivalence.key)
	}
}

// failed puts j among those that were tried without result. Where the market has nothing for
// what it asks (unschedulable), that counts for its equivalence class; until is when the
// backoff of an offer that refused ends, zero for none.
func (q *queue) failed(j *Job, unschedulable bool, until time.Time) {
	k := at(j).group.equivalence
	if k.key == loose || !unschedulable {
		q.tried(j)
		return
	}
	if k.failures++; k.failures >= alike && !k.unschedulable {
		k.unschedulable = true
		for _, c := range q.classes {
			for _, p := range c.subqueues {
				if p.group.equivalence == k {
					q.gather(p)
				}
			}
		}
	}
	if k.unschedulable && !until.IsZero() {
		k.until = until
		if q.retryAt.IsZero() || until.Before(q.retryAt) {
			q.retryAt = until
		}
	}
	if !k.unschedulable {
		q.tried(j)
		return
	}
	q.push(j, q.home(j))
}

// home is the side on which the others of an unschedulable class stand: to be tried in their
// order when something changes.
func (q *queue) home(j *Job) int {
	if p := at(j).subqueue; len(p.sides[1-q.fresh]) > 0 {
		return 1 - q.fresh
	}
	return q.fresh
}

// gather puts those few of a class that were tried back among the others, which are
// passed over now: the most urgent is to be the first again.
func (q *queue) gather(p *subqueue) {
	if few := p.sides[1-q.fresh]; len(few) < alike && len(p.sides[q.fresh]) > 0 {
		for _, j := range slices.Clone(few) {
			q.remove(j)
			q.add(j)
		}
	}
}

// clearBackoff lets the jobs of every equivalence class be tried again.
func (q *queue) clearBackoff() {
	for _, k := range q.equivalences {
		k.failures, k.unschedulable, k.until = 0, false, time.Time{}
	}
	q.retryAt = time.Time{}
}

// endBackoff lets the jobs be tried again whose offer may be asked again by now.
func (q *queue) endBackoff(now time.Time) {
	if q.retryAt.IsZero() || now.Before(q.retryAt) {
		return
	}
	q.retryAt = time.Time{}
	for _, k := range q.equivalences {
		switch {
		case k.until.IsZero():
		case !now.Before(k.until):
			k.failures, k.unschedulable, k.until = 0, false, time.Time{}
		case q.retryAt.IsZero() || k.until.Before(q.retryAt):
			q.retryAt = k.until
		}
	}
	q.again = q.again || slices.ContainsFunc(q.classes, func(c *class) bool { return c.first(1-q.fresh) != nil })
}
