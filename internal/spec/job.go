// Package spec holds what the user asks for: the job file, its validation and
// its messages.
package spec

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/money"
	"scrimp/internal/size"
)

// Job is a job file. The zero value of a field means that the file does not say.
type Job struct {
	Name    string            `json:"name,omitempty" doc:"what the job is called; a DNS label"`
	Kind    string            `json:"kind,omitempty" enum:"experiment,production,interactive,inference,data" doc:"what the job is for"`
	Command string            `json:"command,omitempty" doc:"the program, for sh -c"`
	Args    []string          `json:"args,omitempty" doc:"the program without a shell, instead of command"`
	Setup   string            `json:"setup,omitempty" doc:"run once on each machine before the command"`
	Workdir string            `json:"workdir,omitempty" doc:"folder that is copied to the machine; the job file's own unless set"`
	Env     map[string]string `json:"env,omitempty" doc:"environment of the program"`
	Secrets []string          `json:"secrets,omitempty" doc:"names of environment variables whose values are taken from the submitting shell and never written to a log"`
	Data    []Data            `json:"data,omitempty" doc:"inputs, for planning transfers"`
	Outputs []string          `json:"outputs,omitempty" doc:"folders below the work folder that are kept after the machine is gone, also after failure"`

	Resources Resources  `json:"resources,omitzero" doc:"what a machine must have"`
	AnyOf     []Variant  `json:"any_of,omitempty" doc:"alternatives: other resources with other arguments"`
	Nodes     int        `json:"nodes,omitempty" doc:"machines that start together"`
	MaxPrice  money.Rate `json:"max_price,omitempty" doc:"highest price of a machine's hour"`

	Model      Model      `json:"model,omitzero" doc:"the model, for estimates"`
	Work       Work       `json:"work,omitzero" doc:"how much there is to do, if known"`
	Metric     Metric     `json:"metric,omitzero" doc:"what the run is judged by"`
	Checkpoint Checkpoint `json:"checkpoint,omitzero" doc:"where the program saves and what is kept"`
	Progress   Progress   `json:"progress,omitzero" doc:"how an unmodified program shows its progress"`

	Priority string   `json:"priority,omitempty" enum:"critical,normal,low" doc:"critical never runs on what can be taken away"`
	Deadline Deadline `json:"deadline,omitzero" doc:"when it must be done: a time, or in 6h"`
	Window   string   `json:"window,omitempty" doc:"hours in which it may run, such as 22:00-06:00"`
	Budget   Budget   `json:"budget,omitzero" doc:"the most it may use: dollars, or dollars, gpu_hours and wall_clock"`
	First    string   `json:"first,omitempty" enum:"budget,deadline" doc:"which wins where both cannot hold"`
	Promise  float64  `json:"promise,omitempty" doc:"share of such jobs that must be in time, 0 to 1"`
	Retry    Retry    `json:"retry,omitzero" doc:"which failures are tried again"`
	Signal   string   `json:"signal,omitempty" doc:"sent to ask for a save and an end, such as TERM or USR1@90s"`
	Grace    Duration `json:"grace,omitempty" doc:"wall time between the signal and the kill"`
	Idle     Duration `json:"idle,omitempty" doc:"stop when the machine does nothing for so long"`
	Notify   string   `json:"notify,omitempty" doc:"URL that is told when the job is over"`
	Compat   string   `json:"compat,omitempty" enum:"skypilot,dstack,sagemaker,slurm" doc:"set the variables of that system too"`

	Team         string            `json:"team,omitempty" doc:"whose cost it is"`
	Project      string            `json:"project,omitempty" doc:"whose cost it is"`
	Environment  string            `json:"environment,omitempty" doc:"whose cost it is"`
	ModelVersion string            `json:"model_version,omitempty" doc:"whose cost it is"`
	Tags         map[string]string `json:"tags,omitempty" doc:"on every resource and posting"`
}

// Data is an input.
type Data struct {
	Path   string     `json:"path,omitempty" doc:"path or URL"`
	Size   size.Bytes `json:"size,omitempty" doc:"with its unit"`
	Region string     `json:"region,omitempty" doc:"where it lies"`
}

