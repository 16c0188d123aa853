package profile_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/work/diagnose/profile"
)

func read(t *testing.T, name, text string) profile.Profile {
	t.Helper()
	p, err := profile.Read(name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(a, b float64) bool { return math.Abs(a-b) < 0.005 }

// An operator's time excludes the operators that it calls, and what a loader calls counts as loading.
func TestRead_TraceOfProcessors(t *testing.T) {
	const events = `[{"name":"enumerate(DataLoader)#_Next","ph":"X","ts":0,"dur":600,"tid":1,"pid":"CPU","args":{"x":[1,{"y":2}]}},
		{"name":"aten::randn","ph":"X","ts":100,"dur":100,"tid":1,"pid":"CPU"},
		{"name":"aten::linear","ph":"X","ts":600,"dur":400,"tid":1,"pid":"CPU"},
		{"name":"aten::addmm","ph":"X","ts":650,"dur":300,"tid":1,"pid":"CPU"},
		{"name":"counter","ph":"C","ts":1,"args":{}},{"name":7,"ph":"X","ts":"odd","dur":[]}]`
	for name, text := range map[string]string{"list": events,
		"object": `{"schemaVersion":1,"deviceProperties":[{"a":[[{}]]}],"traceEvents":` + events + `,"traceName":"x"}`} {
		p := read(t, name, text)
		if p.Seconds != 0.001 || !near(p.Shares[profile.Loading], 0.6) || !near(p.Shares[profile.Compute], 0.4) || p.GPUBusy != nil {
			t.Errorf("%s: %+v", name, p)
		}
		if o := p.Operators[0]; !strings.Contains(o.Name, "DataLoader") || !near(o.Seconds*1000, 0.5) || !near(o.Share, 0.5) {
			t.Errorf("%s: the costliest is %+v", name, o)
		}
		if o := p.Operators[1]; o.Name != "aten::addmm" || !near(o.Seconds*1000, 0.3) {
			t.Errorf("%s: then %+v", name, o)
		}
	}
}

// If a GPU ran, its kernels are the operators, and copies and collectives are shares of its time.
func TestRead_TraceOfGPUs(t *testing.T) {
	p := read(t, "gpu", `{"traceEvents":[
		{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":1000},
		{"ph":"X","cat":"kernel","name":"ampere_gemm","pid":0,"tid":7,"ts":100,"dur":300},
		{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":7,"ts":400,"dur":200},
		{"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce","pid":0,"tid":8,"ts":600,"dur":100}]}`)
	if p.GPUBusy == nil || !near(*p.GPUBusy, 0.6) || !near(p.Shares[profile.Copying], 0.2) ||
		!near(p.Shares[profile.Communication], 0.1) || p.Operators[0].Name != "ampere_gemm" || !p.OnGPU {
		t.Errorf("%+v", p)
	}
}

// Copies within a GPU, zeroing, and PyTorch's names for a backward pass are computing.
func TestPartOf_Names(t *testing.T) {
	for name, want := range map[string]profile.Part{
		"Memcpy HtoD (Pageable -> Device)": profile.Copying, "Memcpy DtoH (Device -> Pinned)": profile.Copying,
		"[CUDA memcpy Host-to-Device]": profile.Copying, "Memcpy DtoD (Device -> Device)": profile.Compute,
		"[CUDA memcpy Device-to-Device]": profile.Compute, "Memset (Device)": profile.Compute, "[CUDA memset]": profile.Compute,
		"autograd::engine::evaluate_function: AddmmBackward0": profile.Compute, "train.py(9): evaluate": profile.Evaluation,
	} {
		if is := profile.PartOf(name); is != want {
			t.Errorf("%s is %s, want %s", name, is, want)
		}
	}
}

func TestRead_BeginsAndEnds(t *testing.T) {
	p := read(t, "spans", `[{"ph":"B","name":"outer","pid":1,"tid":1,"ts":0},{"ph":"B","name":"inner","pid":1,"tid":1,"ts":10},
		{"ph":"E","pid":1,"tid":1,"ts":40},{"ph":"E","pid":1,"tid":1,"ts":50},{"ph":"E","pid":1,"tid":1,"ts":60}]`)
	if len(p.Operators) != 2 || !near(p.Operators[0].Seconds*1e6, 30) || !near(p.Operators[1].Seconds*1e6, 20) {
		t.Errorf("%+v", p.Operators)
	}
}

func TestRead_StacksOfPySpy(t *testing.T) {
	p := read(t, "raw", "main (train.py:9);__next__ (torch/utils/data/dataloader.py:630);decode (a.py:3) 60\r\n"+
		"main (train.py:9);forward (model.py:12) 30\nmain (train.py:9);save (torch/serialization.py:1) 10\n\n")
	if !near(p.Shares[profile.Loading], 0.6) || !near(p.Shares[profile.Saving], 0.1) || p.Operators[0].Name != "decode (a.py:3)" ||
		p.Operators[0].Count != 60 {
		t.Errorf("%+v", p)
	}
	const frames = `"shared":{"frames":[{"name":"main","file":"t.py"},{"name":"__getitem__","file":"d.py"},{"name":"relu"}]}`
	const profiles = `"profiles":[{"type":"sampled","name":"t","unit":"seconds","samples":[[0,1],[0,2],[0,1]],"weights":[0.3,0.2,0.5]}]`
	for _, text := range []string{frames + "," + profiles, profiles + "," + frames} {
		p := read(t, "s.json", `{"$schema":"https://www.speedscope.app/file-format-schema.json",`+text+`}`)
		if !near(p.Shares[profile.Loading], 0.8) || !near(p.Operators[0].Share, 0.8) || p.Operators[0].Name != "__getitem__ (d.py)" {
			t.Errorf("%+v", p)
		}
	}
}

// A stack's purpose is that of its outermost frame with one, except that a loader may wait for the network, and that
// a recomputed forward pass is followed by its own gradients.
func TestRead_PurposesOfStacks(t *testing.T) {
	const backward = "main (t.py:1);backward (torch/_tensor.py:9);apply (torch/autograd/function.py:2);"
	for stack, want := range map[string]profile.Part{
		"main (t.py:1);__getitem__ (d.py:2);read (botocore/response.py:9);readinto (socket.py:7)":     profile.NetworkReads,
		"main (t.py:1);urlopen (urllib/request.py:2)":                                                 profile.NetworkReads,
		"_bootstrap (threading.py:1);run (queue.py:2);urlopen (urllib3/poolmanager.py:2)":             profile.Compute,
		"main (t.py:1);log (wandb/run.py:1);send (requests/api.py:3)":                                 profile.Logging,
		"main (t.py:1);__getitem__ (d.py:2);decode (PIL/Image.py:9)":                                  profile.Loading,
		backward + "backward (torch/utils/checkpoint.py:4);forward (m.py:3)":                          profile.Recomputation,
		backward + "unpack (torch/utils/checkpoint.py:4);forward (m.py:3)":                            profile.Recomputation,
		backward + "backward (torch/utils/checkpoint.py:4);backward (torch/autograd/__init__.py:175)": profile.Compute,
		"main (t.py:1);forward (torch/utils/checkpoint.py:4);forward (m.py:3)":                        profile.Compute,
	} {
		p := read(t, "raw", stack+" 10\n")
		if !near(p.Shares[want], 1) {
			t.Errorf("%s is %v, want %s", stack, p.Shares, want)
		}
	}
}

// A forward operator within a backward pass is recomputation, and operators on 64-bit numbers have names of their own.
func TestRead_RecomputationAndDoubles(t *testing.T) {
	p := read(t, "trace", `[{"ph":"X","name":"autograd::engine::evaluate_function: AddmmBackward0","pid":1,"tid":1,"ts":0,"dur":900},
		{"ph":"X","name":"aten::linear","pid":1,"tid":1,"ts":0,"dur":300},{"ph":"X","name":"aten::addmm","pid":1,"tid":1,"ts":0,"dur":300},
		{"ph":"X","name":"aten::mm","pid":1,"tid":1,"ts":300,"dur":600,"args":{"Input type":["double","double"],"x":1}},
		{"ph":"X","name":"aten::linear","pid":1,"tid":1,"ts":900,"dur":100,"args":{"Input type":["float","Scalar"],"y":"double"}}]`)
	if double, name := p.In64(); !near(p.Shares[profile.Recomputation], 0.3) || !near(double, 0.6) || name != "aten::mm (float64)" {
		t.Errorf("%+v", p)
	}
}

// A negative count or weight is an error that says where it is, however many other lines are good.
func TestRead_RefusesNegativeCounts(t *testing.T) {
	for text, want := range map[string]string{
		"a (t.py:1);b (t.py:2) -3\n":           "line 1 has the negative count -3",
		"a (t.py:1);b (t.py:2) 9\na;c -9\n":    "line 2 has the negative count -9",
		"a (t.py:1);b (t.py:2) 9\na;c 9.5\n\n": "",
		`{"$schema":"https://www.speedscope.app/x","profiles":[{"samples":[[0],[0]],"weights":[1,-2]}],"shared":{"frames":[{"name":"a"}]}}`: "weight 2 of a profile is negative",
	} {
		_, err := profile.Read("the-file", strings.NewReader(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRead_TablesOfGPUs(t *testing.T) {
	p := read(t, "smi.csv", "timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"+
		"2026/01/01 00:00:00, 30 %, 8000 MiB, 80000 MiB\n2026/01/01 00:00:01, 50 %, 8000 MiB, 80000 MiB\n2026/01/01 00:00:02, [N/A], x\n")
	if p.Tool != "nvidia-smi" || !near(*p.GPUBusy, 0.4) || !near(*p.Memory, 0.1) {
		t.Errorf("%+v", p)
	}
	p = read(t, "dcgm.csv", "time,gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_PROF_PIPE_TENSOR_ACTIVE,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_FB_FREE\n"+
		"1,0,90,0.25,30,70\n")
	if p.Tool != "DCGM" || !near(*p.GPUBusy, 0.9) || !near(*p.Tensor, 0.25) || !near(*p.Memory, 0.3) {
		t.Errorf("%+v", p)
	}
	p = read(t, "dmon", "#Entity   GPUTL  TENSO\nID\nGPU 0     40   0.100\nGPU 0     60   N/A\n#Entity   GPUTL  TENSO\nGPU 1     20   0.300\n")
	if !near(*p.GPUBusy, 0.4) || !near(*p.Tensor, 0.2) {
		t.Errorf("%+v", p)
	}
	p = read(t, "nsys.csv", "Time (%),Total Time (ns),Instances,Avg (ns),Name\n75.0,3000000,10,1,\"gemm<float, 1>\"\n25.0,1000000,4,1,ncclKernel\n\n"+
		"Time (%),Total Time (ns),Count,Operation\n100.0,1000000,2,[CUDA memcpy Host-to-Device]\n")
	if p.Operators[0].Name != "gemm<float, 1>" || !near(p.Operators[0].Share, 0.6) || !near(p.Shares[profile.Copying], 0.2) ||
		p.Operators[0].Count != 10 {
		t.Errorf("%+v", p)
	}
}

// A file of another tool is refused with the tool's name and what to do instead.
func TestRead_RefusesFilesOfOtherTools(t *testing.T) {
	for text, want := range map[string]string{
		"SQLite format 3\x00....":  "unpack it",
		"PERFILE2....":             "py-spy record",
		"<svg width='1'>":          "flame graph",
		"\x7fELF\x00\x01":          "binary file of another tool",
		"":                         "is empty",
		"hello world\nmore text\n": "file of another tool",
		"a,b,c\n1,2,3\n":           "file of another tool",
		`{"a":1}`:                  "not a trace of Chrome",
		`[]`:                       "no events",
		`{"traceEvents":{}}`:       "not a trace of Chrome",
		`[{"ph":"M"}]`:             "no events",
		`{"x`:                      "not a trace of Chrome",
	} {
		if p, err := profile.Read("the-file", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "the-file") {
			t.Errorf("%.20q is read as %+v, %v", text, p, err)
		}
	}
}

// Of a trace that a killed program left, the complete events count.
func TestRead_TornTrace(t *testing.T) {
	p := read(t, "torn", `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":100},{"ph":"X","name":"b","pi`)
	if len(p.Operators) != 1 {
		t.Errorf("%+v", p)
	}
}

// long repeats a text until there are n bytes.
type long struct {
	head, body, tail string
	n                int64
	at               int
}

func (l *long) Read(b []byte) (int, error) {
	switch {
	case l.head != "":
		n := copy(b, l.head)
		l.head = l.head[n:]
		return n, nil
	case l.n <= 0 && l.at == 0:
		n := copy(b, l.tail)
		if l.tail = l.tail[n:]; n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	n := copy(b, l.body[l.at:])
	l.at = (l.at + n) % len(l.body)
	l.n -= int64(n)
	return n, nil
}

// A profile of any size is read in limited memory, and a value without an end is an error.
func TestRead_TakesBoundedMemory(t *testing.T) {
	size := int64(lane.Pick(4<<20, 2<<30))
	event := `{"ph":"X","name":"aten::add","cat":"cpu_op","pid":1,"tid":1,"ts":5,"dur":1,"args":{"shape":[1,2,3]}},` + "\n"
	last := `{"ph":"X","name":"z","pid":1,"tid":1,"ts":5,"dur":1}]}`
	stack := strings.Repeat("f (a.py:1);", 50) + "g (b.py:2) 3\n"
	for name, x := range map[string]struct {
		from io.Reader
		bad  string
	}{
		"trace":           {&long{head: `{"traceEvents":[`, body: event, tail: last, n: size}, ""},
		"raw":             {&long{body: stack, n: size}, ""},
		"sparse":          {&long{body: strings.Repeat("\x00", 4096), n: size}, "binary file of another tool"},
		"sparse trace":    {&long{head: `[{"ph":"X","name":"a`, body: strings.Repeat("\x00", 4096), n: size}, "not a trace of Chrome"},
		"sparse raw":      {&long{head: "a (b.py:1) 3\n", body: strings.Repeat("\x00", 4096), n: size}, "binary file of another tool"},
		"endless name":    {&long{head: `[{"ph":"X","name":"`, body: strings.Repeat("x", 4096), tail: `"}]`, n: size}, "longer than 1 MiB"},
		"endless line":    {&long{head: "a (b.py:1) 3\n", body: strings.Repeat("x;", 4096), n: size}, "longer than 1 MiB"},
		"endless skipped": {&long{head: `{"other":[`, body: "1,", tail: `1],"traceEvents":[` + last, n: size}, ""},
		"speedscope": {&long{head: `{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[{"samples":[`,
			body: "[0,1,0,1,0,1,0,1],", tail: `[0]]}],"shared":{"frames":[{"name":"a"},{"name":"b"}]}}`, n: size}, ""},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := profile.Read(name, x.from)
		runtime.ReadMemStats(&after)
		if (err != nil) != (x.bad != "") || err != nil && !strings.Contains(err.Error(), x.bad) {
			t.Errorf("%s: %v", name, err)
		}
		if most := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && most > 192<<20 {
			t.Errorf("%s: reading %d MiB took %d MiB", name, size>>20, most>>20)
		}
	}
}

func TestRead_Gzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for n := range 1000 {
		fmt.Fprintf(z, "a (t.py:%d);b (u.py:%d) 2\n", n, n%7)
	}
	_ = z.Close()
	if p, err := profile.Read("x.gz", &b); err != nil || len(p.Operators) != 7 {
		t.Errorf("%+v, %v", p, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":100}]`))
	f.Add([]byte("a;b 3\n"))
	f.Add([]byte("#Entity GPUTL\nGPU 0 5\n"))
	f.Add([]byte("Time (%),Total Time (ns),Name\n1,2,x\n"))
	f.Add([]byte(`{"$schema":"https://www.speedscope.app/x","profiles":[{"samples":[[0]]}],"shared":{"frames":[{"name":"a"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := profile.Read("f", bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, o := range p.Operators {
			if !(o.Share >= 0 && o.Share <= 1.0001) || !(o.Seconds >= 0) {
				t.Fatalf("%+v", o)
			}
		}
		for part, v := range p.Shares {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("%s: %v", part, v)
			}
		}
	})
}
