package cli_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
)

// classifier writes model.onnx and returns its size.
func (h *home) classifier() int {
	model := onnxrun.Classifier(7)
	h.write("model.onnx", string(model))
	return len(model)
}

type compressed struct {
	Size       struct{ Before, After int }                       `json:"size_bytes"`
	Ratio      float64                                           `json:"size_ratio"`
	Quality    *struct{ Before, After, Fall, Tolerance float64 } `json:"quality"`
	P50        *struct{ Before, After float64 }                  `json:"latency_p50_seconds"`
	P99        *struct{ Before, After float64 }                  `json:"latency_p99_seconds"`
	PerMillion *struct{ Before, After string }                   `json:"usd_per_million_predictions"`
	Offers     []struct {
		Machine    string
		Hourly     string                         `json:"usd_per_hour"`
		PerMillion struct{ Before, After string } `json:"usd_per_million_predictions"`
	}
	Recommended *bool
	Reasons     []string
}

// The table and the JSON hold what the files and the user's commands say: sizes, quality, latencies and dollars.
func TestCompress_ReportsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	before := h.classifier()
	model, small := filepath.Join(h.dir, "model.onnx"), filepath.Join(h.dir, "small.onnx")
	// The quality is 0.9 for both models; the latencies are a hundred lines, 1 to 100 ms, and half of that for the copy.
	script := "#!/bin/sh\nn=2; case $1 in *small*) n=1;; esac\ni=1\nwhile [ $i -le 100 ]; do echo \"latency_ms=$((i * n * 5))e-1\"; " +
		"i=$((i + 1)); done\n"
	h.write("bench.sh", script)
	args := []string{"compress", model, "--method", "int8-dynamic", "-o", small, "--eval", "echo {model} acc=0.1 acc=0.9",
		"--metric", "acc=([0-9.]+)", "--latency", "sh " + filepath.Join(h.dir, "bench.sh") + " {model}", "--price", "0.72"}
	var v compressed
	must.Do(t, json.Unmarshal([]byte(h.out(append(args, "--json")...)), &v))
	info, err := os.Stat(small)
	if err != nil || v.Size.Before != before || v.Size.After != int(info.Size()) ||
		v.Ratio != float64(v.Size.After)/float64(before) || v.Ratio > 0.30 {
		t.Errorf("%v: %+v", err, v)
	}
	if v.Quality == nil || v.Quality.Before != 0.9 || v.Quality.After != 0.9 || v.Recommended == nil || !*v.Recommended {
		t.Errorf("%+v", v)
	}
	if v.P50 == nil || v.P50.Before != 0.050 || v.P50.After != 0.025 || v.P99.Before != 0.099 || v.P99.After != 0.0495 {
		t.Errorf("%+v %+v", v.P50, v.P99)
	}
	// 0.72 an hour is 0.0002 a second; a million predictions of 50 ms take 50,000 seconds: 10 dollars.
	if v.PerMillion == nil || v.PerMillion.Before != "10" || v.PerMillion.After != "5" {
		t.Errorf("%+v", v.PerMillion)
	}
	must.Do(t, os.Remove(small))
	onOffers := slices.Concat(args[:len(args)-2], []string{"--machine", "g4dn.*", "--json"})
	must.Do(t, json.Unmarshal([]byte(h.out(onOffers...)), &v))
	dearest := 0.0
	for i, o := range v.Offers {
		hour, err := strconv.ParseFloat(o.Hourly, 64)
		cost, err2 := strconv.ParseFloat(o.PerMillion.Before, 64)
		if err != nil || err2 != nil || !strings.HasPrefix(o.Machine, "g4dn.") || math.Abs(cost-hour*50000/3600) > 1e-9 ||
			hour < dearest {
			t.Errorf("offer %d: %+v", i, o)
		}
		dearest = hour
	}
	if len(v.Offers) == 0 {
		t.Error("no offers")
	}
	if text, err := h.try(args...); err == nil || !strings.Contains(text, "exists: choose another name") {
		t.Errorf("%v: %s", err, text)
	}
	must.Do(t, os.Remove(small))
	text := h.out(args...)
	for _, want := range []string{"latency p50", "50 ms", "25 ms", "0.500 x", "$10.0000", "Recommended: the quality holds"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// A copy that is worse than the tolerance or slower is written, is not recommended, and the status is 2.
func TestCompress_RecommendsNothingWorseOrSlower(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.classifier()
	model := filepath.Join(h.dir, "model.onnx")
	falls := "case {model} in *small*) echo v=0.89;; *) echo v=0.90;; esac"
	slower := "case {model} in *small*) echo latency_ms=3;; *) echo latency_ms=2;; esac"
	for i, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--eval", falls, "--metric", "v=(.*)"}, "worse by 0.01; the tolerance is 0.005"},
		{[]string{"--eval", falls, "--metric", "v=(.*)", "--tolerance", "0.01"}, ""},
		{[]string{"--eval", falls, "--metric", "v=(.*)", "--lower-is-better"}, ""},
		{[]string{"--latency", slower}, "it is slower: p50 goes from 2ms to 3ms"},
	} {
		small := filepath.Join(h.dir, fmt.Sprintf("small%d.onnx", i))
		_, errOut, code := scrimp(t, append([]string{"compress", model, "--method", "int4-weights", "-o", small}, c.flags...)...)
		if c.want == "" && code != 0 || c.want != "" && (code != 2 || !strings.Contains(errOut, c.want)) {
			t.Errorf("%v: status %d: %s", c.flags, code, errOut)
		}
		if _, err := os.Stat(small); err != nil {
			t.Error(err)
		}
	}
}

