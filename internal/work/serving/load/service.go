package load

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/figure"
	"scrimp/internal/market/accelerator"
)

// An Effort is how much of what the hardware can do a server reaches. These are assumptions, not measurements.
type Effort struct {
	Compute float64       // share of the dense rate
	Memory  float64       // share of the bandwidth
	Launch  time.Duration // for each batch, besides
	Step    time.Duration // for each token that is decoded, besides
}

// The ends and the middle of an estimate. No server is faster than Fast.
var (
	Fast    = Effort{Compute: 1, Memory: 1}
	Typical = Effort{Compute: 0.4, Memory: 0.65, Launch: 2 * time.Millisecond, Step: time.Millisecond}
	Slow    = Effort{Compute: 0.15, Memory: 0.4, Launch: 8 * time.Millisecond, Step: 5 * time.Millisecond}
)

// Roofline estimates the time of a batch from what its accelerators compute and read in a second.
//
//	prompt   max(operations / rate, weights / bandwidth)
//	decode   max(operations / rate, (steps · weights + cache read) / bandwidth)
//	shards   + tokens · 2 · layers · 2 (k-1)/k · width · 2 bytes / link
//
// A batch decodes until its longest answer is complete, and answers all requests then. Worked: Llama-3-8B in fp16 on
// an L4 (300 GB/s), one request: a token takes 16.06e9 / 300e9 = 53.5 ms at least.
type Roofline struct {
	model  *Model
	rate   float64 // operations a second of the accelerators of one copy
	band   float64 // bytes a second of the same
	link   float64 // bytes a second between them
	bytes  float64 // of the weights
	shards float64
	effort Effort
}

// NewRoofline returns the estimate for a fit on an accelerator. It is false where a fact is unknown that it needs.
func NewRoofline(m *Model, f Fit, a accelerator.Accelerator, link figure.Figure, e Effort) (*Roofline, bool) {
	rate, ok := a.Half()
	if !link.OK {
		link = a.Link
	}
	if !ok || !a.Bandwidth.OK || f.Shards > 1 && !link.OK {
		return nil, false
	}
	k := float64(f.Shards)
	return &Roofline{model: m, rate: rate * 1e12 * k * e.Compute, band: a.Bandwidth.V * 1e9 * k * e.Memory,
		link: link.V * 1e9 * e.Memory, bytes: float64(f.Weights), shards: k, effort: e}, true
}

// Time returns how long the n requests from first on take as one batch.
func (r *Roofline) Time(first, n int) time.Duration {
	prompt, decode := r.Phases(first, n)
	return clamp(prompt + decode)
}

// longest is far beyond the end of any simulation.
const longest = 3000 * 24 * time.Hour

// clamp turns seconds into a span of longest at most.
func clamp(seconds float64) time.Duration {
	return time.Duration(math.Min(seconds, longest.Seconds()) * 1e9)
}

// Phases returns the seconds of both phases of a batch.
func (r *Roofline) Phases(first, n int) (prompt, decode float64) {
	m := r.model
	flops, tokens := m.once*float64(n), m.perPass*float64(n)
	var read, steps, most float64
	for i := first; i < first+n; i++ {
		if m.flops != nil {
			flops += m.flops[i]
			tokens += m.tokens[i]
		}
		if m.steps != nil {
			read += m.read[i]
			steps += float64(m.steps[i])
			most = math.Max(most, float64(m.steps[i]))
		}
	}
	acts := m.Shape.Acts * 1e6 * 2 * float64(n)
	prompt = math.Max(flops/r.rate, (r.bytes+acts)/r.band) + r.effort.Launch.Seconds()
	if most > 0 {
		// Of a model with experts a step reads those that its tokens pass through, each token others at most.
		weights := r.bytes * math.Min(1, m.Shape.Pass()/m.Shape.Params*float64(n))
		decode = math.Max(2*m.Shape.Products()*steps/r.rate, (most*weights+read)/r.band)
		decode += most * r.effort.Step.Seconds()
	}
	if r.shards > 1 {
		s := m.Shape
		moved := tokens * 2 * s.Deep() * 2 * (r.shards - 1) / r.shards * s.Wide() * 2 / r.link
		if tokens > 0 {
			decode += moved * steps / tokens
			prompt += moved * (tokens - steps) / tokens
		}
	}
	return prompt, decode
}

// A Point is the measured time of one batch.
type Point struct {
	Batch   int
	Seconds float64
	As      string // the name as the file writes it
}

