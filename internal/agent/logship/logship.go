// Package logship copies a program's output to the server, by offset, with its
// secrets masked.
package logship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"scrimp/internal/agent/wire"
)

// Server is what takes the log. See wire.Server.
type Server interface {
	LogEnd(ctx context.Context, attempt string) (int64, error)
	Logs(ctx context.Context, attempt string, offset int64, chunk []byte) (int64, error)
}

// Shipper copies the program's output from its file to the server. The file is
// the buffer: the program writes to it directly and never waits for anybody.
type Shipper struct {
	Poll    time.Duration // how often the file is polled; New sets pollLogs
	path    string
	attempt string
	server  Server
	mask    Masker
	log     *slog.Logger
	wake    chan struct{} // has a value when something is to be polled now
	caught  func()        // called when the log is final and all of it was sent
	final   atomic.Bool   // nothing is written any more
	sent    atomic.Int64  // bytes that the server said it has
	every   atomic.Int64  // pause between polls, where the server wants a longer one
	limits  limits
	cuts    *cuts
	fixed   bool        // the file system gives nothing back
	lost    atomic.Bool // the server said later that it has less
	full    atomic.Bool // the server had no room the last time, and has not taken all since
}

// New ships the file at path. It calls caught each time the log is finished and
// all of it was sent.
func New(path, attempt string, server Server, mask Masker, log *slog.Logger, caught func()) *Shipper {
	c, err := openCuts(path + ".cuts")
	if err != nil {
		log.Error("read what was left out of the log before; its text may be mixed up", "error", err)
	}
	return &Shipper{path: path, attempt: attempt, server: server, mask: mask, log: log, caught: caught,
		Poll: pollLogs, wake: make(chan struct{}, 1), cuts: c, limits: standardLimits}
}

// Sent is how many bytes the server said it has.
func (s *Shipper) Sent() int64 { return s.sent.Load() }

// Every sets the pause between two polls of the file; Poll at least.
func (s *Shipper) Every(d time.Duration) { s.every.Store(int64(d)) }

const (
	maxChunk = 256 << 10
	pollLogs = 500 * time.Millisecond // how often the file is polled
	logError = 5 * time.Second        // longest pause after an error
)

// limits bound what waits on the machine of a program that prints faster than
// its output is taken. All are bytes.
type limits struct {
	backlog int64 // that waits at most; beyond it the middle is left out
	tail    int64 // of the newest that is kept then
	spare   int64 // of what was sent that stays on the disk, for a server that loses it
}

var standardLimits = limits{backlog: 64 << 20, tail: 1 << 20, spare: 64 << 20}

