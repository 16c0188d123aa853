package books

import (
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/api"
	"scrimp/internal/api/convert"
	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// History answers with what was seen of the market, from the log, and with the
// jobs that succeeded on it.
func (b *Books) History(w http.ResponseWriter, r *http.Request) {
	var seen market.Recorder
	err := b.each(r.Context(), func(_ uint64, e core.Event, _ []core.Fact) error {
		if b, ok := e.Body.(core.MarketSeen); ok {
			for _, o := range b.Offers {
				seen.Offer(o)
			}
			for _, q := range b.Quotes {
				seen.Quote(q)
			}
		}
		return nil
	})
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "the log cannot be read", "run scrimp doctor", err)
		return
	}
	seen.Until(b.Control.Now())
	h := api.History{Jobs: []api.PastJob{}}
	trace, opened := seen.Trace("recorded")
	h.Trace, h.Opened = convert.To[client.Trace](trace), opened
	h.Trace.Speed = b.Control.Clock().Speed // notices are on the wall
	b.Control.Read(func(m *core.Machine) {
		for j := range m.Jobs() {
			switch {
			case !auth.Sees(auth.CallerOf(r), j):
				continue
			case j.State() != core.Succeeded:
				if j.State().Over() {
					h.Others++
				}
				continue
			}
			p := api.PastJob{ID: j.ID(), Name: j.Terms().Name, Terms: convert.To[client.Terms](*j.Terms()),
				Submitted: j.Submitted(), Restart: j.Restart(), Save: j.SaveCost(), Cost: j.Spent(m.Now())}
			if steps := max(j.Total(), j.Step()); steps > 0 && j.StepRate() > 0 {
				p.Known = true
				p.Terms.Steps, p.Terms.Work = steps, time.Duration(float64(steps)/j.StepRate()*float64(time.Hour))
			}
			h.Jobs = append(h.Jobs, p)
		}
	})
	reply.JSON(w, h)
}
