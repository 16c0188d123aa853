package ssh

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/must"
)

// joinedLab is an engine of machines that join. The name of a machine starts with its number of
// processors: c3.1 has 3.
type joinedLab struct {
	*lab
	names  []string
	tokens map[string]string
	ctx    context.Context // for the machines
	away   func()          // disconnects this server's machines and waits until they have left
}

func newJoinedLab(t testing.TB, name string, cpus ...int) *joinedLab {
	t.Helper()
	dir := t.TempDir()
	var hosts []map[string]any
	j := &joinedLab{tokens: map[string]string{}, ctx: context.WithoutCancel(t.Context())}
	for n, c := range cpus {
		m := fmt.Sprintf("c%d.%d.%d", c, n, labs.Add(1))
		j.names = append(j.names, m)
		hosts = append(hosts, map[string]any{"join": m, "cpus": c})
	}
	j.lab = &lab{t: t, dir: dir, setting: engine.Setting{Name: name, Kind: Kind, With: engine.WithOf(map[string]any{
		"rate": "0.36", "marginal": "0.06", "hosts": hosts})}}
	for _, m := range j.names {
		token, err := setting.NewToken(dir, &j.setting, m)
		must.Do(t, err)
		j.tokens[m] = token
	}
	j.open()
	j.join()
	t.Cleanup(func() { j.end(); j.away() })
	return j
}

// join connects all machines, as scrimp agent join does.
func (j *joinedLab) join() {
	j.t.Helper()
	ctx, cancel := context.WithCancel(j.ctx)
	var there sync.WaitGroup
	exe, err := os.Executable()
	must.Do(j.t, err)
	for n, m := range j.names {
		far, near := pipe(j.t)
		seat, err := j.Claim(ctx, j.tokens[m], fmt.Sprint("session", n, labs.Add(1)))
		must.Do(j.t, err)
		there.Go(func() { _ = seat.Serve(ctx, near) })
		there.Go(func() {
			defer func() { _ = far.Close() }()
			_ = hostd.Serve(ctx, far, far, hostd.Options{Dir: filepath.Join(shared, "hosts", m), Agent: []string{exe, "agent"}})
		})
	}
	j.away = func() { cancel(); there.Wait() }
}

func (j *joinedLab) restart() {
	j.stop()
	j.away()
	j.open()
	j.join()
}

// pipe returns a connection on this machine.
func pipe(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer func() { _ = l.Close() }()
	far, err := net.Dial("tcp", l.Addr().String())
	must.Do(t, err)
	near, err := l.Accept()
	must.Do(t, err)
	return far, near
}

// Machines that join pass the same conformance tests as those reached by ssh.
func TestDriverConforms_WithMachinesThatJoin(t *testing.T) {
	t.Setenv("PATH", toolsOnly(t)) // each machine runs Python for its version, and starting many Pythons takes too long
	enginetest.Run(t, func(t testing.TB) enginetest.Rig {
		j := newJoinedLab(t, "lab", 3, 3, 3, 3, 5)
		by := j.offers()
		host := j.names[4] // another server uses that machine
		if _, err := j.link(host).Ask(t.Context(), hostd.Request{Do: "launch", Launch: &hostd.Launch{Key: "theirs",
			Name: "their-" + host, Offer: by[5], Rate: money.Rate(1), At: time.Now()}}, time.Minute); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			a, _ := j.link(host).Ask(context.Background(), hostd.Request{Do: "list"}, time.Minute)
			for _, i := range a.Instances {
				_, _ = j.link(host).Ask(context.Background(), hostd.Request{Do: "end", Instance: i.ID}, time.Minute)
			}
		})
		return enginetest.Rig{
			Driver: j, Granted: by[3], Empty: by[5],
			Restart: func(testing.TB) { j.restart() },
			Foreign: func(t testing.TB) string {
				other := newJoinedLab(t, "other", 7)
				list, err := other.Launch(t.Context(), engine.Request{Key: "a.1", Offer: other.offers()[7]})
				must.Do(t, err)
				return list[0].ID
			},
		}
	})
}

// toolsOnly returns a folder with only the programs that machines need.
func toolsOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"date", "mv"} {
		path, err := exec.LookPath(name)
		must.Do(t, err)
		must.Do(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}

// rack returns an engine with one machine that joins, and its token.
func rack(t *testing.T) (d *Driver, s *engine.Setting, dir, token string) {
	t.Helper()
	dir = t.TempDir()
	s = &engine.Setting{Name: "rack", Kind: Kind, With: engine.WithOf(map[string]any{"rate": "1",
		"hosts": []any{map[string]any{"join": "gpu3"}}})}
	token, err := setting.NewToken(dir, s, "gpu3")
	must.Do(t, err)
	e, err := Open(t.Context(), *s, engine.Host{Dir: dir, Socket: "unix:///none"})
	must.Do(t, err)
	d = e.Driver.(*Driver)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d, s, dir, token
}

// machine is the far side of a connection. It sends what answers returns for each request, unless that is nil.
func machine(conn net.Conn, answers func(*hostd.Request) *hostd.Answer) {
	if _, err := fmt.Fprintf(conn, "\n%s\n", hostd.Greeting); err != nil {
		return
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var r hostd.Request
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return
		}
		if a := answers(&r); a != nil {
			a.ID = r.ID
			text, _ := json.Marshal(a)
			if _, err := conn.Write(append(text, '\n')); err != nil {
				return
			}
		}
	}
}

