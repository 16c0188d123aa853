package planning

import (
	"fmt"

	"scrimp/internal/decide/plan"
)

// gets says how many processors or accelerators of its range a job has, and why: "16 of cpus 4..16: 3.1 times as
// fast as on 4".
func gets(g plan.Gets) string {
	has := fmt.Sprintf("%d of %s %d+", g.Units, g.Field, g.Least)
	if g.Most > 0 {
		has = fmt.Sprintf("%d of %s %d..%d", g.Units, g.Field, g.Least, g.Most)
	}
	switch {
	case !g.Shown:
		return has + ": nothing shows that more are faster; state work.parallel, or measure runs with other numbers"
	case g.Units == g.Least:
		return has + ": more would cost more, or another job needs them"
	}
	return has + fmt.Sprintf(": %.1f times as fast as on %d", g.Faster, g.Least)
}