// Run ships until ctx is done. Errors are tried again for ever: the log waits in
// its file meanwhile.
func (s *Shipper) Run(ctx context.Context) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0) // to give back what was sent
	if err != nil {
		s.log.Error("open log", "error", err)
		return
	}
	defer func() { _ = f.Close() }() // it was read
	offset, pause := int64(-1), s.Poll
	for {
		final := s.final.Load() // before the size is read, or the last bytes could be missed
		if s.lost.Swap(false) {
			offset = -1
		}
		if offset < 0 && s.sent.Load() > 0 { // the server is away, and the program prints on
			if err := s.bound(f, max(s.sent.Load()+maxChunk, s.cuts.last()), false); err != nil {
				s.log.Error("keep the output from filling the disk", "error", err)
			}
		}
		more, err := s.round(ctx, f, &offset, final)
		if err == nil && more {
			continue
		}
		if errors.Is(err, wire.ErrFenced) {
			s.log.Error("ship log", "error", err)
			return
		}
		pause = s.rest(err, pause, &offset, final)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// rest is how long to wait after a round, pause after the one before. Where the server
// did not answer it is asked next where it stands.
func (s *Shipper) rest(err error, pause time.Duration, offset *int64, final bool) time.Duration {
	if later, ok := errors.AsType[*wire.LaterError](err); ok { // it knows where it stands, and when to go on
		if later.Full {
			s.full.Store(true)
		}
		return min(max(later.After, 100*time.Millisecond), logError)
	}
	if err != nil {
		*offset = -1
		return min(2*pause, logError)
	}
	s.full.Store(false)
	if final {
		s.caught()
		return logError
	}
	return max(s.Poll, time.Duration(s.every.Load()))
}

// Full reports whether the server has said that it has no room, and may not have all since.
func (s *Shipper) Full() bool { return s.full.Load() }

// Finish says that nothing is written any more. It is called once.
func (s *Shipper) Finish() {
	s.final.Store(true)
	s.poll()
}

func (s *Shipper) poll() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Has takes what the server says it has, where it had said before that it has sent bytes.
func (s *Shipper) Has(end, sent int64) {
	if end < sent && end > 0 { // 0 is a server that does not say
		s.lost.Store(true)
		s.poll()
	}
}

// round sends one chunk. more says that the next can follow at once.
func (s *Shipper) round(ctx context.Context, f *os.File, offset *int64, final bool) (more bool, err error) {
	if *offset < 0 {
		end, err := s.server.LogEnd(ctx, s.attempt)
		if err != nil {
			return false, err
		}
		*offset = end
		s.sent.Store(end)
	}
	if err := s.bound(f, *offset, true); err != nil {
		return false, err
	}
	line, place, most := s.cuts.find(*offset)
	chunk, more := []byte(line), true
	if line == "" {
		if chunk, more, err = s.chunk(f, place, most, final); err != nil || len(chunk) == 0 {
			return false, err
		}
	}
	end, err := s.server.Logs(ctx, s.attempt, *offset, chunk)
	if err != nil {
		return false, err
	}
	if end < *offset {
		s.log.Warn("the server lost a part of the log; it is sent again", "from", end, "to", *offset)
	}
	more = more || end < *offset+int64(len(chunk))
	*offset = end
	s.sent.Store(end)
	return more, nil
}

// bound leaves out the middle of what waits where that is too much, and gives
// back to the disk what was sent long ago. offset is a place in the log: where the
// server's end is, or, where nobody says that it has them, after what was sent.
func (s *Shipper) bound(f *os.File, offset int64, has bool) error {
	line, place, most := s.cuts.find(offset)
	size, gone := SizeOf(s.path), s.cuts.given()
	if line != "" || most >= 0 && (place >= gone || !has) { // at a cut, or before one that was made already
		return nil
	}
	to, why := int64(0), ""
	switch {
	case place < gone: // the server has lost what is no longer here, and what was cut after it
		to, why = max(gone, s.cuts.from()), "the server lost them, and the machine has them no more"
	case size-place > s.limits.backlog:
		to, why = size-s.limits.tail, "the program prints faster than its output is kept"
	case !has: // what stands before it may not be sent yet
		return nil
	default:
		return s.give(f, place)
	}
	block := make([]byte, 64<<10)
	n, err := f.ReadAt(block, to)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log at %d: %w", to, err)
	}
	to = wholeLine(block[:n], to)
	var before [1]byte
	if place > 0 {
		_, _ = f.ReadAt(before[:], place-1) // what cannot be read is no end of a line
	}
	if err := s.cuts.leaveOut(offset, place, to, why, time.Now(), place == 0 || before[0] == '\n'); err != nil {
		return fmt.Errorf("leave out a part of the log: %w", err)
	}
	s.log.Warn("a part of the output is left out", "bytes", to-place, "why", why)
	if from, to := (place+1<<16-1)&^(1<<16-1), (to-1<<16)&^(1<<16-1); from < to && !s.fixed && place >= gone {
		s.fixed = punch(f, from, to) != nil
	}
	return nil
}

// give gives back to the disk what was sent before place, but for what is spare.
// Where the file system cannot do that it stays.
func (s *Shipper) give(f *os.File, place int64) error {
	gone := s.cuts.given()
	to := (place - s.limits.spare) &^ (1<<16 - 1)
	if s.fixed || to-gone < s.limits.spare/4 {
		return nil
	}
	if err := punch(f, gone, to); err != nil {
		s.fixed = true
		s.log.Info("output that was sent stays on the machine's disk", "error", err)
		return nil
	}
	return s.cuts.give(to)
}

// chunk reads and masks what comes next at a place of the file, at most so many
// bytes; most < 0 is no limit. Bytes that may be the beginning of a secret wait
// until it is clear, or until the log is final.
func (s *Shipper) chunk(f *os.File, offset, most int64, final bool) (chunk []byte, more bool, err error) {
	reach := int64(s.mask.reach())
	before := min(reach, offset)
	window := make([]byte, before+maxChunk+reach)
	n, err := f.ReadAt(window, offset-before)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("read log at %d: %w", offset, err)
	}
	if int64(n) <= before {
		return nil, false, nil
	}
	end := int64(n)
	switch {
	case end == int64(len(window)):
		end = before + maxChunk
		more = true
	case !final:
		end = max(before, end-int64(s.mask.pending(window[:n])))
	}
	if most >= 0 && end-before > most { // a cut follows
		end, more = before+most, true
	}
	return s.mask.Mask(window[:n])[before:end], more, nil
}

// Size is how long the log is: what the program has written, but for what was
// left out.
func (s *Shipper) Size() int64 { return s.cuts.end(SizeOf(s.path)) }

// SizeOf is the size of a file, 0 where it is not there.
func SizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}