// Resources are what a machine must have.
type Resources struct {
	CPUs        Range    `json:"cpus,omitzero" doc:"processors: 4, 4+ or 4..16"`
	Memory      Sizes    `json:"memory,omitzero" doc:"memory with its unit: 8GiB, 8GiB+ or 8GiB..64GiB"`
	Disk        Sizes    `json:"disk,omitzero" doc:"disk with its unit"`
	Accelerator string   `json:"accelerator,omitempty" doc:"kind and count: H100:1..8"`
	Zones       []string `json:"zones,omitempty" doc:"zones or regions it may run in; all unless set"`
	Capacity    []string `json:"capacity,omitempty" enum:"spot,on-demand,reserved" doc:"kinds of capacity it may use; all unless set"`
}

// Variant is an alternative way to run the job.
type Variant struct {
	Name       string            `json:"name,omitempty" doc:"of the variant"`
	Resources  Resources         `json:"resources,omitzero" doc:"instead of the job's"`
	Env        map[string]string `json:"env,omitempty" doc:"besides the job's"`
	Args       []string          `json:"args,omitempty" doc:"instead of the job's"`
	Throughput float64           `json:"throughput,omitempty" doc:"work per second against the job itself, such as 1.6"`
}

// Model is the shape of what is trained, or a file that says it.
type Model struct {
	Config     string  `json:"config,omitempty" doc:"a config.json"`
	Parameters float64 `json:"parameters,omitempty" doc:"how many"`
	Layers     int     `json:"layers,omitempty" doc:"how many"`
	Hidden     int     `json:"hidden,omitempty" doc:"width"`
}

// Work is how much there is to do.
type Work struct {
	Steps   int64    `json:"steps,omitempty" doc:"optimiser steps"`
	Epochs  float64  `json:"epochs,omitempty" doc:"passes over the data"`
	Samples int64    `json:"samples,omitempty" doc:"training samples"`
	Tokens  int64    `json:"tokens,omitempty" doc:"training tokens"`
	Time    Duration `json:"time,omitempty" doc:"expected time of an uninterrupted run, market time"`
}

// Metric is what the run is judged by.
type Metric struct {
	Name     string   `json:"name,omitempty" doc:"as the program reports it"`
	Goal     string   `json:"goal,omitempty" enum:"minimize,maximize" doc:"which way is better"`
	Target   *float64 `json:"target,omitempty" doc:"reached is a success, and the rest of the money comes back"`
	Patience int64    `json:"patience,omitempty" doc:"steps without improvement that end the run"`
	MinDelta float64  `json:"min_delta,omitempty" doc:"what counts as improvement"`
}

// Checkpoint is where the program saves and what is kept.
type Checkpoint struct {
	Dir      string `json:"dir,omitempty" doc:"folder below the work folder; the program also finds it in SCRIMP_CHECKPOINT_DIR"`
	Interval string `json:"interval,omitempty" doc:"auto, or a span of wall time"`
	Keep     int    `json:"keep,omitempty" doc:"newest versions that are kept"`
	Best     bool   `json:"best,omitempty" doc:"keep the best by the metric too"`
	EveryNth int    `json:"every_nth,omitempty" doc:"keep every Nth version too"`
	Store    string `json:"store,omitempty" doc:"file:///… or s3://…; the data folder unless set"`
}

// Progress is how an unmodified program shows its progress.
type Progress struct {
	Pattern string `json:"pattern,omitempty" doc:"regular expression with groups step, total, epoch; any other group is a metric"`
	Saved   string `json:"saved,omitempty" doc:"regular expression of the line that says a save is complete; group step"`
	File    string `json:"file,omitempty" doc:"file of JSON lines"`
}

// Budget is the most a job may use.
type Budget struct {
	Dollars   *money.Amount `json:"dollars,omitempty" doc:"in all, over every attempt"`
	GPUHours  float64       `json:"gpu_hours,omitempty" doc:"in all"`
	WallClock Duration      `json:"wall_clock,omitempty" doc:"from the first machine on, market time"`
}

// Retry says which failures are tried again.
type Retry struct {
	Max   int   `json:"max,omitempty" doc:"how often at most"`
	Codes []int `json:"codes,omitempty" doc:"exit statuses that are tried again; 75 always is"`
}

// Duration is a span such as 1h30m or 2d.
type Duration time.Duration

// ParseDuration reads a span with its unit; d is a day of 24 hours.
func ParseDuration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n >= 0 && n < 1e5 {
			span := time.Duration(n * 24 * float64(time.Hour))
			if rest == "" {
				return span, nil
			}
			more, err := time.ParseDuration(rest)
			return span + more, err
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a span with its unit, such as 90s, 1h30m or 2d", s)
	}
	return d, nil
}

