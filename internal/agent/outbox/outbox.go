// Package outbox stores an agent's messages to its server on disk, in order and once each, until
// the server has them.
package outbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"scrimp/internal/agent/progress"
	"scrimp/internal/lib/durable"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Box is the queue of messages to the server. It numbers messages from 1, keeps them on disk until
// the server has them, and sends them again with the same number until the server acknowledges
// them. The server applies each number once.
//
// While earlier progress or usage is on its way, the box merges newer reports into one, so that a
// server that is unreachable for hours costs no memory. It keeps every value of the objective
// metric, on disk from the moment it is reported: at most ten a second for as long as the agent
// waits for the server.
type Box struct {
	mu      sync.Mutex
	file    *os.File
	path    string
	attempt string
	seq     int64         // number of the last queued message
	acked   int64         // highest number that the server has made durable
	heard   int64         // highest number that the server has; messages above acked stay, and may be sent again
	queue   []api.Message // messages above acked, in order
	step    *held[api.Step]
	values  []api.Value // values of the objective metric that are in no message yet
	usage   *held[api.Usage]
	torn    bool          // the file lacks a part of the queue, because the disk was full
	whole   int64         // size of the file when it was last rewritten
	Urgent  chan struct{} // receives a value when something should be sent at once
}

type held[T any] struct {
	at    time.Time
	value T
}

// Limits on messages per report, values per message, and values per report, which stops adding
// messages beyond that. They keep a report below the server's size limit.
const (
	maxReport       = 64
	maxValues       = 1000
	maxReportValues = 4 * maxValues
)

// minRewrite is the size below which Ack does not rewrite the file.
const minRewrite = 1 << 20

// line is one line of the file: a message, a value, or an acknowledgement. The values of a message
// are the first value lines before it that no earlier message contains.
type line struct {
	Attempt string       `json:"attempt,omitempty"`
	Message *api.Message `json:"message,omitempty"`
	Value   *api.Value   `json:"value,omitempty"`
	Ack     int64        `json:"ack,omitempty"`
}

// Open opens the outbox of this attempt in folder dir, or creates it.
func Open(dir, attempt string) (*Box, error) {
	o := &Box{path: filepath.Join(dir, "outbox.jsonl"), attempt: attempt, Urgent: make(chan struct{}, 1)}
	old, err := os.ReadFile(o.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	o.replay(old)
	if err := o.rewrite(); err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	return o, nil
}

// replay reads the lines of a previous agent. A crash may leave a torn last line, whose message was never sent.
func (o *Box) replay(old []byte) {
	mine := false
	in := bufio.NewScanner(bytes.NewReader(old))
	in.Buffer(nil, len(old)+1)
	for in.Scan() {
		var l line
		if json.Unmarshal(in.Bytes(), &l) != nil {
			return
		}
		if l.Attempt != "" {
			mine = l.Attempt == o.attempt
		}
		if !mine {
			continue
		}
		if l.Message != nil {
			o.seq = l.Message.Seq
			o.queue = append(o.queue, *l.Message)
			if s := l.Message.Step; s != nil {
				o.values = o.values[min(len(s.Values), len(o.values)):]
			}
		}
		if l.Value != nil {
			o.values = append(o.values, *l.Value)
		}
		if l.Ack > 0 {
			o.drop(l.Ack)
		}
	}
}

// rewrite replaces the file by one that contains only the present state.
func (o *Box) rewrite() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	lines := []line{{Attempt: o.attempt}}
	if o.acked > 0 {
		lines = append(lines, line{Ack: o.acked})
	}
	for i := range o.queue {
		lines = append(lines, line{Message: &o.queue[i]})
	}
	for i := range o.values {
		lines = append(lines, line{Value: &o.values[i]})
	}
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	if err := durable.Replace(o.path, b.Bytes()); err != nil {
		return err
	}
	f, err := os.OpenFile(o.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if o.file != nil {
		_ = o.file.Close() // replaced by the new file
	}
	o.file, o.whole = f, int64(b.Len())
	return nil
}

// Close closes the file and keeps its content.
func (o *Box) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.Close()
}

// Add queues a message that must arrive, and requests a report at once. Earlier progress precedes
// it. A full disk does not prevent the box from sending the message.
func (o *Box) Add(m api.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(m.Ended != nil)
	err := o.push(m, true)
	o.Wake()
	return err
}

// Wake requests a report at once.
func (o *Box) Wake() {
	select {
	case o.Urgent <- struct{}{}:
	default:
	}
}

func (o *Box) push(m api.Message, sync bool) error {
	o.seq++
	m.Seq = o.seq
	m.At = m.At.UTC()
	limits.Clip(&m) // a program's texts may have any length
	o.queue = append(o.queue, m)
	if err := o.write(line{Message: &m}, sync); err != nil {
		return fmt.Errorf("queue message %d: %w", m.Seq, err)
	}
	return nil
}

