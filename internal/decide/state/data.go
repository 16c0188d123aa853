package state

import "time"

// DataRead is what bringing an input to a machine took.
type DataRead struct {
	Name     string        `json:"name"`
	Files    int64         `json:"files"`
	Bytes    int64         `json:"bytes"`
	Hits     int64         `json:"hits"`      // files that the machine's cache had
	HitBytes int64         `json:"hit_bytes"` // bytes of these
	Fetched  int64         `json:"fetched_bytes"`
	Requests int64         `json:"requests"` // to the store
	Took     time.Duration `json:"took_ns"`
	Digest   string        `json:"digest,omitempty"` // SHA-256 that identifies the content, in hexadecimal; "": unknown
}

// Data lists the inputs that the agent brought before the program started. Nobody changes the list.
func (t *Task) Data() []DataRead { return t.r.Data }
