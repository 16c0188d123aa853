package agent

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// fakeServer speaks the agent's protocol as the documentation describes it, records what it
// receives, and fails in the ways that networks and restarts do.
type fakeServer struct {
	*httptest.Server
	t testing.TB

	mu         sync.Mutex
	assignment api.Assignment
	orders     api.Orders // sent with each response
	once       []func(*api.Orders)
	applied    []api.Message
	log        []byte
	logEnd     int64 // from the last report
	trouble    string
	logAtEnd   int // bytes of the log that had arrived when the end was reported
	results    map[string]api.ExecResult
	claims     int
	key        ed25519.PublicKey // the machine's key
	registered api.Registration
	pulls      int
	binary     []byte            // the server's build; nil: the agent's own
	builds     []string          // builds that pulled, each once
	next       *api.Assignment   // assigned after the first task has ended
	onceClean  bool              // assign next only to a clean machine, like the real server
	before     []api.Message     // messages of the earlier tasks
	line       []given           // tasks to assign one after the other, each to a clean machine
	waiting    bool              // line decides: the machine stays until line is done
	logs       []string          // logs of the ended tasks
	heard      func(api.Message) // called with each applied message; may be nil
	said       []api.Pull        // all pulls
	held       bool              // makes nothing durable
	drainFrom  int               // number of reports before an order to drain; 0: no order
	reports    int
	chance     *rand.Rand
	nextFault  int
	faults     float64 // probability of a fault, for each request
	kinds      map[string]int
	down       bool
	full       bool            // has no room for output
	turned     int             // number of times that it refused output for lack of room
	parted     bool            // a response reported that the end and the whole log have arrived
	refused    int             // requests while it was down
	missed     map[string]bool // paths requested while it was down
	fenced     bool
	kept       string // folder of the server's own store; empty: none
	work       string // the work folder
	cuts       int    // contents that broke off in transit
	measured   []api.Measurements
	deaf       bool // takes no measurements
	lends      func() (api.StoreCredentials, error)
	summed     bool // the work folder has digests
	contents   int  // files of the work folder that were fetched on their own
	works      func() api.WorkBlob
	turnedDown []string // why the agent rejected the work folder in the bucket
}

// given is a task, and a hook that runs before its assignment.
type given struct {
	task  api.Assignment
	first func()
}

