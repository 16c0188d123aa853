// Package trial writes the scrimp ab command that tries the change for a cause, from what was measured of a job.
package trial

import (
	"fmt"
	"math"
	"strings"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/series"
)

// Working is the use from which a GPU counts as working; less is the driver.
const Working = 0.05

// Facts holds what is known about a job.
type Facts struct {
	Job       string
	Nodes     []series.Node
	Requested int64 // requested memory per machine in bytes; 0 for none
}

// Of returns the command that tries the change for a class of causes. It is nil if no field of the job file makes the
// change, or if a figure that the command needs was not measured.
func Of(c class.Class, in *Facts) *string {
	if try := tries[c]; try != nil {
		return try(in)
	}
	return nil
}

// tries has, for each class with a change that a trial can measure, the flags of that trial.
var tries = map[class.Class]func(in *Facts) *string{
	class.Oversubscription: threads,
	class.MemoryPressure:   moreMemory,
	class.IdleAfter:        idleStop,
	class.UnusedGPU:        fewerGPUs,
	class.OversizedGPU:     smallerGPU,
	class.OversizedCPU:     fewerCores,
	class.OversizedMemory:  lessMemory,
}

// trial returns the command that compares a job with a version with some fields set, or nil if the job is unknown.
func trial(in *Facts, fields ...string) *string {
	if in.Job == "" {
		return nil
	}
	s := "scrimp ab " + in.Job
	for _, f := range fields {
		s += " --set " + f
	}
	return &s
}

// threads tries as many threads as there are cores.
func threads(in *Facts) *string {
	if n := coresOf(in); n > 0 {
		return trial(in, fmt.Sprintf("env.OMP_NUM_THREADS=%d", n), fmt.Sprintf("env.MKL_NUM_THREADS=%d", n))
	}
	return nil
}

// fewerCores tries the largest number of cores that the program used, plus one.
func fewerCores(in *Facts) *string {
	n := int(math.Ceil(peak(in, telemetry.TaskCPU))) + 1
	if n > 1 && n < coresOf(in) {
		return trial(in, fmt.Sprintf("resources.cpus=%d", n))
	}
	return nil
}

// lessMemory tries a quarter more than the program's peak.
func lessMemory(in *Facts) *string {
	n := gibibytes(1.25 * peak(in, telemetry.TaskMemory))
	if n > 0 && (in.Requested == 0 || n < gibibytes(float64(in.Requested))) {
		return trial(in, fmt.Sprintf("resources.memory=%dGiB", n))
	}
	return nil
}

// moreMemory tries twice the memory of the machine.
func moreMemory(in *Facts) *string {
	most := int64(0)
	for _, n := range in.Nodes {
		most = max(most, n.Head.Memory)
	}
	if most == 0 {
		return nil
	}
	return trial(in, fmt.Sprintf("resources.memory=%dGiB", gibibytes(2*float64(most))))
}

func idleStop(in *Facts) *string { return trial(in, "idle=10m") }

// accelerators lists GPU names of job files, with a smaller one to try; empty for none. A driver's name contains one of
// them as a word.
var accelerators = []struct{ name, smaller string }{
	{"H200", "H100"}, {"H100", "A100"}, {"A100", "L4"}, {"L40S", "L4"}, {"A10G", "T4"}, {"V100", "T4"},
	{"L4", "T4"}, {"T4", ""},
}

// named returns the machines' GPU as named in job files, and the count per machine; 0 if it is unknown.
func named(in *Facts) (at, count int) {
	if len(in.Nodes) != 1 || len(in.Nodes[0].Head.GPUs) == 0 {
		return 0, 0
	}
	gpus := in.Nodes[0].Head.GPUs
	for at, a := range accelerators {
		for word := range strings.FieldsFuncSeq(gpus[0].Name, func(r rune) bool { return r == ' ' || r == '-' }) {
			if word == a.name {
				return at, len(gpus)
			}
		}
	}
	return 0, 0
}

// smallerGPU tries the same number of the next smaller kind.
func smallerGPU(in *Facts) *string {
	at, n := named(in)
	if n == 0 || accelerators[at].smaller == "" {
		return nil
	}
	return trial(in, fmt.Sprintf("resources.accelerator=%s:%d", accelerators[at].smaller, n))
}

// fewerGPUs tries as many GPUs as are used.
func fewerGPUs(in *Facts) *string {
	at, n := named(in)
	used := map[int]bool{}
	for _, node := range in.Nodes {
		for _, b := range node.Buckets {
			for i, v := range b.V[telemetry.GPU] {
				if v.Mean > Working { // false if unknown
					used[i] = true
				}
			}
		}
	}
	if len(used) == 0 || len(used) >= n {
		return nil
	}
	return trial(in, fmt.Sprintf("resources.accelerator=%s:%d", accelerators[at].name, len(used)))
}

func coresOf(in *Facts) (cores int) {
	for _, n := range in.Nodes {
		cores = max(cores, n.Head.Cores)
	}
	return cores
}

// peak returns the largest measured value on one machine; 0 if there is none.
func peak(in *Facts, m telemetry.Metric) (most float64) {
	for _, n := range in.Nodes {
		for _, b := range n.Buckets {
			for _, v := range b.V[m] {
				if v.Max > most {
					most = v.Max
				}
			}
		}
	}
	return most
}

func gibibytes(n float64) int { return int(math.Ceil(n / (1 << 30))) }
