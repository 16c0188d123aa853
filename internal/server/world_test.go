package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/identity"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/store"
	"scrimp/internal/store/postgres"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// shut is a provider without offers: jobs wait.
type shut struct{}

func (shut) Launch(context.Context, engine.Request) ([]engine.Instance, error) {
	return nil, engine.ErrNoCapacity
}
func (shut) Terminate(context.Context, string) error         { return engine.ErrNotFound }
func (shut) List(context.Context) ([]engine.Instance, error) { return nil, nil }
func (shut) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	return nil, nil, nil
}

// world is a server without a market, called in process.
type world struct {
	*Server
	t       testing.TB
	h       http.Handler
	log     *bytes.Buffer
	stopped int
	free    atomic.Int64 // free bytes that the test reports; 0: the real number
	entries atomic.Int64 // free inodes that the test reports; 0: the real number
}

func newWorld(t testing.TB, change func(*Options)) *world {
	t.Helper()
	return newWorldOf(t, shut{}, change)
}

// hooked allows webhooks on loopback, where those of tests are.
func hooked(o *Options) { o.HookHosts = []string{"127.0.0.1"} }

func newWorldOf(t testing.TB, sells engine.Driver, change func(*Options)) *world {
	t.Helper()
	return newWorldOn(t, sells, change, func(s store.Replica) store.Replica { return s })
}

// newWorldOn is newWorldOf with the store that wrap returns.
func newWorldOn(t testing.TB, sells engine.Driver, change func(*Options),
	wrap func(store.Replica) store.Replica) *world {
	t.Helper()
	return newWorldFor(t, "", sells, change, wrap)
}

// opened is the market time at which worlds begin: in the middle of a month, so that what tests spend is in one.
var opened = time.Date(2026, 10, 14, 12, 0, 0, 0, time.UTC)

// newWorldFor is newWorldOn for a tenant.
func newWorldFor(t testing.TB, tenant string, sells engine.Driver, change func(*Options),
	wrap func(store.Replica) store.Replica) *world {
	t.Helper()
	w := &world{t: t, log: &bytes.Buffer{}}
	o := Options{Dir: t.TempDir(), Version: "test", Log: slog.New(slog.NewTextHandler(w.log, nil))}
	if change != nil {
		change(&o)
	}
	st, err := store.Replica(nil), error(nil)
	if o.DB == "" {
		st, err = sqlite.Open(o.Dir)
	} else if st, err = postgres.Open(t.Context(), postgres.Default(o.DB, o.Dir)); err == nil {
		err = st.Lead(t.Context())
	}
	must.Do(t, err)
	st = wrap(st)
	w.Server = newServer(o, st, "", auth.NewPace(o.Rate))
	w.gate.Owner, w.gate.Tickets, w.gate.Seen = strings.Repeat("0", 64), auth.Tickets("agents"), httpsig.Seen{}
	system := w.disk
	w.disk = func() (disk.Left, bool) {
		left, ok := system()
		left.Bytes, left.Entries = cmp.Or(w.free.Load(), left.Bytes), cmp.Or(w.entries.Load(), left.Entries)
		return left, ok
	}
	w.stop = func(error) { w.stopped++ }
	if w.gate.People, err = auth.ReadPeople(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	w.clock = engine.Clock{Wall: time.Now().UTC(), Market: opened, Speed: 1}
	w.engines = []engine.Engine{{Name: nameOf(t, sells), Driver: sells, AgentURL: w.socketURL(),
		Timing: engine.Timing{Poll: time.Hour, Sweep: time.Hour, Boot: 5 * time.Minute}}}
	w.control, err = control.New(t.Context(), st, w.engines,
		control.Config{Tenant: tenant, Clock: w.clock, Silence: time.Hour, Log: o.Log, Env: w.agentEnv, Running: o.Running,
			Archive: w.view, Relieve: w.releaseReserve, Resolve: w.resolve})
	must.Do(t, err)
	w.buildHandlers()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.control.Run(ctx) }()
	followed := make(chan struct{})
	go func() { defer close(followed); w.follower.Follow(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		<-followed
		_ = st.Close()
	})
	w.h = w.routes()
	return w
}

