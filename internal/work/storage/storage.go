// Package storage decides what to do with stored files: what each kind costs a month, which files a rule deletes or
// moves to another storage class, and what that saves. It reads a file at a time, so its memory does not grow with the
// number of files. All sums are exact.
package storage

import (
	"math/big"
	"time"
)

// A Place is a folder or a bucket that was scanned.
type Place struct {
	Name   string `json:"name"` // absolute path or address
	Store  string `json:"store"`
	Prefix string `json:"-"` // of the bucket's keys that the place begins with; "" or ends in a slash
	Known  bool   `json:"-"` // the place was not scanned: the ID of its files is the digest of their contents
}

// A File is a file or an object.
type File struct {
	Place    int       // its index
	Path     string    // below the place, with slashes
	Bytes    int64     // its length
	Holes    int64     // bytes of its length that take no disk, as in a sparse file
	Used     time.Time // last read or written; of an object: last written
	Changed  time.Time // last written
	ID       string    // changes if another file takes its place
	Class    string    // storage class; "": the store's default
	Linked   bool      // it has several names (hard links)
	Again    bool      // another name of it was added before
	Held     Reason    // why it must stay, if the scan knows; "": no reason
	HeldOnly bool      // Held forbids deletion only
}

// Disk returns the bytes that the file takes: its length without its holes.
func (f File) Disk() int64 { return f.Bytes - f.Holes }

// A Reason says why a rule does nothing to a file.
type Reason string

// The reasons, in table order.
const (
	NoRule        Reason = "no_rule"           // no rule is about it
	KeepRule      Reason = "keep_rule"         // a rule keeps it
	TooYoung      Reason = "too_young"         // it, or a part of the same checkpoint, was used too recently
	Needed        Reason = "needed"            // a live job or group names its path, or --keep does
	Newest        Reason = "newest_checkpoint" // the newest of its run
	Chosen        Reason = "chosen_checkpoint" // its name says best, last, latest, final or release
	OwnStore      Reason = "scrimp_store"      // in a store of scrimp; scrimp gc and DELETE of a checkpoint remove it
	ServerData    Reason = "server_data"       // in a server's data folder; scrimp gc removes it
	HardLink      Reason = "hard_link"         // it has another name, so deleting it frees nothing
	OddName       Reason = "odd_name"          // its name is not UTF-8
	LeastDuration Reason = "minimum_duration"  // its class is paid until a date in the future
	PriceUnknown  Reason = "price_unknown"     // a price that the decision needs is unknown
	CostsMore     Reason = "costs_more"        // the other class costs more
	TooSmall      Reason = "too_small"         // the other class costs more for an object of its size
	AlreadyThere  Reason = "already_there"     // it is in the class
	NoClasses     Reason = "no_classes"        // a folder has no storage classes
	PlanFull      Reason = "plan_full"         // the plan lists no more files: apply it, and plan again
)

// Reasons lists the reasons in table order.
var Reasons = []Reason{NoRule, KeepRule, TooYoung, Needed, Newest, Chosen, OwnStore, ServerData, HardLink, OddName,
	LeastDuration, PriceUnknown, CostsMore, TooSmall, AlreadyThere, NoClasses, PlanFull}

// A Usage is what lies in a place, of a kind and in a storage class.
type Usage struct {
	Place  int
	Kind   Kind
	Class  string
	Files  int64 // files with several names count once
	Bytes  int64
	Unused int64 // bytes that nobody used for 90 days
	Used   time.Time
	Month  *big.Rat // cost of a month; nil: unknown
}

// unusedSpan is the span of Usage.Unused.
const unusedSpan = 90 * day

// A Move is what a rule does to files of a place in one class.
type Move struct {
	Rule  int
	Place int
	Class string // where they are
	Files int64
	Bytes int64
	Saved *big.Rat // a month, on the mean over the stay for tiers; nil: unknown
	Once  *big.Rat // cost of the move; nil for deletions
	Why   Reason   // why it is not proposed; "": it is
	Least int64    // of a tier: smaller objects stay
}

// A Stay counts files that a rule does not touch.
type Stay struct {
	Reason Reason
	Files  int64
	Bytes  int64
}

// A Victim is a file that a rule deletes.
type Victim struct {
	File
	Kind  Kind
	Rule  int
	Newer string // for a checkpoint: the newest file of its run, which stays
}

// Result is the outcome of a plan.
type Result struct {
	Usage   []Usage
	Moves   []Move
	Stays   []Stay
	Victims []Victim // in the order of place and path
	Folders []Folder // the checkpoint folders that victims are part of, in the same order
	Unknown int64    // files whose cost is unknown
}

// Total returns the cost a month of all files with a known price, or nil if none has one.
func (r Result) Total() (sum *big.Rat) {
	for _, u := range r.Usage {
		sum = plus(sum, u.Month)
	}
	return sum
}

// Saved returns what the proposed moves save a month as far as it is known, or nil if nothing is known.
func (r Result) Saved() (sum *big.Rat) {
	for _, m := range r.Moves {
		if m.Why == "" {
			sum = plus(sum, m.Saved)
		}
	}
	return sum
}

// plus adds two sums; nil is unknown.
func plus(a, b *big.Rat) *big.Rat {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(big.Rat).Add(a, b)
}
