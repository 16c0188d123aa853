package profile

import (
	"cmp"
	"slices"
	"strings"
)

// Timeline is what a GPU profiler recorded. Times are nanoseconds.
type Timeline struct {
	Tool        string
	Work        []Work // of GPUs
	GPUs        int    // that did this work
	First, Last int64  // of all that was recorded
	Ranges      []Range
	Threads     int // from which Ranges are: those that give GPUs their work
}

// Work is the sum of a kernel's runs, or of a kind of memory operations.
type Work struct {
	Name  string
	Time  float64
	Count int64
}

// Range is a span of a thread with a purpose.
type Range struct {
	Thread     int64
	Start, End int64
	Name       string
	Part       Part
}

// Profiles returns a profile of the GPUs, and one of the threads that give them work. Each is missing if nothing was
// recorded of it.
func (t *Timeline) Profiles() (list []Profile) {
	seconds := float64(t.Last-t.First) / 1e9
	var busy *float64
	device := newTally()
	for _, w := range t.Work {
		device.add(w.Name, PartOf(w.Name), w.Time/1e9, w.Count)
	}
	if device.total > 0 {
		share := 1.0
		if all := seconds * float64(t.GPUs); all > 0 {
			share = min(1, device.total/all)
		}
		busy = &share
		list = append(list, Profile{Tool: t.Tool, Seconds: seconds, OnGPU: true, OfBusy: true, GPUBusy: busy,
			Operators: device.list(), Shares: device.shares(device.total)})
	}
	host := t.host()
	if host.total > 0 && seconds > 0 && t.Threads > 0 {
		list = append(list, Profile{Tool: t.Tool + ", threads", Seconds: seconds, GPUBusy: busy, Operators: host.list(),
			Shares: host.shares(seconds * float64(t.Threads))})
	}
	return list
}

// host adds up the ranges. The time of a range within another one counts as the outer one's.
func (t *Timeline) host() *tally {
	slices.SortFunc(t.Ranges, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End),
			cmp.Compare(a.Name, b.Name))
	})
	sum := newTally()
	for i, thread, until := 0, int64(0), int64(0); i < len(t.Ranges); i++ {
		r := &t.Ranges[i]
		if i == 0 || r.Thread != thread {
			thread, until = r.Thread, r.Start
		}
		from := max(r.Start, until)
		if until = max(until, r.End); r.End > from {
			sum.add(r.Name, r.Part, float64(r.End-from)/1e9, 1)
		}
	}
	return sum
}

// Source is the table of a timeline from which a range is.
type Source int

// The sources of ranges.
const (
	FromRanges  Source = iota // that the program has named (NVTX)
	FromCUDA                  // calls of CUDA
	FromRuntime               // calls of the operating system
)

// PurposeOf returns the purpose of a range by its name; "" if the name has none. Calls of CUDA that do not wait have
// none.
func PurposeOf(from Source, name string) Part {
	lower := strings.ToLower(name)
	switch from {
	case FromCUDA:
		switch {
		case strings.Contains(lower, "synchronize"):
			return Waiting
		case strings.Contains(lower, "memcpy") && !strings.Contains(lower, "async"):
			return Copying
		}
	case FromRuntime:
		base, _, _ := strings.Cut(lower, "_")
		switch strings.TrimSuffix(base, "64") {
		case "read", "pread", "readv", "preadv", "fread", "open", "openat", "fopen":
			return Loading
		case "fsync", "fdatasync", "msync":
			return Saving
		}
	default:
		switch p := PartOf(name); p {
		case Loading, Saving, Evaluation, Logging, Waiting:
			return p
		case Compute, Copying, Communication, Recomputation, NetworkReads: // a GPU's work and stacks show them
		}
	}
	return ""
}