func newServer(t testing.TB, a api.Assignment) *fakeServer {
	s := &fakeServer{t: t, assignment: a, results: map[string]api.ExecResult{}, kinds: map[string]int{}}
	s.kept = t.TempDir()
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// serve answers, after or instead of a fault.
func (s *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/agent/blobs") || r.URL.Path == "/v1/agent/work" {
		s.serveStore(w, r)
		return
	}
	if r.URL.Path == "/v1/agent/credentials" && s.lends != nil {
		c, err := s.lends()
		if err != nil || r.Header.Get("Authorization") != "Bearer attempt-token" {
			http.Error(w, fmt.Sprint(err), http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(c)
		return
	}
	if r.URL.Path == "/v1/agent/work/blob" && s.works != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := api.WorkBlob{}
		if why := r.URL.Query().Get("refused"); why != "" {
			s.turnedDown = append(s.turnedDown, why)
		} else {
			at = s.works()
		}
		_ = json.NewEncoder(w).Encode(at)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen := (&httpsig.Seen{}); r.URL.Path == "/v1/agent/binary" && seen.Check(r, s.key, time.Now(), nil) == nil {
		_, _ = w.Write(s.binary)
		return
	}
	if s.full && r.URL.Path == "/v1/agent/logs" && r.Method == http.MethodPost {
		s.turned++
		w.Header().Set("Retry-After", "0")
		http.Error(w, "full", http.StatusInsufficientStorage)
		return
	}
	fault := ""
	if s.chance != nil && s.chance.Float64() < s.faults {
		fault = []string{"refused", "lost answer", "error after", "twice", "restart"}[s.nextFault%5]
		s.nextFault++ // in turn, so that few faults cover each kind
		s.kinds[fault]++
	}
	if s.down {
		fault = "refused"
		s.refused++
		if s.missed == nil {
			s.missed = map[string]bool{}
		}
		s.missed[r.URL.Path] = true
	}
	if fault == "refused" { // nothing was done
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	// A restart loses what was not durable: a part of the log. That may not happen after a response
	// has acknowledged the end, since the agent may have exited and nobody would send the log
	// again.
	if n := len(s.log); fault == "restart" && n > 0 && !s.parted {
		s.log = s.log[:n-s.chance.IntN(min(n, 1000))]
	}
	status, answer := s.handle(r, body)
	if fault == "twice" { // the network delivered it twice
		status, answer = s.handle(r, body)
	}
	if s.down { // it became unreachable meanwhile
		fault = "error after"
	}
	switch fault {
	case "lost answer":
		if h, ok := w.(http.Hijacker); ok {
			if c, _, err := h.Hijack(); err == nil {
				_ = c.Close()
			}
		}
		return
	case "error after":
		http.Error(w, "internal", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (s *fakeServer) handle(r *http.Request, body []byte) (int, any) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	want := s.assignment.AttemptToken
	switch r.URL.Path {
	case "/v1/agent/register":
		want = "bootstrap-token"
	case "/v1/agent/pull":
		want = ""
	}
	if token != want || s.fenced {
		return http.StatusUnauthorized, api.Problem{Title: "Unauthorized", Status: 401}
	}
	switch {
	case r.URL.Path == "/v1/agent/register":
		return s.register(body)
	case r.URL.Path == "/v1/agent/pull":
		return s.pull(r, body)
	case r.URL.Path == "/v1/agent/report":
		return s.report(body)
	case r.URL.Path == "/v1/agent/logs" && r.Method == http.MethodGet:
		return http.StatusOK, api.LogEnd{Offset: int64(len(s.log))}
	case r.URL.Path == "/v1/agent/logs":
		offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
		if err != nil {
			return http.StatusBadRequest, nil
		}
		if end := int64(len(s.log)); offset <= end && offset+int64(len(body)) > end {
			s.log = append(s.log, body[end-offset:]...)
		}
		return http.StatusOK, api.LogEnd{Offset: int64(len(s.log))}
	case strings.HasPrefix(r.URL.Path, "/v1/agent/exec/"):
		var result api.ExecResult
		if err := json.Unmarshal(body, &result); err != nil {
			return http.StatusBadRequest, nil
		}
		s.results[strings.TrimPrefix(r.URL.Path, "/v1/agent/exec/")] = result
		return http.StatusNoContent, nil
	}
	return http.StatusNotFound, nil
}

// register accepts the first key.
func (s *fakeServer) register(body []byte) (int, any) {
	var r api.Registration
	if err := json.Unmarshal(body, &r); err != nil {
		return http.StatusBadRequest, nil
	}
	key, err := httpsig.Parse(r.Key)
	if err != nil || r.Instance == "" || s.key != nil && !s.key.Equal(key) {
		return http.StatusGone, nil
	}
	s.key, s.registered = key, r
	return http.StatusOK, api.Registered{Wire: api.Wire}
}

// pull assigns the machine its task until the end of that is reported.
func (s *fakeServer) pull(r *http.Request, body []byte) (int, any) {
	var p api.Pull
	seen := httpsig.Seen{} // faults deliver a request twice
	if s.key == nil || seen.Check(r, s.key, time.Now(), body) != nil || json.Unmarshal(body, &p) != nil {
		return http.StatusUnauthorized, nil
	}
	s.pulls++
	s.said = append(s.said, p)
	out := api.Pulled{Wire: api.Wire, Build: p.Build}
	if !slices.Contains(s.builds, p.Build) {
		s.builds = append(s.builds, p.Build)
	}
	if s.binary != nil {
		sum := sha256.Sum256(s.binary)
		if out.Build = hex.EncodeToString(sum[:]); out.Build != p.Build {
			return http.StatusOK, out // the server wants nothing else from the older build
		}
	}
	ended := slices.ContainsFunc(s.applied, func(m api.Message) bool { return m.Ended != nil })
	switch {
	case ended && s.next != nil && (p.Clean || !s.onceClean): // the machine stays warm
		s.follow(*s.next)
		s.next = nil
		out.Tasks = []api.Assignment{s.assignment}
	case ended && s.next != nil: // it pulls again
	case s.waiting && ended && p.Clean && len(s.line) > 0:
		if first := s.line[0].first; first != nil {
			first()
		}
		s.follow(s.line[0].task)
		s.line = s.line[1:]
		out.Tasks = []api.Assignment{s.assignment}
	case s.waiting && ended && p.Clean:
		s.follow(api.Assignment{})
		out.Off = true
	case s.waiting && (ended || slices.Contains(p.Running, s.assignment.Attempt)):
		s.mu.Unlock()
		select { // a machine with nothing new has to wait
		case <-r.Context().Done():
		case <-time.After(s.patience()):
		}
		s.mu.Lock()
	case ended, s.orders.Off:
		out.Off = true
	case !slices.Contains(p.Running, s.assignment.Attempt):
		s.claims++
		out.Tasks = []api.Assignment{s.assignment}
	default: // a real server waits longer
		s.mu.Unlock()
		<-time.After(20 * time.Millisecond)
		s.mu.Lock()
	}
	return http.StatusOK, out
}

// patience returns how long a pull waits: nearly forever if the test can wait for the agent.
func (s *fakeServer) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		return 50 * time.Millisecond
	}
	return time.Hour
}

// follow assigns another task after the one that has ended.
func (s *fakeServer) follow(next api.Assignment) {
	s.logs, s.before = append(s.logs, string(s.log)), append(s.before, s.applied...)
	s.assignment, s.applied, s.log, s.parted = next, nil, nil, false
}

func (s *fakeServer) report(body []byte) (int, any) {
	var r api.Report
	if err := json.Unmarshal(body, &r); err != nil || r.Attempt != s.assignment.Attempt {
		return http.StatusBadRequest, nil
	}
	s.reports++
	s.logEnd, s.trouble = r.LogEnd, r.Trouble
	for _, m := range r.Messages {
		next := int64(len(s.applied)) + 1
		if m.Seq > next {
			s.t.Errorf("message %d came before message %d", m.Seq, next)
		}
		if m.Seq == next {
			s.applied = append(s.applied, m)
			if s.heard != nil {
				s.heard(m)
			}
			if m.Ended != nil {
				s.logAtEnd = len(s.log)
			}
		}
	}
	o := s.orders
	o.Ack, o.LogEnd = int64(len(s.applied)), int64(len(s.log))
	if t := r.Telemetry; t != nil && !s.deaf {
		s.measured = append(s.measured, *t)
		o.Telemetry = t.Buckets[len(t.Buckets)-1].Start + 10
	}
	s.parted = s.parted || s.logAtEnd > 0 && o.LogEnd >= r.LogEnd
	if s.held {
		o.Heard, o.Ack = o.Ack, 0
	}
	if s.drainFrom > 0 && s.reports > s.drainFrom {
		o.Drain = &api.Drain{Why: "test", Grace: time.Minute}
	}
	for _, f := range s.once {
		f(&o)
	}
	s.once = nil
	return http.StatusOK, o
}

// order changes the server's state.
func (s *fakeServer) order(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// goAway takes the server down, and returns once the agent has read all earlier responses: a report
// and a pull have failed.
func (s *fakeServer) goAway() {
	s.t.Helper()
	s.order(func() { s.down, s.missed = true, nil })
	s.wait("the agent misses the server", func() bool { return s.missed["/v1/agent/report"] && s.missed["/v1/agent/pull"] })
}

// messages returns the applied messages.
func (s *fakeServer) messages() []api.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.applied)
}

// told returns the messages of one kind.
func told[T any](s *fakeServer, pick func(api.Message) *T) []T {
	var out []T
	for _, m := range s.messages() {
		if x := pick(m); x != nil {
			out = append(out, *x)
		}
	}
	return out
}

func started(m api.Message) *api.Started { return m.Started }
func stepped(m api.Message) *api.Step    { return m.Step }
func savedIn(m api.Message) *api.Saved   { return m.Saved }
func noticed(m api.Message) *api.Noticed { return m.Noticed }
func endedIn(m api.Message) *api.Ended   { return m.Ended }

// story summarises the applied messages, without measurements and progress.
func (s *fakeServer) story() string {
	var out []string
	for _, m := range s.messages() {
		switch {
		case m.Started != nil:
			out = append(out, "started")
		case m.Saved != nil:
			out = append(out, "saved")
		case m.Refused != nil:
			out = append(out, "refused")
		case m.Noticed != nil:
			out = append(out, "noticed "+m.Noticed.Source)
		case m.Ended != nil:
			out = append(out, fmt.Sprintf("ended %s %d saved=%v", m.Ended.Reason, m.Ended.Exit, m.Ended.Saved))
		}
	}
	return strings.Join(slices.Compact(out), ", ")
}

// wait waits until ok returns true. It calls ok with the lock held.
func (s *fakeServer) wait(what string, ok func() bool) {
	s.t.Helper()
	eventually.True(s.t, what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return ok()
	}, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Sprintf("messages: %+v\nlog: %s", s.applied, s.log)
	})
}

// waitFor waits for a message.
func (s *fakeServer) waitFor(what string, ok func(api.Message) bool) {
	s.t.Helper()
	s.wait(what, func() bool { return slices.ContainsFunc(s.applied, ok) })
}
