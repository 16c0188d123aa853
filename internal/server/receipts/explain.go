package receipts

import (
	"cmp"
	"net/http"
	"slices"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/view"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

// refusal returns the event's launch refusal if it concerns the job.
func refusal(e core.Event, facts []core.Fact, job string) core.LaunchRefused {
	said, is := e.Body.(core.LaunchRefused)
	if !is || !slices.ContainsFunc(facts, func(f core.Fact) bool {
		q, again := f.(state.JobQueued)
		return again && q.Job == job
	}) {
		return core.LaunchRefused{}
	}
	return said
}

// Explain lists the decisions about a job.
func (b *Service) Explain(w http.ResponseWriter, r *http.Request) {
	j, known := b.known(w, r)
	if !known {
		return
	}
	list := []api.Decision{}
	err := b.events(r.Context(), j, view.Decisions, func(seq uint64, e core.Event, facts []core.Fact) error {
		refused := refusal(e, facts, j.ID)
		for _, f := range facts {
			d, ok := f.(state.Decided)
			if !ok || d.Job != j.ID {
				continue
			}
			line := api.Decision{At: b.Control.Clock().ToWall(e.At), MarketAt: e.At, Event: seq, Cause: e.Body.Kind(),
				Version: d.Version, Refused: refused.Detail, Choice: convert.To[client.Choice](d.Decision)}
			if n := len(list); n > 0 && d.SameRejected {
				line.Rejected = list[n-1].Rejected
			}
			if n := len(list); n > 0 && list[n-1].Take == line.Take && list[n-1].Why == line.Why && list[n-1].Mode == line.Mode {
				// the same decision again: keep the newest figures
				old := &list[n-1]
				old.Refused = cmp.Or(line.Refused, old.Refused)
				old.Slack, old.Rejected, old.Counts, old.Expect = line.Slack, line.Rejected, line.Counts, line.Expect
				continue
			}
			list = append(list, line)
		}
		return nil
	})
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	reply.JSON(w, list)
}
