//go:build !local

package server_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/store/backup"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/testbin"
	"scrimp/internal/wire/api"
)

var chaosFor = flag.Duration("chaos", 0, "how long servers are hurt at least; each way once where it is shorter")

// mostTakeover bounds the time without a leader after a leader has died.
const mostTakeover = 10 * time.Second

// chaos is a few servers of one log, with their clients and the responses that these got.
type chaos struct {
	t          *testing.T
	dir, exe   string
	db, direct string          // the address through chaosWire, and the real one
	cluster    *pgtest.Cluster // nil: one server on SQLite
	wire       *chaosWire
	token      string
	began      time.Time
	over       atomic.Bool
	owned      sync.WaitGroup // of the servers' loops
	takenLong  time.Duration
	mu         sync.Mutex
	servers    []*chaosServer
	known      map[string]string // job by key, as acknowledged
	ended      map[string]bool   // jobs whose end was acknowledged
	refused    int
	unanswered int
	saved      map[string][]savedStep // by job, for those whose machines were killed
	deaths     int                    // killed machines of gangs
	rests      int                    // paused and resumed jobs
}

// chaosServer is a server that is restarted whenever it ends.
type chaosServer struct {
	address string
	pid     atomic.Int64
	killed  atomic.Int32
	exits   atomic.Int32
	runs    atomic.Bool
}

// TestServersThatAreHurtUnderLoadLoseNothing runs servers on a real PostgreSQL, or one on SQLite, while clients
// submit, end and read jobs that machines run. Meanwhile it kills leaders, freezes them past their lease, delays the
// connection to the database, cuts it during commits and restarts the database. In the end every acknowledged job
// exists once, no launch happened twice, the ledger has what the machines were billed, and a backup from the middle
// restores to its hash.
func TestServersThatAreHurtUnderLoadLoseNothing(t *testing.T) {
	lane.Nightly(t, "it hurts servers in every way for minutes")
	exe := testbin.Full.Path(t)
	t.Run("sqlite", func(t *testing.T) { hurt(t, exe, nil) })
	t.Run("postgres", func(t *testing.T) { hurt(t, exe, pgtest.Start(t)) })
}

func hurt(t *testing.T, exe string, cluster *pgtest.Cluster) {
	dir, err := os.MkdirTemp("", "c") // short, because paths of sockets must be
	chaosMust(t, err)
	c := &chaos{t: t, dir: filepath.Join(dir, "d"), exe: exe, cluster: cluster, known: map[string]string{},
		ended: map[string]bool{}, saved: map[string][]savedStep{},
		began: time.Now()}
	defer func() {
		c.sweep()
		_ = os.RemoveAll(dir)
	}()
	c.sells(c.dir)
	places := 1
	if cluster != nil {
		places = 3
		c.direct = cluster.Database(t)
		c.wire = newChaosWire(t, cluster)
		name, _, _ := strings.Cut(strings.TrimPrefix(c.direct, "postgres://postgres@/"), "?")
		c.db = pgtest.Address(name, c.wire.dir)
	}
	for range places {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
		chaosMust(t, err)
		s := &chaosServer{address: l.Addr().String()}
		chaosMust(t, l.Close())
		c.servers = append(c.servers, s)
		c.owned.Go(func() { c.keepUp(s) })
	}
	c.lead(time.Minute)
	c.prepare()
	stop, clients := make(chan struct{}), sync.WaitGroup{}
	for n := range 4 {
		clients.Go(func() { c.submits(n, stop) })
	}
	clients.Go(func() { c.works(stop) })
	clients.Go(func() { c.reads(stop) })
	clients.Go(func() { c.gathers(stop) })
	clients.Go(func() { c.kills(stop) })
	clients.Go(func() { c.pauses(stop) })
	var kept backup.Sum
	began := time.Now()
	for round := 0; round == 0 || time.Since(began) < *chaosFor; round++ {
		c.round(round)
		if round%8 == 0 {
			kept = c.copies(round, filepath.Join(dir, "backup"))
		}
	}
	close(stop)
	clients.Wait()
	c.settle()
	c.allSucceeded()
	inventory, receipts := c.inventory(), c.receipts()
	for _, s := range c.servers {
		if s.exits.Load() > s.killed.Load() {
			t.Errorf("the server at %s ended %d times and was killed %d times", s.address, s.exits.Load(), s.killed.Load())
		}
	}
	c.stop()
	c.owned.Wait()
	c.check(inventory, receipts)
	c.checkGangs()
	c.restore(filepath.Join(dir, "backup"), kept)
	t.Logf("%d jobs were answered, %d refused, %d requests had no answer; the longest takeover took %v", len(c.known),
		c.refused, c.unanswered, c.takenLong.Round(time.Millisecond))
}

func chaosMust(t testing.TB, err error) {
	t.Helper()
	must.Do(t, err)
}

// rest waits; no signal tells a test that a fault has lasted long enough.
func rest(d time.Duration) { <-time.After(d) }

