//go:build !local

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// What the API server cannot report for a while ends no machine, and is reported afterwards: after the server dies,
// loses history, freezes, or has a dead connection.
func TestOutages_EndNoMachine(t *testing.T) {
	lane.Nightly(t, "it waits for the limits of calls and connections")
	c := kubetest.Start(t, "WATCH=5") // watches end after 5 to 10 s
	for _, o := range []struct {
		name string
		hold func(*site)
	}{{"killed", killed}, {"forgotten", forgotten}, {"frozen", frozen}, {"a dead connection", dead}} {
		t.Run(o.name, func(t *testing.T) { o.hold(newSite(t, c)) })
	}
}

func (s *site) answers() {
	s.Helper()
	s.until("an answer of the API server", func() bool { _, err := s.Try("get", "--raw", "/readyz"); return err == nil })
}

// running checks that a machine runs unchanged.
func (s *site) running(d *Driver, key string, was engine.Instance) {
	s.Helper()
	if i := s.now(d, key); i.ID != was.ID || i.State != engine.Running || !i.Launched.Equal(was.Launched) {
		s.Errorf("%s is %+v, and was %+v", key, i, was)
	}
}

func killed(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	first := s.launched(d, "a.1", 1)[0]
	if _, err := s.ask(d, "a.2", later, 1); !errors.Is(err, engine.ErrPending) {
		s.Fatalf("without a node: %v", err)
	}
	s.Kill(s, "kube-apiserver")
	dead := time.Now()
	for failed := 0; time.Since(dead) < 8*time.Second; {
		list, err := s.listsIn(d, 7*time.Second)
		switch {
		case err != nil:
			failed++
		case time.Since(dead) > freshFor+time.Second:
			s.Fatalf("listed without an API server: %+v", list)
		}
		for _, i := range list {
			if i.State == engine.Ended {
				s.Fatalf("ended without an API server: %+v", i)
			}
		}
		if _, err := s.ask(d, "a.2", later, 1); failed > 0 && (err == nil || engine.Refused(err) || errors.Is(err, engine.ErrPending)) {
			s.Fatalf("asked without an API server: %v", err)
		}
		_ = wait.For(s.Context(), 100*time.Millisecond)
	}
	s.Begin(s, "kube-apiserver")
	s.answers()
	s.until("it lists", func() bool { _, err := d.List(s.Context()); return err == nil })
	s.running(d, "a.1", first)
	s.nodes("later", "1", 1)
	s.until("what waited is granted", func() bool { _, err := s.ask(d, "a.2", later, 1); return err == nil })
	s.Evict(s, s.namespace, s.pods()[0])
	s.until("an end after the outage", func() bool {
		return s.now(d, "a.1").Cause == engine.Interrupted || s.now(d, "a.2").Cause == engine.Interrupted
	})
}

// listsIn lists within a time limit.
func (s *site) listsIn(d *Driver, limit time.Duration) ([]engine.Instance, error) {
	s.Helper()
	began := time.Now()
	ctx, stop := context.WithTimeout(s.Context(), 30*time.Second)
	defer stop()
	list, err := d.List(ctx)
	if took := time.Since(began); took > limit {
		s.Errorf("a list took %v: %v", took, err)
	}
	return list, err
}

// blind is a transport that answers no watch while it is shut.
type blind struct {
	rt   http.RoundTripper
	mu   sync.Mutex
	shut bool
	open []io.Closer
}

func (b *blind) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Query().Get("watch") == "" {
		return b.rt.RoundTrip(q)
	}
	b.mu.Lock()
	shut := b.shut
	b.mu.Unlock()
	if shut {
		return nil, errFault
	}
	a, err := b.rt.RoundTrip(q)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open = append(b.open, a.Body)
	}
	return a, err
}

func (b *blind) shuts(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = yes
	for _, body := range b.open {
		_ = body.Close()
	}
	b.open = nil
}

