// Package notices remembers what became of each report of a job, or of an alert about anomalies, for each receiver.
// Each has an append-only file: a line for each try. The newest line of a receiver and an event holds, so that a server
// that starts repeats no report that was delivered, and goes on with the tries of the others.
package notices

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/durable"
)

// folder holds the files, one for each job and each alert.
const folder = "notices"

// Bounds on a file. Beyond mostBytes the newest lines of mostNotices notices replace it.
const (
	mostBytes   = 256 << 10
	mostNotices = 200
)

// Past is what became of the reports. Its methods may be called concurrently.
type Past struct {
	Dir string // the data folder

	mu   sync.Mutex
	open map[string]client.Notice // reports that have not ended, by job, event and receiver
	busy map[string]bool          // reports that are being made, by the same
}

// line is a line of a file.
type line struct {
	Key   string    `json:"key"`   // of the event: the same at each try
	First time.Time `json:"first"` // of the first try
	client.Notice
}

// Entry is a notice with the key of its event.
type Entry struct {
	Key    string
	First  time.Time // of the first try; zero: there was none
	Notice client.Notice
}

// name identifies the report of an event to a receiver.
func name(key string, n *client.Notice) string {
	return strings.Join([]string{fileOf(n), key, n.By, n.To}, "\n")
}

// alertPrefix begins the name of the file of an alert about anomalies. Names of jobs contain no spaces.
const alertPrefix = "alert "

// fileOf returns the name of the file of a notice.
func fileOf(n *client.Notice) string {
	if n.Alert != "" {
		return alertPrefix + n.Alert
	}
	return n.Job
}

// Begin returns what became so far of the report of an event to a receiver, and claims it until done is called. It
// returns false if another caller has claimed it. n names the job, the event and the receiver.
func (p *Past) Begin(key string, n client.Notice) (e Entry, done func(), ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := name(key, &n)
	if p.busy[id] {
		return e, nil, false, nil
	}
	lines, err := p.read(fileOf(&n))
	if err != nil {
		return e, nil, false, err
	}
	e = Entry{Key: key, Notice: n}
	for _, l := range lines {
		if name(l.Key, &l.Notice) == id {
			e.First, e.Notice = l.First, l.Notice
		}
	}
	if p.busy == nil {
		p.busy, p.open = map[string]bool{}, map[string]client.Notice{}
	}
	p.busy[id] = true
	p.note(id, &e.Notice)
	return e, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.busy, id)
	}, true, nil
}

// note keeps the list of reports that have not ended.
func (p *Past) note(id string, n *client.Notice) {
	if n.State == client.Retrying || n.State == client.Waiting {
		p.open[id] = *n
		return
	}
	delete(p.open, id)
}

// Add appends the outcome of a try.
func (p *Past) Add(e Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]client.Notice{}
	}
	p.note(name(e.Key, &e.Notice), &e.Notice)
	b, err := json.Marshal(line{e.Key, cmp.Or(e.First, e.Notice.At), e.Notice})
	if err != nil {
		return err
	}
	return p.append(fileOf(&e.Notice), b)
}

// append writes a line to a job's file, and returns once it is on the disk.
func (p *Past) append(job string, b []byte) error {
	path := filepath.Join(p.Dir, folder, job)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = writeLine(f, size, b)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("record a report of %s: %w", job, err)
	}
	if size == 0 {
		return durable.Folder(filepath.Dir(path))
	}
	if size > mostBytes {
		return p.shorten(job, path)
	}
	return nil
}

// writeLine appends a line to a file of the given size. A line that a crash has cut short stays a line of its own.
func writeLine(f *os.File, size int64, b []byte) error {
	var last [1]byte
	if size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			b = append([]byte("\n"), b...)
		}
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// shorten leaves only the newest line of each report in a file.
func (p *Past) shorten(job, path string) error {
	lines, err := p.read(job)
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, l := range lines[max(0, len(lines)-mostNotices):] {
		b, err := json.Marshal(l)
		if err != nil {
			return err
		}
		all.Write(append(b, '\n'))
	}
	return durable.Replace(path, all.Bytes())
}

// read returns the newest line of each report of a job, in the order of their first lines. It skips lines that a crash
// has cut short.
func (p *Past) read(job string) (list []line, err error) {
	b, err := os.ReadFile(filepath.Join(p.Dir, folder, job))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the reports of %s: %w", job, err)
	}
	at := map[string]int{}
	for text := range bytes.Lines(b) {
		var l line
		if json.Unmarshal(text, &l) != nil || l.To == "" {
			continue
		}
		id := name(l.Key, &l.Notice)
		i, known := at[id]
		if !known {
			at[id] = len(list)
			list = append(list, l)
			continue
		}
		l.First = list[i].First
		list[i] = l
	}
	return list, nil
}

// Of returns the notices of a job, in the order of their first tries.
func (p *Past) Of(job string) (list []client.Notice, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines, err := p.read(job)
	for _, l := range lines {
		list = append(list, l.Notice)
	}
	return list, err
}

// OfAlert returns the newest notices of an alert about anomalies, in the order of their first tries.
func (p *Past) OfAlert(name string, most int) ([]client.Notice, error) {
	list, err := p.Of(alertPrefix + name)
	return list[max(0, len(list)-most):], err
}

// ForgetAlert deletes the notices of an alert.
func (p *Past) ForgetAlert(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, n := range p.open {
		if n.Alert == name {
			delete(p.open, id)
		}
	}
	err := os.Remove(filepath.Join(p.Dir, folder, alertPrefix+name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Open returns the notices of all jobs that have not ended, by the time of their next try.
func (p *Past) Open() []client.Notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]client.Notice, 0, len(p.open))
	for _, n := range p.open {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b client.Notice) int {
		return cmp.Or(next(&a).Compare(next(&b)), cmp.Compare(fileOf(&a), fileOf(&b)),
			cmp.Compare(a.Event, b.Event), cmp.Compare(a.To, b.To))
	})
	return list
}

// next returns the time of the next try; the zero time if there is none.
func next(n *client.Notice) (t time.Time) {
	if n.Next != nil {
		t = *n.Next
	}
	return t
}
