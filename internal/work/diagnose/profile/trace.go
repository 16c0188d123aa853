package profile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// event holds the used fields of a Chrome trace event. Times are microseconds.
type event struct {
	Name string          `json:"name"`
	Kind string          `json:"ph"`
	Cat  string          `json:"cat"`
	At   float64         `json:"ts"`
	Dur  float64         `json:"dur"`
	Pid  json.RawMessage `json:"pid"`
	Tid  json.RawMessage `json:"tid"`
	Args json.RawMessage `json:"args"`
}

// double reports whether an operator computes in 64 bits. PyTorch's profiler records it with record_shapes=True.
func (e *event) double() bool {
	_, types, ok := bytes.Cut(e.Args, []byte(`"Input type"`))
	types, _, _ = bytes.Cut(types, []byte("]"))
	return ok && bytes.Contains(types, []byte(`"double"`))
}

// guard fails if one value is too long, because the decoder holds a whole value.
type guard struct {
	from io.Reader
	read int64
	done func() int64 // bytes that the decoder has processed
}

var errValue = errors.New("an event is longer than 1 MiB: this is not a profiler's trace")

func (g *guard) Read(b []byte) (int, error) {
	if g.done != nil && g.read-g.done() > longestLine+peeked {
		return 0, errValue
	}
	n, err := g.from.Read(b[:min(len(b), peeked)])
	g.read += int64(n)
	return n, err //nolint:wrapcheck // it stands in for the reader that it guards
}

// decoder reads JSON in bounded memory.
func decoder(r *bufio.Reader) *json.Decoder {
	g := &guard{from: r}
	d := json.NewDecoder(g)
	g.done = d.InputOffset
	return d
}

// readTrace reads a Chrome trace: a list of events, or an object with them under traceEvents.
func readTrace(r *bufio.Reader) (Profile, error) {
	d := decoder(r)
	t := trace{host: newTally(), device: newTally(), threads: map[string]*thread{}, first: math.Inf(1),
		last: math.Inf(-1)}
	err := eachIn(d, "traceEvents", func() error {
		var e event
		switch err := d.Decode(&e); {
		case isType(err):
			t.odd++
		case err != nil:
			return err
		default:
			t.take(&e)
		}
		return nil
	})
	switch {
	case err != nil && t.seen == 0:
		return Profile{}, fmt.Errorf("it is not a trace of Chrome or PyTorch Profiler: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF): // incomplete: the program was killed
	case err != nil:
		return Profile{}, err
	case t.seen == 0:
		return Profile{}, errors.New("it has no events with a duration: it is not a trace of Chrome or PyTorch Profiler")
	}
	return t.profile(), nil
}

func isType(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong)
}

// eachIn calls f before each value of the list that is the text or a named field of it.
func eachIn(d *json.Decoder, name string, f func() error) error {
	open, err := d.Token()
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if open == json.Delim('[') {
		return eachOf(d, f)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		if key != name {
			if err := skip(d); err != nil {
				return err
			}
			continue
		}
		if open, err = d.Token(); err != nil || open != json.Delim('[') {
			return fmt.Errorf("%s is no list", name)
		}
		if err := eachOf(d, f); err != nil {
			return err
		}
	}
	return nil
}