// keepUp restarts a server whenever it ends, as a supervisor does.
func (c *chaos) keepUp(s *chaosServer) {
	for !c.over.Load() {
		log, err := os.OpenFile(c.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			c.t.Error(err)
			return
		}
		args := []string{"serve", "--data", c.dir, "--listen", s.address, "--rate", "1000000", "--running", "6"}
		if c.db != "" {
			args = append(args, "--db", c.db)
		}
		cmd := exec.Command(c.exe, args...) //nolint:noctx // it ends when killed or stopped
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			c.t.Error(err)
			return
		}
		s.pid.Store(int64(cmd.Process.Pid))
		s.runs.Store(true)
		_ = cmd.Wait() // most are killed
		s.runs.Store(false)
		if s.exits.Add(1) > s.killed.Load() && !c.over.Load() {
			text, _ := os.ReadFile(c.dir + ".log")
			c.t.Logf("the server at %s ended by itself: %v\n%s", s.address, cmd.ProcessState, text[max(0, len(text)-2000):])
		}
		_ = log.Close()
		rest(200 * time.Millisecond)
	}
}

// leader returns the server that leads, or nil.
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

// lead waits until a server leads, and returns how long that took.
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

// nobody fails the test with the output of servers and database.
func (c *chaos) nobody(what string) {
	c.t.Helper()
	text, _ := os.ReadFile(c.dir + ".log")
	busy := ""
	if c.cluster != nil {
		busy, _ = c.cluster.Query(c.direct, "SELECT pid, state, wait_event, now() - state_change, left(query, 100) FROM "+
			"pg_stat_activity WHERE datname = current_database()")
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

// leaderBut returns the leader if it is another process than the given one of s.
func (c *chaos) leaderBut(s *chaosServer, pid int64) *chaosServer {
	var others []*chaosServer
	for _, o := range c.servers {
		if o != s || o.pid.Load() != pid {
			others = append(others, o)
		}
	}
	return (&chaos{t: c.t, servers: others}).leader()
}

// round injects every fault once.
func (c *chaos) round(n int) {
	rest(1500 * time.Millisecond)
	c.takenOver(syscall.SIGKILL)
	rest(1500 * time.Millisecond)
	if n%4 == 0 {
		c.killMarket()
	}
	if c.cluster == nil {
		c.takenOver(syscall.SIGKILL)
		return
	}
	for range 5 { // loses responses to commits together with their connections
		c.wire.lose.Store(1)
		rest(300 * time.Millisecond)
	}
	c.wire.hold(1500 * time.Millisecond) // shorter than the lease
	rest(time.Second)
	old := c.takenOver(syscall.SIGSTOP)
	rest(500 * time.Millisecond)
	chaosMust(c.t, syscall.Kill(int(old.pid.Load()), syscall.SIGCONT)) // it continues late what it was about to do
	rest(time.Second)
	c.cluster.Kill(c.t)
	rest(time.Duration(n%3) * time.Second)
	c.cluster.Run(c.t)
	_, took := c.lead(time.Minute)
	c.t.Logf("the database was killed and is back: somebody leads after %v", took.Round(time.Millisecond))
	rest(time.Second)
	c.wire.cut() // all connections, whatever they carry
	c.takenOver(syscall.SIGKILL)
}

// killMarket kills the market's process. Its machines go on, and the leader restarts it.
func (c *chaos) killMarket() {
	text, err := os.ReadFile(filepath.Join(c.dir, "market", "market.lock"))
	chaosMust(c.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	chaosMust(c.t, err)
	chaosMust(c.t, syscall.Kill(pid, syscall.SIGKILL))
	d, err := local.Dial(filepath.Join(c.dir, "market"))
	chaosMust(c.t, err)
	for began := time.Now(); ; rest(50 * time.Millisecond) {
		if _, err := d.Clock(context.Background()); err == nil {
			c.t.Logf("the market was killed and answers again after %v", time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > time.Minute {
			c.nobody("the market was killed, and nobody starts it again")
		}
	}
}

// settle waits until the jobs have ended and no machine runs.
func (c *chaos) settle() {
	for began := time.Now(); ; rest(200 * time.Millisecond) {
		var list []api.Job
		left := ""
		if status := c.insist("GET", "/v1/jobs?live=1", nil, &list); status != http.StatusOK {
			left = "no list"
		}
		for _, j := range list {
			if !strings.HasPrefix(j.Name, "q") {
				left = fmt.Sprintf("%s is %s (%s)", j.ID, j.State, j.Why)
			}
		}
		if left == "" && !slices.ContainsFunc(c.inventory(),
			func(i engine.Instance) bool { return i.State == engine.Running }) {
			return
		}
		if time.Since(began) > 90*time.Second {
			c.nobody("jobs or machines are left: " + left)
		}
	}
}

func (c *chaos) inventory() []engine.Instance {
	d, err := local.Dial(filepath.Join(c.dir, "market"))
	chaosMust(c.t, err)
	list, err := d.List(context.Background())
	chaosMust(c.t, err)
	return list
}

// stop stops all servers, followers first, and the market.
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
