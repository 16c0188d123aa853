// Package scheduler is what the engine asks of Slurm, whichever way it is asked: the nodes and jobs of a cluster, and
// the orders that it takes or refuses.
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

// Scheduler is what the driver asks of Slurm: by its commands, or by slurmrestd.
type Scheduler interface {
	// Cluster is what there is of those partitions.
	Cluster(ctx context.Context, partitions []string) (*Cluster, error)
	// Jobs are this user's, those that ended a while ago among them.
	Jobs(ctx context.Context) ([]*Job, error)
	// Accounts are the accounts of jobs that the controller does not know any more; errNoAccounts: it keeps none.
	Accounts(ctx context.Context, ids []string) (map[string]*Job, error)
	// Submit hands in a job and returns its number. An error that is no refusal leaves open whether there is one.
	Submit(ctx context.Context, o *Order) (job string, err error)
	// Try asks whether a job would be taken.
	Try(ctx context.Context, o *Order) error
	// CancelPending ends a job that has not begun, and leaves one that has.
	CancelPending(ctx context.Context, job string) error
	// Cancel ends a job.
	Cancel(ctx context.Context, job string) error
	// EndRanks ends single machines of an allocation, whose folder it is.
	EndRanks(ctx context.Context, job, folder string, ranks []int) error

	// Ready says whether Slurm can be asked at all.
	Ready(ctx context.Context) engine.Finding
	// Advice says what an answer that did not come is a matter of, and what to do.
	Advice(ctx context.Context, err error) (about, text string)
}

// Order is a batch job to be submitted.
type Order struct {
	Name, Comment string
	Folder        string // the request's; "": only tried
	Partition     string
	Nodes, CPUs   int
	Exclusive     bool
	Memory        size.Bytes // of each node; 0: all of it
	Accelerator   string     // "": of any type
	Accelerators  int
	Lead          time.Duration // its script hears of its time limit so long before
	Limit         time.Duration // 0: its partition's
	Unlimited     bool          // its partition's limit is not what it has by default

	Account, QOS, WCKey, Constraint string
	Options                         []string
}

// Console is the file that the job's output goes to.
func (o *Order) Console() string { return filepath.Join(o.Folder, "console.0.log") }

// Script is the file that it runs.
func (o *Order) Script() string { return filepath.Join(o.Folder, "run.sh") }

// GRES is what it asks for of accelerators on each node, such as gpu:a100:4; "": none.
func (o *Order) GRES() string {
	switch {
	case o.Accelerators == 0:
		return ""
	case o.Accelerator == "" || o.Accelerator == "gpu":
		return fmt.Sprintf("gpu:%d", o.Accelerators)
	}
	return fmt.Sprintf("gpu:%s:%d", o.Accelerator, o.Accelerators)
}

// TrialName is the job that is tried and not run.
const TrialName = NamePrefix + "examine"

// ErrNoAccounts says that the cluster keeps no accounts.
var ErrNoAccounts = errors.New("the cluster keeps no accounts")

// NamePrefix is what the names of all jobs of scrimp begin with.
const NamePrefix = "scrimp-"

// Minutes is a time limit as Slurm takes it.
func Minutes(d time.Duration) int { return max(1, int(d/time.Minute)) }