func eachOf(d *json.Decoder, f func() error) error {
	for d.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

// skip skips a value of any size.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// trace adds up the events of a trace.
type trace struct {
	host, device *tally
	threads      map[string]*thread
	first, last  float64 // microseconds
	devices      map[string]bool
	parts        map[string]Part // by name, because finding it is slow
	latest       *thread         // of the previous event
	pid, tid     string
	seen, odd    int
}

// thread holds the open operators of a thread.
type thread struct{ open []span }

// span is an open operator. Own is its time without its callees.
type span struct {
	name     string
	part     Part
	end, own float64
	begun    float64
	backward bool // it runs within a backward pass
}

// backwardPass begins the name of each operator that PyTorch runs in a backward pass.
const backwardPass = "autograd::engine::evaluate_function"

// forward lists operators that only a forward pass runs. Within a backward pass they are recomputation.
var forward = map[string]bool{"aten::linear": true, "aten::conv1d": true, "aten::conv2d": true, "aten::conv3d": true,
	"aten::layer_norm": true, "aten::batch_norm": true, "aten::embedding": true, "aten::relu": true, "aten::gelu": true,
	"aten::silu": true, "aten::dropout": true, "aten::scaled_dot_product_attention": true}

// Bounds of the open operators of a thread, and of threads.
const (
	deepest     = 512
	mostThreads = 4096
)

func (t *trace) take(e *event) {
	if e.Kind != "X" && e.Kind != "B" && e.Kind != "E" || !(math.Abs(e.At) < 1e18) || !(e.Dur >= 0 && e.Dur < 1e15) {
		return
	}
	t.seen++
	t.first, t.last = min(t.first, e.At), max(t.last, e.At+e.Dur)
	cat := strings.ToLower(e.Cat)
	switch {
	case cat == "kernel" || strings.HasPrefix(cat, "gpu_mem"):
		t.kernel(e)
	case cat == "gpu_user_annotation" || cat == "trace" || strings.HasPrefix(e.Name, "ProfilerStep"):
	default:
		t.operator(e)
	}
}

// kernel adds what a GPU does.
func (t *trace) kernel(e *event) {
	if t.devices == nil {
		t.devices = map[string]bool{}
	}
	if len(t.devices) < mostThreads {
		t.devices[string(e.Pid)] = true
	}
	t.device.add(e.Name, t.part(e.Name), e.Dur/1e6, 1)
}

// operator begins or ends an operator of a thread.
func (t *trace) operator(e *event) {
	th := t.thread(e)
	if th == nil {
		return
	}
	switch e.Kind {
	case "X":
		t.begin(th, e, e.At+e.Dur)
	case "B":
		t.begin(th, e, math.Inf(1))
	case "E":
		if n := len(th.open); n > 0 {
			top := th.open[n-1]
			th.open = th.open[:n-1]
			top.own += max(0, e.At-top.begun)
			if n > 1 {
				th.open[n-2].own -= max(0, e.At-top.begun)
			}
			t.close(top)
		}
	}
}

// thread returns the thread of an event, or nil if there are too many.
func (t *trace) thread(e *event) *thread {
	if t.latest != nil && string(e.Pid) == t.pid && string(e.Tid) == t.tid {
		return t.latest
	}
	pid, tid := string(e.Pid), string(e.Tid)
	th := t.threads[pid+"/"+tid]
	if th == nil {
		if len(t.threads) >= mostThreads {
			return nil
		}
		th = &thread{}
		t.threads[pid+"/"+tid] = th
	}
	t.latest, t.pid, t.tid = th, pid, tid
	return th
}

// part is PartOf with a cache.
func (t *trace) part(name string) Part {
	p, known := t.parts[name]
	if known {
		return p
	}
	p = PartOf(name)
	if t.parts == nil {
		t.parts = map[string]Part{}
	}
	if len(t.parts) < mostNames {
		t.parts[name] = p
	}
	return p
}

// begin closes the operators that have ended by then, and opens a nested operator.
func (t *trace) begin(th *thread, e *event, end float64) {
	for n := len(th.open); n > 0 && (th.open[n-1].end <= e.At || th.open[n-1].begun > e.At || n >= deepest); n-- {
		t.close(th.open[n-1])
		th.open = th.open[:n-1]
	}
	s := span{name: e.Name, part: t.part(e.Name), end: end, own: e.Dur, begun: e.At}
	s.backward = strings.HasPrefix(e.Name, backwardPass)
	if n := len(th.open); n > 0 {
		outer := &th.open[n-1]
		outer.own -= e.Dur
		switch {
		case outer.part == Recomputation && s.backward: // the gradients of the recomputed part
			s.part = Compute
		case outer.part != Compute: // a callee of a loader is loading
			s.part = outer.part
		case outer.backward && forward[e.Name]:
			s.part = Recomputation
		}
		s.backward = s.backward || outer.backward
	}
	if e.double() {
		s.name += in64Suffix
	}
	th.open = append(th.open, s)
}

func (t *trace) close(s span) { t.host.add(s.name, s.part, max(0, s.own)/1e6, 1) }

// profile returns the result. If GPUs ran, their kernels are the operators.
func (t *trace) profile() Profile {
	for _, th := range t.threads {
		for _, s := range th.open {
			t.close(s)
		}
	}
	p := Profile{Tool: "PyTorch Profiler or Chrome trace", Seconds: max(0, t.last-t.first) / 1e6}
	p.Shares = t.host.shares(p.Seconds)
	p.Operators = t.host.list()
	if len(t.devices) > 0 && p.Seconds > 0 {
		all := p.Seconds * float64(len(t.devices))
		for part, v := range t.device.parts {
			if part != Compute {
				p.Shares[part] = max(p.Shares[part], min(1, v/all))
			}
		}
		busy := min(1, t.device.total/all)
		p.GPUBusy, p.OnGPU = &busy, true
		p.Shares[Compute] = min(1, t.device.parts[Compute]/all)
		p.Operators = t.device.list()
	}
	return p
}
