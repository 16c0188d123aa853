package server

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/server/agents"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// rents is a provider whose machines are names only.
type rents struct {
	mu   sync.Mutex
	list []engine.Instance
}

func (r *rents) Launch(_ context.Context, q engine.Request) ([]engine.Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := slices.IndexFunc(r.list, func(i engine.Instance) bool { return i.Key == q.Key }); n >= 0 {
		return slices.Clone(r.list[n : n+1]), nil
	}
	i := engine.Instance{ID: "i-" + q.Key, Key: q.Key, Offer: q.Offer, State: engine.Running,
		Launched: time.Now().UTC(), Rate: 1}
	r.list = append(r.list, i)
	return []engine.Instance{i}, nil
}

func (r *rents) Terminate(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range r.list {
		if r.list[n].ID == id {
			r.list[n].State, r.list[n].Ended, r.list[n].Cause = engine.Ended, time.Now().UTC(), engine.Terminated
		}
	}
	return nil
}

func (r *rents) List(context.Context) ([]engine.Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list), nil
}

func (*rents) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	o := market.Offer{Provider: "shut", Region: "r", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 8,
		Memory: 8 * size.GiB, Currency: money.USD}
	o.ID = market.ID(o)
	return []market.Offer{o}, []market.Quote{{Offer: o.ID, Rate: 1, Priced: true, Available: true}}, nil
}

// rentedWorld returns a world in which a job has a machine whose agent can register, and the job's attempt.
func rentedWorld(t *testing.T, change func(*Options)) (*world, string) {
	t.Helper()
	w := newWorldOf(t, &rents{}, change)
	attempt := w.rent("a")
	return w, attempt
}

// rent submits a job and returns its attempt once it has a machine.
func (w *world) rent(name string) (attempt string) {
	w.t.Helper()
	w.must("POST", "/v1/jobs", aJob(name, ""), nil)
	w.until(func(m *core.Machine) bool {
		j, _ := m.Job(name)
		if a := j.Attempt(); a != nil && a.Live() && a.Task() == core.Assigned {
			attempt = a.ID()
		}
		return attempt != ""
	})
	return attempt
}

// instance returns the machine of an attempt.
func (w *world) instance(attempt string) (id string) {
	w.t.Helper()
	w.control.Read(func(m *core.Machine) {
		if a := m.State().AttemptOf(attempt); a != nil {
			id = a.Instance()
		}
	})
	return id
}

// until waits until f holds for the core's state.
func (w *world) until(f func(*core.Machine) bool) {
	w.t.Helper()
	for limit := time.After(eventually.Limit); ; {
		changed, ok := w.control.Changed(), false
		w.control.Read(func(m *core.Machine) { ok = f(m) })
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			w.t.Fatal("it does not come to that")
		}
	}
}

