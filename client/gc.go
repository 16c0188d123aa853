package client

import "time"

// Kinds of files that a server can remove.
const (
	GCWork        = "work"        // work folders
	GCLogs        = "logs"        // output of programs
	GCOutputs     = "outputs"     // kept outputs
	GCCheckpoints = "checkpoints" // in the server's own store
	GCMachines    = "machines"    // files of terminated machines on the server's host
	GCUnused      = "unused"      // contents that no work folder needs
)

// GC is a request to free disk space. Files of jobs that run, wait or are paused, or ended less than OlderThan ago,
// stay.
type GC struct {
	OlderThan time.Duration `json:"older_than_ns,omitempty"` // since the job's end; 0: the server's own rule
	Only      []string      `json:"only,omitempty"`          // kinds; none: all
	Keep      []string      `json:"keep,omitempty"`          // jobs whose files all stay
	// NewestCheckpoints also removes the newest checkpoint of each job.
	NewestCheckpoints bool `json:"newest_checkpoints,omitempty"`
	DryRun            bool `json:"dry_run,omitempty"` // only report what would be removed
	// Fit is the space that the kept outputs of pipeline stages may take, in bytes: those of least value per byte go, and
	// nothing else; null: what goes depends on its age. Only and OlderThan must be unset with it.
	Fit *int64 `json:"fit,omitempty"`
}

// GCDone lists what was removed, or would be.
type GCDone struct {
	DryRun bool     `json:"dry_run"`
	Items  []GCItem `json:"items"`
	Bytes  int64    `json:"bytes"` // disk space; contents shared by folders count once
}

// GCItem is one removed thing.
type GCItem struct {
	Kind  string `json:"kind"`
	Job   string `json:"job,omitempty"`
	Name  string `json:"name,omitempty"` // name of a machine
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"`
	Error string `json:"error,omitempty"` // why it could not be removed
}

// Removed records when files of a job were removed to make room; null: not removed.
type Removed struct {
	Work        *time.Time `json:"work,omitempty"`
	Logs        *time.Time `json:"logs,omitempty"`
	Outputs     *time.Time `json:"outputs,omitempty"`
	Checkpoints *time.Time `json:"checkpoints,omitempty"` // the older ones, or all
}
