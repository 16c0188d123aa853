// Package logfile stores the output of programs, its arrival times and the measurements of machines in files beside
// the database.
package logfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The output of programs is in plain files beside the database, one per rank of an attempt. A program that prints 100
// MB a second then costs appends to a file, and no transaction waits for it. The files are not synced: if the whole
// machine crashes, the agent still has its own copy, and the offset makes it send the rest again.

// Name returns the name of a rank's output: the attempt for rank 0, ATTEMPT~RANK for the others. No attempt has ~ in
// its name.
func Name(attempt string, node int) string {
	if node == 0 {
		return attempt
	}
	return attempt + "~" + strconv.Itoa(node)
}

// Files stores the output of programs in a folder.
type Files struct{ dir string }

// In stores output in the folder logs of dir, which must exist.
func In(dir string) Files { return Files{dir} }

func (s Files) logPath(attempt string) (string, error) {
	if attempt == "" || strings.ContainsAny(attempt, "/\\\x00") || attempt[0] == '.' {
		return "", fmt.Errorf("log of %q: not the name of an attempt", attempt)
	}
	return filepath.Join(s.dir, "logs", attempt+".log"), nil
}

// AppendLog implements Store.
func (s Files) AppendLog(_ context.Context, attempt string, offset int64, data []byte) (int64, error) {
	path, err := s.logPath(attempt)
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("write log of %s: %w", attempt, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("write log of %s: %w", attempt, err)
	}
	end := info.Size()
	if offset > end || offset+int64(len(data)) <= end {
		return end, nil // a gap, or nothing new
	}
	data = data[end-offset:]
	_ = noteTime(path, end, time.Now()) // an error costs only the time, not the output
	n, err := f.WriteAt(data, end)
	if err != nil {
		return end + int64(n), fmt.Errorf("write log of %s: %w: is the disk of %s full?", attempt, err, s.dir)
	}
	return end + int64(n), nil
}

// ReadLog implements Store.
func (s Files) ReadLog(_ context.Context, attempt string, offset int64, limit int) ([]byte, error) {
	path, err := s.logPath(attempt)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() <= offset {
		return nil, nil // most readers follow the output, and there is nothing new
	}
	if err != nil {
		return nil, fmt.Errorf("read log of %s: %w", attempt, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read log of %s: %w", attempt, err)
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, min(int64(limit), info.Size()-offset))
	n, err := f.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read log of %s: %w", attempt, err)
	}
	return b[:n], nil
}

// LogEnd implements Store.
func (s Files) LogEnd(_ context.Context, attempt string) (int64, error) {
	path, err := s.logPath(attempt)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read log of %s: %w", attempt, err)
	}
	return info.Size(), nil
}

// Logs implements Store.
func (s Files) Logs(_ context.Context) ([]string, error) {
	list, err := os.ReadDir(filepath.Join(s.dir, "logs"))
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	var names []string
	for _, f := range list {
		if name, ok := strings.CutSuffix(f.Name(), ".log"); ok && f.Type().IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names) // by attempt, not by file name
	return names, nil
}

// DropLog implements Store.
func (s Files) DropLog(_ context.Context, attempt string) error {
	path, err := s.logPath(attempt)
	if err != nil {
		return err
	}
	for _, file := range []string{timesPath(path), seriesOf(path), path} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove log of %s: %w", attempt, err)
		}
	}
	return nil
}

// SyncLogs makes all output and measurements durable.
func (s Files) SyncLogs() error {
	list, err := os.ReadDir(filepath.Join(s.dir, "logs"))
	if err != nil {
		return fmt.Errorf("list logs: %w", err)
	}
	for _, file := range list {
		name := file.Name()
		if end := filepath.Ext(name); end != ".log" && end != seriesEnd || !file.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(s.dir, "logs", name))
		if err != nil {
			return fmt.Errorf("write log of %s: %w", name, err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("write log of %s: %w", name, err)
		}
	}
	return nil
}
