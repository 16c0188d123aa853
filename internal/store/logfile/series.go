package logfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The measurements of machines are beside the output, in one file per rank of an attempt. They are not in the log,
// because no decision depends on them. The files are not synced; a crash of the whole machine loses their end.

func (s Files) seriesPath(attempt string) (string, error) {
	path, err := s.logPath(attempt)
	return seriesOf(path), err
}

// seriesOf returns the measurements file beside an output file.
func seriesOf(log string) string { return strings.TrimSuffix(log, ".log") + seriesEnd }

const seriesEnd = ".series"

// AppendSeries implements Store.
func (s Files) AppendSeries(_ context.Context, attempt string, b []byte) error {
	path, err := s.seriesPath(attempt)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write measurements of %s: %w", attempt, err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write measurements of %s: %w", attempt, err)
	}
	return nil
}

// PutSeries implements Store.
func (s Files) PutSeries(_ context.Context, attempt string, b []byte) error {
	path, err := s.seriesPath(attempt)
	if err != nil {
		return err
	}
	aside := path + ".tmp"
	if err = os.WriteFile(aside, b, 0o600); err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return fmt.Errorf("write measurements of %s: %w", attempt, errors.Join(err, os.RemoveAll(aside)))
	}
	return nil
}

// Series implements Store.
func (s Files) Series(_ context.Context, attempt string) ([]byte, error) {
	path, err := s.seriesPath(attempt)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read measurements of %s: %w", attempt, err)
	}
	return b, nil
}

// AllSeries implements Store.
func (s Files) AllSeries(context.Context) (map[string]int64, error) {
	list, err := os.ReadDir(filepath.Join(s.dir, "logs"))
	if err != nil {
		return nil, fmt.Errorf("list measurements: %w", err)
	}
	sizes := map[string]int64{}
	for _, f := range list {
		name, ok := strings.CutSuffix(f.Name(), seriesEnd)
		if !ok || !f.Type().IsRegular() {
			continue
		}
		if info, err := f.Info(); err == nil { // otherwise it was removed
			sizes[name] = info.Size()
		}
	}
	return sizes, nil
}
