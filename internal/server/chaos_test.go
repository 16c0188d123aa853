//go:build !local

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/provider"
	"scrimp/internal/provider/local"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/pgtest"
)

var chaosFor = flag.Duration("chaos", 0, "how long servers are hurt at least; each way once where it is shorter")

// mostTakeover is how long nobody may lead after a leader has died.
const mostTakeover = 10 * time.Second

// chaos is a few servers of one log, those who ask them, and what they were told.
type chaos struct {
	t          *testing.T
	dir, exe   string
	db, direct string          // the address by the wire, and without it
	cluster    *pgtest.Cluster // nil: SQLite, and one server
	wire       *chaosWire
	token      string
	over       atomic.Bool
	takenLong  time.Duration
	mu         sync.Mutex
	servers    []*chaosServer
	known      map[string]string // job by key, as answered
	ended      map[string]bool   // jobs whose end was answered
	refused    int
	unanswered int
}

// chaosServer is a place for a server, which is started again when it ends.
type chaosServer struct {
	address string
	pid     atomic.Int64
	killed  atomic.Int32
	exits   atomic.Int32
}

// TestServersThatAreHurtUnderLoadLoseNothing runs servers on a real PostgreSQL, or
// one on SQLite, lets clients submit, end and read jobs that machines do, and
// meanwhile kills leaders, freezes them past their lease, holds the line to the
// database up, cuts it in the middle of commits and restarts the database. In the
// end whatever was answered is there once, no launch was done twice, the ledger
// has what the machines were billed, and a backup that was taken in the middle
// restores to its hash.
func TestServersThatAreHurtUnderLoadLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	exe := filepath.Join(t.TempDir(), "scrimp")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, "scrimp/cmd/scrimp").CombinedOutput(); err != nil {
		t.Fatalf("build scrimp: %v\n%s", err, out)
	}
	t.Run("sqlite", func(t *testing.T) { hurt(t, exe, nil) })
	t.Run("postgres", func(t *testing.T) { hurt(t, exe, pgtest.Start(t)) })
}

func hurt(t *testing.T, exe string, cluster *pgtest.Cluster) {
	dir, err := os.MkdirTemp("", "c") // short: the path of a socket is
	chaosMust(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	c := &chaos{t: t, dir: filepath.Join(dir, "d"), exe: exe, cluster: cluster, known: map[string]string{}, ended: map[string]bool{}}
	places := 1
	if cluster != nil {
		places = 3
		c.direct = cluster.Database(t)
		c.wire = newChaosWire(t, cluster)
		name, _, _ := strings.Cut(strings.TrimPrefix(c.direct, "postgres://postgres@/"), "?")
		c.db = pgtest.Address(name, c.wire.dir)
	}
	var owned sync.WaitGroup
	for range places {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
		chaosMust(t, err)
		s := &chaosServer{address: l.Addr().String()}
		chaosMust(t, l.Close())
		c.servers = append(c.servers, s)
		owned.Go(func() { c.keepUp(s) })
	}
	c.lead(time.Minute)
	c.prepare()
	stop, clients := make(chan struct{}), sync.WaitGroup{}
	for n := range 4 {
		clients.Go(func() { c.submits(n, stop) })
	}
	clients.Go(func() { c.works(stop) })
	clients.Go(func() { c.reads(stop) })
	var kept backup.Sum
	began := time.Now()
	for round := 0; round == 0 || time.Since(began) < *chaosFor; round++ {
		c.round(round)
		if round == 0 {
			kept = c.backUp(filepath.Join(dir, "backup"))
		}
	}
	close(stop)
	clients.Wait()
	c.settle()
	inventory := c.inventory()
	for _, s := range c.servers {
		if s.exits.Load() > s.killed.Load() {
			t.Errorf("the server at %s ended %d times and was killed %d times", s.address, s.exits.Load(), s.killed.Load())
		}
	}
	c.stop()
	owned.Wait()
	c.check(inventory)
	c.restore(filepath.Join(dir, "backup"), kept)
	t.Logf("%d jobs were answered, %d refused, %d requests had no answer; the longest takeover took %v", len(c.known), c.refused, c.unanswered, c.takenLong.Round(time.Millisecond))
}

func chaosMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rest waits; nothing tells a test when a fault has lasted long enough.
func rest(d time.Duration) { <-time.After(d) }

// keepUp starts the server of a place again whenever it ends, as a supervisor does.
func (c *chaos) keepUp(s *chaosServer) {
	for !c.over.Load() {
		log, err := os.OpenFile(c.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			c.t.Error(err)
			return
		}
		args := []string{"serve", "--data", c.dir, "--listen", s.address, "--rate", "1000000", "--market", "calm"}
		if c.db != "" {
			args = append(args, "--db", c.db)
		}
		cmd := exec.Command(c.exe, args...) //nolint:noctx // it ends when it is killed or told to
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			c.t.Error(err)
			return
		}
		s.pid.Store(int64(cmd.Process.Pid))
		_ = cmd.Wait() // most are killed
		if s.exits.Add(1) > s.killed.Load() && !c.over.Load() {
			text, _ := os.ReadFile(c.dir + ".log")
			c.t.Logf("the server at %s ended by itself: %v\n%s", s.address, cmd.ProcessState, text[max(0, len(text)-2000):])
		}
		_ = log.Close()
		rest(200 * time.Millisecond)
	}
}

