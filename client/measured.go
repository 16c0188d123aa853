package client

import (
	"fmt"
	"time"

	"scrimp/money"
)

// Run is the measurement of a finished run. Durations are market time. Null is unknown.
type Run struct {
	Job       string    `json:"job"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"` // of the job: experiment, production, and so on
	State     string    `json:"state"`
	Submitted time.Time `json:"submitted"` // market
	Finished  time.Time `json:"finished"`  // market

	// Where it ran longest.
	Offer        string  `json:"offer"`
	Machine      string  `json:"machine,omitempty"`
	Accelerator  string  `json:"accelerator,omitempty"`
	Accelerators int     `json:"accelerators,omitempty"`
	Speed        float64 `json:"speed"` // of the work on that machine

	CPUs  int      `json:"cpus,omitempty"` // of that machine
	Cores *float64 `json:"cores_used"`     // cores in use, on average while the program ran

	// What the job had of that machine, and the speed of its offer; 0: unknown. Speed is higher where more processors or
	// accelerators make the work faster.
	HadCPUs         int     `json:"had_cpus,omitempty"`
	HadAccelerators int     `json:"had_accelerators,omitempty"`
	OfferSpeed      float64 `json:"offer_speed,omitempty"`

	Steps        int64    `json:"steps"`          // latest seen
	Total        *int64   `json:"total"`          // of the whole job
	StepsPerHour *float64 `json:"steps_per_hour"` // on a machine of speed 1
	Spread       *float64 `json:"spread"`         // variation from minute to minute, as a share
	WorkS        *float64 `json:"work_s"`         // total work on a machine of speed 1, in seconds
	ExpectedS    *float64 `json:"expected_s"`     // the submission's statement of WorkS

	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`
	// at the first decision, or else the stated work at the first machine's price
	ExpectedCost *money.Amount `json:"expected_cost"`

	Model      *Model   `json:"model"`          // as in the job file
	Work       Workload `json:"work"`           // as in the job file
	Unit       string   `json:"unit,omitempty"` // of throughput
	Throughput *float64 `json:"throughput"`     // of the whole job, on the machine where it ran longest
	PeakMemory *float64 `json:"peak_memory_gb"` // of one accelerator, as the program reports it

	// hash of the command: measurements of one program say nothing about another
	Program string `json:"program,omitempty"`
	Env     string `json:"env,omitempty"` // hash of its environment without STEPS
}

// Model is the shape of the trained model, or a file with it.
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

// Workload is the amount of work.
type Workload struct {
	Steps    int64    `json:"steps,omitempty"`
	Epochs   float64  `json:"epochs,omitempty"`
	Samples  int64    `json:"samples,omitempty"`
	Tokens   int64    `json:"tokens,omitempty"`
	Time     Duration `json:"time,omitempty"`
	Parallel *float64 `json:"parallel,omitempty"` // share that more processors or accelerators make faster
}

// Duration is a duration with a unit in its text, such as 1h30m.
type Duration time.Duration

// MarshalText formats the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses the output of MarshalText.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("parse a duration: %w", err)
	}
	*d = Duration(v)
	return nil
}
