package profile

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// isFolded reports whether a line is a stack of py-spy: FRAME;FRAME;FRAME COUNT.
func isFolded(line string) bool {
	stack, count, ok := cutLast(line)
	_, err := strconv.ParseInt(count, 10, 64)
	return ok && err == nil && (strings.Contains(stack, ";") || strings.HasSuffix(stack, ")"))
}

func cutLast(line string) (before, after string, ok bool) {
	at := strings.LastIndexByte(line, ' ')
	if at <= 0 {
		return line, "", false
	}
	return line[:at], line[at+1:], true
}

// eachLine calls f with each line. A too long line is an error.
func eachLine(r *bufio.Reader, f func(string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, peeked), longestLine)
	for s.Scan() {
		if err := f(strings.TrimRight(s.Text(), "\r")); err != nil {
			return err
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return errors.New("a line is longer than 1 MiB: this is not a file of that tool")
	}
	if s.Err() != nil {
		return fmt.Errorf("read a line: %w", s.Err())
	}
	return nil
}

// network lists parts of the lower-case frames of clients that read from the network.
var network = []string{"urllib3/", "http/client.py", "urllib/request.py", "(socket.py", "botocore/", "s3fs/", "gcsfs/",
	"fsspec/", "aiohttp/", "requests/"}

// stackPart returns the purpose of a stack: that of its outermost frame with one. A loader that waits for the network
// reads from it, as does a main thread without a loader.
func stackPart(frames []string) Part {
	part, main := Compute, true
	for _, f := range frames {
		lower := strings.ToLower(f)
		main = main && !strings.Contains(lower, "threading.py")
		switch {
		case part == Recomputation:
			if strings.Contains(lower, "torch/autograd/__init__.py") { // the gradients of the recomputed part
				part = Compute
			}
		case part == Loading || part == Compute && main:
			if slices.ContainsFunc(network, func(w string) bool { return strings.Contains(lower, w) }) {
				return NetworkReads
			}
		}
		if part != Compute {
			continue
		}
		if part = PartOf(f); recomputes(lower) {
			part = Recomputation
		}
	}
	return part
}

// recomputes reports whether a frame is that of PyTorch's activation checkpointing in a backward pass.
func recomputes(frame string) bool {
	return strings.Contains(frame, "torch/utils/checkpoint.py") && (strings.HasPrefix(frame, "backward") ||
		strings.Contains(frame, "unpack") || strings.Contains(frame, "recompute"))
}

// readFolded reads the output of py-spy record --format raw.
func readFolded(r *bufio.Reader) (Profile, error) {
	t := newTally()
	odd, at := 0, 0
	err := eachLine(r, func(line string) error {
		at++
		stack, count, _ := cutLast(line)
		n, err := strconv.ParseInt(count, 10, 54)
		if err == nil && n < 0 {
			return fmt.Errorf("line %d has the negative count %d: record again with py-spy record --format raw", at, n)
		}
		if err != nil {
			if line != "" {
				odd++
			}
			return nil
		}
		frames := strings.Split(stack, ";")
		t.add(frames[len(frames)-1], stackPart(frames), float64(n), int64(n))
		return nil
	})
	if err != nil {
		return Profile{}, err
	}
	if t.total == 0 || odd > len(t.by) {
		return Profile{}, errors.New("most lines are not stacks of py-spy (FRAME;FRAME COUNT)")
	}
	return sampled("py-spy", t), nil
}

// sampled returns a profile that counts samples, so its time is unknown.
func sampled(tool string, t *tally) Profile {
	p := Profile{Tool: tool, Operators: t.list(), Shares: t.shares(t.total)}
	for i := range p.Operators {
		p.Operators[i].Seconds = 0
	}
	return p
}

// mostFrames bounds the functions of a speedscope file.
const mostFrames = 1 << 20

// readSpeedscope reads a speedscope file. Stacks refer to frames by index; the frames may precede or follow them.
func readSpeedscope(r *bufio.Reader) (Profile, error) {
	d := decoder(r)
	if _, err := d.Token(); err != nil {
		return Profile{}, fmt.Errorf("read JSON: %w", err)
	}
	s := speedscope{stacks: map[string]int32{}}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return Profile{}, fmt.Errorf("read JSON: %w", err)
		}
		switch key {
		case "shared":
			err = s.shared(d)
		case "profiles":
			err = s.profiles(d)
		default:
			err = skip(d)
		}
		if err != nil {
			return Profile{}, err
		}
	}
	return s.profile()
}

