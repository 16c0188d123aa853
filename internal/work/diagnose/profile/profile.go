// Package profile reads the files of profilers, of any size in bounded memory, and reports which operators took the
// time and their purposes.
package profile

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Bounds of what is kept of a file, and of what is read at once.
const (
	mostNames   = 5000    // distinct operators; the rest count as one
	mostShown   = 20      // operators in a profile
	longestLine = 1 << 20 // bytes; also of one event
	mostText    = 16 << 30
	peeked      = 64 << 10
	longestName = 200 // bytes of an operator's name
)

// Profile is the contents of a file.
type Profile struct {
	Tool string `json:"tool"`
	// Seconds is the time that it covers; 0 if the file does not say.
	Seconds   float64    `json:"seconds,omitempty"`
	Operators []Operator `json:"operators,omitempty"` // the most expensive first
	// Shares splits the program's time, or with OnGPU the GPU's, from 0 to 1.
	Shares map[Part]float64 `json:"shares,omitempty"`
	OnGPU  bool             `json:"on_gpu,omitempty"`
	// OfBusy means that Shares split the time in which GPUs worked, because the file does not say when they did not.
	OfBusy bool `json:"of_busy,omitempty"`
	// GPUBusy is the share of the time in which GPUs ran kernels; nil if unknown.
	GPUBusy *float64 `json:"gpu_busy,omitempty"`
	// Memory is the share of GPU memory in use, and Tensor the share of time in which tensor cores ran; nil if unknown.
	Memory *float64 `json:"gpu_memory,omitempty"`
	Tensor *float64 `json:"tensor_active,omitempty"`
}

// Operator is a function or a kernel, without its callees.
type Operator struct {
	Name    string  `json:"name"`
	Share   float64 `json:"share"` // of the time of all operators
	Seconds float64 `json:"seconds,omitempty"`
	Count   int64   `json:"count,omitempty"`
	Part    Part    `json:"part"`
}

// Check returns what no reader of a profile writes: Profile values also come over the network.
func (p *Profile) Check() error {
	shares := slices.Collect(maps.Values(p.Shares))
	for _, f := range []*float64{p.GPUBusy, p.Memory, p.Tensor} {
		if f != nil {
			shares = append(shares, *f)
		}
	}
	for _, o := range p.Operators {
		shares = append(shares, o.Share)
		if len(o.Name) > longestName || len(o.Part) > longestName || !(o.Seconds >= 0) || o.Count < 0 {
			return fmt.Errorf("the operator %.40q is longer than %d bytes, or its time or count is negative", o.Name,
				longestName)
		}
	}
	switch {
	case len(p.Tool) > longestName || p.Tool == "":
		return fmt.Errorf("tool is empty or longer than %d bytes", longestName)
	case len(p.Operators) > mostShown:
		return fmt.Errorf("%d operators are more than %d", len(p.Operators), mostShown)
	case len(p.Shares) > mostShown:
		return fmt.Errorf("%d shares are more than %d", len(p.Shares), mostShown)
	case !(p.Seconds >= 0):
		return errors.New("seconds is negative")
	case slices.ContainsFunc(shares, func(v float64) bool { return !(v >= 0 && v <= 1.0001) }):
		return errors.New("a share is not between 0 and 1")
	}
	return nil
}

// Part is the purpose of an operator.
type Part string

// The parts.
const (
	Compute       Part = "compute"
	Loading       Part = "data loading"
	Copying       Part = "host-device copies"
	Communication Part = "communication"
	Waiting       Part = "synchronisation"
	Saving        Part = "checkpointing"
	Logging       Part = "logging"
	Evaluation    Part = "evaluation"
	Recomputation Part = "recomputation" // of a forward pass within the backward pass
	NetworkReads  Part = "reads from the network"
)

// parts maps words in lower-case operator or function names to purposes. The first match wins.
var parts = []struct {
	part  Part
	words []string
}{
	// PyTorch's name for each operator of a backward pass, and what moves nothing between host and device.
	{Compute, []string{"engine::evaluate_function", "memset", "dtod", "device-to-device"}},
	{Recomputation, []string{"checkpointfunctionbackward"}},
	{Communication, []string{"nccl", "allreduce", "all_reduce", "allgather", "all_gather", "reduce_scatter", "c10d::",
		"gloo", "mpi_"}},
	{Copying, []string{"memcpy", "pin_memory"}},
	{Loading, []string{"dataloader", "__getitem__", "_next_data", "collate", "torchvision/transforms", "tf_data",
		"tf.data", "iteratorgetnext", "pil/", "cv2", "read_csv", "tokeniz", "imread", "imdecode", "dataset.", "load_data"}},
	{Saving, []string{"torch.save", "torch/serialization", "save_checkpoint", "save_pretrained", "pickle.dump"}},
	{Evaluation, []string{"evaluate", "evaluation", "validate", "validation"}},
	{Waiting, []string{"synchronize", "aten::item", "_local_scalar_dense", "nonzero"}},
	{Logging, []string{"logging/", "tensorboard", "add_scalar", "wandb", "logger"}},
}

// PartOf returns the purpose of an operator by its name.
func PartOf(name string) Part {
	lower := strings.ToLower(name)
	for _, p := range parts {
		for _, w := range p.words {
			if strings.Contains(lower, w) {
				return p.part
			}
		}
	}
	return Compute
}

// Formats lists the formats of Read, for people.
const Formats = "Chrome and PyTorch Profiler traces (.json, .json.gz), py-spy raw and speedscope, nvidia-smi CSV, " +
	"dcgmi dmon, SQLite of nsys export, and CSV of nsys stats"

