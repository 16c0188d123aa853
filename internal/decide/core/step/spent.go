package step

import (
	"time"
)

func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
