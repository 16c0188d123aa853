package inbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/api"
)

// Take returns the events of the report's messages above top, in order, and the number of the last message that
// counts as heard.
func (in *Inbox) Take(l *Latest, r *api.Report, top int64, wall time.Time) (events []core.Event, next int64) {
	next = top
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, m := range r.Messages {
		if r.First > 0 && top >= 0 && m.Seq > next+1 {
			break // an earlier server heard the missing message; the agent sends it again
		}
		if top >= 0 && m.Seq > top {
			events = append(events, in.heardFrom(l, ours(m, r.Now, wall), wall)...)
		}
		next = max(next, m.Seq)
	}
	return events, next
}

// longestNotice bounds the notice that an agent may announce for its machine.
const longestNotice = time.Hour

// NotAhead sets event times that an agent's clock puts into the future to now.
func (in *Inbox) NotAhead(events []core.Event) []core.Event {
	now := in.now()
	for i := range events {
		if events[i].At.After(now) {
			events[i].At = now
		}
	}
	return events
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// MayWait reports whether a message may be buffered instead of becoming an event at once.
func MayWait(m api.Message) bool {
	return m.Step != nil && len(m.Step.Broken) == 0 || m.Usage != nil
}

// heardFrom turns a message into events; a message that may wait yields none. Buffered progress becomes an event
// before whatever follows it: the job is judged by the program's last line, and the core accepts no older message
// after a newer one. The caller holds the lock.
func (in *Inbox) heardFrom(l *Latest, m api.Message, wall time.Time) []core.Event {
	switch {
	case l.Node > 0 && (m.Step != nil || m.Saved != nil || m.Refused != nil):
		return nil // rank 0 speaks for the job
	case m.Step != nil:
		anew := m.Step.Anew && !l.Step.Anew // the total reported before no longer holds
		l.Step = *m.Step
		l.began = cmp.Or(l.began, wall)
		in.hearStep(l, m)
		if MayWait(m) && !anew {
			return nil
		}
		return in.waiting(l, m.Seq+1, wall)
	case m.Usage != nil:
		l.Usage = *m.Usage
		l.began = cmp.Or(l.began, wall)
		l.hearUsage(m, wall)
		return nil
	}
	b := in.body(l, m)
	if b == nil {
		return nil
	}
	return append(in.waiting(l, m.Seq, wall), in.said(l, m, b))
}

func (in *Inbox) said(l *Latest, m api.Message, b core.Body) core.Event {
	rank := api.Rank(l.Attempt, l.Node)
	return core.Event{At: in.Clock.ToMarket(m.At), Schema: core.Schema, Tenant: in.Tenant, Actor: "agent:" + rank,
		Key: fmt.Sprintf("%s/%d", rank, m.Seq), Body: b}
}

// committed notes that the events are durable.
func (l *Latest) committed(events []core.Event, wall time.Time) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Progressed:
			l.told = wall
		case core.NoticeGiven:
			l.noticed = true
		case core.UsageSeen:
			l.used, l.idle = wall, b.Idle()
		}
		if n := strings.LastIndexByte(e.Key, '/'); n >= 0 {
			seq, _ := strconv.ParseInt(e.Key[n+1:], 10, 64) // said writes this format
			l.said = max(l.said, seq)
		}
	}
	l.put = 0
	if l.step.Seq <= l.said { // the core accepts no older message
		l.step, l.decides = api.Message{}, false
	}
	l.values = slices.DeleteFunc(slices.Clone(l.values), func(v heard) bool { return v.message <= l.said })
	if l.usage.Seq <= l.said {
		l.usage = api.Message{}
	}
}