// SQLite is the beginning of an SQLite database.
const SQLite = "SQLite format 3\x00"

// Read reads a profile. The file's name is for messages.
func Read(name string, from io.Reader) (Profile, error) {
	r := bufio.NewReaderSize(from, peeked)
	head, err := r.Peek(2)
	if err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return Profile{}, fmt.Errorf("read %s: %w", name, err)
		}
		r = bufio.NewReaderSize(z, peeked)
	}
	r = bufio.NewReaderSize(&limited{from: r, left: mostText}, peeked)
	head, err = r.Peek(peeked)
	if err != nil && !errors.Is(err, io.EOF) {
		return Profile{}, fmt.Errorf("read %s: %w", name, err)
	}
	read, err := readerOf(name, head)
	if err != nil {
		return Profile{}, err
	}
	p, err := read(r)
	if err != nil {
		return Profile{}, fmt.Errorf("read %s: %w", name, err)
	}
	return p, nil
}

// foreign lists the first bytes of other tools' files, with the fix.
var foreign = []struct{ magic, tool, fix string }{
	{SQLite, "a compressed SQLite database", "unpack it"},
	{"NVIDIA", "an Nsight report", "convert it: nsys export --type sqlite FILE"},
	{"NSYS", "an Nsight Systems report", "convert it: nsys export --type sqlite FILE"},
	{"NVR", "an Nsight Compute report", "profile with nsys, and write CSV: nsys stats --format csv FILE"},
	{"PERFILE2", "data of Linux perf", "record with py-spy: py-spy record --format raw -o FILE --pid PID"},
	{"<svg", "a flame graph", "record with py-spy record --format raw"},
	{"<?xml", "an XML file", "record with py-spy record --format raw"},
	{"\x89PNG", "a picture", "give the file that the profiler wrote"},
	{"PK\x03\x04", "a zip archive", "unpack it"},
	{"%PDF", "a PDF", "give the file that the profiler wrote"},
	{"\xe3\x00\x00", "compiled Python", "give the file that the profiler wrote"},
	{"\xfb", "statistics of cProfile", "record with py-spy record --format raw"},
	{"{{\x00", "statistics of cProfile", "record with py-spy record --format raw"},
	{"{\x28", "statistics of cProfile", "record with py-spy record --format raw"},
	{"mode: ", "a coverage file of Go", "record with py-spy record --format raw"},
}

type reading func(*bufio.Reader) (Profile, error)

// readerOf detects the format of a file from its beginning.
func readerOf(name string, head []byte) (reading, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(text) == 0 {
		return nil, fmt.Errorf("%s is empty: give %s", name, Formats)
	}
	for _, f := range foreign {
		if bytes.HasPrefix(text, []byte(f.magic)) {
			return nil, fmt.Errorf("%s is %s, which scrimp does not read: %s", name, f.tool, f.fix)
		}
	}
	if text[0] == '{' || text[0] == '[' {
		if bytes.Contains(text[:min(len(text), 4096)], []byte("speedscope.app")) {
			return readSpeedscope, nil
		}
		return readTrace, nil
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("%s is a binary file of another tool: scrimp reads %s", name, Formats)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	line := strings.ToLower(string(first))
	switch {
	case strings.Contains(line, "utilization.gpu") || strings.Contains(line, "dcgm_fi_"):
		return readGPUTable, nil
	case strings.HasPrefix(line, "#entity") || strings.HasPrefix(line, "# entity"):
		return readDmon, nil
	case strings.Contains(string(text), "Total Time (ns)"):
		return readNsys, nil
	case isFolded(string(bytes.TrimRight(first, "\r"))):
		return readFolded, nil
	}
	return nil, fmt.Errorf("%s is a file of another tool (it begins with %.40q): scrimp reads %s", name, first, Formats)
}

// limited reads at most left bytes, and then fails instead of ending.
type limited struct {
	from io.Reader
	left int64
}

var errLong = errors.New("it is longer than 16 GiB: profile fewer steps")

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.from.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err //nolint:wrapcheck // it stands in for the reader that it limits
}

// tally adds up operators.
type tally struct {
	by    map[string]*Operator
	total float64
	parts map[Part]float64
}

func newTally() *tally { return &tally{by: map[string]*Operator{}, parts: map[Part]float64{}} }

const others = "others"

// add adds time of an operator with a purpose.
func (t *tally) add(name string, part Part, time float64, count int64) {
	if !(time >= 0 && time < 1e15) {
		return
	}
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "")
	}
	o := t.by[name]
	if o == nil && len(t.by) >= mostNames {
		name, part = others, Compute
		o = t.by[name]
	}
	if o == nil {
		o = &Operator{Name: strings.Clone(name), Part: part}
		t.by[o.Name] = o
	}
	o.Seconds, o.Count, t.total = o.Seconds+time, o.Count+count, t.total+time
	t.parts[part] += time
}

// list returns the most expensive operators.
func (t *tally) list() []Operator {
	list := make([]Operator, 0, len(t.by))
	for _, name := range slices.Sorted(maps.Keys(t.by)) {
		o := *t.by[name]
		if t.total > 0 {
			o.Share = o.Seconds / t.total
		}
		list = append(list, o)
	}
	slices.SortStableFunc(list, func(a, b Operator) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return list[:min(len(list), mostShown)]
}

// shares returns the time of each part relative to all.
func (t *tally) shares(all float64) map[Part]float64 {
	out := map[Part]float64{}
	for p, v := range t.parts {
		if all > 0 {
			out[p] = min(1, v/all)
		}
	}
	return out
}
