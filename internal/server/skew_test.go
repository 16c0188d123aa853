package server

import (
	"net/http"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// A machine whose clock is two hours off, either way, keeps its checkpoints.
func TestCheckpoint_SurvivesAMachinesWrongClock(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	for name, off := range map[string]time.Duration{"behind": -2 * time.Hour, "ahead": 2 * time.Hour} {
		attempt := w.rent(name)
		w.take(attempt)
		report := func(m api.Message) {
			t.Helper()
			m.At = time.Now().Add(off)
			if m.Saved != nil {
				m.Saved.Captured = m.At
			}
			if rec, p := w.ask("POST", "/v1/agent/report", w.gate.Tickets.For(auth.AttemptTicket, attempt),
				api.Report{Attempt: attempt, Now: time.Now().Add(off), Messages: []api.Message{m}}); rec.Code != http.StatusOK {
				t.Fatalf("%+v", p)
			}
		}
		report(api.Message{Seq: 1, Started: &api.Started{}})
		report(api.Message{Seq: 2, Saved: &api.Saved{Manifest: "m", Step: 1}})
		w.until(func(m *core.Machine) bool { j, _ := m.Job(name); return j.HasSaved() })
		w.control.Read(func(m *core.Machine) {
			if j, _ := m.Job(name); j.SavedWork() <= 0 || j.SavedWork() > time.Minute {
				t.Errorf("clock %s: %v of work is saved", name, j.SavedWork())
			}
		})
	}
}
