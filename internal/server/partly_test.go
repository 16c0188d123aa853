package server

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/server/auth"
)

// partly is firm, but grants one machine of several and leaves the others pending.
type partly struct{ firm }

func (p *partly) Launch(ctx context.Context, r engine.Request) ([]engine.Instance, error) {
	r.Nodes = 1
	list, err := p.firm.Launch(ctx, r)
	if err == nil {
		err = &engine.PendingError{Why: "the second waits for a node"}
	}
	return list, err
}

// Cancel implements engine.Canceller.
func (p *partly) Cancel(context.Context, string) error { return engine.ErrNotFound }

// A gang with part of its machines shows them as waiting.
func TestMachines_OfAnIncompleteGangAreWaiting(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &partly{}, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing("gang", "", `,"nodes":2`)); rec.Code != http.StatusOK {
		t.Fatalf("%d %+v", rec.Code, p)
	}
	w.until(func(m *core.Machine) bool {
		for range m.State().Instances() {
			return true
		}
		return false
	})
	var list []client.Machine
	rec, _ := w.ask("GET", "/v1/machines", auth.OwnerName, "")
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list) != 1 || list[0].Job != "gang" || len(list[0].Beside) > 0 {
		t.Errorf("%v: %s", err, rec.Body)
	}
}
