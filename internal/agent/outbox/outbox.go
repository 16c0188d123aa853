// Package outbox holds what an agent has to say to its server until the server has it: on disk, in order, each once.
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
	"scrimp/internal/wire/bound"
)

// Box is the queue of what the agent has to say. Messages are numbered from
// 1, kept on disk until the server has them, and sent again with the same
// number until it says so; the server applies each number once.
//
// Progress and measurements are held back, newest only, while an earlier one is
// still on its way, so that a server that is away for hours costs no memory. The values
// of what the job is judged by are kept one and all, on disk from the moment they are
// known: at most ten a second for as long as the agent waits for a server that is silent.
type Box struct {
	mu      sync.Mutex
	file    *os.File
	path    string
	attempt string
	seq     int64         // of the last message that was queued
	acked   int64         // highest that the server has made durable
	heard   int64         // highest that it has; what is not acked is kept, and it may be sent again
	queue   []api.Message // not acked, in order
	step    *held[api.Step]
	values  []api.Value // of the metric that the job is judged by, in no message yet
	usage   *held[api.Usage]
	torn    bool          // the file lacks something of the queue, for want of room
	whole   int64         // bytes of the file when it was last written anew
	Urgent  chan struct{} // has a value while something should be sent at once
}

type held[T any] struct {
	at    time.Time
	value T
}

// How many messages one report carries, how many values one message, and after how many
// values a report takes no further message: it stays below what a server reads.
const (
	maxReport = 64
	maxValues = 1000
	fullOf    = 4 * maxValues
)

// leastFile is the size below which the file is not written anew.
const leastFile = 1 << 20

// line is one line of the outbox on disk: a message, a value, or what was acked. The
// values of a message are the first of the lines that no earlier message holds.
type line struct {
	Attempt string       `json:"attempt,omitempty"`
	Message *api.Message `json:"message,omitempty"`
	Value   *api.Value   `json:"value,omitempty"`
	Ack     int64        `json:"ack,omitempty"`
}

// Open continues the outbox of this attempt in folder dir, or begins one.
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

// replay reads the lines of an earlier agent. A torn last line is what a crash
// leaves; its message was never sent.
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

// rewrite replaces the file by one that holds what is kept only.
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
		_ = o.file.Close() // replaced; nothing in it is wanted
	}
	o.file, o.whole = f, int64(b.Len())
	return nil
}

// Close closes the file. What it holds stays.
func (o *Box) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.Close()
}

// Add queues a message that must arrive, and asks for it to be sent at once.
// Progress that was seen before it goes first. A disk that is full does not keep
// the message from being sent.
func (o *Box) Add(m api.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(m.Ended != nil)
	err := o.push(m, true)
	o.Wake()
	return err
}

// Wake asks for a report to be sent at once.
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
	bound.Clip(&m) // the program's words are as long as it likes
	o.queue = append(o.queue, m)
	if err := o.write(line{Message: &m}, sync); err != nil {
		return fmt.Errorf("queue message %d: %w", m.Seq, err)
	}
	return nil
}

// write appends a line. Where the disk is full the file may end within one; the
// next write then puts the whole queue into a new file, or fails as well.
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

// Step holds progress for the next report, and keeps the value that it says of the metric
// which the job is judged by, if any. A metric that was not a number stays marked until it
// is sent, also where it has become one again.
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
		_ = o.write(line{Value: &v}, false) // in memory it is sent all the same
	}
}

// Usage holds a measurement for the next report.
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

// release moves what is held into the queue where no earlier one is on its way, or always.
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
		_ = o.push(api.Message{At: h.at, Usage: &h.value}, false) // in memory it is sent all the same
	}
}

// pushStep queues what is held of progress, with all values.
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
		_ = o.push(m, false) // in memory it is sent all the same
	}
	if h := o.step; h != nil {
		o.step = nil
		_ = o.push(api.Message{At: h.at, Step: &h.value}, false) // likewise
	}
	o.values = nil
}

// First is the first message that is kept, or will be.
func (o *Box) First() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acked + 1
}

// Next returns what the next report carries, in order.
func (o *Box) Next() (list []api.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(false)
	values := 0
	for i := range o.queue {
		if o.queue[i].Seq <= o.heard {
			continue
		}
		if len(list) == maxReport || values >= fullOf {
			break
		}
		if s := o.queue[i].Step; s != nil {
			values += len(s.Values)
		}
		list = append(list, o.queue[i])
	}
	return list
}

// Ack drops what the server has made durable, and sends no more what it has heard, unless
// it has forgotten it. more says that it made room for others that wait.
func (o *Box) Ack(seq, heard int64) (more bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq > o.seq {
		return false, fmt.Errorf("the server acknowledges message %d, but only %d were written", seq, o.seq)
	}
	before := max(o.heard, o.acked)
	o.heard = min(max(heard, seq, o.acked), o.seq)
	more = o.heard > before && o.seq > o.heard
	if seq <= o.acked {
		return more, nil
	}
	o.drop(seq)
	if at, err := o.file.Seek(0, 2); err != nil || at > max(leastFile, 2*o.whole) {
		return more, o.rewrite()
	}
	return more, o.write(line{Ack: seq}, false)
}

func (o *Box) drop(seq int64) {
	o.acked = max(o.acked, seq)
	o.seq = max(o.seq, seq)
	o.queue = slices.DeleteFunc(o.queue, func(m api.Message) bool { return m.Seq <= seq })
}

// Heard reports whether the server has heard all that was queued.
func (o *Box) Heard() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.heard >= o.seq
}

// Empty reports whether everything that was said has arrived.
func (o *Box) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) == 0 && o.step == nil && len(o.values) == 0
}
