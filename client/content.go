package client

// Contents lists the files that a job keeps in stores of scrimp, the largest first.
type Contents struct {
	Files []Content `json:"files"`
	Left  int64     `json:"left"` // files that the list leaves out because there are too many
}

// Content is a file in a kept output or in a checkpoint. A file that several of a job's checkpoints share is stored
// once, and listed once.
type Content struct {
	Kind   string `json:"kind"`            // output or checkpoint
	Name   string `json:"name"`            // of the checkpoint, or the rank of the machine
	Path   string `json:"path"`            // below it
	Store  string `json:"store,omitempty"` // address of the bucket or folder; "": the server's own disk
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"` // of the content: SHA-256, of its parts of 8 MiB if it has several
}
