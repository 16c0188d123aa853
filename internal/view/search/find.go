package search

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
)

const (
	firstBlocks = 4  // blocks that a search reads at first, which is enough for a page of most jobs
	moreBlocks  = 64 // and then at once
)

// Found is an archived job that may match a query.
type Found struct {
	Place
	State state.Status
}

// searching is a search that reads one range of blocks after another.
type searching struct {
	*Query
	tests
	best  []Found
	worst *Place // the last of the first jobs so far
	over  bool   // all jobs of further blocks are too old
	own   [blockJobs]entryOwner
	keys  [blockJobs]span
	names [2][blockJobs]span
}

// rowsOf are the rows of a block.
type rowsOf struct{ own, key, name []byte }

// Find returns the first jobs of a query. read reads rows in the order of their keys. Two texts may share a hash, and a
// job may have been brought back since, so the caller compares the jobs.
func Find(q Query, read func(store.Range) ([]store.Row, error)) ([]Found, error) {
	in := &searching{Query: &q, tests: q.tests(), worst: q.Until}
	r := q.blocks()
	for {
		rows, err := read(r)
		if err != nil {
			return nil, err
		}
		if r.Backwards {
			slices.Reverse(rows)
		}
		beside := map[string][]byte{}
		if slices.ContainsFunc(rows, in.promising) {
			if beside, err = q.columns(rows, read); err != nil {
				return nil, err
			}
		}
		for i := range rows {
			if !in.promising(rows[i]) {
				continue
			}
			if err := in.block(strings.TrimPrefix(rows[i].Key, q.first()), beside); err != nil {
				return nil, fmt.Errorf("search archived jobs: %w", err)
			}
			if in.enough() {
				return in.list(), nil
			}
		}
		if len(rows) < r.Limit {
			return in.list(), nil
		}
		if r.Limit = moreBlocks; r.Backwards {
			r.Before = rows[len(rows)-1].Key
		} else {
			r.After = rows[len(rows)-1].Key
		}
	}
}

// backwards reports whether a search begins at the newest block. Names often rise with time, so a search for the first
// names begins at the oldest.
func (s *Query) backwards() bool { return !s.Oldest && s.Order != ByName }

// blocks returns the range of blocks that may have jobs of a search.
func (s *Query) blocks() store.Range {
	first, last := s.Until, s.After
	column := s.first()
	r := store.Range{After: column, Before: column + "~", Limit: firstBlocks, Backwards: s.backwards()}
	if s.Order != ByAge {
		return r
	}
	if s.Oldest {
		first, last = last, first
	}
	if first != nil {
		r.After = column + previous(fmt.Sprintf("%015d", first.Order/blockJobs))
	}
	if last != nil {
		r.Before = blockKey(column, last.Order/blockJobs+1)
	}
	return r
}

// first returns the column that a search reads of every block, to find out whether it needs the others.
func (s *Query) first() string {
	switch {
	case s.Name.part != "":
		return columnName
	case columnsOf[s.Order] != "":
		return columnsOf[s.Order]
	}
	return columnOwner
}

// promising reports whether a block may have one of the first jobs, by its row of the first column.
func (in *searching) promising(row store.Row) bool {
	switch {
	case in.Name.part != "":
		return bytes.Contains(row.Value, []byte(in.Name.part))
	case columnsOf[in.Order] == "":
		return in.mayTake(row.Value)
	case in.worst == nil:
		return true
	}
	c := cutter{row: row.Value}
	for _, ok := c.more(); ok; _, ok = c.more() {
		key := c.span(c.number()).of(row.Value)
		if in.Order == ByName {
			c.span(c.number())
		}
		if bytes.Compare(key, in.worst.Key) <= 0 && (in.After == nil || bytes.Compare(key, in.After.Key) >= 0) {
			return true
		}
	}
	return c.torn // which block reports
}

// columns returns the rows of all columns that a search of those blocks needs, by key.
func (s *Query) columns(rows []store.Row, read func(store.Range) ([]store.Row, error)) (map[string][]byte, error) {
	first := s.first()
	needed := map[string]bool{columnOwner: true, columnsOf[s.Order]: true}
	if !s.Name.Any() {
		needed[columnName] = true
	}
	delete(needed, first)
	delete(needed, "") // the order has no column
	all := map[string][]byte{}
	for _, row := range rows {
		all[row.Key] = row.Value
	}
	lowest, highest := rows[0].Key[len(first):], rows[len(rows)-1].Key[len(first):]
	if lowest > highest {
		lowest, highest = highest, lowest
	}
	for column := range needed {
		list, err := read(store.Range{After: column + previous(lowest), Before: column + highest + "~", Limit: len(rows)})
		if err != nil {
			return nil, err
		}
		for _, row := range list {
			all[row.Key] = row.Value
		}
	}
	return all, nil
}

