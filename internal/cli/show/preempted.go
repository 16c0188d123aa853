package show

import (
	"cmp"
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Preemptions writes which critical job got the seat of the job, and which jobs left their seats to it; nothing if
// there was no preemption.
func Preemptions(j api.Job, p Place) string {
	var b strings.Builder
	if v := j.Preempted; v != nil {
		times := ""
		if v.Times > 1 {
			times = draw.Count(v.Times, "time") + ", last "
		}
		text := fmt.Sprintf("%sby %s, which is critical, %s; expected cost %s: %s of work repeated, %s to start again", times,
			cmp.Or(v.By, "a job of another team"), p.When(v.At), money.Short(v.Cost, j.Currency), Seconds(v.Lost),
			Seconds(v.Restart))
		p.Fact(&b, "preempted", "%s", text)
	}
	if len(j.Preempts) > 0 {
		text := strings.Join(j.Preempts, ", ") + ", for a place on a machine"
		if j.PreemptCost != nil {
			text += "; expected cost " + money.Short(*j.PreemptCost, j.Currency)
		}
		p.Fact(&b, "preempts", "%s", text)
	}
	if j.PreemptsNobody != "" {
		p.Fact(&b, "preempts", "nobody now: %s", j.PreemptsNobody)
	}
	return b.String()
}
