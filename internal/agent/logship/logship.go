// Package logship copies a program's output to the server, by offset, with secrets masked.
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

// Server receives the log. See wire.Server.
type Server interface {
	LogEnd(ctx context.Context, attempt string) (int64, error)
	Logs(ctx context.Context, attempt string, offset int64, chunk []byte) (int64, error)
}

// Shipper copies the program's output from its file to the server. The file is the buffer: the
// program writes to it directly and never waits.
type Shipper struct {
	Poll    time.Duration // how often the file is polled; New sets pollLogs
	path    string
	attempt string
	server  Server
	mask    Masker
	log     *slog.Logger
	wake    chan struct{} // receives a value when the file should be polled now
	caught  func()        // called when the log is final and all of it was sent
	final   atomic.Bool   // the program writes nothing more
	sent    atomic.Int64  // bytes that the server has, by its last answer
	every   atomic.Int64  // pause between polls, if the server asks for a longer one
	limits  limits
	cuts    *cuts
	fixed   bool        // the file system cannot punch holes
	lost    atomic.Bool // the server reported that it has less than before
	full    atomic.Bool // the server had no room at the last request and has not caught up since
}

// New returns a Shipper for the file at path. It calls caught each time the log is finished and all
// of it was sent.
func New(path, attempt string, server Server, mask Masker, log *slog.Logger, caught func()) *Shipper {
	c, err := openCuts(path + ".cuts")
	if err != nil {
		log.Error("read the cuts of the log; its text may be garbled", "error", err)
	}
	return &Shipper{path: path, attempt: attempt, server: server, mask: mask, log: log, caught: caught,
		Poll: pollLogs, wake: make(chan struct{}, 1), cuts: c, limits: standardLimits}
}

// Sent returns how many bytes the server has, by its last answer.
func (s *Shipper) Sent() int64 { return s.sent.Load() }

// Every sets the pause between two polls of the file; the minimum is Poll.
func (s *Shipper) Every(d time.Duration) { s.every.Store(int64(d)) }

const (
	maxChunk = 256 << 10
	pollLogs = 500 * time.Millisecond // pause between polls
	logError = 5 * time.Second        // longest pause after an error
)

// limits bounds the output on the machine's disk if a program prints faster than the server
// accepts. All are in bytes.
type limits struct {
	backlog int64 // largest backlog; beyond it the middle is cut out
	tail    int64 // size of the newest part that a cut keeps
	spare   int64 // size of the part already sent that stays on disk, in case the server loses it
}

var standardLimits = limits{backlog: 64 << 20, tail: 1 << 20, spare: 64 << 20}

// Run ships until ctx is done. It retries errors forever while the log waits in its file.
func (s *Shipper) Run(ctx context.Context) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0) // writable, to punch holes
	if err != nil {
		s.log.Error("open log", "error", err)
		return
	}
	defer func() { _ = f.Close() }() // only read
	offset, pause := int64(-1), s.Poll
	for {
		final := s.final.Load() // load it before the size, or the last bytes could be missed
		if s.lost.Swap(false) {
			offset = -1
		}
		if offset < 0 && s.sent.Load() > 0 { // the server is unreachable while the program prints
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

// rest returns how long to wait after a round; pause is the previous wait. After a failed request
// it makes the next round ask the server for its offset.
func (s *Shipper) rest(err error, pause time.Duration, offset *int64, final bool) time.Duration {
	if later, ok := errors.AsType[*wire.LaterError](err); ok { // the server is reachable and says when to continue
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

// Full reports whether the server had no room and may still lack a part of the log.
func (s *Shipper) Full() bool { return s.full.Load() }

// Finish declares that nothing more is written. Call it once.
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

// Has compares end, the bytes that the server has, with sent, what it had before, and resends what it lost.
func (s *Shipper) Has(end, sent int64) {
	if end < sent && end > 0 { // 0: the server does not report it
		s.lost.Store(true)
		s.poll()
	}
}

// round sends one chunk. more reports that the next can follow at once.
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
		s.log.Warn("the server lost a part of the log; sending it again", "from", end, "to", *offset)
	}
	more = more || end < *offset+int64(len(chunk))
	*offset = end
	s.sent.Store(end)
	return more, nil
}

// bound cuts the middle out of a backlog that is too long, and releases disk space of output that
// was sent long ago. offset is an offset in the log: the server's end, or, without has, the end of
// what was sent.
func (s *Shipper) bound(f *os.File, offset int64, has bool) error {
	line, place, most := s.cuts.find(offset)
	size, gone := SizeOf(s.path), s.cuts.released()
	if line != "" || most >= 0 && (place >= gone || !has) { // at a cut, or before an existing one
		return nil
	}
	to, why := int64(0), ""
	switch {
	case place < gone: // the server lost bytes that are no longer on disk, and what was cut after them
		to, why = max(gone, s.cuts.from()), "the server lost them, and the machine no longer has them"
	case size-place > s.limits.backlog:
		to, why = size-s.limits.tail, "the program prints faster than its output is kept"
	case !has: // bytes before it may not be sent yet
		return nil
	default:
		return s.release(f, place)
	}
	block := make([]byte, 64<<10)
	n, err := f.ReadAt(block, to)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log at %d: %w", to, err)
	}
	to = wholeLine(block[:n], to)
	var before [1]byte
	if place > 0 {
		_, _ = f.ReadAt(before[:], place-1) // a failed read counts as the middle of a line
	}
	if err := s.cuts.cutOut(offset, place, to, why, time.Now(), place == 0 || before[0] == '\n'); err != nil {
		return fmt.Errorf("cut out a part of the log: %w", err)
	}
	s.log.Warn("cut out a part of the output", "bytes", to-place, "why", why)
	if from, to := (place+1<<16-1)&^(1<<16-1), (to-1<<16)&^(1<<16-1); from < to && !s.fixed && place >= gone {
		s.fixed = punch(f, from, to) != nil
	}
	return nil
}

// release releases the disk space of what was sent before place, except the spare. It does nothing if
// the file system cannot punch holes.
func (s *Shipper) release(f *os.File, place int64) error {
	gone := s.cuts.released()
	to := (place - s.limits.spare) &^ (1<<16 - 1)
	if s.fixed || to-gone < s.limits.spare/4 {
		return nil
	}
	if err := punch(f, gone, to); err != nil {
		s.fixed = true
		s.log.Info("cannot release the disk space of sent output", "error", err)
		return nil
	}
	return s.cuts.release(to)
}

// chunk reads and masks the next bytes at an offset of the file, at most `most` bytes; most < 0
// means no limit. Bytes that may be the start of a secret wait until that is clear, or until the
// log is final.
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

// Size returns the length of the log: the program's output without what was cut out.
func (s *Shipper) Size() int64 { return s.cuts.end(SizeOf(s.path)) }

// SizeOf returns the size of a file, or 0 if it does not exist.
func SizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}
