package cli_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/onnx"
)

// A model of 16 layers with 4096 × 4096 weights of 4 bytes has 1.07 GB.
const (
	largeLayers = 16
	largeWidth  = 4096
)

// largeModel writes the model, one weight at a time, and returns its size. Every second layer is a Gemm with a transposed
// weight, whose copy scrimp has to turn.
func largeModel(t *testing.T, file string) int64 {
	t.Helper()
	g := &onnxrun.Graph{Opset: 17}
	g.Value(false, "x0", -1, largeWidth)
	for i := range largeLayers {
		in, out, w := fmt.Sprintf("x%d", i), fmt.Sprintf("x%d", i+1), fmt.Sprintf("w%d", i)
		if i%2 == 0 {
			g.Node("MatMul", []string{in, w}, out+"_product")
		} else {
			g.Node("Gemm", []string{in, w}, out+"_product", onnxrun.Int("transB", 1))
		}
		g.Node("Relu", []string{out + "_product"}, out)
	}
	g.Value(true, fmt.Sprintf("x%d", largeLayers), -1, largeWidth)
	const weight = 4 * largeWidth * largeWidth
	field := func(num int, size int) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(num)<<3|2), uint64(size))
	}
	var heads [][]byte
	graph := len(g.GraphBytes())
	for i := range largeLayers {
		head := onnx.AppendInt(onnx.AppendInt(onnx.AppendInt(nil, 1, largeWidth), 1, largeWidth), 2, onnx.Float)
		head = append(onnx.AppendBytes(head, 8, fmt.Sprintf("w%d", i)), field(9, weight)...)
		head = append(field(5, len(head)+weight), head...)
		heads, graph = append(heads, head), graph+len(head)+weight
	}
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, weight)
	for at := 0; at < weight; at += 4 {
		binary.LittleEndian.PutUint32(data[at:], math.Float32bits(float32(rng.NormFloat64()/64)))
	}
	f, err := os.Create(file)
	must.Do(t, err)
	write := func(b []byte) {
		_, err := f.Write(b)
		must.Do(t, err)
	}
	write(onnx.AppendBytes(onnx.AppendInt(nil, 1, 8), 8, onnx.AppendInt(nil, 2, g.Opset)))
	write(field(7, graph))
	for i, head := range heads {
		write(head)
		from := i * 4096 // the weights differ
		write(data[from:])
		write(data[:from])
	}
	write(g.GraphBytes())
	size, err := f.Seek(0, io.SeekCurrent)
	must.Do(t, err)
	must.Do(t, f.Close())
	return size
}

// Each method that needs no calibration takes at most 60 s of processor time and 3 GB for a model of 1 GB.
func TestCompress_TakesAModelOfAGigabyte(t *testing.T) {
	lane.Nightly(t, "it writes 5 GB")
	h := newHome(t)
	model := filepath.Join(h.dir, "model.onnx")
	before := largeModel(t, model)
	if before < 1e9 {
		t.Fatalf("the model has %d bytes", before)
	}
	for method, ratio := range map[string]float64{"int8-dynamic": 0.26, "int4-weights": 0.16, "prune-unstructured": 1.001,
		"prune-structured": 0.55} {
		small := filepath.Join(h.dir, "small.onnx")
		cmd := h.command("compress", model, "--method", method, "-o", small)
		begun := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState.ExitCode() != 2 { // 2: a pruned copy is not smaller
			t.Fatalf("%s: %v: %s", method, err, out)
		}
		use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			t.Fatal("the use of the process is unknown")
		}
		busy, peak := cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), use.Maxrss*1024
		info, err := os.Stat(small)
		must.Do(t, err)
		t.Logf("%s: %.1f s (%.1f s of processor time), peak %d MB, %.3f of the size", method, time.Since(begun).Seconds(),
			busy.Seconds(), peak/1e6, float64(info.Size())/float64(before))
		if busy > time.Minute || peak > 3e9 || float64(info.Size()) > ratio*float64(before) {
			t.Errorf("%s: %v of processor time, %d bytes of memory, a copy of %d of %d bytes", method, busy, peak, info.Size(), before)
		}
		must.Do(t, os.Remove(small))
	}
}
