package state

import (
	"maps"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// DataRead is an input that an agent brought to a machine, with the cost and the time.
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

// Reads returns the known cost of reading its inputs. Rules includes it.
func (t *Task) Reads() money.Amount { return t.r.Reads }

// Reads returns the cost of reading the inputs on all its machines. Rules and Extras include it.
func (a *Attempt) Reads() money.Amount { return a.sumOf((*Task).Reads) }

// TimeUses returns Uses without the cost of reading the inputs, which counts as start-up.
func (t *Task) TimeUses() map[ledger.Use]money.Amount {
	uses := maps.Clone(t.r.Uses)
	if !t.r.Reads.IsZero() {
		uses[ledger.StartUp] = uses[ledger.StartUp].Sub(t.r.Reads)
	}
	return uses
}
