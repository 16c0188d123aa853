package compress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"scrimp/internal/work/compress"
	"scrimp/internal/work/compress/judge"
	"scrimp/internal/work/onnx"
)

// copied is a compressed copy that was written.
type copied struct {
	plan       *compress.Plan
	size       judge.Pair[int64]
	parameters int64
}

// folder opens a model and the files of external data below its folder, and no others.
type folder struct {
	root  *os.Root
	files map[string]*os.File
	bytes int64 // of all files that were opened
}

func openFolder(model string) (*folder, error) {
	root, err := os.OpenRoot(filepath.Dir(model))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", model, err)
	}
	return &folder{root: root, files: map[string]*os.File{}}, nil
}

func (d *folder) close() {
	for _, f := range d.files {
		_ = f.Close()
	}
	_ = d.root.Close()
}

// maxFiles bounds the files of external data of a model.
const maxFiles = 256

// open opens a file once.
func (d *folder) open(name string) (io.ReaderAt, int64, error) {
	in := d.files[name]
	if in == nil {
		if len(d.files) > maxFiles {
			return nil, 0, fmt.Errorf("the model has more than %d files", maxFiles)
		}
		info, err := d.root.Stat(name)
		if err != nil {
			return nil, 0, err
		}
		if !info.Mode().IsRegular() {
			return nil, 0, fmt.Errorf("%s is not a regular file", name)
		}
		if in, err = d.root.Open(name); err != nil {
			return nil, 0, err
		}
		d.files[name] = in
		d.bytes += info.Size()
	}
	info, err := in.Stat()
	if err != nil {
		return nil, 0, err
	}
	return in, info.Size(), nil
}

// read reads the structure of a model. The folder stays open for the weights.
func read(model string) (*onnx.Model, *folder, error) {
	info, err := os.Stat(model)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", model, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("read %s: it is not a regular file", model)
	}
	in, err := os.Open(model)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", model, err)
	}
	d, err := openFolder(model)
	if err != nil {
		_ = in.Close()
		return nil, nil, err
	}
	d.files[""], d.bytes = in, info.Size() // a location is never empty
	m, err := onnx.Read(onnx.NewSource(model, in, info.Size()), d.open)
	if err != nil {
		d.close()
		return nil, nil, err
	}
	return m, d, nil
}

// prepared is a model with the plan of its copy. Its files stay open for the weights.
type prepared struct {
	copied
	model  *onnx.Model
	folder *folder
}

// prepare reads the structure of a model and plans its copy. With a folder of calibration data it runs the model on it.
func prepare(ctx context.Context, model, output, calibration string, o compress.Options) (*prepared, error) {
	if _, err := os.Lstat(output); err == nil {
		return nil, fmt.Errorf("%s exists: choose another name", output)
	}
	m, d, err := read(model)
	if err != nil {
		return nil, err
	}
	p := &prepared{model: m, folder: d}
	if calibration != "" {
		o.Ranges, err = calibrate(ctx, m, calibration)
	}
	if err == nil {
		p.plan, err = compress.New(m, o)
	}
	if err != nil {
		d.close()
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	p.parameters, p.size.Before = m.Parameters(), d.bytes
	return p, nil
}

// write writes the compressed copy beside its final name, reads it again, and gives it that name.
func (p *prepared) write(ctx context.Context, output string) (c copied, err error) {
	c = p.copied
	part := output + ".partial"
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return c, fmt.Errorf("%s exists: another run is writing it, or an interrupted run left it; delete it", part)
	} else if err != nil {
		return c, fmt.Errorf("write %s: %w", output, err)
	}
	defer func() {
		_ = out.Close()
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	w := bufio.NewWriterSize(stopper{ctx, out}, 1<<20)
	if c.size.After, err = c.plan.Write(w); err != nil {
		return c, err
	}
	if err = errors.Join(w.Flush(), out.Sync(), out.Close()); err != nil {
		return c, fmt.Errorf("write %s: %w", output, err)
	}
	again, made, err := read(part)
	if err != nil {
		return c, fmt.Errorf("the copy cannot be read again: %w", err)
	}
	made.close()
	if n := len(p.model.Outputs); len(again.Outputs) != n {
		return c, fmt.Errorf("the copy has %d outputs instead of %d", len(again.Outputs), n)
	}
	return c, os.Rename(part, output)
}

// stopper is a writer that fails once the context is done.
type stopper struct {
	ctx context.Context
	out io.Writer
}

func (s stopper) Write(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.out.Write(b)
}
