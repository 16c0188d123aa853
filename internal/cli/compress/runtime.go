package compress

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"scrimp/internal/cli/show/compression"
	"scrimp/internal/work/onnx/forward"
)

// timer is the program that times a model in ONNX Runtime.
//
//go:embed runtime.py
var timer []byte

// Bounds of --runtime.
const (
	maxRuntimeBatch   = 4096
	maxRuntimeThreads = 1024
	maxTimed          = 64      // batches of --calibration that it runs
	maxOutputs        = 1 << 30 // bytes of outputs of a model
	timedSeconds      = "1"     // for which a turn runs the model
)

// inRuntime times models in ONNX Runtime: Python calls the library, so that scrimp itself stays one static file.
type inRuntime struct {
	python, library string
	batch, threads  int
	dir             string   // of the batches and the outputs
	batches         []string // shape and file of each batch
	version         string   // of ONNX Runtime
	predictions     int      // of one run
}

// newRuntime finds Python and writes the batches of the calibration folder, if there is one, for it.
func newRuntime(f flags) (r *inRuntime, err error) {
	r = &inRuntime{batch: f.batch, threads: f.threads}
	if r.library, err = filepath.Abs(f.runtime); err != nil {
		return nil, err
	}
	if info, err := os.Stat(r.library); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("--runtime %s is not a file: name the library of ONNX Runtime, such as "+
			"onnxruntime/capi/libonnxruntime.so.1.23.0 of the Python package", f.runtime)
	}
	if r.python, err = exec.LookPath("python3"); err != nil {
		return nil, fmt.Errorf("--runtime needs python3 (without packages): %w; install it, or measure with --latency", err)
	}
	if r.dir, err = os.MkdirTemp("", "scrimp-compress-"); err != nil {
		return nil, err
	}
	if f.calibration != "" {
		err = r.take(f.calibration)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *inRuntime) close() { _ = os.RemoveAll(r.dir) }

// take writes the values of the first batches of a calibration folder without their headers.
func (r *inRuntime) take(dir string) error {
	files, err := batchFiles(dir)
	if err != nil {
		return err
	}
	for i, file := range files[:min(len(files), maxTimed)] {
		v, err := readBatch(file)
		if err != nil {
			return fmt.Errorf("--calibration: %s: %w", file, err)
		}
		at := filepath.Join(r.dir, strconv.Itoa(i))
		if err := os.WriteFile(at, bytesOf(v), 0o600); err != nil {
			return err
		}
		var dims []string
		for _, d := range v.Dims {
			dims = append(dims, strconv.Itoa(d))
		}
		r.batches = append(r.batches, strings.Join(dims, "x"), at)
	}
	return nil
}

func bytesOf(v forward.Value) []byte {
	b := make([]byte, 0, 4*len(v.V))
	for _, x := range v.V {
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// command returns the command that times a model and writes its outputs.
func (r *inRuntime) command(ctx context.Context, model string) *exec.Cmd {
	args := []string{"-I", "-", r.library, model, strconv.Itoa(r.batch), strconv.Itoa(r.threads), timedSeconds,
		r.outputs(model)}
	cmd := exec.CommandContext(ctx, r.python, append(args, r.batches...)...)
	cmd.Stdin = bytes.NewReader(timer)
	return cmd
}

// outputs returns the file of a model's outputs.
func (r *inRuntime) outputs(model string) string {
	return filepath.Join(r.dir, "out-"+strings.ReplaceAll(model, string(filepath.Separator), "-"))
}

var said = regexp.MustCompile(`(?m)^(runtime|batch)=(\S+)$`)

// see keeps what the program prints besides the latencies.
func (r *inRuntime) see(text string) {
	for _, m := range said.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "runtime":
			r.version = m[2]
		case "batch":
			r.predictions, _ = strconv.Atoi(m[2])
		}
	}
}

// difference compares the outputs of both models.
func (r *inRuntime) difference(before, after string) (*compression.Outputs, error) {
	a, err := r.read(before)
	if err != nil {
		return nil, err
	}
	b, err := r.read(after)
	if err != nil {
		return nil, err
	}
	if len(a) != len(b) || len(a) == 0 {
		return nil, fmt.Errorf("--runtime: the models have %d and %d outputs in float32, which cannot be compared", len(a),
			len(b))
	}
	d := &compression.Outputs{Values: len(a)}
	for i := range a {
		d.Largest = max(d.Largest, math.Abs(float64(a[i])))
		d.Difference = max(d.Difference, math.Abs(float64(a[i])-float64(b[i])))
	}
	if math.IsNaN(d.Difference) || math.IsInf(d.Difference, 0) || math.IsInf(d.Largest, 0) {
		return nil, errors.New("--runtime: an output is not finite; give batches of your data with --calibration")
	}
	return d, nil
}

func (r *inRuntime) read(model string) ([]float32, error) {
	file := r.outputs(model)
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("--runtime: the outputs of %s: %w", model, err)
	}
	if info.Size() > maxOutputs {
		return nil, fmt.Errorf("--runtime: %s has %d bytes of outputs, at most %d: give smaller batches", model, info.Size(),
			maxOutputs)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return v, nil
}
