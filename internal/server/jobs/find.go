package jobs

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs/filter"
	"scrimp/internal/view"
	"scrimp/internal/view/search"
	"scrimp/internal/wire/api"
)

// placed is a job of a page with its place in the list.
type placed struct {
	api.Job
	search.Place
}

// follows reports whether a place comes after another on the page.
func (p page) follows(a, b search.Place) bool {
	if p.order == search.ByAge && !p.backwards {
		return a.Order > b.Order
	}
	return b.Before(a)
}

// listed returns the jobs of a page. more reports whether others follow, and known whether the job at its border
// exists.
func (d *Service) listed(ctx context.Context, c identity.Caller, p page) (list []api.Job, more, known bool, err error) {
	var from *search.Place
	now := d.Control.Now()
	if id := p.after + p.before; id != "" {
		// do not reveal that a job exists which the caller may not see
		known, err := d.Control.Visible(id, func(j *core.Job) {
			if auth.Sees(c, j) {
				from = &search.Place{Key: p.order.AppendKey(nil, j, now), Order: j.Order()}
			}
		})
		if !known || from == nil {
			return nil, false, err != nil, err
		}
	}
	all := d.present(c, p, from, now)
	if !p.live {
		archived, err := d.archived(ctx, c, p, from, all, now)
		if err != nil {
			return nil, false, true, err
		}
		all = p.merged(all, archived)
	}
	if p.limit > 0 && len(all) > p.limit {
		all, more = all[:p.limit], true
	}
	list = make([]api.Job, len(all))
	for i := range all {
		list[i] = all[i].Job
	}
	return list, more, true, nil
}

// scanAtOnce is the number of jobs that a page compares between two steps of the core.
const scanAtOnce = 4096

// present returns the jobs of a page that are in memory, up to one more than its limit, in their order at the moment of
// from.
func (d *Service) present(c identity.Caller, p page, from *search.Place, now time.Time) (list []placed) {
	s := scan{page: p, odds: d.Odds, caller: c, from: from, now: now, durable: d.Control.Durable()}
	if from != nil && p.order == search.ByAge {
		s.next = from.Order
	}
	for more := true; more; {
		d.Control.ReadUncommitted(func(m *core.Machine) { more = s.some(m) })
	}
	s.cut()
	d.Control.ReadUpTo(func(m *core.Machine) uint64 {
		for _, k := range s.best {
			if j, ok := m.Job(k.id); ok { // it was not archived meanwhile
				list, s.last = append(list, placed{d.Show(m, j), k.Place}), max(s.last, m.ChangedAt(j))
			}
		}
		return s.last
	})
	return list
}

// scan looks for the first jobs of a page in memory.
type scan struct {
	page
	odds    Odds
	caller  identity.Caller
	from    *search.Place
	now     time.Time // the moment of from: at another one the job of from would follow itself
	durable uint64
	next    uint64 // order of submission of the last job compared
	last    uint64 // newest event on which the page depends
	best    []candidate
	worst   *search.Place // the last of the first jobs so far
	key     []byte
}

// candidate is a job that may be on the page.
type candidate struct {
	search.Place
	id string
}

// some compares the next jobs, and reports whether others remain.
func (s *scan) some(m *core.Machine) (more bool) {
	jobs := m.State().JobsFrom(s.next)
	if s.backwards || s.order != search.ByAge {
		jobs = m.State().JobsTo(s.next)
	}
	n := 0
	for j := range jobs {
		if n++; n > scanAtOnce {
			return true
		}
		s.next = j.Order()
		if j.Event() > s.durable || !auth.Sees(s.caller, j) { // the next page has jobs that are not durable yet
			continue
		}
		s.last = max(s.last, m.ChangedAt(j)) // leaving it out reveals its state, so wait for that event, too
		if s.excludes(j) {
			continue
		}
		s.key = s.order.AppendKey(s.key[:0], j, s.now)
		s.add(j, search.Place{Key: s.key, Order: j.Order()})
		if s.order == search.ByAge && s.limit > 0 && len(s.best) > s.limit {
			return false
		}
	}
	return false
}

// add adds a job if it comes after the border of the page and may be among the first.
func (s *scan) add(j *core.Job, at search.Place) {
	if s.from != nil && !s.follows(at, *s.from) || s.worst != nil && !s.follows(*s.worst, at) {
		return
	}
	at.Key = bytes.Clone(at.Key)
	if s.best = append(s.best, candidate{at, j.ID()}); s.limit > 0 && len(s.best) >= 2*(s.limit+1) {
		s.cut()
		worst := s.best[s.limit].Place
		s.worst = &worst
	}
}

// cut keeps the first jobs, up to one more than the limit.
func (s *scan) cut() {
	slices.SortFunc(s.best, func(a, b candidate) int { return s.compare(a.Place, b.Place) })
	if s.limit > 0 {
		s.best = s.best[:min(len(s.best), s.limit+1)]
	}
}

func (p page) compare(a, b search.Place) int {
	switch {
	case a.Order == b.Order:
		return 0
	case p.follows(b, a):
		return -1
	}
	return 1
}

// archived returns the archived jobs of a page, up to one more than its limit. If the jobs in memory fill the page, it
// stops at the last of them.
func (d *Service) archived(ctx context.Context, c identity.Caller, p page, from *search.Place, present []placed,
	now time.Time) (list []placed, err error) {
	var until *search.Place
	if p.limit > 0 && len(present) > p.limit {
		until = &present[len(present)-1].Place
	}
	jobs := d.Control.Past(ctx, p.past(from, until))
	if p.order != search.ByAge || !p.filter.Plain(c) {
		s := p.filter.Query(c)
		s.Order, s.Oldest = p.order, p.order == search.ByAge && !p.backwards
		s.After, s.Until, s.Limit = from, until, cmp.Or(p.limit, maxPage)+1
		jobs = d.Control.Search(ctx, s)
	}
	for j, err := range jobs {
		if err != nil {
			return nil, err
		}
		if p.backwards && p.filter.Older(j) {
			break
		}
		if !auth.Sees(c, j) || !p.filter.Takes(j) {
			continue
		}
		at := search.Place{Key: p.order.AppendKey(nil, j, now), Order: j.Order()}
		d.Control.ReadUncommitted(func(m *core.Machine) { list = append(list, placed{d.Show(m, j), at}) })
		if p.limit > 0 && len(list) > p.limit {
			break
		}
	}
	return list, nil
}

// past returns the page of archived jobs in the order of submission between two places.
func (p page) past(from, until *search.Place) view.ArchivedPage {
	q := view.ArchivedPage{State: string(p.filter.One()), Backwards: p.backwards}
	if p.backwards {
		from, until = until, from
	}
	if from != nil {
		q.After = from.Order
	}
	if until != nil {
		q.Before = until.Order
	}
	return q
}

// merged returns both lists in the order of the page, without the duplicates of jobs that were archived in between.
func (p page) merged(a, b []placed) []placed {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(x, y placed) int { return p.compare(x.Place, y.Place) })
	return slices.CompactFunc(all, func(x, y placed) bool { return x.Order == y.Order })
}

// excludes reports whether the page does not list the job.
func (s *scan) excludes(j *core.Job) bool {
	return s.live && j.Priced() || s.attention && !filter.NeedsAttention(j, s.odds.InTime, s.now) || !s.filter.Takes(j)
}
