// Package store keeps the history: events with their decisions and postings, snapshots, the output of programs, and
// projections of the log.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/store/logfile"
)

// Callers test for these errors with errors.Is.
var (
	ErrConflict = errors.New("another writer has changed the log") // the log has grown meanwhile
	ErrLocked   = errors.New("in use")                             // another server owns the store
	ErrGone     = errors.New("a newer snapshot exists")            // read that one instead
	ErrFull     = errors.New("the disk has no room")               // nothing was written; a retry works once there is room
	ErrNeeded   = errors.New("a snapshot needs them")              // samples that a restart reads
)

// PersonMeta begins the keys, beside the log, of the names and addresses of users. They are written before the event of
// their user.
const PersonMeta = "person/"

// Record is one step of the core: the event, the facts that follow from it, and the postings. It is written in one
// transaction.
//
// A sample is an event that only feeds estimates (progress, usage, quotes). It has no facts and no postings, and is
// dropped once no snapshot needs it. All other records are kept for ever.
type Record struct {
	Seq      uint64
	Tenant   string
	At       time.Time // market time
	Kind     string
	Key      string // idempotency key; empty: none. A dropped sample's key is forgotten
	Event    json.RawMessage
	Facts    json.RawMessage // a JSON list; empty: none
	Postings []ledger.Posting
	Sample   bool

	// Kept is the number of the last record before this one that is not a sample; 0: none. The store determines it;
	// only Copy writes it.
	Kept uint64
}

// Snapshot is the core's state after event Seq: all of it in State, or a head in State and the rest in parts, which
// are saved first. Most parts are unchanged since an earlier snapshot and are taken from it.
type Snapshot struct {
	Seq     uint64
	Version int
	State   json.RawMessage
	Parts   int    // 0: State is the whole state
	Base    uint64 // when saving: the snapshot that provides the parts not in New; 0: none
	New     []int  // when saving: the parts saved for Seq

	// From is, by part, the snapshot that it was saved for. LatestSnapshot sets it, and SnapshotParts reads it.
	From []uint64
}

// Store is what the server needs of a database. storetest tests every implementation.
type Store interface {
	// Append writes all records or none, and returns when they are durable. They must continue the log without a gap;
	// otherwise it returns ErrConflict.
	Append(ctx context.Context, records []Record) error
	// Copy is Append for records from another store, which may have dropped samples: it accepts a gap if each record
	// follows the kept record that it names.
	Copy(ctx context.Context, records []Record) error
	// DropSamples deletes the samples up to a sequence number, some at a time, and returns how many. It deletes
	// nothing and returns ErrNeeded if a restart needs some of them: those after the older of the kept snapshots, or
	// all if there is none. The last record of the log stays, sample or not.
	DropSamples(ctx context.Context, upTo uint64) (dropped int, err error)
	// End returns the sequence number of the last record; 0 for an empty log.
	End(ctx context.Context) (uint64, error)
	// Records returns at most limit records after a sequence number, without their postings: kept records and samples
	// in the order of the log. Chain finds missing ones.
	Records(ctx context.Context, after uint64, limit int) ([]Record, error)
	// RecordsOf is Records for one kind of event.
	RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]Record, error)
	// WholeRecords is Records with postings.
	WholeRecords(ctx context.Context, after uint64, limit int) ([]Record, error)
	// Seen returns the first event of each idempotency key. It leaves out keys that no event carries, or only a
	// dropped sample.
	Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error)
	// SaveParts writes parts, by number, of the snapshot after event seq. The snapshot exists once SaveSnapshot has
	// written it.
	SaveParts(ctx context.Context, seq uint64, parts map[int]json.RawMessage) error
	// SaveSnapshot writes s, and keeps it and the one before it.
	SaveSnapshot(ctx context.Context, s Snapshot) error
	LatestSnapshot(ctx context.Context) (s Snapshot, ok bool, err error)
	// SnapshotParts returns the parts of a snapshot from LatestSnapshot, in order. It fails with ErrGone if two newer
	// snapshots have been saved meanwhile.
	SnapshotParts(ctx context.Context, s Snapshot) iter.Seq2[json.RawMessage, error]
	// Postings returns the tenant's postings in order; job "" means all. Prev is not stored: it is the hash of the
	// tenant's previous posting, and every read fills it in.
	Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error]
	// PostingsOf returns the postings of the events in (after, until].
	PostingsOf(ctx context.Context, tenant string, after, until uint64) iter.Seq2[ledger.Posting, error]

	// AppendLog adds output of an attempt at an offset and returns the new end. For a rank other than 0, attempt is
	// its logfile.Name. AppendLog skips bytes that are already stored and refuses a gap: it then returns the end
	// unchanged.
	AppendLog(ctx context.Context, attempt string, offset int64, data []byte) (end int64, err error)
	// ReadLog returns at most limit bytes from offset, and none at the end.
	ReadLog(ctx context.Context, attempt string, offset int64, limit int) ([]byte, error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
	// LogTimes returns when output arrived, without the first skip entries. Output restored from a backup has no
	// times.
	LogTimes(ctx context.Context, attempt string, skip int) ([]logfile.Time, error)
	// Logs returns the names of all output, sorted.
	Logs(ctx context.Context) ([]string, error)
	// AppendSeries adds to the measurements of a rank's machine, under the name of its output; PutSeries replaces
	// them atomically. A killed server may leave its last write incomplete.
	AppendSeries(ctx context.Context, attempt string, b []byte) error
	PutSeries(ctx context.Context, attempt string, b []byte) error
	// Series returns the measurements, or nothing if there are none.
	Series(ctx context.Context, attempt string) ([]byte, error)
	// AllSeries returns the sizes in bytes, by name.
	AllSeries(ctx context.Context) (map[string]int64, error)
	// DropLog removes the output of that name and its measurements; it succeeds if there is none.
	DropLog(ctx context.Context, attempt string) error

	// Place identifies the location of the log. It differs from that of the log it was copied or restored from, and
	// changes only if the log moves.
	Place(ctx context.Context) (string, error)

	// PutMeta and Meta store small values by name.
	PutMeta(ctx context.Context, key, value string) error
	Meta(ctx context.Context, key string) (value string, ok bool, err error)
	AllMeta(ctx context.Context) (map[string]string, error)

	ProjectionStore
	Close() error
}
