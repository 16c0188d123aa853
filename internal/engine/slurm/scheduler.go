package slurm

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/size"
)

// scheduler is what the driver asks of Slurm: by its commands, or by slurmrestd.
type scheduler interface {
	// cluster is what there is of those partitions.
	cluster(ctx context.Context, partitions []string) (*cluster, error)
	// jobs are this user's, those that ended a while ago among them.
	jobs(ctx context.Context) ([]*job, error)
	// accounts are the accounts of jobs that the controller does not know any more; errNoAccounts: it keeps none.
	accounts(ctx context.Context, ids []string) (map[string]*job, error)
	// submit hands in a job and returns its number. An error that is no refusal leaves open whether there is one.
	submit(ctx context.Context, o *order) (job string, err error)
	// try asks whether a job would be taken.
	try(ctx context.Context, o *order) error
	// cancelPending ends a job that has not begun, and leaves one that has.
	cancelPending(ctx context.Context, job string) error
	// cancel ends a job.
	cancel(ctx context.Context, job string) error
	// endRanks ends single machines of an allocation, whose folder it is.
	endRanks(ctx context.Context, job, folder string, ranks []int) error

	// ready says whether Slurm can be asked at all.
	ready(ctx context.Context) engine.Finding
	// advice says what an answer that did not come is a matter of, and what to do.
	advice(ctx context.Context, err error) (about, text string)
}

// order is a batch job to be submitted.
type order struct {
	name, comment string
	folder        string // the request's; "": only tried
	partition     string
	nodes, cpus   int
	exclusive     bool
	memory        size.Bytes // of each node; 0: all of it
	accelerator   string     // "": of any type
	accelerators  int
	lead          time.Duration // its script hears of its time limit so long before
	limit         time.Duration // 0: its partition's
	unlimited     bool          // its partition's limit is not what it has by default

	account, qos, wckey, constraint string
	options                         []string
}

// console is the file that the job's output goes to.
func (o *order) console() string { return filepath.Join(o.folder, "console.0.log") }

// script is the file that it runs.
func (o *order) script() string { return filepath.Join(o.folder, "run.sh") }

// gres is what it asks for of accelerators on each node, such as gpu:a100:4; "": none.
func (o *order) gres() string {
	switch {
	case o.accelerators == 0:
		return ""
	case o.accelerator == "" || o.accelerator == "gpu":
		return fmt.Sprintf("gpu:%d", o.accelerators)
	}
	return fmt.Sprintf("gpu:%s:%d", o.accelerator, o.accelerators)
}