func TestBootstrapToken_RegistersOneMachineOnce(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	other := w.rent("b")
	// Eight agents register at once with one token: one gets the machine.
	keys, codes := make([]ed25519.PrivateKey, 8), make([]int, 8)
	var all sync.WaitGroup
	for i := range codes {
		_, keys[i], _ = ed25519.GenerateKey(nil)
		all.Go(func() {
			codes[i], _ = w.register(w.gate.Tickets.For(auth.BootstrapTicket, attempt), w.instance(attempt), keys[i])
		})
	}
	all.Wait()
	first := slices.Index(codes, 200)
	if n := len(slices.DeleteFunc(slices.Clone(codes), func(c int) bool { return c != 200 })); n != 1 {
		t.Fatalf("%d of 8 agents have the machine: %v", n, codes)
	}
	key := keys[first]
	begun := time.Now().Truncate(time.Second)
	again, _ := w.ask("POST", "/v1/agent/register", w.gate.Tickets.For(auth.BootstrapTicket, attempt), api.Registration{})
	if at, ok := httpsig.DateOf(again.Header()); !ok || at.Before(begun) || at.After(time.Now()) {
		t.Errorf("the server's time is told as %v, %v", at, ok)
	}
	if code, p := w.register(w.gate.Tickets.For(auth.BootstrapTicket, attempt), w.instance(attempt), key); code != 200 {
		t.Errorf("its answer was lost and asked for again: %d %+v", code, p)
	}
	if code, p := w.register(w.gate.Tickets.For(auth.BootstrapTicket, attempt), w.instance(attempt), keys[(first+1)%8]); code != http.StatusGone ||
		!strings.Contains(p.Title, "another agent") || p.Fix == "" {
		t.Errorf("a second agent with the token: %d %+v", code, p)
	}
	if code, p := w.register(w.gate.Tickets.For(auth.BootstrapTicket, other), w.instance(attempt), key); code != http.StatusGone || p.Fix == "" {
		t.Errorf("from another machine than was launched: %d %+v", code, p)
	}
	if code, p := w.register(w.gate.Tickets.For(auth.AttemptTicket, other), w.instance(other), key); code != http.StatusUnauthorized || p.Fix == "" {
		t.Errorf("with a task's token: %d %+v", code, p)
	}

	// Only the key can pull the machine's task.
	task := w.pull(w.instance(attempt), key)
	if len(task.Tasks) != 1 || task.Tasks[0].Attempt != attempt || task.Off {
		t.Fatalf("pulled is %+v", task)
	}
	if again := w.pull(w.instance(attempt), key); len(again.Tasks) != 1 || again.Tasks[0].AttemptToken != task.Tasks[0].AttemptToken {
		t.Errorf("its answer was lost and asked for again: %+v", again)
	}
	token := task.Tasks[0].AttemptToken
	for name, c := range map[string]struct {
		instance string
		key      ed25519.PrivateKey
		code     int
	}{
		"another key":        {w.instance(attempt), keys[(first+1)%8], http.StatusUnauthorized},
		"another's machine":  {w.instance(other), key, http.StatusGone},
		"an unknown machine": {"i-none", key, http.StatusGone},
	} {
		if rec, p := w.send(w.signed("POST", "/v1/agent/pull", c.instance, c.key, api.Pull{})); rec.Code != c.code || p.Fix == "" {
			t.Errorf("%s pulls: %d %+v, want %d", name, rec.Code, p, c.code)
		}
	}
	for name, shown := range map[string]string{"a task's token": token, "a bootstrap token": w.gate.Tickets.For(auth.BootstrapTicket, attempt)} {
		if rec, _ := w.ask("POST", "/v1/agent/pull", shown, api.Pull{}); rec.Code != http.StatusUnauthorized {
			t.Errorf("%s pulls: %d", name, rec.Code)
		}
	}
	r := w.signed("POST", "/v1/agent/pull", w.instance(attempt), key, api.Pull{})
	if rec, p := w.send(r.Clone(t.Context())); rec.Code != 200 {
		t.Fatalf("%d %+v", rec.Code, p)
	}
	r.Body = io.NopCloser(strings.NewReader(jsonOf(api.Pull{})))
	if rec, p := w.send(r); rec.Code != http.StatusConflict || p.Fix == "" {
		t.Errorf("a pull that is sent twice: %d %+v", rec.Code, p)
	}
	old := w.signed("POST", "/v1/agent/pull", w.instance(attempt), key, api.Pull{})
	old.Header.Set(api.WireHeader, "1")
	rec, _ := w.send(old)
	var none api.Pulled
	if err := json.Unmarshal(rec.Body.Bytes(), &none); err != nil || rec.Code != 200 || len(none.Tasks) > 0 || none.Wire != api.Wire {
		t.Errorf("an agent of an older version gets %d %s", rec.Code, rec.Body)
	}

	// The task's token opens the routes of its own task.
	routes := map[string]func() (*httptest.ResponseRecorder, api.Problem){
		"report": func() (*httptest.ResponseRecorder, api.Problem) {
			return w.ask("POST", "/v1/agent/report", token, api.Report{Attempt: attempt})
		},
		"logs": func() (*httptest.ResponseRecorder, api.Problem) {
			return w.ask("POST", "/v1/agent/logs?offset=0", token, "text")
		},
		"log end": func() (*httptest.ResponseRecorder, api.Problem) { return w.ask("GET", "/v1/agent/logs", token, nil) },
		"exec": func() (*httptest.ResponseRecorder, api.Problem) {
			return w.ask("POST", "/v1/agent/exec/1", token, api.ExecResult{})
		},
	}
	for name, ask := range routes {
		if rec, p := ask(); rec.Code >= 300 {
			t.Errorf("%s while it runs: %d %+v", name, rec.Code, p)
		}
	}
	if rec, _ := w.ask("POST", "/v1/agent/report", token, api.Report{Attempt: other}); rec.Code != http.StatusForbidden {
		t.Errorf("a report for another task: %d", rec.Code)
	}
	w.ask("POST", "/v1/agent/logs?attempt="+other+"&offset=0", token, "mine")
	if end, _ := w.store.LogEnd(t.Context(), other); end != 0 {
		t.Error("it writes into another task's log")
	}
	for _, path := range []string{"/v1/jobs", "/v1/jobs/a", "/v1/jobs/a/log", "/v1/costs", "/v1/users", "/v1/backup"} {
		if rec, _ := w.ask("GET", path, token, nil); rec.Code != http.StatusUnauthorized {
			t.Errorf("an agent's token opens %s: %d", path, rec.Code)
		}
	}

	// And none once the task has ended.
	w.must("POST", "/v1/jobs/a/end", api.End{}, nil)
	w.until(func(m *core.Machine) bool { _, live := m.Attempt(attempt); return !live })
	for name, ask := range routes {
		if rec, p := ask(); rec.Code != http.StatusGone || p.Fix == "" {
			t.Errorf("%s after the end: %d %+v", name, rec.Code, p)
		}
	}
	if p := w.pull(w.instance(attempt), key); !p.Off && len(p.Tasks) > 0 {
		t.Errorf("a pull after the end: %+v", p)
	}
	if code, p := w.register(w.gate.Tickets.For(auth.BootstrapTicket, attempt), w.instance(attempt), key); code != http.StatusGone || p.Fix == "" {
		t.Errorf("a registration after the end: %d %+v", code, p)
	}
}