// MarshalText writes the span.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a span.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Range is a count from Min to Max; Max 0 is no upper limit.
type Range struct{ Min, Max int }

// UnmarshalText reads 4, 4+ or 4..16.
func (r *Range) UnmarshalText(b []byte) error {
	low, high, err := bounds(string(b), func(s string) (int64, error) { return strconv.ParseInt(s, 10, 32) })
	if err != nil {
		return fmt.Errorf("%q is not a count such as 4, 4+ or 4..16", b)
	}
	*r = Range{int(low), int(high)}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (r Range) MarshalText() ([]byte, error) {
	switch r.Max {
	case 0:
		return fmt.Appendf(nil, "%d+", r.Min), nil
	case r.Min:
		return fmt.Appendf(nil, "%d", r.Min), nil
	}
	return fmt.Appendf(nil, "%d..%d", r.Min, r.Max), nil
}

// Sizes is a size from Min to Max; Max 0 is no upper limit.
type Sizes struct{ Min, Max size.Bytes }

// UnmarshalText reads 8GiB, 8GiB+ or 8GiB..64GiB.
func (r *Sizes) UnmarshalText(b []byte) error {
	low, high, err := bounds(string(b), func(s string) (int64, error) { v, err := size.Parse(s); return int64(v), err })
	if err != nil {
		return fmt.Errorf("%q is not a size with its unit, such as 8GiB, 8GiB+ or 8GiB..64GiB", b)
	}
	*r = Sizes{size.Bytes(low), size.Bytes(high)}
	return nil
}

// MarshalText writes what UnmarshalText reads, in bytes so that nothing is lost.
func (r Sizes) MarshalText() ([]byte, error) {
	switch r.Max {
	case 0:
		return fmt.Appendf(nil, "%dB+", r.Min), nil
	case r.Min:
		return fmt.Appendf(nil, "%dB", r.Min), nil
	}
	return fmt.Appendf(nil, "%dB..%dB", r.Min, r.Max), nil
}

func bounds(s string, parse func(string) (int64, error)) (low, high int64, err error) {
	a, b, isRange := strings.Cut(s, "..")
	if open, ok := strings.CutSuffix(s, "+"); ok {
		low, err = parse(open)
		return low, 0, err
	}
	if low, err = parse(a); err != nil {
		return 0, 0, err
	}
	if !isRange {
		return low, low, nil
	}
	high, err = parse(b)
	if err == nil && high < low {
		err = fmt.Errorf("the upper limit is below the lower")
	}
	return low, high, err
}

// Deadline is a time, or a span from the submission on. Spans become times in Resolve.
type Deadline struct {
	At time.Time
	In time.Duration
}

// IsZero reports whether there is none.
func (d Deadline) IsZero() bool { return d.At.IsZero() && d.In == 0 }

// Resolve returns the time when submitted at now, in market time.
func (d Deadline) Resolve(now time.Time) time.Time {
	if d.In > 0 {
		return now.Add(d.In)
	}
	return d.At
}

// UnmarshalText reads "in 6h" or a time in the form of RFC 3339.
func (d *Deadline) UnmarshalText(b []byte) error {
	if span, ok := strings.CutPrefix(string(b), "in "); ok {
		v, err := ParseDuration(span)
		if err == nil && v <= 0 {
			err = fmt.Errorf("%q has passed already", b)
		}
		*d = Deadline{In: v}
		return err
	}
	t, err := time.Parse(time.RFC3339, string(b))
	if err != nil {
		return fmt.Errorf("%q is neither a time such as 2026-12-01T18:00:00Z nor a span such as in 6h", b)
	}
	*d = Deadline{At: t.UTC()}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Deadline) MarshalText() ([]byte, error) {
	if d.In > 0 {
		return fmt.Appendf(nil, "in %v", d.In), nil
	}
	return []byte(d.At.Format(time.RFC3339)), nil
}

// Encode writes the job for the log.
func (j Job) Encode() (json.RawMessage, error) { return json.Marshal(j) }

// Decode reads what Encode wrote.
func Decode(b []byte) (Job, error) {
	var j Job
	err := json.Unmarshal(b, &j)
	return j, err
}
