package terms

import (
	"time"

	"scrimp/internal/job/spec"
)

// Limits on the time in which a machine brings inputs and sets up. An agent gives up by itself once a store no longer
// answers.
const (
	settingUp    = 2 * time.Hour // the commands of setup
	slowest      = 10e6          // bytes a second of an input whose size is known
	unsized      = 2 * time.Hour // of an input whose size is unknown
	mostBringing = 7 * 24 * time.Hour
)

// Bringing returns the longest wall time that a machine may take to bring the job's inputs and to set up. The machine
// is terminated if its program does not run by then.
func Bringing(j spec.Job) (sum time.Duration) {
	if j.Setup != "" {
		sum = settingUp
	}
	for _, d := range j.Data {
		switch {
		case d.Name == "", d.Stream: // a program begins before a stream has come
		case d.Size == 0:
			sum += unsized
		default:
			sum += time.Duration(min(float64(d.Size)/slowest*float64(time.Second), float64(mostBringing)))
		}
	}
	return min(sum, mostBringing)
}
