package stages

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"

	"scrimp/internal/server/workdir"
	"scrimp/internal/work/drift"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// drifted measures the drift of a stage that would begin. A drift that is not above its limit makes the move one that
// skips the stage.
func (f *Files) drifted(ctx context.Context, s groups.Snapshot, v *groups.Move) (pass bool, err error) {
	d := s.Pipeline.Stages[v.Of.Stage].Drift
	if d == nil {
		return true, nil
	}
	fail := func(err error) (bool, error) { return false, fmt.Errorf("its drift was not measured: %w", err) }
	file, err := f.table(ctx, s, d.File)
	if err != nil {
		return fail(err)
	}
	reference, err := f.table(ctx, s, d.Reference)
	if err != nil {
		return fail(err)
	}
	columns, err := drift.Measure(file, reference, d.Test, d.Columns)
	if err != nil {
		return fail(err)
	}
	var list []pipeline.ColumnDrift
	for _, c := range columns {
		list = append(list, pipeline.ColumnDrift{Column: c.Name, Drift: strconv.FormatFloat(c.Value, 'f', -1, 64)})
	}
	verdict, err := d.Verdict(list)
	if err != nil {
		return fail(err)
	}
	v.Of.Drift = &verdict
	if !verdict.Pass {
		v.Do, v.Why, v.Of.Gated = groups.Skip, verdict.Why, true
	}
	return verdict.Pass, nil
}

// table reads a file of the work folder, or of the stage that makes it.
func (f *Files) table(ctx context.Context, s groups.Snapshot, name string) (file drift.File, err error) {
	var items []workdir.Item
	if n := s.Pipeline.MakerOf(name); n >= 0 {
		items, err = f.made(ctx, s.Stages[n].Job, []string{name}, nil)
	} else {
		items, err = f.sent(s.Folder)
	}
	if err != nil {
		return file, fmt.Errorf("read %s: %w", name, err)
	}
	for _, i := range items {
		if path.Clean(i.Path) != name || !i.Mode.IsRegular() {
			continue
		}
		if i.Size > drift.MaxBytes {
			return file, fmt.Errorf("%s has %d bytes: keep at most %d", name, i.Size, drift.MaxBytes)
		}
		var text bytes.Buffer
		if err := f.content(i, &text); err != nil {
			return file, fmt.Errorf("read %s: %w", name, err)
		}
		return drift.File{Name: name, Text: text.Bytes()}, nil
	}
	return file, fmt.Errorf("there is no file %s", name)
}

// content writes the content of a file, which a stage has made or the work folder has.
func (f *Files) content(i workdir.Item, to io.Writer) error {
	if i.Content != nil {
		return i.Content(to)
	}
	from, err := f.Folders.Open(i.Sum)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	_, err = io.Copy(to, from)
	return err
}
