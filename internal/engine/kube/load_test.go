//go:build !local

package kube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var (
	pods   = flag.Int("pods", 100, "machines that are rented at once")
	steady = flag.Duration("steady", 5*time.Second, "how long they run, while two of them a second end and others begin")
)

// counted counts the requests of a driver.
type counted struct {
	rt http.RoundTripper
	n  atomic.Int64
}

func (c *counted) RoundTrip(q *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.rt.RoundTrip(q)
}

// load uses a driver as the control loop does: it lists at each change and every two seconds.
type load struct {
	*site
	d       *Driver
	way     counted
	running atomic.Int64
	ended   atomic.Int64
	polls   int
	longest time.Duration // of a list
}

func (l *load) follow(ctx context.Context) {
	told := make(chan struct{}, 1)
	go func() {
		_ = l.d.Watch(ctx, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	for ctx.Err() == nil {
		began := time.Now()
		list, err := l.d.List(ctx)
		if err != nil && ctx.Err() == nil {
			l.Error(err)
		}
		l.polls++
		l.longest = max(l.longest, time.Since(began))
		running, ended := 0, 0
		for n := range list {
			if list[n].State == engine.Ended {
				ended++
			} else {
				running++
			}
		}
		if err == nil {
			l.running.Store(int64(running))
			l.ended.Store(int64(ended))
		}
		select {
		case <-ctx.Done():
		case <-told:
		case <-time.After(usual.Poll):
		}
	}
}

// rents launches a machine, and repeats the launch while it is pending.
func (l *load) rents(ctx context.Context, key string) string {
	for {
		list, err := l.ask(l.d, key, std, 1)
		switch {
		case err == nil:
			return list[0].ID
		case !errors.Is(err, engine.ErrPending):
			l.Errorf("%s: %v", key, err)
			return ""
		}
		if wait.For(ctx, usual.Poll) != nil {
			l.Errorf("%s: %v", key, err)
			return ""
		}
	}
}

// phase measures the driver's cost of a part of the test.
func (l *load) phase(name string, machines int, do func()) (each float64) {
	was, asked, began := spent(l), l.way.n.Load(), time.Now()
	do()
	took, cpu, requests := time.Since(began), spent(l)-was, l.way.n.Load()-asked
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.Logf("%-8s %v: %.2f s of a processor, %.3f of one core; %d requests, %.1f for each of %d machines; heap %d MiB", name,
		took.Round(100*time.Millisecond), cpu.Seconds(), cpu.Seconds()/took.Seconds(), requests, float64(requests)/float64(machines),
		machines, m.HeapAlloc>>20)
	if cpu > took {
		l.Errorf("%s took more than one core", name)
	}
	return float64(requests) / float64(machines)
}

// spent returns the processor time that this process has used.
func spent(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must.Do(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Many machines at once need less than one core of the server, and few requests each.
func TestLoad_IsSmallForManyMachines(t *testing.T) {
	lane.Nightly(t, "it measures processors and requests over a hundred machines")
	c := kubetest.Start(t)
	l := &load{site: newSite(t, c)}
	l.nodes("std", "128", max(2, (*pods+59)/60)) // of 64 GiB; a machine has one
	l.d = l.driver()
	l.d.wrap = func(rt http.RoundTripper) http.RoundTripper { l.way.rt = rt; return &l.way }
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { l.follow(ctx) })
	ids := make([]string, *pods)
	each := l.phase("launch", *pods, func() {
		l.all(func(n int) { ids[n] = l.rents(ctx, fmt.Sprint("m.", n)) })
		l.until("all run", func() bool { return l.running.Load() == int64(*pods) })
	})
	over := 0
	l.phase("steady", *pods, func() {
		for began := time.Now(); time.Since(began) < *steady; over++ {
			if err := l.d.Terminate(ctx, ids[over%*pods]); err != nil {
				t.Error(err)
			}
			ids[over%*pods] = l.rents(ctx, fmt.Sprint("n.", over))
			_ = wait.For(ctx, 500*time.Millisecond)
		}
	})
	each += l.phase("end", *pods, func() {
		l.all(func(n int) {
			if err := l.d.Terminate(ctx, ids[n]); err != nil {
				t.Error(err)
			}
		})
		l.until("all have ended", func() bool { return l.ended.Load() == int64(*pods+over) && l.running.Load() == 0 })
	})
	stop()
	following.Wait()
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	t.Logf("%d polls, the longest of %v; memory at most %d MiB; %d began anew", l.polls, l.longest.Round(time.Millisecond),
		u.Maxrss>>10, over)
	const most = 20 // for a launch and an end, including polls
	if each > most {
		t.Errorf("%.1f requests for each machine, and %d at most", each, most)
	}
}

// all does something for each machine, 64 at once.
func (l *load) all(do func(n int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 64 {
		wg.Go(func() {
			for n := range next {
				do(n)
			}
		})
	}
	for n := range *pods {
		next <- n
	}
	close(next)
	wg.Wait()
}
