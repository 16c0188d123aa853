// Package store keeps what happened: events with what was decided, postings,
// snapshots, the output of programs, and tables that say by job what the log says.
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

// A caller acts on these with errors.Is.
var (
	ErrConflict = errors.New("another writer has been here") // the log has grown meanwhile
	ErrLocked   = errors.New("in use")                       // another server owns the place
	ErrGone     = errors.New("a newer snapshot is there")    // ask for that one
	ErrFull     = errors.New("the disk has no room")         // nothing was written; the same works once there is room
	ErrNeeded   = errors.New("a snapshot needs them")        // samples: a restart reads them
)

// Record is one step of the core: the event, the facts that follow from it, and the
// postings. It is written in one transaction.
//
// A sample is an event that only teaches (progress, usage, quotes): it has no facts
// and no postings, and is dropped once no snapshot needs it. All others are kept for ever.
type Record struct {
	Seq      uint64
	Tenant   string
	At       time.Time // market time
	Kind     string
	Key      string // idempotency key; "" for none. A sample's is forgotten with it
	Event    json.RawMessage
	Facts    json.RawMessage // a JSON list; empty for none
	Postings []ledger.Posting
	Sample   bool

	// Kept is the number of the record before this one that is no sample; 0 for none.
	// The store finds it out itself: it is read, and written by Copy only.
	Kept uint64
}

// Snapshot is the core's state after the event Seq: all of it in State, or a head
// there and the rest in parts, which are saved before. Most parts are as they were
// in an earlier snapshot, and are taken from it.
type Snapshot struct {
	Seq     uint64
	Version int
	State   json.RawMessage
	Parts   int    // 0: State is all
	Base    uint64 // to be saved: the snapshot whose parts it has where New names none; 0: none
	New     []int  // to be saved: the parts that were saved for Seq

	from []uint64 // by part: the snapshot it was saved for
}

// Store is what the server needs of a database. storetest holds every
// implementation to it.
type Store interface {
	// Append writes records, all or none, and returns when they are durable.
	// They must continue the log without a hole; otherwise ErrConflict.
	Append(ctx context.Context, records []Record) error
	// Copy is Append of what another store gave, which may have dropped samples: a hole
	// is taken where each record follows the kept one that it names.
	Copy(ctx context.Context, records []Record) error
	// DropSamples deletes the samples up to a sequence number, some at a time, and
	// returns how many. It deletes nothing and returns ErrNeeded where the older of the
	// snapshots that are kept, or for want of one a replay of the log, needs some of
	// them: those after it. The last record of the log stays, sample or not.
	DropSamples(ctx context.Context, upTo uint64) (dropped int, err error)
	// End returns the sequence number of the last record; 0 for an empty log.
	End(ctx context.Context) (uint64, error)
	// Records returns at most limit records after a sequence number, without their
	// postings, kept ones and samples in the order of the log. Chain says what is missing.
	Records(ctx context.Context, after uint64, limit int) ([]Record, error)
	// RecordsOf is Records of one kind of event.
	RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]Record, error)
	// WholeRecords is Records with their postings.
	WholeRecords(ctx context.Context, after uint64, limit int) ([]Record, error)
	// Seen returns, by idempotency key, the first event that carries it; a key that none
	// carries, or only a sample that was dropped, is left out.
	Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error)
	// SaveParts writes parts, by number, of the snapshot after the event seq, which is
	// there once SaveSnapshot has written it.
	SaveParts(ctx context.Context, seq uint64, parts map[int]json.RawMessage) error
	// SaveSnapshot keeps s and the one before it.
	SaveSnapshot(ctx context.Context, s Snapshot) error
	LatestSnapshot(ctx context.Context) (s Snapshot, ok bool, err error)
	// SnapshotParts returns the parts of what LatestSnapshot has returned, in order. It
	// fails with ErrGone where two newer ones have been saved meanwhile.
	SnapshotParts(ctx context.Context, s Snapshot) iter.Seq2[json.RawMessage, error]
	// Postings returns the tenant's postings in order; job "" is all. Prev is not stored:
	// it is the hash of the tenant's posting before, which each way to read fills in.
	Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error]
	// PostingsOf returns those of the events after one and up to another.
	PostingsOf(ctx context.Context, tenant string, after, until uint64) iter.Seq2[ledger.Posting, error]

	// AppendLog adds output of an attempt, or of another rank of it than 0 by its logfile.Name, at an
	// offset and returns the new end.
	// What is there already is passed over; a hole is refused: the end comes back unchanged.
	AppendLog(ctx context.Context, attempt string, offset int64, data []byte) (end int64, err error)
	// ReadLog returns at most limit bytes from offset; none at the end.
	ReadLog(ctx context.Context, attempt string, offset int64, limit int) ([]byte, error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
	// LogTimes returns when output arrived, without the first skip entries; none is known of output that was
	// restored from a backup.
	LogTimes(ctx context.Context, attempt string, skip int) ([]logfile.Time, error)
	// Logs returns the names under which there is output, sorted.
	Logs(ctx context.Context) ([]string, error)
	// AppendSeries adds to what the machine of a rank was measured to do, by the name of its output, and
	// PutSeries replaces it whole or not at all. What a server that is killed wrote last may be torn.
	AppendSeries(ctx context.Context, attempt string, b []byte) error
	PutSeries(ctx context.Context, attempt string, b []byte) error
	// Series returns it; nothing where there is none.
	Series(ctx context.Context, attempt string) ([]byte, error)
	// AllSeries returns the bytes of each by its name.
	AllSeries(ctx context.Context) (map[string]int64, error)
	// DropLog removes the output of that name and its measurements; what is not there is removed.
	DropLog(ctx context.Context, attempt string) error

	// Place says where the log lies: another place than that of the log it was copied or
	// restored from, and the same for as long as it is not moved.
	Place(ctx context.Context) (string, error)

	// PutMeta and Meta keep small facts by name.
	PutMeta(ctx context.Context, key, value string) error
	Meta(ctx context.Context, key string) (value string, ok bool, err error)
	AllMeta(ctx context.Context) (map[string]string, error)

	ViewStore
	Close() error
}

// partSize is how many bytes of a snapshot are one row: small enough that an
// append does not wait long behind it.
const partSize = 4 << 20

// slice is how many samples are dropped in one transaction: appends wait behind it.
const slice = 1000