// leader returns the server that answers as one, or nil.
func (c *chaos) leader() *chaosServer {
	for _, s := range c.servers {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.address+"/readyz", nil)
		chaosMust(c.t, err)
		a, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = a.Body.Close()
		}
		cancel()
		if err == nil && a.StatusCode == http.StatusOK {
			return s
		}
	}
	return nil
}

// lead waits until one leads, and says how long that took.
func (c *chaos) lead(most time.Duration) (*chaosServer, time.Duration) {
	c.t.Helper()
	began := time.Now()
	for {
		if s := c.leader(); s != nil {
			return s, time.Since(began)
		}
		if time.Since(began) > most {
			c.nobody("nobody leads")
		}
		rest(20 * time.Millisecond)
	}
}

// nobody ends the test with what servers and database say.
func (c *chaos) nobody(what string) {
	c.t.Helper()
	text, _ := os.ReadFile(c.dir + ".log")
	busy := ""
	if c.cluster != nil {
		busy, _ = c.cluster.Query(c.direct, "SELECT pid, state, wait_event, now() - state_change, left(query, 100) FROM pg_stat_activity WHERE datname = current_database()")
		row, _ := c.cluster.Query(c.direct, "SELECT epoch, holder, since, until, clock_timestamp() FROM leader")
		busy += "\n" + row
	}
	c.t.Fatalf("%s\n%s\n%s", what, busy, text[max(0, len(text)-6000):])
}

// takenOver kills or freezes the leader and waits for the next.
func (c *chaos) takenOver(how syscall.Signal) (old *chaosServer) {
	s, _ := c.lead(time.Minute)
	pid := int(s.pid.Load())
	if how == syscall.SIGKILL {
		s.killed.Add(1)
	}
	chaosMust(c.t, syscall.Kill(pid, how))
	began := time.Now()
	for {
		next := c.leaderBut(s, int64(pid))
		if next != nil {
			break
		}
		if time.Since(began) > time.Minute {
			c.nobody("nobody takes over")
		}
		rest(20 * time.Millisecond)
	}
	took := time.Since(began)
	c.t.Logf("%v: the next leads after %v", how, took.Round(time.Millisecond))
	if c.takenLong = max(c.takenLong, took); took > mostTakeover {
		c.t.Errorf("a takeover took %v, want less than %v", took, mostTakeover)
	}
	return s
}

// leaderBut is the leader that is another process than that one of s.
func (c *chaos) leaderBut(s *chaosServer, pid int64) *chaosServer {
	var others []*chaosServer
	for _, o := range c.servers {
		if o != s || o.pid.Load() != pid {
			others = append(others, o)
		}
	}
	return (&chaos{t: c.t, servers: others}).leader()
}

