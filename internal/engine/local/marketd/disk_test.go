package marketd

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/engine/procs"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// fullDisk accepts a number of bytes and then fails.
type fullDisk struct {
	disk
	mu    *sync.Mutex
	room  *int
	stuck *bool // it cannot even truncate
}

func newFullDisk(room int) fullDisk {
	return fullDisk{mu: &sync.Mutex{}, room: &room, stuck: new(bool)}
}

func (f fullDisk) set(room int, stuck bool) {
	f.mu.Lock()
	*f.room, *f.stuck = room, stuck
	f.mu.Unlock()
}

func (f fullDisk) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := *f.room; n < len(b) {
		*f.room = 0
		n, err := f.disk.Write(b[:n])
		return n, errors.Join(syscall.ENOSPC, err)
	}
	*f.room -= len(b)
	return f.disk.Write(b)
}

func (f fullDisk) Sync() error { return nil } // does nothing, because the test runs thousands of disks

func (f fullDisk) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *f.stuck {
		return io.ErrClosedPipe
	}
	return f.disk.Truncate(size)
}

func TestJournal_FullDiskLeavesCompleteRecords(t *testing.T) {
	t.Parallel()
	text, records := written(t)
	path := filepath.Join(fast.Dir(t), "j")
	for room := 0; room <= len(text); room += lane.Pick(101, 23) {
		for _, stuck := range []bool{false, true} {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
			must.Do(t, err)
			full := newFullDisk(room)
			full.disk = f
			*full.stuck = stuck
			j := journal{f: full}
			var kept []record
			for n, r := range records {
				if n == len(records)-1 {
					full.set(1<<20, false) // there is room again
				}
				err := j.append(r)
				if err == nil {
					kept = append(kept, r)
				} else if !strings.HasPrefix(err.Error(), "write the market's journal: ") || !errors.Is(err, syscall.ENOSPC) && !stuck {
					t.Fatalf("room for %d bytes: %v", room, err)
				}
			}
			_ = f.Close()
			got, err := os.ReadFile(path)
			must.Do(t, err)
			s := read(got)
			if s.damaged > 0 || told(s) != slowRead(kept) {
				t.Fatalf("room for %d bytes, stuck: %v: %d damaged lines and\n%s\nwant\n%s", room, stuck, s.damaged, told(s), slowRead(kept))
			}
		}
	}
}

func TestFullDisk_ReturnsErrorAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir, full := folder(t), newFullDisk(1<<20)
	wrap := func(o *Options) { o.disk = func(d disk) disk { f := full; f.disk = d; return f } }
	s := serveHere(t, dir, testTrace(60), wrap)
	kept, err := s.rent("a.1", always)
	must.Do(t, err)

	full.set(100, false) // a launch
	_, err = s.rent("a.2", always)
	if err == nil || engine.Refused(err) || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), "journal") {
		t.Fatalf("a launch on a full disk: %v", err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("listed are %v, %v", list, err)
	}
	full.set(1<<20, false)
	second, err := s.rent("a.2", always)
	if err != nil || second.ID == kept.ID {
		t.Fatalf("once there is room: %+v, %v", second, err)
	}

	full.set(10, true) // an end that cannot even be truncated
	if err := s.Terminate(t.Context(), kept.ID); err == nil || engine.Refused(err) || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("an end on a full disk: %v", err)
	}
	if i, ok := s.listed(kept.ID); !ok || i.State != engine.Running {
		t.Errorf("an end that is not written is told: %+v", i)
	}
	if left := procs.Members(kept.ID, 0, ""); len(left) > 0 {
		t.Errorf("processes %v run on", left)
	}
	s.stop() // restart the daemon with the torn journal, and with room
	full.set(1<<20, false)
	s = serveHere(t, dir, testTrace(60), wrap)
	eventually.True(t, "the end is written", func() bool {
		i, ok := s.listed(kept.ID)
		return ok && i.State == engine.Ended && len(i.Bill) == 1
	})
	if i, ok := s.listed(second.ID); !ok || i.State != engine.Running || len(procs.Members(second.ID, 0, "")) != 1 {
		t.Errorf("the other one is %+v", i)
	}
	again, err := s.rent("a.2", always)
	if err != nil || again.ID != second.ID {
		t.Errorf("a.2 rents %s, and then %s, %v", second.ID, again.ID, err)
	}

	full.set(10, false) // an end that is written as soon as there is room, without a restart
	if err := s.Terminate(t.Context(), second.ID); err == nil {
		t.Error("an end that is not written is no error")
	}
	full.set(1<<20, false)
	var end engine.Instance
	eventually.True(t, "the end is written without a restart", func() bool {
		end, _ = s.listed(second.ID)
		return end.State == engine.Ended
	})
	if end.Cause != engine.Terminated || len(end.Bill) != 1 ||
		end.Bill[0].Amount != end.Rate.Until(end.Ended.Sub(end.Launched)) {
		t.Errorf("ended as %+v", end)
	}
	s.stop()
	text, err := os.ReadFile(filepath.Join(dir, journalName))
	if st := read(text); err != nil || st.damaged > 0 || len(st.machines) != 2 {
		t.Errorf("the journal tells\n%s, %d lines damaged, %v", told(st), st.damaged, err)
	}
}

func TestAdopt_FindsUnrecordedProcess(t *testing.T) {
	t.Parallel()
	dir, full := folder(t), newFullDisk(1<<20)
	s := serveHere(t, dir, testTrace(60), func(o *Options) {
		o.disk = func(d disk) disk { f := full; f.disk = d; return secondFails{f, new(int)} }
	})
	i, err := s.rent("a.1", always)
	must.Do(t, err)
	s.stop()
	if text, _ := os.ReadFile(filepath.Join(dir, journalName)); len(read(text).machines) != 1 || read(text).machines[0].PID != 0 {
		t.Fatalf("the test is void: the process is written: %s", text)
	}
	pid, _ := procs.First(i.ID)
	s = serveHere(t, dir, testTrace(60), nil)
	got, ok := s.listed(i.ID)
	if !ok || !reflect.DeepEqual(got, i) {
		t.Errorf("adopted as %+v, want %+v", got, i)
	}
	if again, err := s.rent("a.1", always); err != nil || again.ID != i.ID {
		t.Errorf("rented again: %+v, %v", again, err)
	}
	if err := s.Terminate(t.Context(), i.ID); err != nil || procs.Begun(pid) != "" {
		t.Errorf("given back: %v, its process is there: %v", err, procs.Begun(pid) != "")
	}
	if got, _ := s.listed(i.ID); got.Cause != engine.Terminated { // and not one that lost its process
		t.Errorf("ended as %+v", got)
	}
}

// secondFails is a disk that refuses every second record.
type secondFails struct {
	disk
	n *int
}

func (f secondFails) Write(b []byte) (int, error) {
	if *f.n++; *f.n%2 == 0 {
		return 0, syscall.ENOSPC
	}
	return f.disk.Write(b)
}