// body turns a message into an event body; nil if the core does not need it.
func (in *Inbox) body(l *Latest, m api.Message) core.Body {
	clock, attempt, node := in.Clock, l.Attempt, l.Node
	switch {
	case m.Started != nil:
		return core.AttemptStarted{Attempt: attempt, Node: node, Message: m.Seq, Restored: m.Started.Restored,
			Step: m.Started.Step, Took: clock.Stretch(m.Started.Took), Data: in.dataRead(m.Started.Data)}
	case m.Step != nil:
		return core.Progressed{Attempt: attempt, Message: m.Seq, Step: m.Step.Step, Total: m.Step.Total, Epoch: m.Step.Epoch,
			Anew: m.Step.Anew, Metrics: m.Step.Metrics, Broken: m.Step.Broken}
	case m.Saved != nil:
		return core.CheckpointSaved{Attempt: attempt, Message: m.Seq, Manifest: m.Saved.Manifest, Step: m.Saved.Step,
			Bytes: m.Saved.Bytes, Uploaded: m.Saved.Uploaded,
			Captured: clock.ToMarket(m.Saved.Captured), Took: clock.Stretch(m.Saved.Took), Lacks: m.Saved.Lacks}
	case m.Unsaved != nil:
		return core.CheckpointFailed{Attempt: attempt, Node: node, Message: m.Seq, Why: m.Unsaved.Why}
	case m.Refused != nil:
		return core.CheckpointRefused{Attempt: attempt, Message: m.Seq, Manifest: m.Refused.Manifest, Why: m.Refused.Why}
	case m.Noticed != nil:
		until := m.Noticed.Until
		if last := time.Now().Add(longestNotice); until.After(last) {
			until = last
		}
		return core.NoticeGiven{Attempt: attempt, Node: node, Message: m.Seq, Source: m.Noticed.Source,
			Until: earlier(clock.ToMarket(until), in.now().Add(quantity.Decade))} // an hour is long on a fast market
	case m.Usage != nil:
		return core.UsageSeen{Attempt: attempt, Node: node, Message: m.Seq, CPU: m.Usage.CPU, Memory: m.Usage.Memory,
			GPU: m.Usage.GPU, InUse: m.Usage.InUse}
	case m.Ended != nil:
		return core.AttemptEnded{Attempt: attempt, Node: node, Message: m.Seq, Reason: string(m.Ended.Reason),
			Exit: m.Ended.Exit, Step: m.Ended.Step, Saved: m.Ended.Saved, Outputs: m.Ended.Outputs, Error: m.Ended.Error,
			OutputsDigest: digestOf(m.Ended.OutputsDigest),
			SetupStatus:   m.Ended.SetupStatus, Keeping: clock.Stretch(m.Ended.Keeping), Data: in.dataRead(m.Ended.Data)}
	}
	return nil
}

// digestOf returns a SHA-256 in hexadecimal digits unchanged, and "", which means unknown, for any other text.
func digestOf(text string) string {
	if b, err := hex.DecodeString(text); err != nil || len(b) != sha256.Size {
		return ""
	}
	return text
}

// dataRead converts an agent's report about the inputs that it brought.
func (in *Inbox) dataRead(list []api.Brought) (out []core.DataRead) {
	for _, d := range list {
		out = append(out, core.DataRead{Name: d.Name, Files: d.Files, Bytes: d.Bytes, Hits: d.Hits, HitBytes: d.HitBytes,
			Fetched: d.Fetched, Requests: d.Requests, Took: in.Clock.Stretch(d.Took), Digest: digestOf(d.Digest)})
	}
	return out
}

// PutBack notes that the events that Take returned are not in the log.
func (in *Inbox) PutBack(l *Latest) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l.put = 0
}

// Commit notes that the events that Take returned are durable. It returns the last message that the agent may forget,
// and whether the agent has announced an interruption for the first time.
func (in *Inbox) Commit(l *Latest, r *api.Report, events []core.Event, top, next int64, wall time.Time) (ack int64,
	noticed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	before := l.noticed
	l.committed(events, wall)
	if top >= 0 {
		l.top = max(l.top, next)
	}
	ack = next
	if r.First > 0 && len(l.values) > 0 {
		ack = min(ack, l.values[0].message-1)
	}
	return ack, l.noticed && !before
}
