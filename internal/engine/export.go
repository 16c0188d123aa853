package engine

import "time"

// Exporter is implemented by drivers whose account exports its bill to a bucket.
type Exporter interface {
	// Exports returns where the bill is; ok is false if none is declared.
	Exports() (e Export, ok bool)
}

// Export is where a provider leaves an account's bill, as content/blob opens it.
type Export struct {
	Address string // of the bucket, without the prefix; it contains no secret
	Bucket  string
	Prefix  string        // of the export's keys, without slashes at its ends; empty: the whole bucket
	Every   time.Duration // between two reads of the bucket
}

// String returns the address as AWS' tools write it.
func (e Export) String() string {
	if e.Prefix == "" {
		return "s3://" + e.Bucket
	}
	return "s3://" + e.Bucket + "/" + e.Prefix
}
