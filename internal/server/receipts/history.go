package receipts

import (
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/view"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

// History returns the observations of the market in the log, and the jobs that succeeded on it.
func (b *Service) History(w http.ResponseWriter, r *http.Request) {
	seen, err := b.View.Prices(r.Context(), b.Control.Durable())
	if err != nil {
		reports.Unread(w, "the log cannot be read", err)
		return
	}
	seen.Until(b.Control.Now())
	h := api.History{Jobs: []api.PastJob{}}
	trace, opened := seen.Trace("recorded")
	h.Trace, h.Opened = convert.To[client.Trace](trace), opened
	h.Trace.Speed = b.Control.Clock().Speed // notices are in wall time
	caller := auth.CallerOf(r)
	var now time.Time
	b.Control.Read(func(m *core.Machine) {
		now = m.Now()
		for j := range m.Jobs() {
			if auth.Sees(caller, j) {
				past(&h, j, now)
			}
		}
	})
	for j, err := range b.Control.Past(r.Context(), view.ArchivedPage{Limit: archivedBack, Backwards: true}) {
		if err != nil {
			reply.Problem(w, http.StatusServiceUnavailable, "cannot read archived jobs", "try again", err)
			return
		}
		if auth.Sees(caller, j) {
			past(&h, j, now)
		}
	}
	reply.JSON(w, h)
}

// past adds a job if it succeeded.
func past(h *api.History, j *core.Job, now time.Time) {
	if j.State() != core.Succeeded {
		if j.State().Over() {
			h.Others++
		}
		return
	}
	p := api.PastJob{ID: j.ID(), Name: j.Terms().Name, Terms: convert.To[client.Terms](*j.Terms()),
		Submitted: j.Submitted(), Restart: j.Restart(), Save: j.SaveCost(), Cost: j.Spent(now)}
	if steps := max(j.Total(), j.Step()); steps > 0 && j.Rate() > 0 {
		p.Known = true
		p.Terms.Steps, p.Terms.Work = steps, time.Duration(float64(steps)/j.Rate()*float64(time.Hour))
	}
	h.Jobs = append(h.Jobs, p)
}
