package client

import "time"

// Telemetry is what the machines of an attempt were measured to do. Unknown is null, or not there.
type Telemetry struct {
	Job      string   `json:"job"`
	State    string   `json:"state"` // of the job
	Attempt  string   `json:"attempt"`
	Live     bool     `json:"live"`     // the attempt goes on
	Attempts []string `json:"attempts"` // of the job that have measurements, in order
	Seconds  float64  `json:"seconds"`  // measured, summed over machines, wall
	// Figures are what each metric came to over the attempt and all its machines, cores and GPUs, by name.
	Figures map[string]Figure `json:"figures"`
	Hint    string            `json:"hint,omitempty"` // what the figures mean for the next run, in a sentence
	Nodes   []TelemetryNode   `json:"nodes"`
}

// Figure is what a metric came to.
type Figure struct {
	Average float64  `json:"average"` // over the time that it was measured
	Peak    float64  `json:"peak"`    // highest mean of ten seconds
	Last    *float64 `json:"last"`    // mean of the newest ten seconds; null: not measured then
	Total   *float64 `json:"total"`   // of an amount a second: the amount; null: it is none
}

// TelemetryNode is a machine of an attempt.
type TelemetryNode struct {
	Node     int               `json:"node"` // its rank
	Instance string            `json:"instance"`
	Cores    *int              `json:"cores"`
	Memory   *int64            `json:"memory_bytes"`
	GPUs     []GPU             `json:"gpus"` // that the task has, in the order of their values
	Driver   string            `json:"driver,omitempty"`
	Seconds  float64           `json:"seconds"` // measured, wall
	Until    *time.Time        `json:"until"`   // end of the newest bucket, wall
	Figures  map[string]Figure `json:"figures"`
	Buckets  []TelemetryBucket `json:"buckets"` // ten seconds each in the last hour, wider before
}

// GPU is one that a task has.
type GPU struct {
	Index  int      `json:"index"` // on its machine
	Name   string   `json:"name"`
	Memory *int64   `json:"memory_bytes"`
	Power  *float64 `json:"power_limit_watts"`
}

// TelemetryBucket is what was measured in a span. Metrics by name, each with a value of each core or GPU where it is
// of those, else with one.
type TelemetryBucket struct {
	At      time.Time             `json:"at"`      // begin, wall
	Width   float64               `json:"width"`   // seconds
	Covered float64               `json:"covered"` // seconds of them in which something was measured
	Mean    map[string][]*float64 `json:"mean"`
	Peak    map[string][]*float64 `json:"peak,omitempty"` // highest mean of ten seconds; not there: as the mean
}

// JobTelemetry is what the machines of a running job do now.
type JobTelemetry struct {
	Job      string     `json:"job"`
	Name     string     `json:"name"`
	User     string     `json:"user,omitempty"`
	Team     string     `json:"team,omitempty"`
	Project  string     `json:"project,omitempty"`
	Attempt  string     `json:"attempt"`
	Nodes    int        `json:"nodes"`
	Measured int        `json:"measured"` // nodes that were measured in the last minute
	GPUs     int        `json:"gpus"`     // of those
	At       *time.Time `json:"at"`       // end of the newest ten seconds, wall; null: nothing is known
	// Now is each metric by name: shares and temperatures as means, amounts as sums over machines and GPUs.
	Now map[string]float64 `json:"now"`
}
