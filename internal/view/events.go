package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
)

// What of a job is asked for. Each is a bit.
type What uint64

// What an event may say of a job.
const (
	Decisions What = 1 << iota // what was decided about it
	Progress                   // what its programs said
)

// bits is how many of a number in the view say what, and how many kinds there may be.
const bits = 2

// gathering is what events add to the view. A job's events are numbers, each shifted by what
// it says, as varints: 3 to 5 bytes each.
type gathering struct{ store.ViewRows }

func newGathering() gathering {
	return gathering{store.ViewRows{Events: map[string][]byte{}, Archived: map[string]store.ArchivedRow{}}}
}

func (g gathering) add(job string, seq uint64, what What) {
	g.Events[job] = binary.AppendUvarint(g.Events[job], seq<<bits|uint64(what))
}

// marks are what the facts of an event have in them where one is of a kind that the view takes.
var marks = [][]byte{markOf(state.Decided{}), markOf(state.JobArchived{}), markOf(state.JobRehydrated{})}

func markOf(f state.Fact) []byte { return []byte(`"` + f.Fact() + `",`) }

// take adds what an event says of jobs.
func (g gathering) take(r store.Record) error {
	said := map[string]What{}
	if r.Kind == (state.Progressed{}).Kind() {
		attempt, err := attemptIn(r)
		if err != nil {
			return err
		}
		if dot := strings.LastIndexByte(attempt, '.'); dot > 0 {
			said[attempt[:dot]] = Progress
		}
	}
	if slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(r.Facts, mark) }) {
		facts, err := state.DecodeFacts(r.Facts)
		if err != nil {
			return fmt.Errorf("event %d: %w", r.Seq, err)
		}
		for _, f := range facts {
			switch f := f.(type) {
			case state.Decided:
				said[f.Job] |= Decisions
			case state.JobArchived:
				j, err := state.ReadJob(f.Record)
				if err != nil {
					return fmt.Errorf("event %d: %w", r.Seq, err)
				}
				g.Archived[f.Job] = store.ArchivedRow{Seq: r.Seq, Order: j.Order(), State: string(j.State())}
			case state.JobRehydrated:
				g.Archived[f.Job] = store.ArchivedRow{}
			}
		}
	}
	for job, what := range said {
		if !submits(r, job) {
			g.add(job, r.Seq, what)
		}
	}
	return nil
}

// submits reports whether the event is the submission of the job. Who reads a job knows
// that event, and most jobs in a long queue have no other.
func submits(r store.Record, job string) bool {
	_, body, _ := bytes.Cut(r.Event, []byte(`,"body":`)) // in a text before it the quotes have a backslash
	return r.Kind == (state.JobSubmitted{}).Kind() && bytes.HasPrefix(body, []byte(`{"job":"`+job+`"`))
}

// attemptIn is the attempt whose program has progressed.
func attemptIn(r store.Record) (string, error) {
	var e struct {
		Body struct {
			Attempt string `json:"attempt"`
		} `json:"body"`
	}
	if err := json.Unmarshal(r.Event, &e); err != nil {
		return "", fmt.Errorf("read event %d: %w", r.Seq, err)
	}
	return e.Body.Attempt, nil
}

// errTorn says that a row was changed by somebody else.
var errTorn = errors.New("its row in the view of the log cannot be read: stop the server, delete view.db or empty " +
	"view_mark, and start it again")

// numbers are those of a job's events that say some of what, without repetition.
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

// Job is a job whose events are asked for.
type Job struct {
	ID        string
	Submitted uint64 // event of its submission
	UpTo      uint64 // event up to which the reader has seen the log
}

// Events calls f with each event up to one that the reader has seen, and perhaps later
// ones, that says some of what about the job, and with its submission, in the order of the log.
// Samples that were dropped are left out.
func (v *View) Events(ctx context.Context, j Job, what What, f func(store.Record) error) error {
	if err := v.Wait(ctx, j.UpTo); err != nil {
		return err
	}
	row, err := v.log.JobEvents(ctx, j.ID)
	if err != nil {
		return err
	}
	list, err := numbers(row, what)
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
