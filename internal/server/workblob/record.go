package workblob

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/lib/confined"
	"scrimp/internal/lib/durable"
	"scrimp/internal/server/workdir"
	"scrimp/internal/wire/api"
)

// record describes the copy of a job's work folder that is, or may be, in its bucket. It is written before the
// upload starts.
type record struct {
	Store  string `json:"store"` // as the job file names it
	Tree   string `json:"tree"`  // hash of the folder's list
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Whole  bool   `json:"whole"` // it was read back and compared
}

// is reports whether the copy is complete and of that folder.
func (r record) is(ref workdir.Ref, store string) bool {
	return r.Whole && r.Tree == ref.Tree && r.Store == store
}

func (r record) blob() api.WorkBlob { return api.WorkBlob{SHA256: r.SHA256, Bytes: r.Bytes} }

func (b *Blobs) file(job string) string { return filepath.Join(b.dir(), filepath.Base(job)) }

// mostRecord bounds a record, in bytes.
const mostRecord = 1 << 20

// record reads the record of a job. fs.ErrNotExist: no copy is in a bucket.
func (b *Blobs) record(job string) (r record, err error) {
	text, err := confined.ReadFile(b.file(job), mostRecord)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read the record of the work folder of %s: %w", job, err)
	}
	return r, nil
}

func (b *Blobs) note(job string, r record) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(b.dir(), 0o700)
	}
	if err != nil {
		return err
	}
	return durable.Replace(b.file(job), text)
}

// Jobs returns the jobs whose work folders may have copies in buckets for which an engine lends credentials.
func (b *Blobs) Jobs() (jobs []string, err error) {
	list, err := os.ReadDir(b.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() { // a partial file of a killed server, or not a file
			continue
		}
		r, wrong := b.record(e.Name())
		if wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		if l, _ := b.Lender(r.Store, e.Name()); l != nil {
			jobs = append(jobs, e.Name())
		}
	}
	return jobs, err
}
