package client

import "time"

// What a server can remove of jobs that are over, and of nobody.
const (
	GCWork        = "work"        // work folders
	GCLogs        = "logs"        // what programs printed
	GCOutputs     = "outputs"     // kept outputs
	GCCheckpoints = "checkpoints" // in the server's own store
	GCMachines    = "machines"    // what ended machines of this computer have left
	GCUnused      = "unused"      // contents that no work folder needs
)

// GC asks for disk space. What a job has that runs, waits, is paused, or ended less than OlderThan ago stays.
type GC struct {
	OlderThan time.Duration `json:"older_than_ns,omitempty"` // since the job's end; 0: as the server does by itself
	Only      []string      `json:"only,omitempty"`          // kinds; none: all
	Keep      []string      `json:"keep,omitempty"`          // jobs of which nothing is removed
	// NewestCheckpoints removes the newest checkpoint of each job too
	NewestCheckpoints bool `json:"newest_checkpoints,omitempty"`
	DryRun            bool `json:"dry_run,omitempty"` // says what would go, and removes nothing
}

// GCDone is what was removed, or would be.
type GCDone struct {
	DryRun bool     `json:"dry_run"`
	Items  []GCItem `json:"items"`
	Bytes  int64    `json:"bytes"` // of disk; folders that share contents count once
}

// GCItem is a thing that goes.
type GCItem struct {
	Kind  string `json:"kind"`
	Job   string `json:"job,omitempty"`
	Name  string `json:"name,omitempty"` // of a machine
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"`
	Error string `json:"error,omitempty"` // why it is still there
}

// Removed says when what a job had was removed to make room; null: it was not.
type Removed struct {
	Work        *time.Time `json:"work,omitempty"`
	Logs        *time.Time `json:"logs,omitempty"`
	Outputs     *time.Time `json:"outputs,omitempty"`
	Checkpoints *time.Time `json:"checkpoints,omitempty"` // the older ones, or all
}