// previous returns a text below a block's number and above every lower one.
func previous(number string) string {
	return number[:len(number)-1] + string(number[len(number)-1]-1) + "~"
}

// block adds the jobs of a block that match.
func (in *searching) block(number string, columns map[string][]byte) error {
	rows := rowsOf{own: columns[columnOwner+number], name: columns[columnName+number],
		key: columns[columnsOf[in.Order]+number]}
	block, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	if !in.mayTake(rows.own) {
		return nil
	}
	if err := owners(rows.own, &in.own); err != nil {
		return err
	}
	if len(rows.name) > 0 {
		if err := texts(rows.name, &in.names[0], &in.names[1]); err != nil {
			return err
		}
	}
	if in.Order == BySpent || in.Order == ByDeadline {
		if err := texts(rows.key, &in.keys, nil); err != nil {
			return err
		}
	}
	for place := range in.places {
		e := &in.own[place]
		in.over = in.over || e.there && in.backwards() && e.submitted < in.since
		if in.take(e, rows.own) && (in.Name.Any() || in.named(place, rows.name)) {
			at := Place{in.key(e, place, &rows), block*blockJobs + uint64(place)}
			in.add(Found{at, overStates[e.kind&^sessionMark]})
		}
	}
	return nil
}

// places yields the places of a block in the direction of the search.
func (in *searching) places(yield func(int) bool) {
	for n := range blockJobs {
		if in.backwards() {
			n = blockJobs - 1 - n
		}
		if !yield(n) {
			return
		}
	}
}

func (in *searching) named(place int, row []byte) bool {
	id, name := in.names[0][place].of(row), in.names[1][place].of(row)
	return in.Name.Takes(string(id)) || len(name) > 0 && in.Name.Takes(string(name))
}

// key returns the place of a job in the order.
func (in *searching) key(e *entryOwner, place int, rows *rowsOf) []byte {
	switch in.Order {
	case BySpent, ByDeadline:
		return in.keys[place].of(rows.key)
	case ByName:
		return in.names[0][place].of(rows.name)
	case ByState:
		return []byte(overStates[e.kind&^sessionMark])
	case ByRate:
		return noRate
	case ByAge:
	}
	return nil
}

// noRate is the key of a job without a machine in ByRate.
var noRate = bytes.Repeat([]byte{0xff}, 8)

// add adds a job if it comes after the place of the search, and may be among the first.
func (in *searching) add(f Found) {
	if in.After != nil && !in.follows(*in.After, f.Place) || in.worst != nil && !in.follows(f.Place, *in.worst) {
		return
	}
	if in.best = append(in.best, f); len(in.best) == 2*in.Limit {
		in.cut()
		worst := in.best[in.Limit-1].Place
		in.worst = &worst
	}
}

func (in *searching) follows(p, q Place) bool {
	if in.Oldest {
		return p.Order < q.Order
	}
	return p.Before(q)
}

// cut keeps the first jobs.
func (in *searching) cut() {
	slices.SortFunc(in.best, func(a, b Found) int {
		if in.Oldest {
			return cmp.Compare(a.Order, b.Order)
		}
		return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(b.Order, a.Order))
	})
	in.best = in.best[:min(len(in.best), in.Limit)]
}

// enough reports whether no further block can have one of the first jobs: all that follow are older and have no lower
// key.
func (in *searching) enough() bool {
	if in.Order == ByState && in.worst != nil && bytes.Equal(in.worst.Key, in.lowest()) {
		return true
	}
	return in.over || (in.Order == ByAge || in.Order == ByRate) && len(in.best) >= in.Limit
}

// lowest returns the key of the state that a list by state begins with.
func (in *searching) lowest() []byte {
	var low state.Status
	for i, over := range overStates {
		if in.kinds[i] && (low == "" || over < low) {
			low = over
		}
	}
	return []byte(low)
}

func (in *searching) list() []Found {
	in.cut()
	return in.best
}
