// Package search finds archived jobs by the columns that lists filter and sort by. It keeps columns of blocks of jobs
// in the order of submission, so a search of all jobs reads some bytes a job instead of its record. A row holds one
// column of one block, and grows by an entry for each job that is archived; the last entry of a job counts.
package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/state"
)

// blockJobs is the number of jobs whose columns a row holds.
const blockJobs = 1024

// Columns. An entry begins with the job's place in its block.
const (
	columnOwner    = "owner/"    // state, time of submission, hashes of team, user, group, project, engine and tags
	columnSpent    = "spent/"    // key of BySpent
	columnDeadline = "deadline/" // key of ByDeadline
	columnName     = "name/"     // identifier, and name if it differs
)

// columnsOf lists the columns with keys of an order.
var columnsOf = map[Order]string{BySpent: columnSpent, ByDeadline: columnDeadline, ByName: columnName}

func blockKey(column string, block uint64) string { return fmt.Sprintf("%s%015d", column, block) }

// overStates are the states of archived jobs.
var overStates = []state.Status{state.Succeeded, state.Failed, state.Stopped, state.Cancelled}

// short is a hash that an entry has in place of a text. Two texts may share it, so a search compares the jobs it finds.
func short(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum32()
}

// Add appends the entries of an archived job to the rows of its block.
func Add(j *state.Job, appendRow func(key string, entry []byte)) {
	block := j.Order() / blockJobs
	place := binary.AppendUvarint(nil, j.Order()%blockJobs)
	entry := func(column string, add func([]byte) []byte) {
		appendRow(blockKey(column, block), add(slices.Clone(place)))
	}
	entry(columnOwner, func(b []byte) []byte { return appendOwner(b, j) })
	entry(columnName, func(b []byte) []byte {
		name := j.Terms().Name
		if name == j.ID() {
			name = ""
		}
		return appendText(appendText(b, j.ID()), name)
	})
	for _, o := range []Order{BySpent, ByDeadline} {
		entry(columnsOf[o], func(b []byte) []byte {
			return appendText(b, string(o.AppendKey(nil, j, j.Finished())))
		})
	}
	entry(columnCard, func(b []byte) []byte { return appendCard(b, j) })
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// sessionMark is added to the state of an entry of a session.
const sessionMark = 0x80

func appendOwner(b []byte, j *state.Job) []byte {
	t := j.Terms()
	kind := byte(slices.Index(overStates, j.State()))
	if t.Session != "" {
		kind |= sessionMark
	}
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(max(0, j.Submitted().Unix())))
	c := CardOf(j)
	for _, text := range []string{c.Team, c.User, c.Group, c.Project, c.Engine} {
		b = binary.BigEndian.AppendUint32(b, short(text))
	}
	b = binary.AppendUvarint(b, uint64(2*len(t.Owner.Tags)))
	for key, value := range t.Owner.Tags {
		b = binary.BigEndian.AppendUint32(b, short(key))
		b = binary.BigEndian.AppendUint32(b, short(key+"="+value))
	}
	return b
}

// span is a part of a row. Spans have no pointers: a search fills a million of them.
type span struct{ from, to uint32 }

func (s span) of(row []byte) []byte { return row[s.from:s.to] }

// texted is the number of hashes of an entry of columnOwner besides those of tags.
const texted = 5

// entryOwner is an entry of columnOwner.
type entryOwner struct {
	there     bool
	kind      byte
	submitted uint32
	hashes    [texted]uint32 // of team, user, group, project and engine
	tags      span           // hashes, four bytes each
}

var errShortRow = errors.New("a row of the search ends too early")

// cutter reads a row from a position on. At the end of a row that is too short it stays torn.
type cutter struct {
	row  []byte
	at   int
	torn bool
}

func (c *cutter) number() int {
	if c.at < len(c.row) && c.row[c.at] < 0x80 {
		c.at++
		return int(c.row[c.at-1])
	}
	n, size := binary.Uvarint(c.row[c.at:])
	if size <= 0 || n > uint64(len(c.row)) && n >= blockJobs {
		c.torn = true
		return 0
	}
	c.at += size
	return int(n)
}

func (c *cutter) span(n int) span {
	if len(c.row)-c.at < n {
		c.torn = true
		return span{}
	}
	c.at += n
	return span{uint32(c.at - n), uint32(c.at)}
}

// more reports whether the row has another entry, and returns the place of its job.
func (c *cutter) more() (place int, ok bool) {
	if c.torn || c.at >= len(c.row) {
		return 0, false
	}
	place = c.number() % blockJobs
	return place, !c.torn
}