// Bad input is refused with what to do, before anything is written.
func TestCompress_RefusesBadInput(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.classifier()
	h.write("text.onnx", "this is text")
	out := filepath.Join(h.dir, "out.onnx")
	for line, want := range map[string]string{
		"model.onnx --method int8-static":                               "needs --calibration",
		"model.onnx --method int8-dynamic --calibration x":              "no effect without --method int8-static",
		"model.onnx --method int8-static --calibration nosuch":          "has no .npy file",
		"model.onnx --method zip":                                       "is none of int8-dynamic",
		"text.onnx --method int8-dynamic":                               "copy or export the model again",
		"none.onnx --method int8-dynamic":                               "no such file",
		". --method int8-dynamic":                                       "not a regular file",
		"model.onnx --method int8-dynamic --sparsity 0.5":               "no effect without --method prune-structured or prune-unstructured",
		"model.onnx --method prune-unstructured --sparsity 1":           "not above 0 and below 1",
		"model.onnx --method prune-unstructured --sparsity NaN":         "not above 0 and below 1",
		"model.onnx --method int8-dynamic --metric (.)":                 "no effect without --eval",
		"model.onnx --method int8-dynamic --price 1":                    "no effect without --latency",
		"model.onnx --method int8-dynamic --eval true":                  "does not contain {model}",
		"model.onnx --method int8-dynamic --eval {model}":               "--eval needs --metric",
		"model.onnx --method int8-dynamic --eval {model} --metric x":    "has 0 groups",
		"model.onnx --method int8-dynamic --eval {model} --metric (":    "no regular expression",
		"model.onnx --method int8-dynamic --latency {model} --repeat 1": "not between 2 and 100",
		"model.onnx --method int8-dynamic --latency {model} --price -1": "--price",
		"model.onnx --method int8-dynamic --latency {model} --price 0":  "not above 0",
	} {
		args := strings.Fields(line)
		args[0] = filepath.Join(h.dir, args[0])
		_, errOut, code := scrimp(t, append(append([]string{"compress"}, args...), "-o", out)...)
		if code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d: %s", line, code, errOut)
		}
		if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
			t.Errorf("%s leaves %v", line, left)
		}
	}
	for line, want := range map[string]string{"exit 3 # {model}": "exit status 3", "true {model}": "nothing that matches",
		"echo v=x {model}": "not a finite number", "echo v=NaN {model}": "not a finite number"} {
		_, errOut, code := scrimp(t, "compress", filepath.Join(h.dir, "model.onnx"), "--method", "int8-dynamic", "-o", out, "--eval",
			line, "--metric", "v=([^ ]+)")
		if code != 1 || !strings.Contains(errOut, want) || !strings.Contains(errOut, "nothing is written") {
			t.Errorf("%s: status %d: %s", line, code, errOut)
		}
		if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
			t.Errorf("%s leaves %v", line, left)
		}
	}
}

