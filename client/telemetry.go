package client

import "time"

// Telemetry is the telemetry of an attempt's machines. Unknown values are null or missing.
type Telemetry struct {
	Job      string   `json:"job"`
	State    string   `json:"state"` // of the job
	Attempt  string   `json:"attempt"`
	Live     bool     `json:"live"`     // the attempt is live
	Attempts []string `json:"attempts"` // attempts of the job with telemetry, in order
	Seconds  float64  `json:"seconds"`  // time with telemetry, summed over machines, wall time
	// Figures holds each metric over the attempt and all its machines, cores and GPUs, by name.
	Figures map[string]Figure `json:"figures"`
	Hint    string            `json:"hint,omitempty"` // advice for the next run, a sentence
	Nodes   []TelemetryNode   `json:"nodes"`
}

// Figure summarizes a metric.
type Figure struct {
	Average float64  `json:"average"` // over the time with telemetry
	Peak    float64  `json:"peak"`    // highest mean of ten seconds
	Last    *float64 `json:"last"`    // mean of the latest ten seconds; null: no telemetry then
	Total   *float64 `json:"total"`   // for a rate: the total amount; null: not a rate
}

// TelemetryNode is a machine of an attempt.
type TelemetryNode struct {
	Node     int               `json:"node"` // its rank
	Instance string            `json:"instance"`
	Cores    *int              `json:"cores"`
	Memory   *int64            `json:"memory_bytes"`
	GPUs     []GPU             `json:"gpus"` // GPUs of the task, in the order of their values
	Driver   string            `json:"driver,omitempty"`
	Seconds  float64           `json:"seconds"` // time with telemetry, wall time
	Until    *time.Time        `json:"until"`   // end of the newest bucket, wall time
	Figures  map[string]Figure `json:"figures"`
	Buckets  []TelemetryBucket `json:"buckets"` // ten seconds each in the last hour, wider before
}

// GPU is a GPU of a task.
type GPU struct {
	Index  int      `json:"index"` // on its machine
	Name   string   `json:"name"`
	Memory *int64   `json:"memory_bytes"`
	Power  *float64 `json:"power_limit_watts"`
}

// TelemetryBucket holds the telemetry of one span: metrics by name, each with a value per core or GPU if it is
// theirs, else with one value.
type TelemetryBucket struct {
	At      time.Time             `json:"at"`      // start, wall time
	Width   float64               `json:"width"`   // seconds
	Covered float64               `json:"covered"` // seconds with telemetry
	Mean    map[string][]*float64 `json:"mean"`
	Peak    map[string][]*float64 `json:"peak,omitempty"` // highest mean of ten seconds; missing: same as Mean
}

// JobTelemetry is the present telemetry of a running job.
type JobTelemetry struct {
	Job      string     `json:"job"`
	Name     string     `json:"name"`
	User     string     `json:"user,omitempty"`
	Team     string     `json:"team,omitempty"`
	Project  string     `json:"project,omitempty"`
	Attempt  string     `json:"attempt"`
	Nodes    int        `json:"nodes"`
	Measured int        `json:"measured"` // nodes with telemetry in the last minute
	GPUs     int        `json:"gpus"`     // of those nodes
	At       *time.Time `json:"at"`       // end of the latest ten seconds, wall time; null: unknown
	// Now holds each metric by name: shares and temperatures as means, amounts as sums over machines and GPUs.
	Now map[string]float64 `json:"now"`
}
