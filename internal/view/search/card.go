package search

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
)

// columnCard holds what lists filter and sum jobs by.
const columnCard = "card/"

// Card has what lists filter jobs by, and what totals add up.
type Card struct {
	Order                                         uint64 // of submission
	ID, Name, User, Team, Project, Group, Session string
	Engine                                        string // of its newest attempt; "": none has begun
	State                                         state.Status
	Submitted                                     time.Time
	Currency                                      money.Currency
	Spent                                         money.Amount // of an archived job; CardOf leaves it out
	tags                                          map[string]string
	pairs                                         []string // key, value, and so on: the tags of an archived job
}

// CardOf returns the card of a job without what it has spent.
func CardOf(j *state.Job) Card {
	t := j.Terms()
	c := Card{Order: j.Order(), ID: j.ID(), Name: t.Name, User: j.User(), Team: t.Owner.Team, Project: t.Owner.Project,
		Group: t.Group, Session: t.Session, State: j.State(), Submitted: j.Submitted(), Currency: t.Currency,
		tags: t.Owner.Tags}
	if a := j.Attempt(); a != nil {
		c.Engine = a.Provider()
	}
	return c
}

// Tag returns the value of a tag, and false if the job does not have it.
func (c *Card) Tag(key string) (value string, ok bool) {
	for i := 0; i < len(c.pairs); i += 2 {
		if c.pairs[i] == key {
			return c.pairs[i+1], true
		}
	}
	value, ok = c.tags[key]
	return value, ok
}

// Property returns the value of a property that Properties lists, or of a tag as tag:KEY. It is charge.None for a job
// without one.
func (c *Card) Property(by string) string {
	switch by {
	case "team":
		return cmp.Or(c.Team, charge.None)
	case "project":
		return cmp.Or(c.Project, charge.None)
	case "user":
		return cmp.Or(c.User, charge.None)
	case "engine":
		return cmp.Or(c.Engine, charge.None)
	case "state":
		return string(c.State)
	}
	value, ok := c.Tag(strings.TrimPrefix(by, "tag:"))
	if !ok {
		return charge.None
	}
	return value
}

// Properties lists the properties by which jobs are summed, besides tags.
var Properties = []string{"team", "project", "state", "engine", "user"}

func appendCard(b []byte, j *state.Job) []byte {
	c := CardOf(j)
	micros, picos, _ := j.Spent(j.Finished()).Micros() // no job costs more than fits
	b = binary.AppendVarint(binary.AppendVarint(b, micros), picos)
	b = binary.AppendVarint(b, c.Submitted.UnixNano())
	for _, text := range []string{string(c.Currency), string(c.State), c.ID, c.Name, c.User, c.Team, c.Project, c.Engine,
		c.Group, c.Session} {
		b = appendText(b, text)
	}
	b = binary.AppendUvarint(b, uint64(len(c.tags)))
	for key, value := range c.tags {
		b = appendText(appendText(b, key), value)
	}
	return b
}

// Cards calls visit with the card of each job that is or was archived, in the order of submission. A card is valid
// until visit returns. read reads rows in the order of their keys.
func Cards(read func(store.Range) ([]store.Row, error), visit func(*Card)) error {
	for r := (store.Range{After: columnCard, Before: columnCard + "~", Limit: moreBlocks}); ; {
		rows, err := read(r)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := eachCard(row, visit); err != nil {
				return fmt.Errorf("sum archived jobs: %w", err)
			}
			r.After = row.Key
		}
		if len(rows) < r.Limit {
			return nil
		}
	}
}

// eachCard calls visit with the last card of each job of a block.
func eachCard(row store.Row, visit func(*Card)) error {
	block, err := strconv.ParseUint(strings.TrimPrefix(row.Key, columnCard), 10, 64)
	if err != nil {
		return err
	}
	var last [blockJobs]span
	d := cards{cutter: cutter{row: row.Value}, text: string(row.Value)} // its parts need no memory of their own
	for place, ok := d.more(); ok; place, ok = d.more() {
		from := d.at
		d.next()
		last[place] = span{uint32(from), uint32(d.at)}
	}
	for place, at := range last {
		if at.to > 0 && !d.torn {
			d.at = int(at.from)
			d.next()
			d.card.Order = block*blockJobs + uint64(place)
			visit(&d.card)
		}
	}
	return d.err()
}

// cards reads the cards of a row.
type cards struct {
	cutter
	text string
	card Card
}

// next reads the next card.
func (d *cards) next() {
	c := &d.card
	micros, picos, submitted := d.signed(), d.signed(), d.signed()
	c.Spent, c.Submitted = money.FromMicros(micros, picos), time.Unix(0, submitted).UTC()
	c.Currency, c.State = money.Currency(d.part()), state.Status(d.part())
	for _, to := range []*string{&c.ID, &c.Name, &c.User, &c.Team, &c.Project, &c.Engine, &c.Group, &c.Session} {
		*to = d.part()
	}
	c.pairs = c.pairs[:0]
	for n := 2 * d.number(); n > 0 && !d.torn; n-- {
		c.pairs = append(c.pairs, d.part())
	}
}

func (d *cards) part() string {
	s := d.span(d.number())
	return d.text[s.from:s.to]
}

func (d *cards) signed() int64 {
	n, size := binary.Varint(d.row[min(d.at, len(d.row)):])
	if size <= 0 {
		d.torn = true
		return 0
	}
	d.at += size
	return n
}
