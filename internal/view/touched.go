package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// ofTouched says which jobs the events of the log concern. It has a row for each page of pageLength events, by the
// page's number: for each event that concerns jobs, its place in the page, their number and their names.
var ofTouched = projection.Projection{Name: "touched-jobs", Version: 1, Apply: applyTouched}

const (
	// pageLength is the number of events of a page.
	pageLength = 500
	// patience is how long a reader waits for a page before it reads the log itself.
	patience = time.Second
)

// pageOf returns the number of the page that has the event, and the place of the event in it.
func pageOf(seq uint64) (page, place uint64) { return (seq - 1) / pageLength, (seq - 1) % pageLength }

func pageKey(page uint64) string { return fmt.Sprintf("%015d", page) }

func applyTouched(_ context.Context, r *projection.Record, rows *projection.Rows) error {
	jobs := touched(&r.Record)
	if len(jobs) == 0 {
		return nil
	}
	page, place := pageOf(r.Seq)
	row := binary.AppendUvarint(binary.AppendUvarint(nil, place), uint64(len(jobs)))
	for _, job := range jobs {
		row = append(binary.AppendUvarint(row, uint64(len(job))), job...)
	}
	rows.Append(pageKey(page), row)
	return nil
}

// Touched lists the jobs that the next events concern, each once, in the order of their last event. The events begin
// after the given one and end with last, which is the end of a page or upTo, a durable event.
func (v *View) Touched(ctx context.Context, after, upTo uint64) (jobs []string, last uint64, err error) {
	page, place := pageOf(after + 1)
	last = min(upTo, (page+1)*pageLength)
	if after >= last {
		return nil, after, nil
	}
	patient, cancel := context.WithTimeoutCause(ctx, patience, &projection.BehindError{Name: ofTouched.Name, Of: last})
	defer cancel()
	rows, err := v.follower.Rows(patient, ofTouched, last, pageKey(page))
	var behind *projection.BehindError
	if errors.As(err, &behind) || err != nil && ctx.Err() == nil && patient.Err() != nil {
		return v.touchedNow(ctx, after, last) // a page of events needs no projection
	}
	if err != nil {
		return nil, 0, err
	}
	order := ordered{last: map[string]int{}}
	_, until := pageOf(last)
	for row := rows[pageKey(page)]; len(row) > 0; {
		at, names, rest, err := readTouched(row)
		if err != nil {
			return nil, 0, fmt.Errorf("look for the jobs of events %d to %d: %w", after+1, last, err)
		}
		if row = rest; at >= place && at <= until {
			order.add(names)
		}
	}
	return order.list(), last, nil
}

// touchedNow is Touched from the log itself.
func (v *View) touchedNow(ctx context.Context, after, last uint64) ([]string, uint64, error) {
	records, err := v.log.WholeRecords(ctx, after, int(last-after))
	if err != nil {
		return nil, 0, err
	}
	order := ordered{last: map[string]int{}}
	for i := range records {
		if records[i].Seq <= last {
			order.add(touched(&records[i]))
		}
	}
	return order.list(), last, nil
}

// readTouched reads an event of a row.
func readTouched(row []byte) (place uint64, jobs []string, rest []byte, err error) {
	next := func() (n uint64) {
		size := 0
		if n, size = binary.Uvarint(row); size <= 0 {
			err, size = errTorn, len(row)
		}
		row = row[size:]
		return n
	}
	place = next()
	for n := next(); n > 0 && err == nil; n-- {
		size := next()
		if size > uint64(len(row)) {
			err = errTorn
		}
		if err == nil {
			jobs, row = append(jobs, string(row[:size])), row[size:]
		}
	}
	return place, jobs, row, err
}

// ordered lists jobs in the order in which they were last added.
type ordered struct {
	last map[string]int
	n    int
}

func (o *ordered) add(jobs []string) {
	for _, job := range jobs {
		o.n++
		o.last[job] = o.n
	}
}

func (o *ordered) list() []string {
	return slices.SortedFunc(maps.Keys(o.last), func(a, b string) int { return o.last[a] - o.last[b] })
}

// silent are the facts that change nothing visible in a job.
var silent = [][]byte{[]byte(`"` + state.JobArchived{}.Fact() + `"`), []byte(`"` + state.JobRehydrated{}.Fact() + `"`)}

// touched lists the jobs that the record concerns, each once. A record that cannot be read concerns no job.
func touched(r *store.Record) (jobs []string) {
	add := func(id string) {
		if id != "" && !slices.Contains(jobs, id) {
			jobs = append(jobs, id)
		}
	}
	inBody(r.Event, about(add))
	named(r.Facts, func(name, fact []byte) {
		if !slices.ContainsFunc(silent, func(s []byte) bool { return bytes.Equal(s, name) }) {
			members(fact, about(add))
		}
	})
	for _, p := range r.Postings {
		add(p.Owner.Job)
	}
	return jobs
}

// about adds the job that a member of an event's body or of a fact names.
func about(add func(job string)) func(key, value []byte) {
	return func(key, value []byte) {
		isJob := string(key) == `"job"`
		if !isJob && string(key) != `"attempt"` && string(key) != `"launch"` && string(key) != `"allocation"` {
			return
		}
		name, ok := nameIn(value)
		if !ok {
			return
		}
		if !isJob {
			name = name[:max(0, strings.LastIndexByte(name, '.'))]
		}
		add(name)
	}
}

// nameIn returns the text of a JSON string.
func nameIn(value []byte) (name string, ok bool) {
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : n-1]), true
	}
	return name, json.Unmarshal(value, &name) == nil
}