// write appends a line. On a full disk the file may end within a line; the next write then rewrites
// the whole file, or fails as well.
func (o *Box) write(l line, sync bool) error {
	if o.torn {
		err := o.rewrite()
		o.torn = err != nil
		return err
	}
	b, err := json.Marshal(l)
	if err == nil {
		_, err = o.file.Write(append(b, '\n'))
	}
	if err == nil && sync {
		err = o.file.Sync()
	}
	o.torn = err != nil
	return err
}

// Step stores progress for the next report, and its value of the objective metric, if any. A metric
// that was broken stays marked until it is sent, even if it is a number again.
func (o *Box) Step(at time.Time, s api.Step, value *api.Value) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var before api.Step
	if o.step != nil {
		before = o.step.value
	}
	s = progress.Merge(before, s)
	o.step = &held[api.Step]{at, s}
	if value != nil {
		v := *value
		v.At = v.At.UTC()
		o.values = append(o.values, v)
		_ = o.write(line{Value: &v}, false) // it is sent from memory anyway
	}
}

// Usage stores a measurement for the next report.
func (o *Box) Usage(at time.Time, u api.Usage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.usage != nil { // amounts add up, levels are replaced
		u.DiskRead += o.usage.value.DiskRead
		u.DiskWrite += o.usage.value.DiskWrite
		if u.GPU == nil || o.usage.value.GPU != nil && *o.usage.value.GPU > *u.GPU {
			u.GPU = o.usage.value.GPU
		}
	}
	o.usage = &held[api.Usage]{at, u}
}

// release queues the stored progress and usage if no earlier message of the kind is on its way;
// with always, in any case.
func (o *Box) release(always bool) {
	waits := func(is func(*api.Message) bool) bool {
		return !always && slices.ContainsFunc(o.queue, func(m api.Message) bool { return m.Seq > o.heard && is(&m) })
	}
	if (o.step != nil || len(o.values) > 0) && !waits(func(m *api.Message) bool { return m.Step != nil }) {
		o.pushStep()
	}
	if o.usage != nil && !waits(func(m *api.Message) bool { return m.Usage != nil }) {
		h := o.usage
		o.usage = nil
		_ = o.push(api.Message{At: h.at, Usage: &h.value}, false) // it is sent from memory anyway
	}
}

// pushStep queues the stored progress with all values.
func (o *Box) pushStep() {
	for len(o.values) > 0 {
		values := o.values[:min(len(o.values), maxValues)]
		o.values = o.values[len(values):]
		last := values[len(values)-1]
		m := api.Message{At: last.At, Step: &api.Step{Step: last.Step, Epoch: last.Epoch}}
		if len(o.values) == 0 && o.step != nil {
			m.At, m.Step, o.step = o.step.at, &o.step.value, nil
		}
		m.Step.Values = values
		_ = o.push(m, false) // it is sent from memory anyway
	}
	if h := o.step; h != nil {
		o.step = nil
		_ = o.push(api.Message{At: h.at, Step: &h.value}, false) // as above
	}
	o.values = nil
}

// First returns the number of the first message that the box keeps, or will queue next.
func (o *Box) First() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acked + 1
}

// Next returns the messages of the next report, in order.
func (o *Box) Next() (list []api.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(false)
	values := 0
	for i := range o.queue {
		if o.queue[i].Seq <= o.heard {
			continue
		}
		if len(list) == maxReport || values >= maxReportValues {
			break
		}
		if s := o.queue[i].Step; s != nil {
			values += len(s.Values)
		}
		list = append(list, o.queue[i])
	}
	return list
}

// Ack drops the messages up to seq, which the server has made durable, and stops sending those up
// to heard, unless the server reports a lower number later. more reports that the server took some
// and others wait.
func (o *Box) Ack(seq, heard int64) (more bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq > o.seq {
		return false, fmt.Errorf("the server acknowledges message %d, but the last one is %d", seq, o.seq)
	}
	before := max(o.heard, o.acked)
	o.heard = min(max(heard, seq, o.acked), o.seq)
	more = o.heard > before && o.seq > o.heard
	if seq <= o.acked {
		return more, nil
	}
	o.drop(seq)
	if at, err := o.file.Seek(0, 2); err != nil || at > max(minRewrite, 2*o.whole) {
		return more, o.rewrite()
	}
	return more, o.write(line{Ack: seq}, false)
}

func (o *Box) drop(seq int64) {
	o.acked = max(o.acked, seq)
	o.seq = max(o.seq, seq)
	o.queue = slices.DeleteFunc(o.queue, func(m api.Message) bool { return m.Seq <= seq })
}

// Heard reports whether the server has received every queued message.
func (o *Box) Heard() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.heard >= o.seq
}

// Empty reports whether the server has made everything durable.
func (o *Box) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) == 0 && o.step == nil && len(o.values) == 0
}
