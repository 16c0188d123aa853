// Package compress tests the PyTorch recipes for smaller models. It contains no other Go code.
package compress

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/compress"
)

var scripts = []string{"model.py", "distill.py", "export.py", "quantise.py", "prune.py"}

// The scripts are valid Python.
func TestScripts_Compile(t *testing.T) {
	lane.Component(t, "python")
	for _, name := range scripts {
		c := exec.Command("python3", "-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')", name)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// copied copies the scripts, and returns a function that runs Python with PyTorch beside them.
func copied(t *testing.T) (dir string, run func(args ...string) string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		must.Do(t, err)
	}
	python := ""
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import torch").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		t.Skip("python3-torch is not installed")
	}
	return dir, func(args ...string) string {
		t.Helper()
		c := exec.Command(python, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
}

// found returns the number that a pattern finds.
func found(t *testing.T, text, pattern string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%s is not in %s", pattern, text)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	must.Do(t, err)
	return v
}

// The student learns nearly what the teacher knows, PyTorch's int8 keeps that, and the exported model computes what
// PyTorch computes and is one that scrimp compresses.
func TestRecipes_MakeASmallerModelThatAnswersAlike(t *testing.T) {
	lane.Component(t, "pytorch")
	dir, run := copied(t)
	text := run("distill.py")
	teacher, student := found(t, text, `teacher=([0-9.]+)`), found(t, text, `student=([0-9.]+)`)
	if teacher < 0.95 || student < teacher-0.02 {
		t.Errorf("the teacher has %g and the student %g", teacher, student)
	}
	for _, method := range []string{"dynamic", "static", "qat"} {
		text = run("quantise.py", "--method", method)
		if before, after := found(t, text, `accuracy: before=([0-9.]+)`), found(t, text, `after=([0-9.]+)\s*$`); after < before-0.01 {
			t.Errorf("%s: int8 has %g instead of %g", method, after, before)
		}
		if before, after := found(t, text, `before=([0-9]+)`), found(t, text, `after=([0-9]+)\n`); after >= before {
			t.Errorf("%s: %g bytes become %g", method, before, after)
		}
	}
	run("export.py")
	model, err := os.ReadFile(filepath.Join(dir, "model.onnx"))
	must.Do(t, err)
	m, err := onnxrun.Load(model)
	if err != nil || m.Opsets[""] != 17 {
		t.Fatalf("opset %d: %v", m.Opsets[""], err)
	}
	in := onnxrun.Value{Dims: []int{3, 64}}
	for i := range 3 * 64 {
		in.V = append(in.V, float64(i%7)/4-0.5)
	}
	got, err := onnxrun.Run(m, in)
	must.Do(t, err)
	want := strings.Fields(run("-c", "import torch, export\nx = torch.tensor([i % 7 / 4 - 0.5 for i in range(192)]).reshape(3, 64)\n"+
		"print(*['%.6f' % v for v in export.load('student.pt')(x).flatten().tolist()])"))
	if len(want) != len(got.V) {
		t.Fatalf("%d outputs, want %d: the batch is not dynamic", len(got.V), len(want))
	}
	for i, v := range want {
		if x, _ := strconv.ParseFloat(v, 64); math.Abs(x-got.V[i]) > 1e-4 {
			t.Errorf("output %d is %g, PyTorch says %s", i, got.V[i], v)
		}
	}
	for _, method := range []compress.Method{compress.Int8Dynamic, compress.PruneStructured} {
		if _, err := compress.New(m, compress.Options{Method: method, Sparsity: 0.5}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// scrimp removes exactly the channels that prune.py set to zero, so the copy computes what the pruned network computes.
func TestPrune_LeavesChannelsThatScrimpRemoves(t *testing.T) {
	lane.Component(t, "pytorch")
	dir, run := copied(t)
	run("distill.py", "--epochs", "3")
	text := run("prune.py", "--sparsity", "0.5", "--epochs", "2")
	cut, after := found(t, text, `cut=([0-9.]+)`), found(t, text, `after=([0-9.]+)`)
	if before := found(t, text, `before=([0-9.]+)`); after < cut || after < before-0.03 {
		t.Errorf("%g falls to %g without and %g with training", before, cut, after)
	}
	run("export.py")
	file, err := os.ReadFile(filepath.Join(dir, "model.onnx"))
	must.Do(t, err)
	whole, err := onnxrun.Load(file)
	must.Do(t, err)
	plan, err := compress.New(whole, compress.Options{Method: compress.PruneStructured, Sparsity: 0.5})
	must.Do(t, err)
	var b bytes.Buffer
	_, err = plan.Write(&b)
	must.Do(t, err)
	thin, err := onnxrun.Load(b.Bytes())
	must.Do(t, err)
	in := onnxrun.Value{Dims: []int{2, 64}}
	for i := range 2 * 64 {
		in.V = append(in.V, float64(i%5)/2-1)
	}
	want, err := onnxrun.Run(whole, in)
	must.Do(t, err)
	got, err := onnxrun.Run(thin, in)
	must.Do(t, err)
	if !slices.Equal(got.V, want.V) || b.Len() > 6*len(file)/10 {
		t.Errorf("%d of %d bytes compute %v, want %v", b.Len(), len(file), got.V, want.V)
	}
}

// The loss of the distillation is the one of the README, computed a second time from the definitions.
func TestDistillation_HasTheStatedLoss(t *testing.T) {
	lane.Component(t, "pytorch")
	_, run := copied(t)
	students, teachers, labels := [][]float64{{1, 2, -1}, {0.5, 0, 3}}, [][]float64{{0, 3, 1}, {1, 1, 1}}, []int{1, 0}
	softmax := func(v []float64, temperature float64) (p []float64) {
		sum := 0.0
		for _, x := range v {
			sum += math.Exp(x / temperature)
		}
		for _, x := range v {
			p = append(p, math.Exp(x/temperature)/sum)
		}
		return p
	}
	const temperature, alpha = 4.0, 0.7
	want := 0.0
	for i := range students {
		s, soft := softmax(students[i], temperature), softmax(teachers[i], temperature)
		for k, p := range soft {
			want += alpha * temperature * temperature * p * math.Log(p/s[k]) / 2
		}
		want -= (1 - alpha) * math.Log(softmax(students[i], 1)[labels[i]]) / 2
	}
	text := run("-c", fmt.Sprintf("import torch, distill\nprint('loss=%%.6f' %% distill.loss(torch.tensor(%s), torch.tensor(%s), torch.tensor([1, 0]), 4.0, 0.7))",
		"[[1.0, 2, -1], [0.5, 0, 3]]", "[[0.0, 3, 1], [1, 1, 1]]"))
	if got := found(t, text, `loss=([0-9.]+)`); math.Abs(got-want) > 1e-5 {
		t.Errorf("the loss is %g, want %g", got, want)
	}
}
