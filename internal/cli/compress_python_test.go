package cli_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/compress"
)

// checker checks both models with onnx and compares their outputs in ONNX Runtime, on a thousand random inputs.
const checker = `
import sys
import numpy as np, onnx, onnxruntime as rt
a, b = sys.argv[1:]
onnx.checker.check_model(a)
if "int4" not in b:  # the checker does not know com.microsoft
    onnx.checker.check_model(b, full_check=True)
x = np.random.default_rng(1).normal(size=(1000, 64)).astype(np.float32)
run = lambda f: rt.InferenceSession(f, providers=["CPUExecutionProvider"]).run(None, {"pixels": x})[0]
p, q = run(a), run(b)
same = (p.argmax(1) == q.argmax(1)).mean()
print("same=%.3f largest=%.4f" % (same, abs(p - q).max()))
sys.exit(0 if same > (0.98 if "int8" in b else 0.9) or "prune" in b else 1)
`

// The copies pass the checker of onnx and give nearly the same answers in ONNX Runtime. Where Python has neither, the
// test checks nothing: no lane requires them.
func TestCompress_CopiesRunInONNXRuntime(t *testing.T) {
	lane.Component(t, "python")
	if out, err := exec.Command("python3", "-c", "import numpy, onnx, onnxruntime").CombinedOutput(); err != nil {
		t.Logf("Python has no onnx and onnxruntime: %s", out)
		return
	}
	h := newHome(t)
	h.classifier()
	h.write("check.py", checker)
	digits := onnxrun.Digits(200, 5)
	h.batch("data/0.npy", 200, 64, func(i int) float64 { return digits[i/64].Pixels[i%64] })
	for _, m := range compress.Methods {
		small := filepath.Join(h.dir, string(m)+".onnx")
		args := []string{"compress", filepath.Join(h.dir, "model.onnx"), "--method", string(m), "-o", small}
		if m == compress.Int8Static {
			args = append(args, "--calibration", filepath.Join(h.dir, "data"))
		}
		h.out(args...)
		out, err := exec.Command("python3", filepath.Join(h.dir, "check.py"), filepath.Join(h.dir, "model.onnx"), small).CombinedOutput()
		if t.Logf("%s: %s", m, strings.TrimSpace(string(out))); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}
