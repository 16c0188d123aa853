package compress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/work/compress"
	"scrimp/internal/work/onnx"
	"scrimp/internal/work/onnx/forward"
)

// Bounds of the calibration data.
const (
	maxBatches = 10_000
	maxBatch   = 1 << 28 // bytes of a file
)

// batchFiles returns the .npy files of a folder in order.
func batchFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.npy"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--calibration %s: %w", dir, err)
	case len(files) == 0:
		return nil, fmt.Errorf("--calibration %s has no .npy file: save batches of the input there, such as "+
			"numpy.save(\"%s/0.npy\", x.astype(\"float32\"))", dir, dir)
	case len(files) > maxBatches:
		return nil, fmt.Errorf("--calibration %s has %d files: keep at most %d; a few hundred examples do", dir, len(files),
			maxBatches)
	}
	slices.Sort(files)
	return files, nil
}

// calibrate runs the model on the .npy files of a folder, each a batch of its input, and returns the range of each
// activation that int8-static rounds.
func calibrate(ctx context.Context, m *onnx.Model, dir string) (map[string]compress.Range, error) {
	files, err := batchFiles(dir)
	if err != nil {
		return nil, err
	}
	net, err := forward.New(m)
	if err != nil {
		return nil, fmt.Errorf("scrimp cannot compute the model for --calibration: %w; take int8-dynamic, which needs no "+
			"ranges", err)
	}
	if n := len(net.Inputs()); n != 1 {
		return nil, fmt.Errorf("the model has %d inputs, and --calibration gives one; take int8-dynamic", n)
	}
	wanted, ranges := compress.Activations(m), map[string]compress.Range{}
	see := func(name string, v forward.Value) error {
		if slices.Contains(wanted, name) {
			r := ranges[name]
			r.Add(v.V)
			ranges[name] = r
		}
		return context.Cause(ctx)
	}
	for _, file := range files {
		v, err := readBatch(file)
		if err == nil {
			err = net.Run(map[string]forward.Value{net.Inputs()[0]: v}, see)
		}
		if err != nil {
			return nil, fmt.Errorf("--calibration: %s: %w", file, err)
		}
	}
	return ranges, nil
}

func readBatch(file string) (v forward.Value, err error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return v, err
	case !info.Mode().IsRegular():
		return v, errors.New("it is not a regular file")
	case info.Size() > maxBatch:
		return v, fmt.Errorf("it has %d bytes: save batches of at most %d", info.Size(), maxBatch)
	}
	in, err := os.Open(file)
	if err != nil {
		return v, err
	}
	b, err := io.ReadAll(io.LimitReader(in, maxBatch+1))
	if err := errors.Join(err, in.Close()); err != nil {
		return v, err
	}
	return parseBatch(b)
}

var batchHead = regexp.MustCompile(`'descr': *'([^']*)', *'fortran_order': *(True|False), *'shape': *\(([0-9, ]*)\)`)

// shapeOf parses a shape such as "8, 3, " and returns its number of elements, at most maxBatch.
func shapeOf(text string) (dims []int, count int, ok bool) {
	count = 1
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		d, err := strconv.Atoi(field)
		if err != nil || d < 1 || count > maxBatch/d {
			return nil, 0, false
		}
		dims, count = append(dims, d), count*d
	}
	return dims, count, true
}

// parseBatch reads an array of float32 in the format of numpy.save: a magic number, a version, the length of a header
// that is a dictionary, and the elements.
func parseBatch(b []byte) (v forward.Value, err error) {
	if len(b) < 12 || string(b[:6]) != "\x93NUMPY" {
		return v, errors.New("it is not a .npy file: write it with numpy.save")
	}
	at, size := 10, int(binary.LittleEndian.Uint16(b[8:]))
	if b[6] > 1 {
		at, size = 12, int(binary.LittleEndian.Uint32(b[8:]))
	}
	if size < 0 || size > len(b)-at {
		return v, errors.New("its header is cut short: write it again with numpy.save")
	}
	head := batchHead.FindStringSubmatch(string(b[at : at+size]))
	data := b[at+size:]
	if head == nil || head[1] != "<f4" || head[2] == "True" {
		return v, fmt.Errorf("its header is %.80q: save x.astype(\"float32\") in the order of C", b[at:at+size])
	}
	dims, count, ok := shapeOf(head[3])
	if !ok {
		return v, fmt.Errorf("its shape (%s) is empty or too large", head[3])
	}
	if len(data) != 4*count {
		return v, fmt.Errorf("its shape (%s) needs %d bytes, and it has %d: write it again with numpy.save", head[3], 4*count,
			len(data))
	}
	v.Dims, v.V = dims, make([]float32, count)
	for i := range v.V {
		v.V[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if x := float64(v.V[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return v, fmt.Errorf("its element %d is not finite: leave such examples out", i)
		}
	}
	return v, nil
}
