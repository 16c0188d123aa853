package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"scrimp/internal/lib/durable"
)

// failedFolder holds, by job, the reports that reached nobody.
const failedFolder = "undelivered"

// mostFailures bounds the reports kept of a job; the oldest go first.
const mostFailures = 50

// Failure is a report that a receiver did not get.
type Failure struct {
	Event string    `json:"event"`
	To    string    `json:"to"` // an e-mail address, or the host of a webhook
	Error string    `json:"error"`
	At    time.Time `json:"at"`
}

// failures orders the writers of the folder.
type failures struct{ mu sync.Mutex }

// Failures returns the reports about a job that reached nobody, oldest first.
func (o *Outbox) Failures(job string) ([]Failure, error) {
	o.failed.mu.Lock()
	defer o.failed.mu.Unlock()
	return readFailures(o.Dir, job)
}

func readFailures(dir, job string) (list []Failure, err error) {
	b, err := os.ReadFile(filepath.Join(dir, failedFolder, job))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read the failed reports of %s: %w", job, err)
	}
	return list, nil
}

// add records a failure. A repeated report replaces the earlier failure.
func (f *failures) add(dir, job string, one Failure) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, err := readFailures(dir, job)
	if err != nil {
		old = nil // a file that cannot be read must not hide this failure
	}
	var list []Failure
	for _, o := range old {
		if o.Event != one.Event || o.To != one.To {
			list = append(list, o)
		}
	}
	list = append(list, one)
	b, err := json.Marshal(list[max(0, len(list)-mostFailures):])
	if err != nil {
		return err
	}
	path := filepath.Join(dir, failedFolder, job)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(path, b)
}
