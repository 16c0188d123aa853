package api

import "time"

// An agent's access to its job's files on the server, with the attempt's token. A key is a query parameter, because
// it may contain characters that a path may not:
//
//	GET    /v1/agent/blobs?key=K   the blob, whole or a range; HEAD describes it
//	PUT    /v1/agent/blobs?key=K   its content -> 204; If-None-Match: * creates it only if it is absent
//	DELETE /v1/agent/blobs?key=K   -> 204
//	GET    /v1/agent/blobs/list    -> Blobs
//	POST   /v1/agent/blobs/sync    BlobSync -> 204: blobs written with durable=later are durable now
//	GET    /v1/agent/work          the work folder as a tar file, whole or from an offset on
//	GET    /v1/agent/work/blob     -> WorkBlob: that tar file in the job's bucket, if Assignment.WorkLent is set

// ServerStore is the address of the server's own store, which an agent reaches with its attempt's token; ServerWork
// is the job's work folder there.
const (
	ServerStore = "scrimp:"
	ServerWork  = "scrimp:work"
)

// BlobSum is the header or trailer with the CRC-32C of a content, in hexadecimal. The server drops content that was
// damaged on the way.
const BlobSum = "Scrimp-Crc32c"

// BlobBoot is the header that identifies the present boot of the server's host: what was written with durable=later
// is lost only if the host restarts.
const BlobBoot = "Scrimp-Boot"

// BlobModified is the header with the modification time of a blob.
const BlobModified = "Scrimp-Modified"

// StoreCredentials are valid for the job's own prefix in the bucket of its job file until they expire. They are for
// the agent alone; the program gets none.
type StoreCredentials struct {
	Key     string    `json:"access_key_id"`
	Secret  string    `json:"secret_access_key"`
	Token   string    `json:"session_token"`
	Region  string    `json:"region,omitempty"` // of the bucket, if its address names none
	Expires time.Time `json:"expires"`
}

// WorkBlob is the tar file of a job's work folder, with the bytes of GET /v1/agent/work, in the bucket for which the
// server lends credentials.
type WorkBlob struct {
	SHA256 string `json:"sha256,omitempty"` // in hexadecimal; empty: not in the bucket
	Bytes  int64  `json:"bytes,omitempty"`
	Wait   bool   `json:"wait,omitempty"` // the upload is in progress: ask again
}

// Key returns its key below the job's prefix. No key of a checkpoint has this prefix.
func (b WorkBlob) Key() string { return WorkBlobs + b.SHA256 }

// WorkBlobs is the prefix of the keys of work folders, below the job's prefix.
const WorkBlobs = "work/"

// Why an agent did not use the tar file in the bucket.
const (
	WorkMissing = "missing" // it is missing
	WorkDamaged = "damaged" // it differs from the server's hash
	WorkAway    = "away"    // the bucket is unreachable or refuses
)

// Blobs is a page of a listing, in order of keys.
type Blobs struct {
	Blobs []Blob `json:"blobs"`
	Next  string `json:"next,omitempty"` // value of the parameter page for the next page; empty: last page
}

// Blob is an entry of a listing.
type Blob struct {
	Key      string    `json:"key"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Folder   bool      `json:"folder,omitempty"` // it stands for all keys with this prefix
}

// BlobSync requests that blobs written during one boot of the server's host are made durable.
type BlobSync struct {
	Boot string   `json:"boot"`
	Keys []string `json:"keys"`
}