// A metric that the command does not print for the original ends the run before scrimp compresses anything, and the
// error names what the command prints. A command that fails for the copy alone leaves the copy.
func TestCompress_ChecksTheMetricBeforeItCompresses(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.classifier()
	model, out := filepath.Join(h.dir, "model.onnx"), filepath.Join(h.dir, "out.onnx")
	prints := `echo '{"accuracy": 0.97}'; echo "val/f1=0.9 loss: 1e-3"; echo loss=2e-3; echo {model} >> ` + filepath.Join(h.dir, "runs")
	for flag, args := range map[string][]string{
		"--metric":         {"--eval", prints, "--metric", "acc=([0-9.]+)"},
		"--latency-metric": {"--latency", prints, "--latency-metric", "ms=([0-9.]+)"},
	} {
		_, errOut, code := scrimp(t, append([]string{"compress", model, "--method", "int8-dynamic", "-o", out}, args...)...)
		if code != 1 || !strings.Contains(errOut, flag+": ") || !strings.Contains(errOut, "it prints accuracy=0.97, val/f1=0.9, loss=2e-3") {
			t.Errorf("%s: status %d: %s", flag, code, errOut)
		}
	}
	if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
		t.Errorf("%v are written", left)
	}
	text, _ := os.ReadFile(filepath.Join(h.dir, "runs"))
	if runs := string(text); strings.Count(runs, "\n") != 2 || strings.Contains(runs, "out.onnx") {
		t.Errorf("the commands run on %s", runs)
	}
	_, errOut, code := scrimp(t, "compress", model, "--method", "int8-dynamic", "-o", out, "--eval",
		"case {model} in *out*) ;; *) echo v=1;; esac", "--metric", "v=(.)")
	if _, err := os.Stat(out); err != nil || code != 1 || !strings.Contains(errOut, out+" is written") {
		t.Errorf("status %d, %v: %s", code, err, errOut)
	}
}

// batch writes an array of float32 as numpy.save does.
func (h *home) batch(name string, rows, columns int, of func(i int) float64) {
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, columns)
	text := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), 0)
	text = append(text, head...)
	for i := range rows * columns {
		text = binary.LittleEndian.AppendUint32(text, math.Float32bits(float32(of(i))))
	}
	h.write(name, string(text))
}

// int8-static takes its ranges from batches of the input, and the copy reads nearly as many digits as the original.
func TestCompress_CalibratesWithBatches(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.classifier()
	for b := range 2 {
		digits := onnxrun.Digits(100, uint64(b))
		h.batch(fmt.Sprintf("data/%d.npy", b), 100, 64, func(i int) float64 { return digits[i/64].Pixels[i%64] })
	}
	model, small, data := filepath.Join(h.dir, "model.onnx"), filepath.Join(h.dir, "small.onnx"), filepath.Join(h.dir, "data")
	accuracy := func(file string) float64 {
		text, err := os.ReadFile(file)
		must.Do(t, err)
		m, err := onnxrun.Load(text)
		must.Do(t, err)
		share, err := onnxrun.Accuracy(m, onnxrun.Digits(1000, 99))
		must.Do(t, err)
		return share
	}
	if text := h.out("compress", model, "--method", "int8-static", "--calibration", data, "-o", small); !strings.Contains(text, "changed") {
		t.Error(text)
	}
	if before, after := accuracy(model), accuracy(small); after < before-0.005 {
		t.Errorf("%g falls to %g", before, after)
	}
	out := filepath.Join(h.dir, "out.onnx")
	head := func(text string) string {
		return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), 0}) + text
	}
	for want, write := range map[string]func(){
		"x.npy: it is not a .npy file":                 func() { h.write("data/x.npy", "this is text") },
		"is not finite":                                func() { h.batch("data/x.npy", 1, 64, func(int) float64 { return math.NaN() }) },
		`x.npy: Gemm "h": the inner dimensions differ`: func() { h.batch("data/x.npy", 1, 63, func(int) float64 { return 1 }) },
		"needs 256 bytes, and it has 4": func() {
			h.write("data/x.npy", head("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 64), }")+"abcd")
		},
		`save x.astype("float32")`: func() {
			h.write("data/x.npy", head("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 64), }"))
		},
		"its header is cut short": func() { h.write("data/x.npy", "\x93NUMPY\x02\x00\xff\xff\xff\xff") },
	} {
		write()
		_, errOut, code := scrimp(t, "compress", model, "--method", "int8-static", "--calibration", data, "-o", out)
		if left, _ := filepath.Glob(out + "*"); code != 1 || !strings.Contains(errOut, want) || len(left) > 0 {
			t.Errorf("%s: status %d, %v: %s", want, code, left, errOut)
		}
	}
	g := &onnxrun.Graph{Opset: 17}
	g.Value(false, "x", -1, 4)
	g.Node("LSTM", []string{"x"}, "y")
	g.Value(true, "y", -1, 4)
	h.write("lstm.onnx", string(g.Bytes()))
	_, errOut, _ := scrimp(t, "compress", filepath.Join(h.dir, "lstm.onnx"), "--method", "int8-static", "--calibration", data, "-o", out)
	if !strings.Contains(errOut, "does not compute the operator LSTM; take int8-dynamic") {
		t.Error(errOut)
	}
}