// round hurts the servers in every way once.
func (c *chaos) round(n int) {
	rest(1500 * time.Millisecond)
	c.takenOver(syscall.SIGKILL)
	rest(1500 * time.Millisecond)
	if c.cluster == nil {
		c.takenOver(syscall.SIGKILL)
		return
	}
	for range 5 { // the answers to commits are lost, and with them the connections
		c.wire.lose.Store(1)
		rest(300 * time.Millisecond)
	}
	c.wire.hold(1500 * time.Millisecond) // shorter than the lease
	rest(time.Second)
	old := c.takenOver(syscall.SIGSTOP)
	rest(500 * time.Millisecond)
	chaosMust(c.t, syscall.Kill(int(old.pid.Load()), syscall.SIGCONT)) // what it was about to do, it does late
	rest(time.Second)
	c.cluster.Kill(c.t)
	rest(time.Duration(n%3) * time.Second)
	c.cluster.Run(c.t)
	_, took := c.lead(time.Minute)
	c.t.Logf("the database was killed and is back: somebody leads after %v", took.Round(time.Millisecond))
	rest(time.Second)
	c.wire.cut() // all lines, in the middle of whatever they carry
	c.takenOver(syscall.SIGKILL)
}

// ask sends a request to whoever leads. It reports whether there was an answer;
// a leader that is going away gives none.
func (c *chaos) ask(method, path string, in, out any) (status int, answered bool) {
	body, err := json.Marshal(in)
	chaosMust(c.t, err)
	c.mu.Lock()
	servers := slices.Clone(c.servers)
	c.mu.Unlock()
	for _, s := range servers {
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
		r, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, bytes.NewReader(body))
		chaosMust(c.t, err)
		r.Header.Set("Authorization", "Bearer "+c.token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			cancel()
			continue
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		cancel()
		if err != nil || a.StatusCode >= 500 {
			continue
		}
		if a.StatusCode == http.StatusOK && out != nil && json.Unmarshal(text, out) != nil {
			continue // cut off
		}
		return a.StatusCode, true
	}
	c.mu.Lock()
	c.unanswered++
	c.mu.Unlock()
	return 0, false
}

// insist asks until there is an answer.
func (c *chaos) insist(method, path string, in, out any) int {
	for began := time.Now(); ; rest(50 * time.Millisecond) {
		if status, ok := c.ask(method, path, in, out); ok {
			return status
		}
		if time.Since(began) > 2*time.Minute {
			c.t.Errorf("%s %s has no answer", method, path)
			return 0
		}
	}
}

func (c *chaos) cli(args ...string) ([]byte, error) {
	return exec.Command(c.exe, append([]string{"--data", c.dir}, args...)...).CombinedOutput() //nolint:noctx // it ends by itself
}

// prepare makes the teams, the one who asks, and a limit.
func (c *chaos) prepare() {
	for _, args := range [][]string{{"teams", "set", "a"}, {"teams", "set", "b"}, {"users", "set", "ann", "--grant", "admin"}, {"budgets", "set", "--team", "b", "--total", "--dollars", "2"}} {
		if out, err := c.cli(args...); err != nil {
			c.t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	var made api.MadeToken
	out, err := c.cli("tokens", "new", "ann", "--json")
	chaosMust(c.t, err)
	chaosMust(c.t, json.Unmarshal(out, &made))
	c.token = made.Text
}

// submit submits a job with the same key until there is an answer.
func (c *chaos) submit(key, spec string) (id string) {
	var j api.Job
	status := c.insist("POST", "/v1/jobs", json.RawMessage(fmt.Sprintf(`{"key":%q,"spec":%s}`, key, spec)), &j)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch status {
	case http.StatusOK:
		c.known[key] = j.ID
		return j.ID
	case http.StatusPaymentRequired:
		c.refused++
	default:
		c.t.Errorf("a job is answered with %d", status)
	}
	return ""
}

// submits submits jobs that wait for machines which nobody sells, and ends some.
func (c *chaos) submits(n int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		key := fmt.Sprintf("q-%d-%d", n, i)
		id := c.submit(key, fmt.Sprintf(`{"name":"q-%d","command":"true","team":"a","resources":{"cpus":"4096+"}}`, n)) // many want one name
		if id != "" && i%5 == 0 && c.insist("POST", "/v1/jobs/"+id+"/end", api.End{}, nil) == http.StatusOK {
			c.mu.Lock()
			c.ended[id] = true
			c.mu.Unlock()
		}
	}
}

// works submits jobs that machines do, as many as the budget lets in.
func (c *chaos) works(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(400 * time.Millisecond):
		}
		c.submit(fmt.Sprintf("w-%d", i), `{"name":"w","command":"sleep 1; echo done","team":"b","budget":{"dollars":"0.45"}}`)
	}
}

