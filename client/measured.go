package client

import (
	"fmt"
	"time"

	"scrimp/money"
)

// Run is what a run that is over has measured. Spans go by the market's clock. Null is unknown.
type Run struct {
	Job       string    `json:"job"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"` // of the job: experiment, production …
	State     string    `json:"state"`
	Submitted time.Time `json:"submitted"` // market
	Finished  time.Time `json:"finished"`  // market

	// Where it ran longest.
	Offer        string  `json:"offer"`
	Machine      string  `json:"machine,omitempty"`
	Accelerator  string  `json:"accelerator,omitempty"`
	Accelerators int     `json:"accelerators,omitempty"`
	Speed        float64 `json:"speed"` // of that machine

	CPUs  int      `json:"cpus,omitempty"` // of that machine
	Cores *float64 `json:"cores_used"`     // of them, on average while the program ran

	Steps        int64    `json:"steps"`          // newest seen
	Total        *int64   `json:"total"`          // of the whole job
	StepsPerHour *float64 `json:"steps_per_hour"` // on a machine of speed 1
	Spread       *float64 `json:"spread"`         // from minute to minute, a share
	WorkS        *float64 `json:"work_s"`         // all of the work on speed 1, in seconds
	ExpectedS    *float64 `json:"expected_s"`     // what was said of that at the submission

	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`
	// at the first decision, or else the stated work at the first machine's price
	ExpectedCost *money.Amount `json:"expected_cost"`

	Model      *Model   `json:"model"`          // as the job file says it
	Work       Workload `json:"work"`           // likewise
	Unit       string   `json:"unit,omitempty"` // of throughput
	Throughput *float64 `json:"throughput"`     // of the whole job, on the machine where it ran longest
	PeakMemory *float64 `json:"peak_memory_gb"` // of one accelerator, as the program reports it

	// hash of the command: what is measured of one program says nothing of another
	Program string `json:"program,omitempty"`
	Env     string `json:"env,omitempty"` // hash of its environment but STEPS
}

// Model is the shape of what is trained, or a file that says it.
type Model struct {
	Config     string  `json:"config,omitempty"`
	Parameters float64 `json:"parameters,omitempty"`
	Layers     int     `json:"layers,omitempty"`
	Hidden     int     `json:"hidden,omitempty"`
	Shape      string  `json:"shape,omitempty"`
	Sequence   int64   `json:"sequence,omitempty"`
	Batch      int64   `json:"batch,omitempty"`
	Precision  string  `json:"precision,omitempty"`
	Tuning     string  `json:"tuning,omitempty"`
	Features   int64   `json:"features,omitempty"`

	Sharding      string `json:"sharding,omitempty"`
	Tensor        int    `json:"tensor_parallel,omitempty"`
	Pipeline      int    `json:"pipeline_parallel,omitempty"`
	Checkpointing string `json:"activation_checkpointing,omitempty"`
}

// Workload is how much there is to do.
type Workload struct {
	Steps   int64    `json:"steps,omitempty"`
	Epochs  float64  `json:"epochs,omitempty"`
	Samples int64    `json:"samples,omitempty"`
	Tokens  int64    `json:"tokens,omitempty"`
	Time    Duration `json:"time,omitempty"`
}

// Duration is a span whose text carries its unit: 1h30m.
type Duration time.Duration

// MarshalText writes the span.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("read a span: %w", err)
	}
	*d = Duration(v)
	return nil
}
