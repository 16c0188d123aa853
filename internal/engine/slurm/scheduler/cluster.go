package scheduler

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/size"
)

// UsualKillWait is Slurm's default.
const UsualKillWait = 30 * time.Second

// Cluster is the state of a cluster.
type Cluster struct {
	At         time.Time
	Partitions map[string]Partition
	Nodes      []Node
	KillWait   time.Duration // between SIGTERM and SIGKILL at a job's end
}

// Partition is a partition as the controller has it.
type Partition struct {
	State     string // UP, DOWN, DRAIN, INACTIVE
	Limit     time.Duration
	Nodes     int           // most nodes of a job; 0: no limit
	Grace     time.Duration // from a preemption's notice to its end
	Preempted bool          // its jobs may be preempted
	Defaults  bool          // a job without a time limit gets less than the partition's
}

// Node is a node as one partition has it.
type Node struct {
	Name, Partition, Address, Host string
	CPUs                           int
	Memory                         size.Bytes
	Accelerator                    string
	Accelerators                   int
	Features                       []string
	Usable                         bool
}

// Usable reports whether jobs may run on a node in such a state later. One that does not answer counts (a star
// follows its state): its job waits.
func Usable(state string) bool {
	bad := []string{"down", "drain", "fail", "error", "maint", "reboot", "inval", "future"}
	return !slices.ContainsFunc(bad, func(word string) bool { return strings.HasPrefix(state, word) })
}

var ofGPU = regexp.MustCompile(`^gpu(?::([^:(]+))?:(\d+)`)

// GPUs returns the accelerators among generic resources, such as gpu:a100:4(S:0-1),shard:8.
func GPUs(gres string) (kind string, n int) {
	for g := range strings.SplitSeq(gres, ",") {
		if m := ofGPU.FindStringSubmatch(g); m != nil {
			n, _ = strconv.Atoi(m[2])
			return cmp.Or(m[1], "gpu"), n
		}
	}
	return "", 0
}