// The server accepts what agents of the first protocol version send for their tasks, word for word, while it
// supports that version.
func TestAgent_OfAnEarlierReleaseIsUnderstood(t *testing.T) {
	t.Parallel()
	if api.OldestWire > 1 {
		t.Skip("version 1 of the protocol is no longer taken: its fixture can go")
	}
	w, attempt := rentedWorld(t, nil)
	text, err := os.ReadFile("testdata/agent/wire1.txt")
	must.Do(t, err)
	token, asked := w.gate.Tickets.For(auth.AttemptTicket, attempt), 0 // as it had before the server was replaced
	w.take(attempt)
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n===\n") {
		head, body, _ := strings.Cut(part, "\n")
		method, path, _ := strings.Cut(head, " ")
		body = strings.NewReplacer("ATTEMPT", attempt, "INSTANCE", w.instance(attempt)).Replace(strings.TrimSpace(body))
		r := httptest.NewRequestWithContext(t.Context(), method, strings.ReplaceAll(path, "ATTEMPT", attempt),
			strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token) // without a version
		rec := httptest.NewRecorder()
		if w.h.ServeHTTP(rec, r); rec.Code >= 300 {
			t.Fatalf("%s: %d %s", head, rec.Code, rec.Body)
		}
		asked++
	}
	w.until(func(m *core.Machine) bool { j, _ := m.Job("a"); return j.State() == core.Succeeded })
	w.control.Read(func(m *core.Machine) {
		if j, _ := m.Job("a"); asked < 5 || j.Step() != 100 || j.SavedStep() != 80 || j.Metrics()["loss"] != 1.5 {
			t.Errorf("%d requests left step %d, saved step %d, metrics %v", asked, j.Step(), j.SavedStep(), j.Metrics())
		}
	})
	log, _ := w.store.ReadLog(t.Context(), attempt, 0, 100)
	if string(log) != "step 100 loss 1.5" {
		t.Errorf("the log is %q", log)
	}
}

// A newer agent may send more than this server knows.
func TestAgent_UnknownFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	body := fmt.Sprintf(
		`{"attempt":%q,"weather":"fine","messages":[{"seq":1,"at":"2026-01-01T00:00:00Z","rained":{"mm":3}},{"seq":2,"at":"2026-01-01T00:00:00Z","step":{"step":4,"mood":"good"}}]}`, attempt)
	rec, p := w.ask("POST", "/v1/agent/report", w.gate.Tickets.For(auth.AttemptTicket, attempt), body)
	var o api.Orders
	if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || rec.Code != 200 || o.Ack != 2 {
		t.Errorf("%d %+v %+v", rec.Code, p, o)
	}
}

