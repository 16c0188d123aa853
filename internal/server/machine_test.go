package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
)

// How often a machine of the crowd reports. The first three intervals are the agent's own; programs decide the
// others.
const (
	lookLogs  = 500 * time.Millisecond // how often the agent reads the program's output
	lookUsage = 5 * time.Second        // and its resource usage
	lookStep  = 100 * time.Millisecond // a program is quicker than that
	saveEvery = 30 * time.Second
	lineEvery = time.Second
)

// machine is a working agent of the crowd. As in package agent, progress and usage wait for the next report;
// anything else is sent at once.
type machine struct {
	*crowd
	a      api.Assignment
	conn   *wire.HTTP
	began  time.Time
	urgent chan struct{}
	every  atomic.Int64 // pause between reports, as requested by the server

	mu    sync.Mutex
	seq   int64
	queue []api.Message
	size  int64 // of the output
}

func (m *machine) add(msg api.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.push(msg)
	select {
	case m.urgent <- struct{}{}:
	default:
	}
}

func (m *machine) push(msg api.Message) {
	m.seq++
	msg.Seq, msg.At = m.seq, time.Now().UTC()
	m.queue = append(m.queue, msg)
}

// report sends the queue until ctx is done or the server wants no more.
func (m *machine) report(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	used := time.Now()
	saved := time.Now().Add(-time.Duration(m.began.UnixNano() % int64(saveEvery))) // each at its own time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-m.urgent:
		}
		kind := "report"
		m.mu.Lock()
		if len(m.queue) == 0 || m.queue[len(m.queue)-1].Step == nil {
			// The step encodes its time, so that a watcher knows its age.
			m.push(api.Message{Step: &api.Step{Step: time.Since(m.crowd.began).Milliseconds(),
				Metrics: map[string]float64{"loss": 1 / (1 + time.Since(m.began).Seconds()), "lr": 3e-4}}})
		}
		if time.Since(used) > lookUsage {
			used = time.Now()
			m.push(api.Message{Usage: &api.Usage{CPU: 3.5, Memory: 8 << 30, Processes: 9}})
		}
		if time.Since(saved) > saveEvery {
			saved, kind = time.Now(), "save"
			m.push(api.Message{Saved: &api.Saved{Manifest: fmt.Sprintf("%s/%012d", m.a.Attempt, m.seq),
				Step: time.Since(m.crowd.began).Milliseconds(), Bytes: 1 << 30, Uploaded: 1 << 28, Captured: time.Now().UTC(),
				Took: time.Second}})
		}
		r := api.Report{Attempt: m.a.Attempt, Now: time.Now().UTC(), Messages: m.queue[:min(len(m.queue), 500)],
			LogEnd: m.size}
		m.mu.Unlock()
		var o api.Orders
		err := m.timed(ctx, kind, func() (err error) { o, err = m.conn.Report(ctx, r); return err })
		switch {
		case errors.Is(err, wire.ErrFenced) || o.Fenced || o.Off:
			return
		case err != nil:
			timer.Reset(200 * time.Millisecond)
			continue
		}
		if o.Report > 0 {
			m.every.Store(int64(o.Report))
		}
		m.mu.Lock()
		for len(m.queue) > 0 && m.queue[0].Seq <= o.Ack {
			m.queue = m.queue[1:]
		}
		m.mu.Unlock()
		timer.Reset(time.Duration(m.every.Load()))
	}
}

// logs sends a line of output per second.
func (m *machine) logs(ctx context.Context) {
	offset, printed := int64(0), time.Now()
	for wait.For(ctx, max(lookLogs, time.Duration(m.every.Load()))) == nil {
		var chunk []byte
		for ; time.Since(printed) >= lineEvery; printed = printed.Add(lineEvery) {
			chunk = fmt.Appendf(chunk, "%s step %d: loss 0.12345678, learning rate 0.0003, 123456 tokens a second\n",
				printed.UTC().Format(time.RFC3339Nano), time.Since(m.crowd.began).Milliseconds())
		}
		if len(chunk) == 0 {
			continue
		}
		m.mu.Lock()
		m.size = offset + int64(len(chunk))
		m.mu.Unlock()
		for wait.For(ctx, 0) == nil {
			var end int64
			err := m.timed(ctx, "log", func() (err error) {
				end, err = m.conn.Logs(ctx, m.a.Attempt, offset, chunk)
				return err
			})
			if errors.Is(err, wire.ErrFenced) {
				return
			}
			if err == nil {
				offset = end
				break
			}
			_ = wait.For(ctx, time.Second)
		}
	}
}
