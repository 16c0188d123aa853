package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"

	"scrimp/internal/lib/durable"
)

// mark is written before the program starts. A restarted agent reads it to learn that the program
// ran and died with the previous agent.
type mark struct {
	Attempt string `json:"attempt"`
}

func markPath(dir string) string { return filepath.Join(dir, "attempt.json") }

// RanBefore reports whether this attempt's program already started on this machine.
func (w *Workspace) RanBefore() bool {
	b, err := os.ReadFile(markPath(w.Folders.Own))
	var m mark
	return err == nil && json.Unmarshal(b, &m) == nil && m.Attempt == w.Task.Attempt
}

// MarkRan records in the attempt's own folder that its program has started on this machine.
func (w *Workspace) MarkRan() error {
	b, err := json.Marshal(mark{w.Task.Attempt})
	if err != nil {
		return err
	}
	return durable.Replace(markPath(w.Folders.Own), b)
}