// reads asks for the budget again and again: it holds at every moment.
func (c *chaos) reads(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		var v api.Budgets
		if status, ok := c.ask("GET", "/v1/budgets", nil, &v); !ok || status != http.StatusOK || len(v.Limits) == 0 {
			continue
		}
		if l := v.Limits[0]; l.Use.Spent.Add(l.Use.Held).Cmp(*l.Limit.Dollars) > 0 {
			c.t.Errorf("of %v, %v is spent and %v held", *l.Limit.Dollars, l.Use.Spent, l.Use.Held)
		}
	}
}

// backUp takes a backup while clients go on, and returns what it says it holds.
func (c *chaos) backUp(file string) (sum backup.Sum) {
	for began := time.Now(); ; rest(200 * time.Millisecond) {
		_ = os.Remove(file)
		out, err := c.cli("backup", file, "--json")
		if err == nil && json.Unmarshal(out, &sum) == nil && sum.End > 0 {
			return sum
		}
		if time.Since(began) > time.Minute {
			c.t.Fatalf("no backup: %v\n%s", err, out)
		}
	}
}

// settle waits until the jobs that machines do are over.
func (c *chaos) settle() {
	for began := time.Now(); ; rest(200 * time.Millisecond) {
		var list []api.Job
		left := ""
		if c.insist("GET", "/v1/jobs?live=1", nil, &list); list == nil {
			left = "no list"
		}
		for _, j := range list {
			if strings.HasPrefix(j.Name, "w") {
				left = fmt.Sprintf("%s is %s (%s)", j.ID, j.State, j.Why)
			}
		}
		if left == "" && !slices.ContainsFunc(c.inventory(), func(i provider.Instance) bool { return i.State == provider.Running }) {
			return
		}
		if time.Since(began) > 90*time.Second {
			c.t.Fatalf("jobs or machines are left: %s", left)
		}
	}
}

func (c *chaos) inventory() []provider.Instance {
	d, err := local.Dial(filepath.Join(c.dir, "market"))
	chaosMust(c.t, err)
	list, err := d.List(context.Background())
	chaosMust(c.t, err)
	return list
}

// stop ends all servers, those that follow first, and the market.
func (c *chaos) stop() {
	s, _ := c.lead(time.Minute)
	c.over.Store(true)
	for _, o := range c.servers {
		if o != s {
			_ = syscall.Kill(int(o.pid.Load()), syscall.SIGTERM)
		}
	}
	rest(500 * time.Millisecond)
	if out, err := c.cli("server", "stop", "--now"); err != nil {
		c.t.Errorf("stop: %v\n%s", err, out)
	}
}

func (c *chaos) open() store.Replica {
	c.t.Helper()
	if c.db == "" {
		s, err := store.Open(c.dir)
		chaosMust(c.t, err)
		return s
	}
	s, err := store.OpenPostgres(context.Background(), store.DefaultPostgres(c.db, c.dir))
	chaosMust(c.t, err)
	return s
}

