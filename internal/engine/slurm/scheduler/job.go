package scheduler

import (
	"strconv"
	"strings"
	"time"
)

// Job is a job as the controller or the accounting has it.
type Job struct {
	ID, State, Reason, Nodes, Name, Comment string
	Start, End                              time.Time // zero: unknown
}

// The states of Slurm jobs, grouped by their meaning here.
var (
	Waits = words("PENDING REQUEUED REQUEUE_HOLD REQUEUE_FED SPECIAL_EXIT RESV_DEL_HOLD")
	Runs  = words("RUNNING COMPLETING CONFIGURING SUSPENDED STOPPED SIGNALING STAGE_OUT RESIZING")
	Taken = words("PREEMPTED NODE_FAIL TIMEOUT BOOT_FAIL DEADLINE REVOKED CANCELLED")
)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// Moment parses a time printed by a command; zero if unknown.
func Moment(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}
