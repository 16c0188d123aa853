package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/test/port"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// gangServer is one server for the machines of a gang, with a fakeServer for each. An attempt that
// no machine runs any more has ended.
type gangServer struct {
	*httptest.Server
	t    testing.TB
	kept string

	mu       sync.Mutex
	machines []*member
	noticed  func() // called when a notice arrives, before the server answers
}

// member is a machine with its own address.
type member struct {
	*rig
	address string
	market  *market
	logFile string
}

func newGang(t testing.TB) *gangServer {
	s := &gangServer{t: t, kept: t.TempDir()}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// machine adds a machine, which the server does not know yet.
func (s *gangServer) machine(n int) *member {
	m := &member{rig: newRig(s.t, api.Assignment{}), address: loopback(n), market: newMarket(s.t)}
	m.market.address.Store(&m.address)
	m.config.Server, m.config.Instance, m.config.Metadata.AWS = s.URL, fmt.Sprintf("i-%d", n), m.market.URL
	m.config.keep = false
	withStore(m.rig)
	m.server.kept = s.kept
	return m
}

// loopback returns the n-th address of this host, if it has more than one.
func loopback(n int) string {
	address := fmt.Sprintf("127.83.%d.%d", 1+n/250, 1+n%250)
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "127.0.0.1"
	}
	_ = l.Close() // it only proved that the address works
	return address
}

// begin assigns an attempt to machines, in the order of their ranks. It takes the previous attempt
// from the machines that had it.
func (s *gangServer) begin(epoch int, task api.Assignment, machines ...*member) {
	task.Attempt, task.Epoch = fmt.Sprintf("job-1.%d", epoch), epoch
	task.AttemptToken, task.Nodes, task.MasterPort = "token of "+task.Attempt, len(machines), port.Reserve(s.t)
	for _, m := range machines {
		if m == nil { // this rank never comes
			task.Addresses = append(task.Addresses, "127.0.0.1")
			continue
		}
		task.Addresses = append(task.Addresses, m.address)
	}
	s.mu.Lock()
	s.machines = slices.DeleteFunc(slices.Clone(machines), func(m *member) bool { return m == nil })
	s.mu.Unlock()
	for rank, m := range machines {
		if m == nil {
			continue
		}
		m.server.order(func() {
			task.Node = rank
			m.server.follow(task)
			m.server.orders = api.Orders{}
		})
		if m.done == nil {
			m.start()
		}
	}
}

func (s *gangServer) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var report api.Report
	isReport := r.URL.Path == "/v1/agent/report" && json.Unmarshal(body, &report) == nil
	m := s.of(r, body, report)
	switch {
	case m == nil && isReport:
		_ = json.NewEncoder(w).Encode(api.Orders{Fenced: true, Drain: &api.Drain{Why: "the gang is dissolved", Grace: time.Second}})
		return
	case m == nil:
		http.Error(w, "over", http.StatusGone)
		return
	case isReport && slices.ContainsFunc(report.Messages, func(m api.Message) bool { return m.Noticed != nil }):
		if s.noticed != nil {
			s.noticed()
		}
		s.drain("a machine of the gang goes")
	}
	m.server.serve(w, r)
}

// drain asks all ranks to save and end. A torchrun whose program has ended waits for the others in
// its exit barrier for 300 s, where no signal reaches it, so the grace is well below the test's
// timeout.
func (s *gangServer) drain(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		m.server.order(func() { m.server.orders.Drain = &api.Drain{Why: why, Grace: 20 * time.Second} })
	}
}

// of returns the machine that sent a request.
func (s *gangServer) of(r *http.Request, body []byte, report api.Report) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	var machine api.Registration
	q := r.URL.Query()
	node, _ := strconv.Atoi(q.Get("node")) // empty means rank 0
	for _, m := range s.machines {
		a := m.assignment()
		mine := false
		switch r.URL.Path {
		case "/v1/agent/register":
			mine = json.Unmarshal(body, &machine) == nil && machine.Instance == m.config.Instance
		case "/v1/agent/pull":
			mine = r.Header.Get(httpsig.Instance) == m.config.Instance
		case "/v1/agent/report":
			mine = report.Attempt == a.Attempt && report.Node == a.Node
		case "/v1/agent/logs":
			mine = q.Get("attempt") == a.Attempt && node == a.Node
		default:
			mine = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") == a.AttemptToken
		}
		if mine {
			return m
		}
	}
	return nil
}

func (m *member) assignment() (a api.Assignment) {
	m.server.order(func() { a = m.server.assignment })
	return a
}

// log returns the output of the machine's attempt.
func (m *member) log() (text string) {
	m.server.order(func() { text = string(m.server.log) })
	return text
}

// prints waits until the output contains a text.
func (m *member) prints(text string) {
	m.t.Helper()
	m.server.wait("the output of "+m.config.Instance+" has "+text, func() bool { return strings.Contains(string(m.server.log), text) })
}

// ends waits for the end of the machine's attempt.
func (m *member) ends() api.Ended {
	m.t.Helper()
	m.server.waitFor("the end on "+m.config.Instance, func(x api.Message) bool { return x.Ended != nil })
	return told(m.server, endedIn)[0]
}
