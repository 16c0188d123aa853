package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/store"
	"scrimp/internal/wire/api"
)

// restored returns a world with two jobs on machines, whose log was then restored.
func restored(t *testing.T) (w *world, attempts []string) {
	t.Helper()
	w = newWorldOf(t, &firm{}, nil)
	w.must("POST", "/v1/jobs", aJob("a", ""), nil)
	w.booting(1)
	w.must("POST", "/v1/jobs", aJob("b", ""), nil)
	attempts = w.booting(2)
	w.event(core.AttemptStarted{Attempt: attempts[0], Message: 1}, time.Minute)
	installation := ""
	w.control.Read(func(m *core.Machine) { installation = m.State().Installation() })
	w.event(core.IncarnationBegun{Installation: installation, Incarnation: 2}, 2*time.Minute)
	w.must("POST", "/v1/jobs", aJob("waits", ""), nil)
	return w, attempts
}

// late is a store that withholds the position of the log until it is released.
type late struct {
	store.Replica
	goes chan struct{}
}

func (l late) Place(ctx context.Context) (string, error) {
	<-l.goes
	return l.Replica.Place(ctx)
}

// Until the log has the server's incarnation, the server is not ready, and does not claim that no machine awaits a
// decision, which would be wrong for a copy.
func TestOwnership_IsUnknownUntilTheFirstEvent(t *testing.T) {
	t.Parallel()
	l := late{goes: make(chan struct{})}
	w := newWorldOn(t, shut{}, nil, func(s store.Replica) store.Replica { l.Replica = s; return l })
	if rec, _ := w.ask("GET", "/readyz", "", nil); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("it says with %d whether it is ready", rec.Code)
	}
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(auth.OnSocket(hurried), "GET", "/v1/instances/undecided", nil)
	r.Header.Set("Authorization", "Bearer "+w.gate.Owner)
	rec := httptest.NewRecorder()
	if w.h.ServeHTTP(rec, r); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("it answers %d: %s", rec.Code, rec.Body)
	}
	close(l.goes)
	if list := w.waiting(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if rec, _ := w.ask("GET", "/readyz", "", nil); rec.Code != http.StatusOK {
		t.Errorf("it has begun, and says with %d whether it is ready", rec.Code)
	}
}

func (w *world) waiting() (list []api.Undecided) {
	w.t.Helper()
	w.must("GET", "/v1/instances/undecided", nil, &list)
	var v api.Server
	if w.must("GET", "/v1/server", nil, &v); v.Undecided != len(list) {
		w.t.Errorf("the server says that %d machines wait, and lists %v", v.Undecided, list)
	}
	return list
}

// After a restore, nothing is terminated or launched until somebody decides the ownership of each machine.
func TestOwnership_MachinesOfAnEarlierIncarnationWait(t *testing.T) {
	t.Parallel()
	w, attempts := restored(t)
	list := w.waiting()
	if len(list) != 2 || list[0].Job != "a" || list[0].Instance != w.instance(attempts[0]) || list[0].Offer != "firm" ||
		list[0].Since.IsZero() || list[0].Cost.Sign() <= 0 || list[0].Currency != money.USD {
		t.Fatalf("%+v", list)
	}
	if j := w.seen("a"); !strings.Contains(j.Detail, "scrimp adopt") || j.State != "running" {
		t.Errorf("%+v", j)
	}
	if j := w.seen("waits"); j.State != "queued" || j.Offer != "" {
		t.Errorf("%+v: something is launched", j)
	}
	w.must("POST", "/v1/jobs/b/end", api.End{}, nil)
	if j := w.seen("b"); j.State != "cancelled" || j.Closed || j.Phase == "terminating" {
		t.Errorf("%+v: its machine may be another's", j)
	}

	var done []api.Undecided
	if w.must("POST", "/v1/instances/decide", api.Ownership{Instance: list[0].Instance, Adopt: true},
		&done); len(done) != 1 || done[0].Job != "a" {
		t.Errorf("%+v", done)
	}
	if j := w.seen("a"); j.State != "running" || j.Machine != list[0].Instance || strings.Contains(j.Detail, "adopt") {
		t.Errorf("%+v: its job goes on", j)
	}
	if left := w.waiting(); len(left) != 1 || left[0].Job != "b" {
		t.Errorf("%+v", left)
	}
	if j := w.seen("waits"); j.State != "queued" {
		t.Errorf("%+v: one machine still waits", j)
	}
	w.must("POST", "/v1/instances/decide", api.Ownership{}, &done)
	if left := w.waiting(); len(left) != 0 {
		t.Errorf("%+v", left)
	}
	if j := w.seen("b"); !j.Closed {
		t.Errorf("%+v: its machine is another's, and costs nothing here any more", j)
	}
	w.until(func(m *core.Machine) bool { j, _ := m.Job("waits"); return j.Live() != nil })
	var v api.Verified
	if w.must("GET", "/v1/ledger/verify", nil, &v); !v.OK {
		t.Errorf("%+v", v)
	}
}

// If the user ended a job while its machine was undecided, the machine is terminated once it is adopted.
func TestAdopt_TerminatesMachinesOfEndedJobs(t *testing.T) {
	t.Parallel()
	w, attempts := restored(t)
	w.must("POST", "/v1/jobs/a/end", api.End{}, nil)
	w.must("POST", "/v1/instances/decide", api.Ownership{Adopt: true}, nil)
	w.until(func(m *core.Machine) bool {
		i := m.State().Instance(m.State().AttemptOf(attempts[0]).Instance())
		return i == nil || i.Release() != ""
	})
	w.control.Read(func(m *core.Machine) {
		if a := m.State().AttemptOf(attempts[1]); a.Releasing() {
			t.Errorf("the machine of b is given back")
		}
	})
}

func TestOwnership_IsDecidedByAdminsOfAllTeams(t *testing.T) {
	t.Parallel()
	w, _ := restored(t)
	w.must("PUT", "/v1/teams/x", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "x", Role: identity.Admin})
	if rec, p := w.ask("POST", "/v1/instances/decide", ann,
		api.Ownership{Adopt: true}); rec.Code != http.StatusForbidden || p.Fix == "" {
		t.Errorf("%d %+v", rec.Code, p)
	}
	if rec, p := w.ask("POST", "/v1/instances/decide", auth.OwnerName,
		api.Ownership{Instance: "i-none", Adopt: true}); rec.Code != http.StatusNotFound || p.Field != "instance" {
		t.Errorf("%d %+v", rec.Code, p)
	}
	if len(w.waiting()) != 2 {
		t.Error("something was decided")
	}
}
