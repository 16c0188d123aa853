package state

import "time"

// Reports of agents about checkpoints.
type (
	// CheckpointSaved: a checkpoint is published and verified.
	CheckpointSaved struct {
		Attempt  string        `json:"attempt"`
		Message  int64         `json:"message"`
		Manifest string        `json:"manifest"`
		Step     int64         `json:"step"`
		Bytes    int64         `json:"bytes"`
		Uploaded int64         `json:"uploaded"`
		Captured time.Time     `json:"captured"` // the checkpoint has all work up to this time
		Took     time.Duration `json:"took_ns"`
		Lacks    string        `json:"lacks,omitempty"` // what could not be copied, and why; empty: the copy is whole
	}
	// CheckpointFailed: the agent cannot copy or store what the program saves. It reports this once, until it
	// succeeds again.
	CheckpointFailed struct {
		Attempt string `json:"attempt"`
		Node    int    `json:"node,omitempty"` // rank of the sender
		Message int64  `json:"message"`
		Why     string `json:"why"`
	}
	// CheckpointRefused: a checkpoint failed verification and the agent skipped it.
	CheckpointRefused struct {
		Attempt  string `json:"attempt"`
		Message  int64  `json:"message"`
		Manifest string `json:"manifest"`
		Why      string `json:"why"`
	}
)