func alive(*hostd.Request) *hostd.Answer { return &hostd.Answer{Facts: &hostd.Facts{CPUs: 4}} }
func dead(*hostd.Request) *hostd.Answer  { return nil }

// serve lets a machine join; ended is closed once its connection has ended.
func serve(t *testing.T, d *Driver, token, session string, answers func(*hostd.Request) *hostd.Answer) (ended chan struct{},
	err error) {
	t.Helper()
	seat, err := d.Claim(t.Context(), token, session)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	ended = make(chan struct{})
	go machine(far, answers)
	go func() {
		defer close(ended)
		_ = seat.Serve(d.ctx, near)
		seat.Close()
	}()
	return ended, nil
}

func is(ended chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// If two machines use the same name, the server refuses the second while the first responds; otherwise the second takes
// its place. A machine that reconnects gets its own place at once.
func TestClaim_GivesNameToOneMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _, _, token := rack(t)
		first, err := serve(t, d, token, "first", alive)
		must.Do(t, err)
		synctest.Wait()
		if list := d.Joined(); len(list) != 1 || list[0].Name != "gpu3" || list[0].Since.IsZero() {
			t.Errorf("joined: %+v", list)
		}
		if _, err := serve(t, d, token, "second", alive); !errors.Is(err, engine.ErrTaken) {
			t.Errorf("a second machine of the name: %v", err)
		}
		if is(first) {
			t.Fatal("the first is cut off by one that was refused")
		}
		again, err := serve(t, d, token, "first", dead)
		synctest.Wait()
		if err != nil || !is(first) || is(again) {
			t.Errorf("the same machine comes again: %v; its connection before ended: %v", err, is(first))
		}
		began := time.Now()
		third, err := serve(t, d, token, "third", alive)
		synctest.Wait()
		if err != nil || !is(again) || is(third) || time.Since(began) > claimTime+time.Second {
			t.Errorf("where the one before is dead: %v after %v", err, time.Since(began))
		}
		if _, connected, _, _ := d.links[0].State(); !connected {
			t.Error("it is not connected")
		}
		_ = d.Close(t.Context())
		synctest.Wait()
		if !is(third) {
			t.Error("a driver that is closed keeps its machine")
		}
	})
}

// A token is valid for one machine of one engine until it is revoked or replaced; then its machine
// is disconnected.
func TestAdmits_UntilTokenIsRevoked(t *testing.T) {
	t.Parallel()
	for how, revoke := range map[string]func(dir string, s *engine.Setting) error{
		"removed":   func(dir string, s *engine.Setting) error { return setting.RevokeTokens(dir, s.Name) },
		"made anew": func(dir string, s *engine.Setting) error { _, err := setting.NewToken(dir, s, "gpu3"); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			d, s, dir, token := rack(t)
			for _, other := range []string{"", "join.", "join.rack.gpu3.", token + "x", token[:len(token)-1],
				strings.Replace(token, "gpu3", "gpu4", 1), strings.Replace(token, "rack", "lab", 1), "join.rack.gpu3.x.y",
				"scrimp_" + strings.Repeat("A", 43)} {
				if _, ok := d.Admits(other); ok {
					t.Errorf("%q is taken", other)
				}
				if _, err := d.Claim(t.Context(), other, "s"); !errors.Is(err, engine.ErrStranger) {
					t.Errorf("%q: %v", other, err)
				}
			}
			if name, ok := d.Admits(token); !ok || name != "gpu3" {
				t.Fatalf("its own token: %q, %v", name, ok)
			}
			text, err := os.ReadFile(filepath.Join(setting.Dir(dir, "rack"), setting.TokensName))
			if err != nil || strings.Contains(string(text), token[len(token)-20:]) {
				t.Errorf("the token is stored in plain text: %v %s", err, text)
			}
			ended, err := serve(t, d, token, "s", alive)
			must.Do(t, err)
			time.Sleep(time.Minute)
			if is(ended) {
				t.Fatal("cut off with a token that is good")
			}
			must.Do(t, revoke(dir, s))
			time.Sleep(revokedLook + time.Second)
			if !is(ended) {
				t.Errorf("%s: still connected", how)
			}
			if _, err := serve(t, d, token, "s", alive); !errors.Is(err, engine.ErrStranger) {
				t.Errorf("%s: %v", how, err)
			}
		})
	}
}

