package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// What selects the events of a job that a reader wants. Each value is a bit.
type What uint64

// The kinds of events.
const (
	Decisions What = 1 << iota // decisions about the job
	Progress                   // reports of its programs
)

// bits is the number of bits of an entry that hold its What, and so the highest number of kinds.
const bits = 2

// ofJobs has a row by job: the numbers of its events, shifted left over their What, as varints of 3 to 5 bytes.
var ofJobs = projection.Projection{Name: "job-events", Version: 1, Apply: applyOfJobs}

// decidedMark occurs in the facts of an event if one of them is a decision.
var decidedMark = markOf(state.Decided{})

func markOf(f state.Fact) []byte { return []byte(`"` + f.Fact() + `",`) }

// applyOfJobs adds an event to the rows of the jobs that it concerns.
func applyOfJobs(_ context.Context, r *projection.Record, rows *projection.Rows) error {
	var said map[string]What
	say := func(job string, what What) {
		if job != "" && !isSubmission(r.Record, job) {
			if said == nil {
				said = map[string]What{}
			}
			said[job] |= what
		}
	}
	if r.Kind == (state.Progressed{}).Kind() {
		inBody(r.Event, func(key, value []byte) {
			if attempt, ok := nameIn(value); ok && string(key) == `"attempt"` {
				say(attempt[:max(0, strings.LastIndexByte(attempt, '.'))], Progress)
			}
		})
	}
	if bytes.Contains(r.Facts, decidedMark) {
		named(r.Facts, func(name, fact []byte) {
			if !bytes.Equal(name, decidedMark[:len(decidedMark)-1]) {
				return
			}
			members(fact, func(key, value []byte) {
				if job, ok := nameIn(value); ok && string(key) == `"job"` {
					say(job, Decisions)
				}
			})
		})
	}
	for job, what := range said {
		rows.Append(job, binary.AppendUvarint(nil, r.Seq<<bits|uint64(what)))
	}
	return nil
}

// isSubmission reports whether the event is the submission of the job. The view leaves these out: a reader knows the
// event from the job, and most jobs in a long queue have no other.
func isSubmission(r store.Record, job string) bool {
	if r.Kind != (state.JobSubmitted{}).Kind() {
		return false
	}
	_, body, _ := bytes.Cut(r.Event, []byte(`,"body":`)) // quotes within an earlier text have a backslash
	return bytes.HasPrefix(body, []byte(`{"job":"`+job+`"`))
}

// errTorn means that something else has changed a row.
var errTorn = errors.New("its row beside the log cannot be read: stop the server, delete view.db or empty the table " +
	"projection, and start it again")

// numbers returns the events of a row that match what, without repetition.
func numbers(row []byte, what What) (list []uint64, err error) {
	for len(row) > 0 {
		n, size := binary.Uvarint(row)
		if size <= 0 {
			return nil, errTorn
		}
		row = row[size:]
		if What(n&(1<<bits-1))&what != 0 {
			list = append(list, n>>bits)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Job is the job of a reader.
type Job struct {
	ID        string
	Submitted uint64 // event of its submission
	UpTo      uint64 // last event that the reader has seen
}

// Events calls f, in the order of the log, with the job's submission and each event that matches what, up to one
// that the reader has seen, and perhaps later ones. It leaves out samples that were dropped.
func (v *View) Events(ctx context.Context, j Job, what What, f func(store.Record) error) error {
	rows, err := v.follower.Rows(ctx, ofJobs, j.UpTo, j.ID)
	if err != nil {
		return err
	}
	list, err := numbers(rows[j.ID], what)
	if err != nil {
		return fmt.Errorf("look for the events of %s: %w", j.ID, err)
	}
	if at, there := slices.BinarySearch(list, j.Submitted); !there {
		list = slices.Insert(list, at, j.Submitted)
	}
	for some := range slices.Chunk(list, piece) {
		records, err := v.log.RecordsAt(ctx, some)
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}
