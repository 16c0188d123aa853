package ssh

import (
	"errors"
	"strings"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/sshtest"
)

// ended waits until the engine lists an instance as ended.
func (l *lab) ended(id string) (end engine.Instance) {
	l.t.Helper()
	eventually.True(l.t, id+" has ended", func() bool {
		list, err := l.List(l.t.Context())
		for _, i := range list {
			if i.ID == id {
				end = i
			}
		}
		return err == nil && end.State == engine.Ended
	})
	return end
}

// A reboot ends a machine's instances as interrupted, billed until the machine was up again.
// Killing their processes alone does not count as an interruption.
func TestReboot_InterruptsInstances(t *testing.T) {
	lane.Component(t, "ssh")
	t.Parallel()
	machines := sshtest.Start(t, 2, 83)
	l := newLab(t, machines, "lab", map[int]int{1: 3, 2: 5}, 1, 2)
	by := l.offers()
	booted, err := l.Launch(t.Context(), engine.Request{Key: "a", Offer: by[3]})
	must.Do(t, err)
	killed, err := l.Launch(t.Context(), engine.Request{Key: "b", Offer: by[5]})
	must.Do(t, err)
	// The kernel reports its boot time in whole seconds, so an instance that started just before a boot would have no
	// time on its bill.
	ran := time.Now()
	eventually.True(t, "it has run for some seconds", func() bool { return time.Since(ran) > 2*time.Second })
	machines.Reboot(t, 1)
	machines.Off(t, 2)
	machines.On(t, 2)
	i := l.ended(booted[0].ID)
	if span := i.Ended.Sub(i.Launched); i.Cause != engine.Interrupted || span < time.Second || len(i.Bill) == 0 ||
		i.Bill[0].Amount != i.Rate.Until(span) {
		t.Errorf("after a boot: %s after %v, billed %+v", i.Cause, i.Ended.Sub(i.Launched), i.Bill)
	}
	if i := l.ended(killed[0].ID); i.Cause != engine.Stopped {
		t.Errorf("where processes were ended and nothing booted: %s", i.Cause)
	}
	again, err := l.Launch(t.Context(), engine.Request{Key: "a", Offer: by[3]})
	if err != nil || again[0].ID != booted[0].ID || again[0].State != engine.Ended {
		t.Errorf("its key now begins %+v, %v", again, err)
	}
}

// A machine with a full disk starts nothing and reports a fix. A similar machine takes its place,
// or else the launch is refused.
func TestLaunch_SkipsMachineWithFullDisk(t *testing.T) {
	lane.Component(t, "ssh")
	t.Parallel()
	machines := sshtest.Start(t, 2, 84)
	machines.Small(t, 1, shared, "200m")
	l := newLab(t, machines, "lab", map[int]int{1: 3, 2: 3}, 1, 2)
	offer := l.offers()[3]
	if out, err := machines.Run(t, 1, "cat /dev/zero > "+shared+"/filled"); err == nil || !strings.Contains(out, "No space") {
		t.Fatalf("the disk is not filled: %v, %s", err, out)
	}
	list, err := l.Launch(t.Context(), engine.Request{Key: "a", Offer: offer})
	if err != nil || !strings.Contains(list[0].ID, "-m2.") {
		t.Fatalf("one of two disks is full: %+v, %v", list, err)
	}
	_, err = l.Launch(t.Context(), engine.Request{Key: "b", Offer: offer})
	if !errors.Is(err, engine.ErrNoCapacity) || !strings.Contains(err.Error(), "m1.") ||
		!strings.Contains(err.Error(), "make room") {
		t.Errorf("the disk of the only machine that is free is full: %v", err)
	}
	if out, err := machines.Run(t, 1, "rm "+shared+"/filled"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if list, err = l.Launch(t.Context(), engine.Request{Key: "b", Offer: offer}); err != nil ||
		!strings.Contains(list[0].ID, "-m1.") {
		t.Errorf("with room again: %+v, %v", list, err)
	}
}
