package attempt

import (
	"encoding/json"
	"os"
	"path/filepath"

	"scrimp/internal/lib/durable"
)

// mark is written before the program starts, so that an agent that is started
// again on the same machine knows that the program ran and died with the agent before.
type mark struct {
	Attempt string `json:"attempt"`
}

func markPath(dir string) string { return filepath.Join(dir, "attempt.json") }

// ranBefore reports whether this attempt's program was started on this machine before.
func ranBefore(dir, attempt string) bool {
	b, err := os.ReadFile(markPath(dir))
	var m mark
	return err == nil && json.Unmarshal(b, &m) == nil && m.Attempt == attempt
}

// MarkRan notes, in the own folder of an attempt, that its program has been started on this machine.
func MarkRan(dir, attempt string) error {
	b, err := json.Marshal(mark{attempt})
	if err != nil {
		return err
	}
	return durable.Replace(markPath(dir), b)
}
