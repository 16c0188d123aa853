package attempt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Kinds of trouble on a machine while its program runs on.
const (
	troubleKeep    = "checkpoints are not kept; the agent tries again, and the program runs on"
	troubleCapture = "the checkpoint folder cannot be copied whole"
	troubleLook    = "the checkpoint folder cannot be listed"
	troubleNumber  = "the program has reported numbers that are out of bounds; scrimp ignores them"
	troubleSteps   = "the program's step counter restarts each epoch"
	troubleMetric  = "the program reports the job's metric too often"
)

// stepsAnew describes how scrimp counts steps that start again each epoch. total is the job's
// number of steps; 0: unknown.
func stepsAnew(total int64) string {
	if total > 0 {
		return "scrimp adds the steps of earlier epochs"
	}
	return "scrimp adds the steps of earlier epochs, and the remaining steps are unknown: set work.epochs, or let " +
		"progress.pattern capture the number of epochs as (?P<epochs>)"
}

// trouble collects current problems. Each report carries them, so that users see them in time to fix them.
type trouble struct {
	mu      sync.Mutex
	current map[string]error
}

// set sets or, if err is nil, clears the problem called what.
func (t *trouble) set(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.current, what)
		return
	}
	if t.current == nil {
		t.current = map[string]error{}
	}
	t.current[what] = err
}

// text returns all current problems as one line, or "".
func (t *trouble) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(t.current)) {
		all = append(all, fmt.Sprintf("%s: %v", what, t.current[what]))
	}
	return strings.Join(all, "; ")
}
