package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
)

// feed is what is sent to those who watch all jobs. The log is read, and each job
// is written as JSON, once for all of them; whoever comes by brings it up to date.
type feed struct {
	d *Desk

	mu       sync.Mutex
	begun    bool
	seq      uint64  // of the last event that is in the entries
	first    uint64  // place of entries[0]
	entries  []entry // what changed, oldest first
	newest   map[string]uint64
	drawn    map[string]drawing
	drawings uint64              // how often a job was written as JSON
	beaten   time.Time           // when progress was looked at
	turn     string              // the job that was looked at last
	shown    map[string]progress // by live job: what was seen of its progress
}

// entry is a change of a job.
type entry struct {
	job string
	seq uint64 // of the event; 0: only its progress
}

// drawing is a job as it is sent.
type drawing struct {
	place  uint64 // it shows all entries before this one
	at     time.Time
	number uint64 // of all drawings
	team   string
	text   []byte // JSON; nil: there is no such job
	closed bool
}

type progress struct {
	step    int64
	metrics map[string]float64
}

const (
	// feedLength is how many changes are kept for watchers that lag; who lags more
	// reads the log.
	feedLength = 8192
	// mostDrawn is of how many jobs it is kept how they are sent.
	mostDrawn = 2 * feedLength
	// beatEvery is between two looks at progress that is no event.
	beatEvery = time.Second
	// beatsASecond is how many jobs' progress is sent in a second. Of more live jobs
	// each has its turn.
	beatsASecond = 500
	// chunk is how many bytes a watcher is sent at once, about.
	chunk = 64 << 10
)

func newFeed(d *Desk) *feed {
	return &feed{d: d, newest: map[string]uint64{}, drawn: map[string]drawing{}, shown: map[string]progress{}}
}

func (f *feed) end() uint64 { return f.first + uint64(len(f.entries)) }

func (f *feed) add(job string, seq uint64) {
	f.entries = append(f.entries, entry{job, seq})
	f.newest[job] = f.end()
}

// update reads what is new in the log, and the progress that is no event. The caller holds the lock.
func (f *feed) update(ctx context.Context, now time.Time) error {
	if !f.begun {
		f.begun, f.seq = true, f.d.Control.Durable()
	}
	for f.seq < f.d.Control.Durable() {
		records, err := f.d.Log.WholeRecords(ctx, f.seq, 500)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			break
		}
		last := records[len(records)-1].Seq
		for _, id := range touched(records) {
			f.add(id, last)
		}
		f.seq = last
	}
	if now.Sub(f.beaten) >= beatEvery {
		f.beaten = now
		f.beat()
	}
	if over := len(f.entries) - feedLength; over > feedLength/2 {
		f.entries, f.first = append([]entry(nil), f.entries[over:]...), f.first+uint64(over)
		old := func(_ string, place uint64) bool { return place <= f.first }
		maps.DeleteFunc(f.newest, old)
		maps.DeleteFunc(f.drawn, func(job string, _ drawing) bool { return f.newest[job] == 0 })
	}
	return nil
}

// beat adds the jobs whose progress has changed without an event.
func (f *feed) beat() {
	type live struct{ job, attempt string }
	var list []live
	f.d.Control.ReadUncommitted(func(m *core.Machine) {
		for _, a := range m.Live() { // by name
			list = append(list, live{a.Job(), a.ID()})
		}
	})
	from := 0
	for from < len(list) && list[from].job <= f.turn {
		from++
	}
	sent := 0
	for i := range list {
		l := list[(from+i)%len(list)]
		word, ok := f.d.Control.Latest(l.attempt)
		if !ok || word.Step.Step == 0 {
			continue
		}
		before, known := f.shown[l.job]
		if known && before.step == word.Step.Step && maps.Equal(before.metrics, word.Step.Metrics) {
			continue
		}
		if sent == beatsASecond {
			break
		}
		f.shown[l.job], f.turn = progress{word.Step.Step, word.Step.Metrics}, l.job
		sent++
		f.add(l.job, 0)
	}
	if len(f.shown) > 2*len(list)+100 {
		living := map[string]bool{}
		for _, l := range list {
			living[l.job] = true
		}
		maps.DeleteFunc(f.shown, func(job string, _ progress) bool { return !living[job] })
	}
}

