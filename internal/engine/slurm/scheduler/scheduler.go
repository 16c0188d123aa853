// Package scheduler defines the engine's interface to Slurm, by commands or by slurmrestd: the nodes and jobs of a
// cluster, and the orders that it accepts or refuses.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/size"
)

// Scheduler is the driver's interface to Slurm, by its commands or by slurmrestd.
type Scheduler interface {
	// Cluster returns the state of the partitions.
	Cluster(ctx context.Context, partitions []string) (*Cluster, error)
	// Jobs returns this user's jobs, including recently ended ones.
	Jobs(ctx context.Context) ([]*Job, error)
	// Accounts returns the accounting of jobs that the controller no longer knows, or ErrNoAccounts if the cluster
	// keeps none.
	Accounts(ctx context.Context, ids []string) (map[string]*Job, error)
	// Submit submits a job and returns its number. An error other than a refusal leaves open whether the job exists.
	Submit(ctx context.Context, o *Order) (job string, err error)
	// Try checks whether a job would be accepted.
	Try(ctx context.Context, o *Order) error
	// CancelPending cancels a job only if it has not started.
	CancelPending(ctx context.Context, job string) error
	// Cancel ends a job.
	Cancel(ctx context.Context, job string) error
	// EndRanks ends single machines of an allocation with the given folder.
	EndRanks(ctx context.Context, job, folder string, ranks []int) error

	// Ready reports whether Slurm can be used at all.
	Ready(ctx context.Context) engine.Finding
	// Advice returns what a missing answer is about, and the fix.
	Advice(ctx context.Context, err error) (about, text string)
}

// Order is a batch job to submit.
type Order struct {
	Name, Comment string
	Folder        string // the request's; empty: only a trial
	Partition     string
	Nodes, CPUs   int
	Exclusive     bool
	Memory        size.Bytes // of each node; 0: all of it
	Accelerator   string     // empty: any type
	Accelerators  int
	Lead          time.Duration // how long before its time limit the script gets a signal
	Limit         time.Duration // 0: the partition's
	Unlimited     bool          // the partition's limit differs from its default

	Account, QOS, WCKey, Constraint string
	Options                         []string
}

// Console returns the file for the job's output.
func (o *Order) Console() string { return filepath.Join(o.Folder, "console.0.log") }

// Script returns the file that the job runs.
func (o *Order) Script() string { return filepath.Join(o.Folder, "run.sh") }

// GRES returns the accelerators requested on each node, such as gpu:a100:4; empty if none.
func (o *Order) GRES() string {
	switch {
	case o.Accelerators == 0:
		return ""
	case o.Accelerator == "" || o.Accelerator == "gpu":
		return fmt.Sprintf("gpu:%d", o.Accelerators)
	}
	return fmt.Sprintf("gpu:%s:%d", o.Accelerator, o.Accelerators)
}

// TrialName is the name of the trial job.
const TrialName = NamePrefix + "examine"

// ErrNoAccounts says that the cluster has no accounting.
var ErrNoAccounts = errors.New("the cluster keeps no accounts")

// NamePrefix begins the names of all scrimp jobs.
const NamePrefix = "scrimp-"

// Minutes converts a time limit to Slurm's unit.
func Minutes(d time.Duration) int { return max(1, int(d/time.Minute)) }
