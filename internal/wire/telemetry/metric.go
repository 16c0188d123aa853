// Package telemetry holds the telemetry of machines as compact time series: their merging into wider buckets, their
// figures, and their encoding. It decides nothing. Unknown is not zero.
package telemetry

import "math"

// Metric is a telemetry metric.
type Metric int

// The metrics. Those of the machine count everything on it, those of the task its own processes.
const (
	CPU Metric = iota
	IOWait
	Idle
	Memory
	PageCache
	DiskRead
	DiskWrite
	NetReceive
	NetTransmit
	TaskCPU
	TaskMemory
	TaskRead
	TaskWrite
	Core
	GPU
	GPUMemory
	GPUPower
	GPUTemperature
	RunQueue
	TaskSystem
	TaskMain
	TaskMainBlocked
	TaskThreads
	TaskFaults
	TaskReadCalls
	TaskWriteCalls
	TaskReadCallBytes
	TaskWriteCallBytes
	TaskSteps
	TaskStalled
	Metrics // number of metrics; add new ones before this line, so that old series keep their meaning
)

// Of is the scope of a metric: the machine, the task, each core or each GPU has a value.
type Of int

// The scopes of metrics.
const (
	Machine Of = iota
	Task
	EachCore
	EachGPU
)

// MaxCores and MaxGPUs bound the cores and GPUs of a machine with values of their own.
const (
	MaxCores = 256
	MaxGPUs  = 16
)

// Kind describes a metric.
type Kind struct {
	Name string // as for Prometheus, without the program's name
	Help string
	Of   Of
	Most float64 // larger values are invalid

	scale float64 // the stored value is value × scale, rounded
	form  form
}

// form is the storage format of a value.
type form int

const (
	wide  form = iota // two bytes: exact up to 2,047, and within one part in 2,000 above
	short             // one byte, up to 254
	rough             // one byte, within 5 % above a few units
)

// The largest values that a machine may have.
const (
	ratio    = 1
	memory   = 1 << 50
	rate     = 1 << 40
	calls    = 1 << 27 // per second
	steps    = 1 << 24 // per second
	mebibyte = 1.0 / (1 << 20)
	kibibyte = 1.0 / (1 << 10)
)

var kinds = [Metrics]Kind{
	CPU: {"cpu_utilization_ratio", "Processor time in use, of all cores of the machine.", Machine, ratio, 1000, wide},
	IOWait: {"cpu_iowait_ratio", "Processor time without work while a read or write of a disk is waited for.", Machine,
		ratio, 1000, wide},
	Idle: {"cpu_idle_ratio", "Processor time without work otherwise.", Machine, ratio, 1000, wide},
	Memory: {"memory_used_bytes", "Memory that programs could not have: all but what is available.", Machine, memory,
		mebibyte, wide},
	PageCache: {"page_cache_bytes", "Memory that holds what files have.", Machine, memory, mebibyte, wide},
	DiskRead:  {"disk_read_bytes_per_second", "Bytes read from disks.", Machine, rate, kibibyte, wide},
	DiskWrite: {"disk_written_bytes_per_second", "Bytes written to disks.", Machine, rate, kibibyte, wide},
	NetReceive: {"network_received_bytes_per_second", "Bytes received from the network.", Machine, rate,
		kibibyte, wide},
	NetTransmit: {"network_transmitted_bytes_per_second", "Bytes sent to the network.", Machine, rate, kibibyte, wide},
	TaskCPU:     {"task_cpu_cores", "Processors that the task's processes use.", Task, 1 << 14, 100, wide},
	TaskMemory:  {"task_memory_bytes", "Memory of the task's processes.", Task, memory, mebibyte, wide},
	TaskRead:    {"task_disk_read_bytes_per_second", "Bytes that the task reads from disks.", Task, rate, kibibyte, wide},
	TaskWrite: {"task_disk_written_bytes_per_second", "Bytes that the task writes to disks.", Task, rate,
		kibibyte, wide},
	Core: {"core_utilization_ratio", "Processor time in use, of each core, once in some minutes.", EachCore, ratio, 100,
		short},
	GPU:            {"gpu_utilization_ratio", "Time in which a kernel ran on the GPU.", EachGPU, ratio, 1000, wide},
	GPUMemory:      {"gpu_memory_used_bytes", "Memory in use on the GPU.", EachGPU, memory, mebibyte, wide},
	GPUPower:       {"gpu_power_watts", "Power that the GPU draws.", EachGPU, 1 << 14, 10, wide},
	GPUTemperature: {"gpu_temperature_celsius", "Temperature of the GPU.", EachGPU, 254, 1, short},
	RunQueue: {"run_queue_threads", "Threads that run or wait for a processor, of all programs.", Machine, 1 << 20, 10,
		rough},
	TaskSystem: {"task_system_cpu_cores", "Processors that the kernel uses for the task's processes.", Task, 1 << 14, 100,
		rough},
	TaskMain: {"task_main_cpu_cores", "Processors that the task's oldest process uses, launchers and shells aside.", Task,
		1 << 14, 100, rough},
	TaskMainBlocked: {"task_main_blocked_ratio", "Time in which the first thread of that process neither runs nor could.",
		Task, ratio, 200, short},
	TaskThreads: {"task_threads", "Threads of the task's processes, each 20 s.", Task, 1 << 22, 1, rough},
	TaskFaults: {"task_major_faults_per_second", "Pages that the task had to wait for until a disk gave them.", Task,
		calls, 10, rough},
	TaskReadCalls:  {"task_read_calls_per_second", "Calls by which the task reads.", Task, calls, 1, rough},
	TaskWriteCalls: {"task_write_calls_per_second", "Calls by which the task writes.", Task, calls, 1, rough},
	TaskReadCallBytes: {"task_read_call_bytes_per_second", "Bytes that the task reads, from the page cache too.", Task,
		rate, kibibyte, rough},
	TaskWriteCallBytes: {"task_written_call_bytes_per_second", "Bytes that the task writes, to the page cache too.", Task,
		rate, kibibyte, rough},
	TaskSteps:   {"task_steps_per_second", "Steps that the program reports.", Task, steps, 100, rough},
	TaskStalled: {"task_stalled_ratio", "Time by which steps came much later than usual.", Task, ratio, 200, short},
}

