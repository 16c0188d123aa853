package terms_test

import (
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/server/terms"
)

func TestBringing_CountsSetUpAndInputs(t *testing.T) {
	t.Parallel()
	sized, unsized := spec.Data{Name: "a", Size: 36e9}, spec.Data{Name: "b"} // an hour at 10 MB a second
	for _, c := range []struct {
		job  spec.Job
		want time.Duration
	}{
		{spec.Job{}, 0},
		{spec.Job{Setup: "pip install torch"}, 2 * time.Hour},
		{spec.Job{Data: []spec.Data{sized, unsized, {Path: "/read/by/the/program"}}}, 3 * time.Hour},
		{spec.Job{Setup: "make", Data: []spec.Data{sized}}, 3 * time.Hour},
	} {
		if got := terms.Bringing(c.job); got != c.want {
			t.Errorf("setup %q and %d inputs may take %v, want %v", c.job.Setup, len(c.job.Data), got, c.want)
		}
	}
}