// The page of the command shows the sizes that the command prints for the classifier of hack/digits. The times of the page
// are those of one machine.
func TestCompress_PrintsTheSizesOfItsPage(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.classifier()
	digits := onnxrun.Digits(200, 5) // as hack/digits calibrate writes
	h.batch("data/digits.npy", 200, 64, func(i int) float64 { return digits[i/64].Pixels[i%64] })
	text := h.out("compress", filepath.Join(h.dir, "model.onnx"), "--method", "int8-static", "--calibration",
		filepath.Join(h.dir, "data"), "-o", filepath.Join(h.dir, "small.onnx"))
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "compress.md"))
	must.Do(t, err)
	row := regexp.MustCompile(`(?m)^size .* x$`)
	shown, printed := strings.Fields(row.FindString(string(page))), strings.Fields(row.FindString(text))
	if len(printed) != 5 || !slices.Equal(shown, printed) {
		t.Errorf("docs/compress.md shows %v, and the command prints %v", shown, printed)
	}
}

// Without a quarter of its channels, the classifier has a quarter less of both weights; the page says so.
func TestCompress_NamesTheChannelsThatAreGone(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.classifier()
	text := h.out("compress", filepath.Join(h.dir, "model.onnx"), "--method", "prune-structured", "--sparsity", "0.25", "-o",
		filepath.Join(h.dir, "thin.onnx"))
	gone := 64*64 + 64 + 64*10 // of 64 to 256 to 10: weights, biases, and the weights that read them
	for _, want := range []string{"64 of 256 channels are gone", "keeps its outputs: ", fmt.Sprintf("%d of 19210 parameters", gone)} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// External data is read from the folder of the model, and from no other place.
func TestCompress_ReadsExternalDataBelowTheModelOnly(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("secret.bin", "12345678")
	h.write("in/w.bin", "\x00\x00\x80\x3f\x00\x00\x00\x40")
	must.Do(t, os.Symlink("../secret.bin", filepath.Join(h.dir, "in", "link.bin")))
	for place, want := range map[string]string{"w.bin": "", "../secret.bin": "escapes", "link.bin": "escapes", "gone.bin": "no such file",
		".": "not a regular file"} {
		h.write("in/model.onnx", string(onnxrun.External(place, "0", "8")))
		out := filepath.Join(h.dir, "out.onnx")
		_, errOut, code := scrimp(t, "compress", filepath.Join(h.dir, "in", "model.onnx"), "--method", "prune-unstructured", "-o", out)
		_ = os.Remove(out)
		if want == "" && code != 0 || want != "" && (code != 1 || !strings.Contains(errOut, want)) {
			t.Errorf("%s: status %d: %s", place, code, errOut)
		}
	}
}