// draw returns the job as it is sent, written no longer ago than that where it lives: 0 is any time.
func (f *feed) draw(id string, now time.Time, age time.Duration) (drawing, bool) {
	d, known := f.drawn[id]
	if known && d.place >= f.newest[id] && (age == 0 || d.closed || now.Sub(d.at) < age) {
		return d, d.text != nil
	}
	place := f.end()
	v, ok := f.d.find(id)
	f.drawings++
	d = drawing{place: place, at: now, number: f.drawings, team: v.Team, closed: v.Closed}
	if ok {
		d.text, _ = json.Marshal(v) // it never fails
	}
	if len(f.drawn) >= mostDrawn {
		clear(f.drawn)
	}
	f.drawn[id] = d
	return d, d.text != nil
}

// one returns a job as it is sent to all who watch it, with the progress of the last second.
func (f *feed) one(ctx context.Context, id string) (drawing, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if err := f.update(ctx, now); err != nil {
		return drawing{}, false, err
	}
	d, ok := f.draw(id, now, beatEvery)
	return d, ok, nil
}

// those appends jobs to out as the watcher may see them, a chunk of them, and returns which are left, and where in out
// the last one begins.
func (f *feed) those(w *watcher, jobs []string, out []byte) (_ []byte, left []string, last int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for len(jobs) > 0 && len(out) < chunk {
		if d, ok := f.draw(jobs[0], now, 0); ok && w.caller.Role(d.team) >= identity.Viewer {
			last, out = len(out), d.event(out)
		}
		jobs = jobs[1:]
	}
	return out, jobs, last
}

// marked is out with the number of the event up to which all was sent, as the id of the one that begins at last.
func marked(out []byte, last int, seq uint64) []byte {
	if len(out) == 0 {
		return out
	}
	return slices.Insert(out, last, fmt.Appendf(nil, "id: %d\n", seq)...)
}

// event appends the job as a server-sent event.
func (d *drawing) event(out []byte) []byte {
	return append(append(append(out, "event: job\ndata: "...), d.text...), "\n\n"...)
}

// Drawn is how many jobs were written as JSON for those who watch. It does not grow with their number.
func (d *Desk) Drawn() uint64 {
	d.feed.mu.Lock()
	defer d.feed.mu.Unlock()
	return d.feed.drawings
}

// watcher is one who reads the feed.
type watcher struct {
	caller identity.Caller
	place  uint64 // in the feed
	seq    uint64 // all events up to it were sent
	more   bool   // there is more in the feed
}

// errBehind says that the feed has forgotten some of what a watcher has not got yet: it goes on from the log then, and
// at the feed's end.
var errBehind = errors.New("the watcher is behind the feed")

// next appends to out what the watcher has not got yet, a chunk of it.
func (f *feed) next(ctx context.Context, w *watcher, out []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if err := f.update(ctx, now); err != nil {
		return out, err
	}
	if w.place < f.first {
		return out, errBehind
	}
	from := len(out)
	last := from
	for ; w.place < f.end() && len(out)-from < chunk; w.place++ {
		e := f.entries[w.place-f.first]
		if f.newest[e.job] != w.place+1 {
			continue // it comes once, with its newest change
		}
		if d, ok := f.draw(e.job, now, 0); ok && w.caller.Role(d.team) >= identity.Viewer {
			last, out = len(out), d.event(out)
		}
	}
	if w.more = w.place < f.end(); w.more {
		return out, nil
	}
	if len(out) > from && f.seq > w.seq {
		w.seq, out = f.seq, marked(out, last, f.seq)
	}
	return out, nil
}

// join places the watcher at the feed's end and returns up to which event it has to read the log.
func (f *feed) join(ctx context.Context, w *watcher) (upTo uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.update(ctx, time.Now())
	w.place = f.end()
	return f.seq, err
}