// speedscope adds up a file. The number of stacks is bounded: further ones count only for their own frame.
type speedscope struct {
	frames []string
	stacks map[string]int32 // by the frames' indices, four bytes each
	weight []float64        // by stack
}

// Bounds of what is kept of a file: distinct stacks, and samples of one profile.
const (
	mostStacks  = 100_000
	mostSamples = 1 << 22
)

// object calls f for each key of an object.
func object(d *json.Decoder, f func(key string) error) error {
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(errors.New("an object is missing: this is not a speedscope file"), err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		name, _ := key.(string)
		if err := f(name); err != nil {
			return err
		}
	}
	_, err := d.Token()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

func (s *speedscope) shared(d *json.Decoder) error {
	return object(d, func(key string) error {
		if key != "frames" {
			return skip(d)
		}
		return list(d, func() error {
			var f struct {
				Name string `json:"name"`
				File string `json:"file"`
			}
			if err := d.Decode(&f); err != nil {
				return fmt.Errorf("read a frame: %w", err)
			}
			if len(s.frames) >= mostFrames {
				return errors.New("it names more than a million functions")
			}
			name := f.Name
			if f.File != "" {
				name += " (" + f.File + ")"
			}
			s.frames = append(s.frames, name[:min(len(name), 200)])
			return nil
		})
	})
}

func list(d *json.Decoder, f func() error) error {
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(errors.New("a list is missing: this is not a speedscope file"), err)
	}
	return eachOf(d, f)
}

func (s *speedscope) profiles(d *json.Decoder) error {
	return list(d, func() error {
		var samples []int32 // of one profile; the weights precede or follow
		var weights []float64
		err := object(d, func(key string) error {
			switch key {
			case "samples":
				var one []int32
				return list(d, func() error {
					one = one[:0]
					if err := d.Decode(&one); err != nil {
						return fmt.Errorf("read a stack: %w", err)
					}
					if len(samples) < mostSamples {
						samples = append(samples, s.stack(one))
					}
					return nil
				})
			case "weights":
				return list(d, func() error {
					var w float64
					if err := d.Decode(&w); err != nil {
						return fmt.Errorf("read a weight: %w", err)
					}
					if w < 0 {
						return fmt.Errorf("weight %d of a profile is negative (%g): record again with py-spy record "+
							"--format speedscope", len(weights)+1, w)
					}
					if len(weights) < mostSamples {
						weights = append(weights, w)
					}
					return nil
				})
			}
			return skip(d)
		})
		for i, stack := range samples {
			w := 1.0
			if i < len(weights) {
				w = weights[i]
			}
			s.weight[stack] += w
		}
		return err
	})
}

// stack returns the number of a stack. Beyond the bound it is the number of the innermost frame alone.
func (s *speedscope) stack(frames []int32) int32 {
	if len(s.stacks) >= mostStacks && len(frames) > 1 {
		if n, known := s.stacks[string(pack(frames))]; known {
			return n
		}
		frames = frames[len(frames)-1:]
	}
	key := pack(frames)
	n, known := s.stacks[string(key)]
	if !known {
		n = int32(len(s.weight))
		s.stacks[string(key)] = n
		s.weight = append(s.weight, 0)
	}
	return n
}

// pack encodes frames as bytes, at most the innermost deepest ones. An invalid index denotes no frame.
func pack(frames []int32) []byte {
	frames = frames[max(0, len(frames)-deepest):]
	out := make([]byte, 0, 4*len(frames))
	for _, n := range frames {
		if n < 0 || n >= mostFrames {
			n = mostFrames
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	return out
}

func (s *speedscope) profile() (Profile, error) {
	t := newTally()
	for key, stack := range s.stacks {
		w := s.weight[stack]
		var frames []string
		for at := 0; at < len(key); at += 4 {
			if n := binary.BigEndian.Uint32([]byte(key[at : at+4])); int(n) < len(s.frames) {
				frames = append(frames, s.frames[n])
			}
		}
		if len(frames) > 0 {
			t.add(frames[len(frames)-1], stackPart(frames), w, 1)
		}
	}
	if t.total == 0 {
		return Profile{}, errors.New("it has no sampled profile: write it with py-spy record --format speedscope")
	}
	return sampled("speedscope", t), nil
}
