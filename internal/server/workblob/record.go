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

// record is what of a job's work folder lies in its bucket, or may: it is written before anything is put there.
type record struct {
	Store  string `json:"store"` // as the job file names it
	Tree   string `json:"tree"`  // which folder it is
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Whole  bool   `json:"whole"` // it was read back
}

// is reports whether the folder is there.
func (r record) is(ref workdir.Ref, store string) bool {
	return r.Whole && r.Tree == ref.Tree && r.Store == store
}

func (r record) blob() api.WorkBlob { return api.WorkBlob{SHA256: r.SHA256, Bytes: r.Bytes} }

func (b *Blobs) file(job string) string { return filepath.Join(b.dir(), filepath.Base(job)) }

// mostRecord is how many bytes a record has at most.
const mostRecord = 1 << 20

// record reads that of a job. fs.ErrNotExist: nothing of it is in a bucket.
func (b *Blobs) record(job string) (r record, err error) {
	text, err := confined.ReadFile(b.file(job), mostRecord)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read where the work folder of %s is: %w", job, err)
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

// Jobs are those of whose work folders something may lie in a bucket, where somebody lends credentials for it.
func (b *Blobs) Jobs() (jobs []string, err error) {
	list, err := os.ReadDir(b.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() { // half written, by one that was killed, or no file
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
