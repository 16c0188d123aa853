package api

import "time"

// An agent's way to what its job keeps on the server, with the attempt's token. A key
// is a parameter, since it may hold what a path may not:
//
//	GET    /v1/agent/blobs?key=K   the blob, whole or a range; HEAD describes it
//	PUT    /v1/agent/blobs?key=K   its content -> 204; If-None-Match: * creates it only if it is absent
//	DELETE /v1/agent/blobs?key=K   -> 204
//	GET    /v1/agent/blobs/list    -> Blobs
//	POST   /v1/agent/blobs/sync    BlobSync -> 204: what was written with durable=later is durable now
//	GET    /v1/agent/work          the work folder as a tar file, whole or from an offset on
//	GET    /v1/agent/work/blob     -> WorkBlob: that tar file in the job's bucket, where Assignment.WorkLent says so

// ServerStore is the address of the server's own store, as an agent reaches it with its
// attempt's token; ServerWork is the job's work folder there.
const (
	ServerStore = "scrimp:"
	ServerWork  = "scrimp:work"
)

// BlobSum is the header or the trailer that holds the CRC-32C of a content, in
// hexadecimal: what was damaged on the way is not kept.
const BlobSum = "Scrimp-Crc32c"

// BlobBoot is the header that names the server machine's run, from its start to its
// next one: what was written with durable=later is lost only with that.
const BlobBoot = "Scrimp-Boot"

// BlobModified is the header with the time at which a blob was written.
const BlobModified = "Scrimp-Modified"

// StoreCredentials are good for the job's own prefix of the bucket that its file names, until they expire. They are
// for the agent alone: the program gets none of them.
type StoreCredentials struct {
	Key     string    `json:"access_key_id"`
	Secret  string    `json:"secret_access_key"`
	Token   string    `json:"session_token"`
	Region  string    `json:"region,omitempty"` // of the bucket, where its address names none
	Expires time.Time `json:"expires"`
}

// WorkBlob is the tar file of a job's work folder, the bytes that GET /v1/agent/work sends, in the bucket for which the
// server lends credentials.
type WorkBlob struct {
	SHA256 string `json:"sha256,omitempty"` // in hexadecimal; empty: it is not there
	Bytes  int64  `json:"bytes,omitempty"`
	Wait   bool   `json:"wait,omitempty"` // it is on its way there: ask again
}

// Key is its key below the job's prefix. No key of a checkpoint begins like it.
func (b WorkBlob) Key() string { return WorkBlobs + b.SHA256 }

// WorkBlobs is what the keys of a job's work folders begin with, below its prefix.
const WorkBlobs = "work/"

// Why an agent has not taken the tar file of the work folder from the bucket.
const (
	WorkMissing = "missing" // it is not there
	WorkDamaged = "damaged" // it is not what the server says
	WorkAway    = "away"    // the bucket does not answer, or refuses
)

// Blobs is a page of a listing, in the order of the keys.
type Blobs struct {
	Blobs []Blob `json:"blobs"`
	Next  string `json:"next,omitempty"` // parameter page of the next page; empty: this is the last
}

// Blob is one line of it.
type Blob struct {
	Key      string    `json:"key"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Folder   bool      `json:"folder,omitempty"` // it stands for all keys that begin with it
}

// BlobSync asks for blobs to be made durable that were written in a run of the server's machine.
type BlobSync struct {
	Boot string   `json:"boot"`
	Keys []string `json:"keys"`
}