// nameOf returns the name of the engine that has d's offers.
func nameOf(t testing.TB, d engine.Driver) string {
	t.Helper()
	offers, _, err := d.Offers(t.Context())
	if err != nil || len(offers) == 0 {
		return "p" // tests report its offers themselves
	}
	return offers[0].Provider
}

// ask sends a request. The token "owner" is the data folder's, on its socket.
func (w *world) ask(method, path, token string, body any) (*httptest.ResponseRecorder, api.Problem) {
	w.t.Helper()
	var text io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		text = strings.NewReader(b)
	default:
		j, err := json.Marshal(b)
		must.Do(w.t, err)
		text = bytes.NewReader(j)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, text)
	if token == auth.OwnerName {
		token = w.gate.Owner
		r = r.WithContext(auth.OnSocket(r.Context()))
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	var p api.Problem
	if rec.Code >= 400 {
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Status != rec.Code || p.Title == "" ||
			rec.Header().Get("Content-Type") != "application/problem+json" {
			w.t.Errorf("%s %s: %d is no problem as RFC 9457 has it: %s, %q", method, path, rec.Code,
				rec.Header().Get("Content-Type"), rec.Body)
		}
	}
	return rec, p
}

// must is ask as the owner, for requests that must succeed.
func (w *world) must(method, path string, body, out any) {
	w.t.Helper()
	rec, p := w.ask(method, path, auth.OwnerName, body)
	if rec.Code >= 300 {
		w.t.Fatalf("%s %s: %+v", method, path, p)
	}
	if out != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
			w.t.Fatal(err)
		}
	}
}

// user creates a user with a token.
func (w *world) user(name string, grants ...identity.Grant) string {
	w.t.Helper()
	w.must("PUT", "/v1/users/"+name, api.SetUser{Grants: convert.To[[]client.Grant](grants)}, nil)
	var made api.MadeToken
	w.must("POST", "/v1/tokens", api.NewToken{User: name}, &made)
	return made.Text
}

func aJob(name, team string) string {
	if team != "" {
		team = `,"team":"` + team + `"`
	}
	return fmt.Sprintf(`{"spec":{"name":%q,"command":"true"%s}}`, name, team)
}

// expired creates an expired token.
func (w *world) expired(user string) string {
	id, _ := w.gate.People.ID(user)
	text, tok := identity.Mint(sha256.Sum256([]byte(user)), id, time.Now().Add(-2*time.Hour), time.Hour)
	e := core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: w.control.Tenant(),
		Body: core.IdentityChanged{Change: identity.Change{Token: &tok}}}
	must.Do(w.t, w.control.Propose(w.t.Context(), e))
	if wrong, err := w.gate.People.Change(identity.Change{Token: &tok}, func() error { return nil }); wrong != nil || err != nil {
		w.t.Fatal(wrong, err)
	}
	return text
}

// eachRecord yields the log as the store keeps it.
func (w *world) eachRecord(t testing.TB) func(func(store.Record, error) bool) {
	t.Helper()
	return func(yield func(store.Record, error) bool) {
		for after := uint64(0); ; {
			records, err := w.store.Records(t.Context(), after, 1000)
			if err != nil || len(records) == 0 {
				return
			}
			for _, r := range records {
				after = r.Seq
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// secrets returns the stored secrets of the job.
func (w *world) secrets(job string) map[string]string {
	w.t.Helper()
	m, err := w.vault().Current(job, w.entry(job))
	must.Do(w.t, err)
	return m.Secrets
}

// entry returns the entry of the vault with the secrets that the job was submitted with.
func (w *world) entry(job string) (entry string) {
	w.control.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job(job); ok {
			entry = m.State().Secrets(j)
		}
	})
	return entry
}