// check compares the log with what was answered, and with what was rented.
func (c *chaos) check(inventory []provider.Instance) {
	t, s := c.t, c.open()
	defer func() { _ = s.Close() }()
	records, err := s.WholeRecords(context.Background(), 0, 10_000_000)
	chaosMust(t, err)
	by, over, posted := map[string]string{}, map[string]bool{}, map[string]money.Amount{}
	m := core.New()
	for n, r := range records {
		var e core.Event
		var d []core.Decision
		chaosMust(t, json.Unmarshal(r.Event, &e))
		if len(r.Decisions) > 0 {
			chaosMust(t, json.Unmarshal(r.Decisions, &d))
		}
		out := m.Replay(e, d)
		if len(out.Postings) != len(r.Postings) {
			t.Fatalf("event %d is replayed to %d postings, the log has %d", r.Seq, len(out.Postings), len(r.Postings))
		}
		for i, p := range r.Postings {
			if out.Postings[i].Hash != p.Hash {
				t.Fatalf("event %d is replayed to another posting", r.Seq)
			}
			if _, _, ok := p.To.IsCost(); ok {
				posted[p.Owner.Instance] = posted[p.Owner.Instance].Add(p.Amount)
			}
			if _, _, ok := p.From.IsCost(); ok {
				posted[p.Owner.Instance] = posted[p.Owner.Instance].Sub(p.Amount)
			}
		}
		switch b := e.Body.(type) {
		case core.JobSubmitted:
			if first, twice := by[e.Key]; twice {
				t.Errorf("key %s has %s and %s", e.Key, first, b.Job)
			}
			by[e.Key] = b.Job
			audited := false
			if n+1 < len(records) {
				var next core.Event
				chaosMust(t, json.Unmarshal(records[n+1].Event, &next))
				a, ok := next.Body.(core.Audited)
				audited = ok && a.Act.Object == b.Job && a.Act.Who == "ann"
			}
			if !audited {
				t.Errorf("event %d: nothing on record of %s", r.Seq, b.Job)
			}
		case core.JobEnded:
			over[b.Job] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.known)) {
		if id := by["ann/"+key]; id != c.known[key] {
			t.Errorf("%s was answered for key %s, the log has %q", c.known[key], key, id)
		}
	}
	for id := range c.ended {
		if !over[id] {
			t.Errorf("the end of %s was answered and is not there", id)
		}
	}
	rented := map[string]string{}
	for _, i := range inventory {
		if other, twice := rented[i.Key]; twice {
			t.Errorf("%s rented %s and %s", i.Key, other, i.ID)
		}
		rented[i.Key] = i.ID
		bill := money.Amount{}
		for _, l := range i.Bill {
			bill = bill.Add(l.Amount)
		}
		if posted[i.ID] != bill {
			t.Errorf("%s (%s) was billed %v, the ledger has %v", i.ID, i.Key, bill, posted[i.ID])
		}
	}
	if err := verified(records); err != nil {
		t.Error(err)
	}
	if len(c.known) < 50 || len(inventory) < 3 {
		t.Errorf("%d jobs were answered and %d machines rented: the test shows little", len(c.known), len(inventory))
	}
	if c.cluster != nil {
		c.checkEpochs()
	}
	t.Logf("%d events, %d machines", len(records), len(inventory))
}

// checkEpochs holds that no leader wrote after the next had begun.
func (c *chaos) checkEpochs() {
	out, err := c.cluster.Query(c.direct, "SELECT count(*) FROM (SELECT epoch, max(epoch) OVER (ORDER BY seq) AS newest FROM event) e WHERE epoch < newest")
	chaosMust(c.t, err)
	if out != "0" {
		c.t.Errorf("%s events were written by a leader after the next had begun", out)
	}
	out, err = c.cluster.Query(c.direct, "SELECT count(DISTINCT epoch) FROM event")
	chaosMust(c.t, err)
	c.t.Logf("%s leaders", out)
}

func verified(records []store.Record) error {
	return ledger.Verify(func(yield func(ledger.Posting, error) bool) {
		for _, r := range records {
			for _, p := range r.Postings {
				if !yield(p, nil) {
					return
				}
			}
		}
	})
}

// restore restores the backup into an empty folder and, where there is one, an
// empty PostgreSQL database: to the same hash.
func (c *chaos) restore(file string, want backup.Sum) {
	text, err := os.ReadFile(file)
	chaosMust(c.t, err)
	into := map[string]store.Replica{}
	into["sqlite"], err = store.Open(c.t.TempDir())
	chaosMust(c.t, err)
	if c.cluster != nil {
		into["postgres"], err = store.OpenPostgres(c.t.Context(), store.DefaultPostgres(c.cluster.Database(c.t), c.t.TempDir()))
		chaosMust(c.t, err)
		chaosMust(c.t, into["postgres"].TryLead(c.t.Context()))
	}
	for name, s := range into {
		got, err := backup.Restore(c.t.Context(), s, bytes.NewReader(text))
		chaosMust(c.t, errors.Join(err, s.Close()))
		if got != want {
			c.t.Errorf("restored into %s the backup of %+v is %+v", name, want, got)
		}
	}
}
