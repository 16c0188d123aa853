package books

import (
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// Archives takes a job from those that are gone through.
func (h *Past) Archives(p Record, j *state.Job) {
	if p.ok {
		hour := ledger.HourOf(p.last)
		delete(h.jobs[hour], j)
		h.AddArchived(hour, p.owner, p.history)
	}
}

// Rehydrates puts it back.
func (h *Past) Rehydrates(p Record, j *state.Job) {
	if !p.ok {
		return
	}
	hour := ledger.HourOf(p.last)
	if h.jobs[hour] == nil {
		h.jobs[hour] = map[*state.Job]struct{}{}
	}
	h.jobs[hour][j] = struct{}{}
	h.AddArchived(hour, p.owner, p.history.Minus())
}

func (h *Past) AddArchived(hour int64, w state.HistoryOwner, p state.History) {
	if h.archived[hour] == nil {
		h.archived[hour] = map[state.HistoryOwner]state.History{}
	}
	h.archived[hour][w] = h.archived[hour][w].Plus(p)
}