// A machine may send only answers of limited length; otherwise it is disconnected.
func TestBounded_LimitsMemoryOfJoinedMachine(t *testing.T) {
	t.Parallel()
	for what, send := range map[string]func(w io.Writer) error{
		"a line without end": func(w io.Writer) (err error) {
			for part := strings.Repeat("x", 1<<16); err == nil; {
				_, err = io.WriteString(w, part)
			}
			return err
		},
		"answers that nobody asked for": func(w io.Writer) (err error) {
			for err == nil {
				_, err = io.WriteString(w, "{\"id\":0}\n")
			}
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, _, _, token := rack(t)
			seat, err := d.Claim(t.Context(), token, "s")
			must.Do(t, err)
			near, far := net.Pipe()
			sent := &tally{}
			go func() {
				_, _ = fmt.Fprintf(far, "\n%s\n", hostd.Greeting)
				go func() { _, _ = io.Copy(io.Discard, far) }()
				_ = send(io.MultiWriter(far, sent))
			}()
			if err := seat.Serve(t.Context(), near); !errors.Is(err, errBound) {
				t.Errorf("%s: %v", what, err)
			}
			synctest.Wait()
			if sent.n > maxJoinedLine+(1<<17) {
				t.Errorf("%s: %d bytes were accepted", what, sent.n)
			}
		})
	}
}

type tally struct{ n int }

func (c *tally) Write(b []byte) (int, error) { c.n += len(b); return len(b), nil }

// What a joined machine reports about itself affects neither its price nor other machines, and
// controls no terminal.
func TestBelieved_IgnoresUntrustedFields(t *testing.T) {
	t.Parallel()
	d, _, _, _ := rack(t)
	l, now := d.links[0], time.Now().UTC()
	at := now.Add(-time.Hour)
	d.journal.Keys["mine"] = &launched{Hosts: []string{"gpu3"}, Offer: "rack/own/c/reserved", Rate: 5, At: at}
	d.journal.Keys["theirs"] = &launched{Hosts: []string{"gpu4"}, At: at}
	of := func(id, key string, change func(*engine.Instance)) engine.Instance {
		i := engine.Instance{ID: id, Key: key, State: engine.Running, Launched: now.Add(time.Hour), Rate: 1e15,
			Offer: "x\x1b[2J", Tags: map[string]string{"a": "b", "e": "\x1b[31m"}}
		if change != nil {
			change(&i)
		}
		return i
	}
	list := d.believed(l, []engine.Instance{
		of("rack-gpu3-1", "mine", nil), of("rack-gpu3-2", "theirs", nil), of("rack-gpu3-3", "unknown", nil),
		of("rack-gpu3-\x1b", "mine", nil), of(strings.Repeat("x", 300), "mine", nil),
		of("rack-gpu3-4", "mine", func(i *engine.Instance) { i.State = "paused" }),
		of("other-gpu3-5", "mine", nil),
		of("rack-gpu3-6", "mine", func(i *engine.Instance) { i.State, i.Ended = engine.Ended, now.Add(time.Hour) }),
		of("rack-gpu3-7", "mine", func(i *engine.Instance) { i.State, i.Ended, i.Cause = engine.Ended, at.Add(-time.Hour), "won" }),
	})
	got := map[string]engine.Instance{}
	for _, i := range list {
		got[i.ID] = i
		if i.Launched.After(time.Now()) || i.Ended.After(time.Now()) || i.Tags["e"] != "" || strings.ContainsRune(string(i.Offer), 27) {
			t.Errorf("%+v", i)
		}
	}
	if len(got) != 6 {
		t.Fatalf("%d are believed: %+v", len(got), list)
	}
	if i := got["rack-gpu3-1"]; i.Rate != 5 || !i.Launched.Equal(at) || i.Offer != "rack/own/c/reserved" {
		t.Errorf("one that was asked for: %+v", i)
	}
	if i := got["rack-gpu3-2"]; i.Key != "" {
		t.Errorf("one whose key was given to another machine: %+v", i)
	}
	if i := got["rack-gpu3-3"]; i.Rate != *l.Host.Rate {
		t.Errorf("one that nobody knows costs %v", i.Rate)
	}
	if i := got["other-gpu3-5"]; i.Key != "" || i.Rate != 0 {
		t.Errorf("another server's: %+v", i)
	}
	if i := got["rack-gpu3-7"]; !i.Ended.Equal(at) || i.Cause != engine.Stopped {
		t.Errorf("one that ended before it began: %+v", i)
	}
}
