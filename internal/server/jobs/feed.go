package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/identity"
)

// feed is what is sent to those who watch all jobs. The log is read, and each job
// is written as JSON, once for all of them; whoever comes by brings it up to date.
type feed struct {
	d *Desk

	mu      sync.Mutex
	begun   bool
	seq     uint64  // of the last event that is in the entries
	first   uint64  // place of entries[0]
	entries []entry // what changed, oldest first
	newest  map[string]uint64
	drawn   map[string]drawing
	beaten  time.Time           // when progress was looked at
	turn    string              // the job that was looked at last
	shown   map[string]progress // by live job: what was seen of its progress
}

// entry is a change of a job.
type entry struct {
	job string
	seq uint64 // of the event; 0: only its progress
}

// drawing is a job as it is sent.
type drawing struct {
	place uint64 // it shows all entries before this one
	team  string
	text  []byte
}

type progress struct {
	step    int64
	metrics map[string]float64
}

const (
	// feedLength is how many changes are kept for watchers that lag; who lags more
	// reads the log.
	feedLength = 8192
	// beatsASecond is how many jobs' progress is sent in a second. Of more live jobs
	// each has its turn.
	beatsASecond = 500
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
	if now.Sub(f.beaten) >= time.Second {
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

// draw returns the job as it is sent.
func (f *feed) draw(id string) (drawing, bool) {
	d, known := f.drawn[id]
	if known && d.place >= f.newest[id] {
		return d, d.text != nil
	}
	place := f.end()
	v, ok := f.d.find(id)
	d = drawing{place: place, team: v.Team}
	if ok {
		if b, err := json.Marshal(v); err == nil {
			d.text = append(append([]byte("event: job\ndata: "), b...), "\n\n"...)
		}
	}
	f.drawn[id] = d
	return d, d.text != nil
}

// watcher is one who reads the feed.
type watcher struct {
	caller identity.Caller
	place  uint64 // in the feed
	seq    uint64 // all events up to it were sent
}

// next appends to out what the watcher has not got yet. behind is true where the
// feed has forgotten some of it: it goes on from the log then, and at the feed's end.
func (f *feed) next(ctx context.Context, w *watcher, out []byte) (_ []byte, behind bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.update(ctx, time.Now()); err != nil {
		return out, false, err
	}
	if w.place < f.first {
		return out, true, nil
	}
	from := len(out)
	last := from
	for i := w.place; i < f.end(); i++ {
		e := f.entries[i-f.first]
		if f.newest[e.job] != i+1 {
			continue // it comes once, with its newest change
		}
		if d, ok := f.draw(e.job); ok && w.caller.Role(d.team) >= identity.Viewer {
			last = len(out)
			out = append(out, d.text...)
		}
	}
	if w.place = f.end(); len(out) > from && f.seq > w.seq { // the id counts what was sent whole
		w.seq = f.seq
		mark := fmt.Appendf(nil, "id: %d\n", f.seq)
		out = append(out, mark...)
		copy(out[last+len(mark):], out[last:])
		copy(out[last:], mark)
	}
	return out, false, nil
}

// join places the watcher at the feed's end and returns up to which event it has to read the log.
func (f *feed) join(ctx context.Context, w *watcher) (upTo uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.update(ctx, time.Now())
	w.place = f.end()
	return f.seq, err
}
