package core

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/plan"
)

// kind is all that jobs ask of a machine. What the market has not for one job of a
// kind it has not for the others, whatever their deadlines and budgets: where that
// was seen of a few of them, the others cost no look until something changes. So a
// job that could run at once is found behind a million that fit nowhere.
type kind struct {
	key    string
	groups int       // in the queue that are of it
	vain   int       // that were looked at since something changed, and that the market had nothing for
	barren bool      // its jobs are passed over
	until  time.Time // an offer that refused a launch may be asked again then; zero: none did
}

const (
	// alike is how many jobs of a kind are looked at in vain before the others are
	// passed over: those that wait in a short queue all learn why.
	alike = 16
	// mostGroups is how many groups are told apart at once. Jobs of further ones are
	// loose: they are looked at one by one.
	mostGroups = 256
)

// loose is the kind of jobs of which nothing is known in common. It is never barren.
const loose = ""

// kindOf is the key of what a job asks for. A job with a ladder is loose: what it
// may use depends on how long it has waited.
func kindOf(n plan.Need) string {
	if len(n.Ladder) > 0 {
		return loose
	}
	return n.Key()
}

// group is the jobs in the queue that ask for the same and are of the same owner and
// user, so that every quota that ever will be holds all of them or none. Where quotas
// are set, groups change their classes, and not a million jobs.
type group struct {
	key  string // of its kind and owner; "": jobs that are loose, which have nothing in common
	kind *kind
	jobs int
}

// ownerOf is the key of whom a job is of, as scopes see it.
func ownerOf(b []byte, o ledger.Owner, user string) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(o.Team)
	text(o.Project)
	text(user)
	if len(o.Tags) == 0 {
		return b
	}
	for _, k := range slices.Sorted(maps.Keys(o.Tags)) {
		text(k)
		text(o.Tags[k])
	}
	return b
}

// enter counts j for its group when it comes into the queue.
func (q *queue) enter(j *Job) {
	if at(j).group != nil {
		return
	}
	kind := kindOf(j.Terms().Need)
	key := groupOf(kind, j)
	if _, known := q.groups[key]; kind == loose || !known && len(q.groups) >= mostGroups {
		at(j).loose = true
	}
	q.count(j, kind, key)
}

// groupOf is the key of the group of a job of that kind. It begins with the length of
// the kind's, so that no two groups have the same.
func groupOf(kind string, j *Job) string {
	b := binary.AppendUvarint(make([]byte, 0, 128), uint64(len(kind)))
	return string(ownerOf(append(b, kind...), j.Terms().Owner, j.User()))
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
		g = &group{key: key, kind: q.kind(of)}
		g.kind.groups++
		q.groups[key] = g
	}
	g.jobs++
	at(j).group = g
}

func (q *queue) kind(key string) *kind {
	if q.kinds == nil {
		q.kinds = map[string]*kind{}
	}
	if q.kinds[key] == nil {
		q.kinds[key] = &kind{key: key}
	}
	return q.kinds[key]
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
	if g.kind.groups--; g.kind.groups == 0 {
		delete(q.kinds, g.kind.key)
	}
}

// vain puts j among those that were tried in vain. Where the market has nothing for
// what it asks (unschedulable), that counts for its kind; until is when an offer may be
// asked again that refused, zero for none.
func (q *queue) vain(j *Job, unschedulable bool, until time.Time) {
	k := at(j).group.kind
	if k.key == loose || !unschedulable {
		q.tried(j)
		return
	}
	if k.vain++; k.vain >= alike && !k.barren {
		k.barren = true
		for _, c := range q.classes {
			for _, p := range c.subqueues {
				if p.group.kind == k {
					q.gather(p)
				}
			}
		}
	}
	if k.barren && !until.IsZero() {
		k.until = until
		if q.thaw.IsZero() || until.Before(q.thaw) {
			q.thaw = until
		}
	}
	if !k.barren {
		q.tried(j)
		return
	}
	q.push(j, q.home(j))
}

// home is the side on which the others of a barren kind stand: to be tried in their
// order when something changes.
func (q *queue) home(j *Job) int {
	if p := at(j).subqueue; len(p.sides[1-q.fresh]) > 0 {
		return 1 - q.fresh
	}
	return q.fresh
}

// gather puts those few of a kind that were tried back among the others, which are
// passed over now: the most urgent is to be the first again.
func (q *queue) gather(p *subqueue) {
	if few := p.sides[1-q.fresh]; len(few) < alike && len(p.sides[q.fresh]) > 0 {
		for _, j := range slices.Clone(few) {
			q.remove(j)
			q.add(j)
		}
	}
}

// melt lets the jobs of every kind be looked at again.
func (q *queue) melt() {
	for _, k := range q.kinds {
		k.vain, k.barren, k.until = 0, false, time.Time{}
	}
	q.thaw = time.Time{}
}

// thawed lets those be looked at again of which an offer may be asked again by now.
func (q *queue) thawed(now time.Time) {
	if q.thaw.IsZero() || now.Before(q.thaw) {
		return
	}
	q.thaw = time.Time{}
	for _, k := range q.kinds {
		switch {
		case k.until.IsZero():
		case !now.Before(k.until):
			k.vain, k.barren, k.until = 0, false, time.Time{}
		case q.thaw.IsZero() || k.until.Before(q.thaw):
			q.thaw = k.until
		}
	}
	q.again = q.again || slices.ContainsFunc(q.classes, func(c *class) bool { return c.first(1-q.fresh) != nil })
}