// Kind returns the description of a metric.
func (m Metric) Kind() Kind { return kinds[m] }

func (m Metric) String() string { return kinds[m].Name }

// Named returns the metric of a name.
func Named(name string) (Metric, bool) {
	for m := range Metrics {
		if kinds[m].Name == name {
			return m, true
		}
	}
	return 0, false
}

// Width returns the highest number of values of a metric.
func (m Metric) Width() int {
	switch kinds[m].Of {
	case EachCore:
		return MaxCores
	case EachGPU:
		return MaxGPUs
	case Machine, Task:
	}
	return 1
}

// IsRate reports whether a metric is an amount per second, which adds up to an amount over time.
func (m Metric) IsRate() bool {
	switch m {
	case DiskRead, DiskWrite, NetReceive, NetTransmit, TaskRead, TaskWrite, TaskFaults, TaskReadCalls, TaskWriteCalls,
		TaskReadCallBytes, TaskWriteCallBytes, TaskSteps:
		return true
	default:
		return false
	}
}

// AddsUp reports whether machines and GPUs together have the sum of their values, and not the mean.
func (m Metric) AddsUp() bool {
	return kinds[m].Most != ratio && m != GPUTemperature && m != TaskSteps
}

// Value is a metric over a span: its mean, and its highest mean of ten seconds. NaN is unknown.
type Value struct{ Mean, Max float64 }

// Unknown is a missing value.
var Unknown = Value{math.NaN(), math.NaN()}

// Exactly returns a value that did not change.
func Exactly(v float64) Value { return Value{v, v} }

// Known reports whether the value is known.
func (v Value) Known() bool { return !math.IsNaN(v.Mean) }

// Bucket is the telemetry of one span.
type Bucket struct {
	Start   int64   // Unix seconds, wall time
	Width   int64   // seconds
	Covered float64 // seconds of the width with telemetry
	V       [Metrics][]Value
}

// End returns the end of the bucket.
func (b *Bucket) End() int64 { return b.Start + b.Width }

// Set sets the only value of a metric, or its first.
func (b *Bucket) Set(m Metric, v float64) { b.V[m] = []Value{Exactly(v)} }

// Value returns a metric's value with an index.
func (b *Bucket) Value(m Metric, index int) Value {
	if index < 0 || index >= len(b.V[m]) {
		return Unknown
	}
	return b.V[m][index]
}

// Least is the width of the narrowest buckets, in seconds: each start is a multiple of it.
const Least = 10

// Clear removes impossible values: they become unknown.
func (b *Bucket) Clear() {
	for m := range Metrics {
		b.V[m] = b.V[m][:min(len(b.V[m]), m.Width())]
		for i, v := range b.V[m] {
			if !(v.Mean >= 0 && v.Mean <= kinds[m].Most) {
				b.V[m][i] = Unknown
			}
		}
	}
}

// Valid reports whether a bucket can be from a machine: of the narrowest width, with possible values.
func (b *Bucket) Valid() bool {
	if b.Width != Least || b.Start < 0 || b.Start%Least != 0 || !(b.Covered > 0 && b.Covered <= Least) {
		return false
	}
	for m := range Metrics {
		if len(b.V[m]) > m.Width() {
			return false
		}
		for _, v := range b.V[m] {
			if v.Known() && !(v.Mean >= 0 && v.Mean <= kinds[m].Most) {
				return false
			}
		}
	}
	return true
}