// Each limit of an agent takes effect, and the response has the fix.
func TestAgent_EachLimitNamesItsFix(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, func(o *Options) { o.Rate = 40 })
	token := w.gate.Tickets.For(auth.AttemptTicket, attempt)
	trip := func(name string, status int, ask func(i int) (*httptest.ResponseRecorder, api.Problem)) {
		t.Helper()
		for i := range 200 {
			rec, p := ask(i)
			if rec.Code != status {
				continue
			}
			if p.Fix == "" || status == http.StatusTooManyRequests && rec.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %+v, Retry-After %q", name, p, rec.Header().Get("Retry-After"))
			}
			return
		}
		t.Errorf("%s: not once %d", name, status)
	}
	const maxReport, maxChunk = 4 << 20, 4 << 20 // bytes in one request of an agent
	big := strings.Repeat("x", maxReport+1)
	trip("a long report", http.StatusRequestEntityTooLarge, func(int) (*httptest.ResponseRecorder, api.Problem) {
		return w.ask("POST", "/v1/agent/report", token, `{"attempt":"`+big+`"}`)
	})
	trip("a long chunk", http.StatusRequestEntityTooLarge, func(int) (*httptest.ResponseRecorder, api.Problem) {
		return w.ask("POST", "/v1/agent/logs?offset=0", token, big)
	})
	trip("much output", http.StatusTooManyRequests, func(i int) (*httptest.ResponseRecorder, api.Problem) {
		return w.ask("POST", fmt.Sprintf("/v1/agent/logs?offset=%d", i*maxChunk), token, big[:maxChunk])
	})
	w.allPace.TakeMany("all", 2*agents.AllLogRate, time.Now().Add(time.Minute))
	if rec, p := w.ask("POST", "/v1/agent/logs?offset=0", w.gate.Tickets.For(auth.AttemptTicket, w.rent("b")),
		"x"); rec.Code != http.StatusTooManyRequests || p.Fix == "" {
		t.Errorf("output of all together: %d %+v", rec.Code, p)
	}
	trip("many reports", http.StatusTooManyRequests, func(int) (*httptest.ResponseRecorder, api.Problem) {
		return w.ask("POST", "/v1/agent/report", token, api.Report{Attempt: attempt})
	})
	w.free.Store(disk.LogReserve - 1)
	rec, p := w.ask("POST", "/v1/agent/logs?offset=0", w.gate.Tickets.For(auth.AttemptTicket, w.rent("c")), "x")
	if rec.Code != http.StatusInsufficientStorage || p.Fix == "" || !strings.Contains(p.Detail, "511 MiB are free") {
		t.Errorf("a disk that is nearly full: %d %+v", rec.Code, p)
	}
}

func TestStreams_AreLimitedPerUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Viewer})
	site := httptest.NewServer(w.h)
	defer site.Close()
	follow := func(token string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", site.URL+"/v1/events", nil)
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		must.Do(t, err)
		return a
	}
	const tokenStreams = 100 // as in docs/design/server.md
	var open []*http.Response
	for range tokenStreams {
		if a := follow(ann); a.StatusCode == 200 {
			open = append(open, a)
		}
	}
	a := follow(ann)
	var p api.Problem
	if err := json.NewDecoder(a.Body).Decode(&p); err != nil || len(open) != tokenStreams ||
		a.StatusCode != http.StatusTooManyRequests || p.Fix == "" {
		t.Errorf("%d streams are open, and one more: %d %+v", len(open), a.StatusCode, p)
	}
	a.Body.Close()
	if b := follow(w.user("bob", identity.Grant{Team: "*", Role: identity.Viewer})); b.StatusCode != 200 {
		t.Errorf("somebody else's stream: %d", b.StatusCode)
	} else {
		b.Body.Close()
	}
	for _, a := range open {
		a.Body.Close()
	}
	for range 10_000 { // the server notices a closed one at the next write
		a = follow(ann)
		a.Body.Close()
		if a.StatusCode == 200 {
			return
		}
	}
	t.Error("closed streams count for ever")
}