func (c *cutter) err() error {
	if c.torn {
		return errShortRow
	}
	return nil
}

// owners reads a row of columnOwner.
func owners(row []byte, into *[blockJobs]entryOwner) error {
	const fixed = 1 + 4 + 4*texted
	clear(into[:])
	c := cutter{row: row}
	for place, ok := c.more(); ok; place, ok = c.more() {
		b := c.span(fixed).of(row)
		tags := c.span(4 * c.number())
		if c.torn {
			break
		}
		e := entryOwner{there: true, kind: b[0], submitted: binary.BigEndian.Uint32(b[1:]), tags: tags}
		for i := range e.hashes {
			e.hashes[i] = binary.BigEndian.Uint32(b[5+4*i:])
		}
		into[place] = e
	}
	return c.err()
}

// texts reads a row of another column: the first text of each job, and with a second one that.
func texts(row []byte, first, second *[blockJobs]span) error {
	c := cutter{row: row}
	for place, ok := c.more(); ok; place, ok = c.more() {
		first[place] = c.span(c.number())
		if second != nil {
			second[place] = c.span(c.number())
		}
	}
	return c.err()
}

// tests compares an entry with a search.
type tests struct {
	kinds   [4]bool // by the place in overStates
	session bool
	since   uint32
	teams   []uint32        // nil: any
	hashes  [texted]*uint32 // nil: any; the first is of no use beside teams
	tags    []uint32
	rare    [][]byte // what a row has if it has a job that matches
}

func (s *Query) tests() (t tests) {
	for i, over := range overStates {
		t.kinds[i] = len(s.States) == 0 || slices.Contains(s.States, over)
	}
	t.session = s.Session
	if !s.Since.IsZero() {
		t.since = uint32(max(0, s.Since.Unix()))
	}
	if s.Teams != nil {
		t.teams = []uint32{}
	}
	for _, team := range s.Teams {
		t.teams = append(t.teams, short(team))
	}
	for i, text := range []string{"", s.User, s.Group, s.Project, s.Engine} {
		if text != "" {
			t.hashes[i] = new(short(strings.TrimPrefix(text, charge.None)))
		}
	}
	for key, value := range s.Tags {
		if value != "" {
			key += "=" + value
		}
		t.tags = append(t.tags, short(key))
	}
	for _, hash := range t.tags {
		t.rare = append(t.rare, binary.BigEndian.AppendUint32(nil, hash))
	}
	for _, hash := range t.hashes {
		if hash != nil {
			t.rare = append(t.rare, binary.BigEndian.AppendUint32(nil, *hash))
		}
	}
	return t
}

// mayTake reports whether a row of columnOwner may have a job that matches: if a user, group, project, engine or tag
// that a job must have occurs nowhere in the row, it has none.
func (t *tests) mayTake(row []byte) bool {
	for _, hash := range t.rare {
		if !bytes.Contains(row, hash) {
			return false
		}
	}
	return true
}

func (t *tests) take(e *entryOwner, row []byte) bool {
	if !e.there || !t.kinds[int(e.kind&^sessionMark)%len(t.kinds)] || t.session && e.kind&sessionMark == 0 ||
		e.submitted < t.since ||
		t.teams != nil && !slices.Contains(t.teams, e.hashes[0]) {
		return false
	}
	for i, want := range t.hashes {
		if want != nil && *want != e.hashes[i] {
			return false
		}
	}
	for _, want := range t.tags {
		found := false
		for tags := e.tags.of(row); len(tags) > 0 && !found; tags = tags[4:] {
			found = binary.BigEndian.Uint32(tags) == want
		}
		if !found {
			return false
		}
	}
	return true
}

// Query selects archived jobs.
type Query struct {
	States      []state.Status // none: any
	Teams       []string       // nil: any; "": those without one
	User, Group string         // charge.None: those without one, as of Project and Engine
	Project     string
	Engine      string            // of the newest attempt
	Tags        map[string]string // "": any value
	Name        Pattern
	Session     bool      // sessions only
	Since       time.Time // submitted at or after this time
	Order       Order
	Oldest      bool // oldest first, with ByAge
	// After is the place after which the jobs come; nil: the first.
	After *Place
	Until *Place // the place before which they come; nil: no end
	Limit int
}

// Place is the place of a job in a list.
type Place struct {
	Key   []byte // of AppendKey
	Order uint64 // of submission
}

// Before reports whether the place comes before another in a list that is newest first.
func (p Place) Before(q Place) bool {
	if c := bytes.Compare(p.Key, q.Key); c != 0 {
		return c < 0
	}
	return p.Order > q.Order
}
