package attempt

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

// ranBefore reports whether this attempt's program already started on this machine.
func ranBefore(dir, attempt string) bool {
	b, err := os.ReadFile(markPath(dir))
	var m mark
	return err == nil && json.Unmarshal(b, &m) == nil && m.Attempt == attempt
}

// MarkRan records in the attempt's own folder that its program has started on this machine.
func MarkRan(dir, attempt string) error {
	b, err := json.Marshal(mark{attempt})
	if err != nil {
		return err
	}
	return durable.Replace(markPath(dir), b)
}
