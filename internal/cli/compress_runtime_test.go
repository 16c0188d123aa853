package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/compress"
)

// runtimeLibrary returns the library of ONNX Runtime.
func runtimeLibrary(t *testing.T) string {
	t.Helper()
	file := os.Getenv("SCRIMP_ONNXRUNTIME")
	if _, err := os.Stat(file); err != nil {
		t.Skip("ONNX Runtime is not installed: name its library in SCRIMP_ONNXRUNTIME")
	}
	return file
}

type runtimeMeasured struct {
	compressed
	Throughput *struct{ Before, After float64 } `json:"predictions_per_second"`
	Runtime    string                           `json:"onnx_runtime"`
	Batch      int
	Outputs    *struct {
		Values     int
		Difference float64 `json:"largest_difference"`
		Largest    float64 `json:"largest_magnitude"`
	}
}

// inRuntime runs scrimp compress. Its status is 2 if the copy happens to be slower on this machine.
func (h *home) inRuntime(args ...string) (v runtimeMeasured) {
	h.t.Helper()
	out, err := h.command(args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || e.ExitCode() != 2) {
		h.t.Fatalf("%v: %v: %s", args, err, out)
	}
	must.Do(h.t, json.Unmarshal(out, &v))
	return v
}

// Each copy passes the checker of ONNX and runs in ONNX Runtime, and its outputs differ from the original's as much as
// an evaluator of the tests says.
func TestCompress_MeasuresInONNXRuntime(t *testing.T) {
	lane.Component(t, "pytorch")
	library := runtimeLibrary(t)
	h := newHome(t)
	h.classifier()
	digits := onnxrun.Digits(200, 5)
	h.batch("data/0.npy", 200, 64, func(i int) float64 { return digits[i/64].Pixels[i%64] })
	in := onnxrun.Value{Dims: []int{200, 64}}
	for _, d := range digits {
		in.V = append(in.V, d.Pixels[:]...)
	}
	outputs := func(file string) []float64 {
		b, err := os.ReadFile(file)
		must.Do(t, err)
		m, err := onnxrun.Load(b)
		must.Do(t, err)
		v, err := onnxrun.Run(m, in)
		must.Do(t, err)
		return v.V
	}
	model := filepath.Join(h.dir, "model.onnx")
	before := outputs(model)
	for _, method := range compress.Methods {
		small := filepath.Join(h.dir, string(method)+".onnx")
		v := h.inRuntime("compress", model, "--method", string(method), "-o", small, "--calibration", filepath.Join(h.dir, "data"),
			"--runtime", library, "--threads", "1", "--price", "0.72", "--repeat", "2", "--json")
		largest, difference := 0.0, 0.0
		for i, y := range outputs(small) {
			largest, difference = max(largest, math.Abs(before[i])), max(difference, math.Abs(y-before[i]))
		}
		if v.Outputs == nil || v.Outputs.Values != len(before) || math.Abs(v.Outputs.Largest-largest) > 1e-4 ||
			math.Abs(v.Outputs.Difference-difference) > 0.02 {
			t.Errorf("%s: %+v, want %d values, at most %g that differ by %g", method, v.Outputs, len(before), largest, difference)
		}
		if v.Batch != 200 || !strings.HasPrefix(v.Runtime, "1.") || v.P50 == nil || v.P50.Before <= 0 || v.Throughput.After <= 0 {
			t.Errorf("%s: %+v", method, v)
		}
		// A million predictions are 5,000 runs of 200, at 0.0002 dollars a second.
		if want := fmt.Sprintf("%.6f", 5000*v.P50.Before*0.0002); v.PerMillion == nil || !strings.HasPrefix(v.PerMillion.Before, want[:6]) {
			t.Errorf("%s: %+v dollars, want %s", method, v.PerMillion, want)
		}
		if method == compress.Int4Weights {
			continue // the checker does not know com.microsoft
		}
		check := exec.Command("/usr/bin/python3", "-c", "import sys, onnx; onnx.checker.check_model(sys.argv[1], full_check=True)", small)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", method, err, out)
		}
	}
}

// The library gets inputs of the model's types, and what it cannot run is an error that leaves nothing behind.
func TestCompress_RuntimeMakesInputs(t *testing.T) {
	lane.Component(t, "pytorch")
	library := runtimeLibrary(t)
	h := newHome(t)
	g := &onnxrun.Graph{Opset: 17}
	g.Value(false, "ids", -1, 3)
	g.Floats("w", true, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	g.Node("MatMul", []string{"ids", "w"}, "y")
	g.Value(true, "y", -1, 2)
	h.write("model.onnx", string(g.Bytes()))
	model, small := filepath.Join(h.dir, "model.onnx"), filepath.Join(h.dir, "small.onnx")
	v := h.inRuntime("compress", model, "--method", "int8-dynamic", "-o", small, "--runtime", library, "--batch", "5", "--json")
	if v.Batch != 5 || v.Outputs == nil || v.Outputs.Values != 10 {
		t.Errorf("%+v", v)
	}
	must.Do(t, os.Remove(small))
	h.batch("data/0.npy", 2, 4, func(int) float64 { return 1 })
	h.write("no.so", "text")
	for want, args := range map[string][]string{
		"is no library of ONNX Runtime": {"--runtime", filepath.Join(h.dir, "no.so")},
		"--runtime: the command fails":  {"--runtime", library, "--calibration", filepath.Join(h.dir, "data")},
	} {
		text, err := h.try(append([]string{"compress", model, "--method", "int8-dynamic", "-o", small}, args...)...)
		if _, left := os.Stat(small); err == nil || !strings.Contains(text, want) || !strings.Contains(text, "nothing is written") || left == nil {
			t.Errorf("%v: %v: %s", args, err, text)
		}
	}
}

func TestCompress_RefusesARuntimeThatCannotMeasure(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.classifier()
	model, small := filepath.Join(h.dir, "model.onnx"), filepath.Join(h.dir, "small.onnx")
	for want, args := range map[string][]string{
		"is not a file: name the library of ONNX Runtime": {"--runtime", filepath.Join(h.dir, "gone.so")},
		"--batch has no effect without --runtime":         {"--batch", "2"},
		"--batch 0 is not between 1 and 4096":             {"--batch", "0", "--runtime", model},
		"--threads 2000 is not between":                   {"--threads", "2000", "--runtime", model},
		"give one":                                        {"--latency", "x {model}", "--runtime", model},
		"whose files are the batches":                     {"--batch", "2", "--calibration", h.dir, "--runtime", model},
	} {
		text, err := h.try(append([]string{"compress", model, "--method", "int8-dynamic", "-o", small}, args...)...)
		if _, left := os.Stat(small); err == nil || !strings.Contains(text, want) || left == nil {
			t.Errorf("%v: %v: %s", args, err, text)
		}
	}
}
