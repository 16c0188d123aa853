//go:build !local

package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/store"
	"scrimp/internal/store/postgres"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/storetest"
)

// replicaVariable holds the lease and the place for a child that leads when it can.
const replicaVariable = "SCRIMP_STORE_REPLICA"

func init() {
	lease, place, ok := strings.Cut(os.Getenv(replicaVariable), " ")
	if !ok {
		return
	}
	err := replicaChild(lease, place)
	if errors.Is(err, store.ErrDeposed) {
		fmt.Fprintln(os.Stdout, "deposed 0 0")
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// replicaChild waits until it leads, then appends without end. It prints "lead EPOCH END" and, for each durable
// batch, "wrote EPOCH LAST".
func replicaChild(lease, place string) error {
	ctx := context.Background()
	cfg := settings(place)
	var err error
	if cfg.Lease, err = time.ParseDuration(lease); err != nil {
		return err
	}
	s, err := postgres.Open(ctx, cfg)
	if err != nil {
		return err
	}
	if err := s.Lead(ctx); err != nil {
		return err
	}
	end, err := s.End(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "lead", s.Epoch(), end)
	var w storetest.Writer
	w.Make(int(end))
	for n := 1; ; n = n%17 + 2 {
		if err := s.Append(ctx, w.Make(n)); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "wrote", s.Epoch(), w.Next-1)
	}
}

// server is a child process.
type server struct{ *proc.Process }

// said is a line of a child's output, or its end.
type said struct {
	by         *server
	word       string // lead, wrote, deposed, gone
	epoch, seq uint64
}

func startServer(t testing.TB, lease time.Duration, place string, heard chan<- said) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%v %s", replicaVariable, lease, place))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(t, err)
	s := &server{proc.Start(t, cmd)}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			what := said{by: s}
			if _, err := fmt.Sscan(lines.Text(), &what.word, &what.epoch, &what.seq); err != nil {
				what.word = "nonsense: " + lines.Text()
			}
			heard <- what
		}
		_ = s.Wait() // most are killed
		heard <- said{by: s, word: "gone"}
	}()
	return s
}

func killedLeaders(t *testing.T, c *pgtest.Cluster) {
	leaders(t, c, time.Second, lane.Pick(2, 6), func(takeover func()) { takeover() })
}

// A takeover takes less than 10 s with a server's settings.
func TestPostgres_TakesOverWithinTenSeconds(t *testing.T) {
	lane.Nightly(t, "measures how long a takeover takes")
	leaders(t, pgtest.Start(t), postgres.Default("", "").Lease, 1, func(takeover func()) {
		began := time.Now()
		takeover()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("a takeover took %v", took)
		}
	})
}

// leaders runs three servers and removes the leader again and again, in turn by kill -9 and by freezing it past its
// lease. A thawed leader must change nothing. Each takeover runs within a call of around.
func leaders(t *testing.T, c *pgtest.Cluster, lease time.Duration, rounds int, around func(takeover func())) {
	place := placeOf(t, c.Database(t))
	heard := make(chan said, 1000)
	running := map[*server]bool{}
	start := func() { running[startServer(t, lease, place, heard)] = true }
	wrote := map[uint64]uint64{} // last record of a batch, and the epoch that reported it durable
	knows := map[*server]bool{}  // servers that have reported that they are deposed
	var leader *server
	var epoch, count uint64
	hear := func() said {
		t.Helper()
		select {
		case s := <-heard:
			switch s.word {
			case "wrote":
				if before, twice := wrote[s.seq]; twice {
					t.Fatalf("record %d was acknowledged in epoch %d and in epoch %d", s.seq, before, s.epoch)
				}
				wrote[s.seq] = s.epoch
				if s.epoch > epoch {
					leader, epoch, count = s.by, s.epoch, 0
				}
				count++
			case "gone":
				delete(running, s.by)
			case "deposed":
				knows[s.by] = true
			case "lead":
			default:
				t.Fatal(s.word)
			}
			return s
		case <-t.Context().Done():
			t.Fatal("the test was stopped")
		}
		return said{}
	}
	for range 3 {
		start()
	}
	defer func() {
		for s := range running {
			_ = s.Signal(syscall.SIGKILL)
		}
		for len(running) > 0 {
			hear()
		}
	}()
	for round := 0; round < rounds; {
		for count < 40 {
			hear()
		}
		old, before := leader, epoch
		if knows[old] { // on a busy machine the leader was late, and the next one leads already
			count = 0
			start()
			continue
		}
		freeze := round%2 == 1
		around(func() {
			if freeze {
				must(t, old.Signal(syscall.SIGSTOP))
			} else {
				must(t, old.Signal(syscall.SIGKILL))
			}
			for epoch == before {
				hear()
			}
		})
		if freeze {
			must(t, old.Signal(syscall.SIGCONT))
			for running[old] {
				hear()
			}
			if !knows[old] {
				t.Error("the one that was frozen ended without knowing that it is deposed")
			}
		}
		start()
		round++
	}
	for s := range running {
		_ = s.Signal(syscall.SIGKILL)
	}
	for len(running) > 0 {
		hear()
	}
	_, err := c.Query(settings(place).URL, "UPDATE leader SET epoch = epoch + 1") // after this, a statement that the last leader sent before it died has either arrived or never will
	must(t, err)
	s := replica(t, settings(place))
	end, err := s.End(t.Context())
	must(t, err)
	wantWritten(t, s, int(end))
	list, err := c.Query(settings(place).URL, "SELECT seq, epoch FROM event UNION ALL SELECT seq, epoch FROM sample ORDER BY seq")
	must(t, err)
	acked, last := 0, uint64(0)
	for line := range strings.Lines(list) {
		var seq, by uint64
		if _, err := fmt.Sscanf(line, "%d|%d", &seq, &by); err != nil {
			t.Fatal(err)
		}
		if by < last {
			t.Fatalf("record %d was written in epoch %d, after epoch %d had begun", seq, by, last)
		}
		last = by
		if said, ok := wrote[seq]; ok {
			if acked++; said != by {
				t.Errorf("record %d was acknowledged in epoch %d and stands there from epoch %d", seq, said, by)
			}
		}
	}
	if acked != len(wrote) || acked < 40*rounds {
		t.Errorf("%d of %d acknowledged batches are there", acked, len(wrote))
	}
	t.Logf("%d records, %d acknowledged batches, %d epochs", end, acked, last)
}
