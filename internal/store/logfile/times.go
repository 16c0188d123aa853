package logfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Time is the arrival time of output: the bytes from Offset to the next entry's Offset arrived between At and At plus
// TimeSpan.
type Time struct {
	Offset int64
	At     time.Time
}

// TimeSpan is the precision of output times.
const TimeSpan = time.Second

// timeSize is the bytes of an entry in the file: offset and milliseconds.
const timeSize = 16

// timesPath returns the times file beside an output file.
func timesPath(log string) string { return strings.TrimSuffix(log, ".log") + ".times" }

// noteTime records when the output from offset arrived. It overwrites entries of output that was lost since, and an
// entry torn by a crash.
func noteTime(log string, offset int64, at time.Time) error {
	f, err := os.OpenFile(timesPath(log), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := info.Size() / timeSize * timeSize
	last, ok := lastTime(f, end)
	for ok && last.Offset >= offset {
		end -= timeSize
		last, ok = lastTime(f, end)
	}
	if ok && at.Sub(last.At) < TimeSpan && end+timeSize > info.Size() {
		return nil
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	if _, err = f.WriteAt(binary.BigEndian.AppendUint64(b, uint64(at.UnixMilli())), end); err != nil {
		return err
	}
	if info.Size() <= end+timeSize {
		return nil
	}
	return f.Truncate(end + timeSize)
}

func lastTime(f io.ReaderAt, end int64) (t Time, ok bool) {
	if end <= 0 {
		return t, false
	}
	b := make([]byte, timeSize)
	if _, err := f.ReadAt(b, end-timeSize); err != nil {
		return t, false
	}
	return readTime(b), true
}

func readTime(b []byte) Time {
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(b[8:])))
	return Time{Offset: int64(binary.BigEndian.Uint64(b)), At: at.UTC()}
}

// LogTimes implements Store.
func (s Files) LogTimes(_ context.Context, attempt string, skip int) ([]Time, error) {
	path, err := s.logPath(attempt)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(timesPath(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read times of the log of %s: %w", attempt, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.NewSectionReader(f, int64(skip)*timeSize, 1<<40))
	if err != nil {
		return nil, fmt.Errorf("read times of the log of %s: %w", attempt, err)
	}
	var list []Time
	for ; len(b) >= timeSize; b = b[timeSize:] {
		list = append(list, readTime(b))
	}
	return list, nil
}
