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

// feed holds the changes for clients that watch all jobs. It reads which jobs the events concern, and encodes each job
// as JSON, once for all watchers. Each reader updates it first.
type feed struct {
	d *Service

	mu       sync.Mutex
	begun    bool
	seq      uint64  // of the last event in entries
	first    uint64  // position of entries[0]
	entries  []entry // changes, oldest first
	newest   map[string]uint64
	drawn    map[string]drawing
	drawings uint64              // number of JSON encodings of jobs
	beaten   time.Time           // time of the last look at progress
	turn     string              // the last job looked at
	shown    map[string]progress // the progress last sent, by live job
}

// entry is a change of a job.
type entry struct {
	job string
	seq uint64 // of the event; 0: a change of progress only
}

// drawing is the encoded form of a job.
type drawing struct {
	place  uint64 // covers all entries before this position
	at     time.Time
	number uint64 // sequence number of the encoding
	team   string
	text   []byte // JSON; nil: no such job
	closed bool
}

type progress struct {
	step    int64
	metrics map[string]float64
}

const (
	// feedLength bounds the changes kept for slow watchers; slower ones read the log.
	feedLength = 8192
	// mostDrawn bounds the jobs whose encoding is kept.
	mostDrawn = 2 * feedLength
	// beatEvery is the interval between looks at progress without events.
	beatEvery = time.Second
	// beatsASecond bounds the jobs whose progress is sent in a second. More live jobs take turns.
	beatsASecond = 500
	// chunk is the approximate number of bytes sent to a watcher at once.
	chunk = 64 << 10
)

func newFeed(d *Service) *feed {
	return &feed{d: d, newest: map[string]uint64{}, drawn: map[string]drawing{}, shown: map[string]progress{}}
}

func (f *feed) end() uint64 { return f.first + uint64(len(f.entries)) }

func (f *feed) add(job string, seq uint64) {
	f.entries = append(f.entries, entry{job, seq})
	f.newest[job] = f.end()
}

// update reads the new events of the log, and progress without events. The caller holds the lock.
func (f *feed) update(ctx context.Context, now time.Time) error {
	if !f.begun {
		f.begun, f.seq = true, f.d.Control.Durable()
	}
	for end := f.d.Control.Durable(); f.seq < end; {
		jobs, last, err := f.d.View.Touched(ctx, f.seq, end)
		if err != nil {
			return err
		}
		for _, id := range jobs {
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

// beat adds the jobs whose progress changed without an event.
func (f *feed) beat() {
	type live struct{ job, attempt string }
	var list []live
	f.d.Control.ReadUncommitted(func(m *core.Machine) {
		for _, a := range m.Live() { // in order of name
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

// draw returns the encoded job. If the job is live, the encoding is younger than age; 0 means any age.
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
		d.text, _ = json.Marshal(v) // marshaling api.Job cannot fail
	}
	if len(f.drawn) >= mostDrawn {
		clear(f.drawn)
	}
	f.drawn[id] = d
	return d, d.text != nil
}

// one returns a job as all its watchers get it, with progress at most a second old.
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

// drawJobs appends jobs that the watcher may see to out, up to a chunk. It returns the jobs that are left, and where in
// out the last event starts.
func (f *feed) drawJobs(w *watcher, jobs []string, out []byte) (_ []byte, left []string, last int) {
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

// withEventID returns out with seq, the last event that it covers, as the id of the event that starts at last.
func withEventID(out []byte, last int, seq uint64) []byte {
	if len(out) == 0 {
		return out
	}
	return slices.Insert(out, last, fmt.Appendf(nil, "id: %d\n", seq)...)
}

// event appends the job as a server-sent event.
func (d *drawing) event(out []byte) []byte {
	return append(append(append(out, "event: job\ndata: "...), d.text...), "\n\n"...)
}

// Drawn returns the number of JSON encodings of jobs for watchers. It does not grow with the number of watchers.
func (d *Service) Drawn() uint64 {
	d.feed.mu.Lock()
	defer d.feed.mu.Unlock()
	return d.feed.drawings
}

// watcher is a reader of the feed.
type watcher struct {
	caller identity.Caller
	place  uint64 // position in the feed
	seq    uint64 // it has all events up to this one
	more   bool   // the feed holds more
}

// errBehind means that the feed has dropped changes that a watcher lacks. The watcher continues from the log, and
// then from the feed's end.
var errBehind = errors.New("the watcher is behind the feed")

// next appends what the watcher lacks to out, up to a chunk.
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
			continue // send it once, with its newest change
		}
		if d, ok := f.draw(e.job, now, 0); ok && w.caller.Role(d.team) >= identity.Viewer {
			last, out = len(out), d.event(out)
		}
	}
	if w.more = w.place < f.end(); w.more {
		return out, nil
	}
	if len(out) > from && f.seq > w.seq {
		w.seq, out = f.seq, withEventID(out, last, f.seq)
	}
	return out, nil
}

// join moves the watcher to the feed's end and returns the event up to which it must read the log.
func (f *feed) join(ctx context.Context, w *watcher) (upTo uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.update(ctx, time.Now())
	w.place = f.end()
	return f.seq, err
}
