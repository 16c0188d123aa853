package state

import "time"

// What agents say of checkpoints.
type (
	// CheckpointSaved: a checkpoint is published and verified.
	CheckpointSaved struct {
		Attempt  string        `json:"attempt"`
		Message  int64         `json:"message"`
		Manifest string        `json:"manifest"`
		Step     int64         `json:"step"`
		Bytes    int64         `json:"bytes"`
		Uploaded int64         `json:"uploaded"`
		Captured time.Time     `json:"captured"` // work up to here is in it
		Took     time.Duration `json:"took_ns"`
		Lacks    string        `json:"lacks,omitempty"` // what could not be copied, and why; "": it is whole
	}
	// CheckpointFailed: what the program saves could not be copied or kept. It is said once, until it can be.
	CheckpointFailed struct {
		Attempt string `json:"attempt"`
		Node    int    `json:"node,omitempty"` // rank of whoever says so
		Message int64  `json:"message"`
		Why     string `json:"why"`
	}
	// CheckpointRefused: one did not verify and was passed over.
	CheckpointRefused struct {
		Attempt  string `json:"attempt"`
		Message  int64  `json:"message"`
		Manifest string `json:"manifest"`
		Why      string `json:"why"`
	}
)