// forgotten compacts etcd and restarts the API server, so that events that nobody watched are lost.
func forgotten(s *site) {
	s.nodes("std", "4", 2)
	way := &blind{}
	d := s.driver()
	d.wrap = func(rt http.RoundTripper) http.RoundTripper { way.rt = rt; return way }
	s.launched(d, "a.1", 1)
	second := s.launched(d, "a.2", 1)[0]
	s.until("both run", func() bool {
		return s.now(d, "a.1").State == engine.Running && s.now(d, "a.2").State == engine.Running
	})
	way.shuts(true)
	s.Evict(s, s.namespace, s.Do(s, "get", "pods", "-n", s.namespace, "-l", "job-name="+record.NameOf("a.1"),
		"-o", "jsonpath={.items[*].metadata.name}"))
	s.until("the pod goes", func() bool { return len(s.pods()) == 1 })
	var all corev1.ConfigMapList
	s.read("configmaps", &metav1.ListOptions{}, &all)
	revision := all.ResourceVersion
	q, err := http.NewRequestWithContext(s.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/v3/kv/compaction", s.Port+1),
		strings.NewReader(`{"revision":"`+revision+`","physical":true}`))
	must.Do(s, err)
	a, err := http.DefaultClient.Do(q)
	if err != nil || a.StatusCode != http.StatusOK {
		s.Fatalf("compaction at %s: %v %v", revision, a, err)
	}
	_ = a.Body.Close()
	s.Kill(s, "kube-apiserver")
	s.Begin(s, "kube-apiserver")
	s.answers()
	way.shuts(false)
	s.interrupted(d, "a.1")
	s.running(d, "a.2", second)
	s.Evict(s, s.namespace, s.pods()[0])
	s.ends(d, "a.2", engine.Interrupted)
}

// interrupted waits for an interruption with its bill.
func (s *site) interrupted(d *Driver, key string) {
	s.Helper()
	var i engine.Instance
	s.until("the end of "+key, func() bool {
		list, err := d.List(s.Context())
		for _, l := range list {
			if l.Key == key {
				i = l
			}
		}
		return err == nil && i.State == engine.Ended
	})
	if i.Cause != engine.Interrupted || len(i.Bill) != 1 {
		s.Errorf("it ended as %+v", i)
	}
}

// frozen checks that calls to a frozen API server end after their limit, even many at once, without harm.
func frozen(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	first := s.launched(d, "a.1", 1)[0]
	s.Signal(s, "kube-apiserver", syscall.SIGSTOP)
	froze := time.Now()
	_ = wait.For(s.Context(), freshFor) // earlier answers stay valid that long
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.listsIn(d, 8*time.Second); err == nil {
				s.Error("listed by a frozen API server")
			}
		})
	}
	wg.Wait()
	for time.Since(froze) < client.SilentFor+client.PingFor+5*time.Second {
		if _, err := s.listsIn(d, 12*time.Second); err == nil {
			s.Error("listed by a frozen API server")
		}
	}
	s.Signal(s, "kube-apiserver", syscall.SIGCONT)
	s.answers()
	s.until("it lists", func() bool { _, err := d.List(s.Context()); return err == nil })
	s.running(d, "a.1", first)
	s.Evict(s, s.namespace, s.pods()[0])
	s.ends(d, "a.1", engine.Interrupted)
}

// passage forwards connections to the API server; cut ones stay open and carry nothing.
type passage struct {
	net.Listener
	to    string
	round atomic.Int32
}

func (p *passage) serve() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		round := p.round.Load()
		go func() {
			out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
			if err != nil {
				_ = in.Close()
				return
			}
			carry := func(to, from net.Conn) {
				text := make([]byte, 32<<10)
				for {
					n, err := from.Read(text)
					if p.round.Load() != round {
						return // for ever
					}
					if _, err2 := to.Write(text[:n]); err != nil || err2 != nil {
						_ = errors.Join(in.Close(), out.Close())
						return
					}
				}
			}
			go carry(out, in)
			carry(in, out)
		}()
	}
}

// dead checks that a silent connection is replaced, and that events during the silence are seen.
func dead(s *site) {
	s.nodes("std", "4", 1)
	l, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", "127.0.0.1:0")
	must.Do(s, err)
	p := &passage{Listener: l, to: fmt.Sprintf("127.0.0.1:%d", s.Port)}
	s.Cleanup(func() { _ = l.Close() })
	go p.serve()
	text, err := os.ReadFile(s.config)
	must.Do(s, err)
	w := s.with()
	w.Kubeconfig = filepath.Join(s.TempDir(), "config")
	must.Do(s, os.WriteFile(w.Kubeconfig, []byte(strings.ReplaceAll(string(text), p.to, l.Addr().String())), 0o600))
	d := s.driverOf(w, "http://127.0.0.1:9")
	s.launched(d, "a.1", 1)
	p.round.Add(1)
	s.Evict(s, s.namespace, s.pods()[0])
	s.interrupted(d, "a.1") // on the old connection the kernel gives up after some fifteen minutes
}
