package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/storetest"
)

// childVariable names the place to which a child process appends.
const childVariable = "SCRIMP_STORETEST_CHILD"

// Main must be called by TestMain: in the child process of the kill -9 test it appends until it is killed; otherwise
// it runs the tests.
func Main(m *testing.M, backends ...storetest.Backend) int {
	name, place, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		return m.Run()
	}
	for _, b := range backends {
		if b.Name == name {
			fmt.Fprintln(os.Stderr, child(b, place))
		}
	}
	return 1
}

// child continues the log and reports each batch once it is durable. After some it takes a snapshot, and drops what
// that makes unneeded.
func child(b storetest.Backend, place string) error {
	ctx := context.Background()
	s, err := b.Open(ctx, place)
	if err != nil {
		return err
	}
	end, err := s.End(ctx)
	if err != nil {
		return err
	}
	var w storetest.Writer
	w.Make(int(end))
	marks, err := s.Marks(ctx)
	if err != nil {
		return err
	}
	counted := marks[countName]
	snapped := uint64(0)
	for n, batch := 1, 0; ; n, batch = n%40+3, batch+1 {
		if err := s.Append(ctx, w.Make(n)); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, w.Next-1)
		if counted, err = count(ctx, s, counted, w.Next-1); err != nil {
			return err
		}
		if batch%3 == 0 {
			older := snapped
			snapped = w.Next - 1
			err := s.SaveSnapshot(ctx, store.Snapshot{Seq: snapped, Version: 1, State: []byte("{}")})
			if err == nil && older > 0 {
				_, err = s.DropSamples(ctx, older)
			}
			if err != nil {
				return err
			}
		}
	}
}

// countName is a projection with a byte for each record of the log.
const countName = "count/1"

// count moves that projection to a record.
func count(ctx context.Context, s store.Store, from store.Mark, to uint64) (store.Mark, error) {
	mark := store.Mark{Seq: to, Sum: fmt.Sprint(to)}
	more := store.Change{Append: true, Value: make([]byte, to-from.Seq)}
	return mark, s.Project(ctx, from, mark, map[string]map[string]store.Change{countName: {"records": more}})
}

// counted checks that the projection has counted each record before its mark once, and none that the log lost.
func counted(t *testing.T, s store.Store, end uint64) {
	t.Helper()
	marks, err := s.Marks(t.Context())
	storetest.Must(t, err)
	rows, err := s.Rows(t.Context(), countName, []string{"records"})
	storetest.Must(t, err)
	if mark := marks[countName]; mark.Seq == 0 || mark.Seq > end || uint64(len(rows["records"])) != mark.Seq {
		t.Errorf("the projection is at %+v with %d records counted, and the log ends at %d", mark, len(rows["records"]), end)
	}
}

func locked(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	other, err := b.Open(t.Context(), place)
	if err == nil {
		_ = other.Close()
	}
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("a second server: %v; want ErrLocked with the process that has it", err)
	}
	t.Logf("as a user reads it: %v", err)
	storetest.Must(t, s.Append(t.Context(), new(storetest.Writer).Make(3))) // the first store is unharmed
	storetest.Must(t, s.Close())
	b.At(t, place)
}

func killed(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	var want storetest.Writer
	acked := uint64(0)
	for round := range lane.Pick(2, 4) {
		acked = max(acked, runChild(t, b, place, acked+uint64(100+37*round)))
		s := b.At(t, place) // dead processes hold no lock
		got := storetest.All(t, s)
		end, err := s.End(t.Context())
		storetest.Must(t, err)
		if end < acked {
			t.Fatalf("round %d: the log ends at %d, but %d were acknowledged", round, end, acked)
		}
		counted(t, s, end)
		snap, ok, err := s.LatestSnapshot(t.Context())
		storetest.Must(t, err)
		if !ok || len(got) == int(end) {
			t.Errorf("round %d: a snapshot %v, and %d records of %d: no sample was dropped", round, ok, len(got), end)
		}
		want = storetest.Writer{}
		storetest.Same(t, got, storetest.Without(want.Make(int(end)), got, snap.Seq))
		storetest.Whole(t, s, snap.Seq)
		storetest.Verify(t, s)
		storetest.Must(t, s.Close())
	}
}

// runChild starts a child that appends, kills it with -9 once it has acknowledged record until, and returns the last
// acknowledged record.
func runChild(t *testing.T, b storetest.Backend, place string, until uint64) (acked uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+b.Name+" "+place)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	storetest.Must(t, err)
	p := proc.Start(t, cmd)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		if acked = n; acked >= until {
			_ = cmd.Process.Kill() // and read on: acknowledgements before its death count
		}
	}
	_ = p.Wait() // it was killed
	if acked < until {
		t.Fatalf("the child ended at %d before it was killed", acked)
	}
	return acked
}