// Measured is the times of an accelerator, a machine or a function by batch, ascending. Between two batches it
// interpolates; a batch below the smallest takes as long as that.
type Measured []Point

// Time returns how long a batch of n requests takes, whichever they are.
func (m Measured) Time(_, n int) time.Duration {
	i := slices.IndexFunc(m, func(p Point) bool { return p.Batch >= n })
	switch {
	case i < 0:
		return clamp(m[len(m)-1].Seconds)
	case i == 0 || m[i].Batch == n:
		return clamp(m[i].Seconds)
	}
	a, b := m[i-1], m[i]
	share := float64(n-a.Batch) / float64(b.Batch-a.Batch)
	return clamp(a.Seconds + float64(share*(b.Seconds-a.Seconds)))
}

// Name returns the name of the measurements as their file writes it, or else the one given.
func (m Measured) Name(otherwise string) string {
	if m[0].As == "" {
		return otherwise
	}
	return m[0].As
}

// Largest returns the largest batch that was measured.
func (m Measured) Largest() int { return m[len(m)-1].Batch }

// Limits of a file of measurements.
const (
	maxMeasured      = 10_000
	maxMeasuredBatch = 1024
	maxSeconds       = 86_400
)

const measuredHead = "accelerator,batch,seconds"

// ReadMeasured reads CSV: accelerator,batch,seconds. The first column names an accelerator, a machine type or a
// function.
func ReadMeasured(file string, in io.Reader) (map[string]Measured, error) {
	out := map[string]Measured{}
	line := 0
	s := bufio.NewScanner(in)
	for s.Scan() {
		line++
		text := strings.TrimSpace(strings.TrimPrefix(s.Text(), "\ufeff"))
		fields := strings.Split(text, ",")
		for i := range fields {
			fields[i] = plain(fields[i])
		}
		cause, fix := "", ""
		switch {
		case line == 1 && strings.HasPrefix(text, "\x1f\x8b"):
			cause, fix = "the file is compressed with gzip", "unpack it first: gunzip FILE"
		case line == 1 && !strings.EqualFold(strings.Join(fields, ","), measuredHead):
			cause, fix = fmt.Sprintf("%.60q is not the header of measurements", text), "write "+measuredHead
		case line == 1 || text == "":
		case line > maxMeasured:
			cause, fix = fmt.Sprintf("is beyond %d rows", maxMeasured), "give one row for each batch"
		default:
			cause, fix = measuredRow(fields, out)
		}
		if cause != "" {
			return nil, fmt.Errorf("%s: line %d: %s: %s", file, line, cause, fix)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: has no measurement: write %s and a row for each batch", file, measuredHead)
	}
	for _, m := range out {
		slices.SortFunc(m, func(a, b Point) int { return a.Batch - b.Batch })
	}
	return out, nil
}

// measuredRow adds a row, or says what is wrong with it.
func measuredRow(fields []string, out map[string]Measured) (cause, fix string) {
	if len(fields) != 3 || fields[0] == "" || len(fields[0]) > 100 {
		return "has " + draw.Count(len(fields), "field"), "write " + measuredHead + ", such as L4,8,0.042"
	}
	batch, err := strconv.Atoi(fields[1])
	if err != nil || batch < 1 || batch > maxMeasuredBatch {
		return fmt.Sprintf("batch: %.40q is %s", fields[1], notWhole(fields[1])),
			fmt.Sprintf("write a whole number from 1 to %d", maxMeasuredBatch)
	}
	took, ok := seconds(fields[2])
	if !ok || took <= 0 || took > maxSeconds*time.Second {
		cause := "out of range"
		if _, err := strconv.ParseFloat(fields[2], 64); err != nil {
			cause = "not a number"
		} else if !ok && strings.ContainsAny(fields[2], "eExXpP_") {
			cause = "not a plain decimal"
		}
		return fmt.Sprintf("seconds: %.40q is %s", fields[2], cause),
			fmt.Sprintf("write the seconds that the batch takes, above 0 and at most %d", maxSeconds)
	}
	name := strings.ToLower(fields[0])
	if slices.ContainsFunc(out[name], func(p Point) bool { return p.Batch == batch }) {
		return fmt.Sprintf("%s has batch %d twice", fields[0], batch), "write one time for each batch"
	}
	out[name] = append(out[name], Point{batch, took.Seconds(), fields[0]})
	return "", ""
}
