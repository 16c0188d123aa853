//go:build !local

package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/store/backup"
	"scrimp/internal/wire/api"
)

// copies takes a backup while a gang runs, and restores it beside the original. The copy is the next incarnation:
// until somebody releases the original's machines, it launches nothing, and it never terminates them.
func (c *chaos) copies(round int, file string) backup.Sum {
	key, end := fmt.Sprintf("k-%d", round), fmt.Sprintf("go-%d", round)
	id := c.submit(key, gang("k", `"nodes":2,"resources":{"capacity":["on-demand"]}`, "1", end))
	var was api.Job
	c.until(id, func(j api.Job) bool { was = j; return len(j.Nodes) == 2 && j.SavedStep > 0 })
	runs := map[string][]int{}
	for _, n := range was.Nodes {
		runs[n.Machine] = processes(n.Machine)
	}
	sum := c.backUp(file)
	b := c.restored(file, sum)
	b.waits(runs)
	b.goesOn()
	b.leaves()
	for machine, pids := range runs {
		if len(pids) == 0 || !slices.Contains(processes(machine), pids[0]) {
			c.t.Errorf("machine %s of the original has not the processes that it had: %v", machine, pids)
		}
	}
	if now, _ := c.job(id); now.Attempts != was.Attempts || now.State != "running" {
		c.t.Errorf("job %s of the original is %s in its attempt %d, was in %d", id, now.State, now.Attempts, was.Attempts)
	}
	chaosMust(c.t, os.WriteFile(filepath.Join(c.dir, "meet", end), nil, 0o600))
	return sum
}

// restored starts a server on a data folder of its own, with the log of a backup and a copy of the market.
func (c *chaos) restored(file string, sum backup.Sum) *chaos {
	dir, err := os.MkdirTemp("", "r")
	chaosMust(c.t, err)
	b := &chaos{t: c.t, dir: filepath.Join(dir, "d"), exe: c.exe, cluster: c.cluster, token: c.token, known: map[string]string{}}
	c.t.Cleanup(b.sweep)
	b.sells(b.dir)
	args := []string{"restore", file, "--json"}
	if c.cluster != nil {
		b.db = c.cluster.Database(c.t)
		args = append(args, "--db", b.db)
	}
	out, err := b.cli(args...)
	var got backup.Sum
	if err = errors.Join(err, json.Unmarshal(out, &got)); err != nil || got != sum {
		c.t.Fatalf("the backup of %+v is restored as %+v: %v\n%s", sum, got, err, out)
	}
	chaosMust(c.t, os.MkdirAll(filepath.Join(b.dir, "market"), 0o700))
	text, err := os.ReadFile(filepath.Join(c.dir, "market", "market.journal"))
	chaosMust(c.t, err)
	text = text[:strings.LastIndexByte(string(text), '\n')+1] // the last line may be incomplete
	chaosMust(c.t, os.WriteFile(filepath.Join(b.dir, "market", "market.journal"), text, 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	chaosMust(c.t, err)
	b.servers = []*chaosServer{{address: l.Addr().String()}}
	chaosMust(c.t, l.Close())
	b.owned.Go(func() { b.keepUp(b.servers[0]) })
	b.lead(time.Minute)
	return b
}

// swept waits until the copy has compared its market's list with its state.
func (c *chaos) swept() {
	var heard time.Time
	for sweeps := 0; sweeps < 3; {
		var s api.Server
		c.insist("GET", "/v1/server", nil, &s)
		if len(s.Engines) == 1 && s.Engines[0].Heard.Sub(heard) > 1500*time.Millisecond {
			heard, sweeps = s.Engines[0].Heard, sweeps+1
		}
		rest(50 * time.Millisecond)
	}
}

// own returns the machines that the copy has rented.
func (c *chaos) own() (list []engine.Instance) {
	for _, i := range c.inventory() {
		if i.Tags["scrimp-incarnation"] == "2" {
			list = append(list, i)
		}
	}
	return list
}

// waits checks that a copy asks for the ownership of machines and does nothing before.
func (c *chaos) waits(runs map[string][]int) {
	var list []api.Undecided
	if status := c.insist("GET", "/v1/instances/undecided", nil, &list); status != http.StatusOK {
		c.t.Fatalf("the copy answers %d", status)
	}
	for machine := range runs {
		if !slices.ContainsFunc(list, func(u api.Undecided) bool { return u.Instance == machine && !u.Ended }) {
			c.t.Errorf("the copy does not ask whose %s is: %+v", machine, list)
		}
	}
	before := c.inventory()
	id := c.submit("copy", `{"name":"w","command":"true","team":"a"}`)
	c.swept()
	if j, _ := c.job(id); j.State != "queued" || len(c.own()) > 0 {
		c.t.Errorf("before anybody has decided the copy's job is %s, and it has rented %+v", j.State, c.own())
	}
	for _, i := range before {
		for _, now := range c.inventory() {
			if now.ID == i.ID && i.State == engine.Running && now.Cause == engine.Terminated {
				c.t.Errorf("before anybody has decided the copy has ended %s", i.ID)
			}
		}
	}
}

// goesOn releases the machines: the copy runs its jobs on others.
func (c *chaos) goesOn() {
	if out, err := c.cli("release", "--all"); err != nil {
		c.t.Errorf("release: %v\n%s", err, out)
	}
	id := c.known["copy"]
	if state := c.until(id, func(j api.Job) bool { return over(j.State) }); state != "succeeded" || len(c.own()) == 0 {
		c.t.Errorf("once they are released the copy's job is %s, on %+v", state, c.own())
	}
	c.swept()
}

// leaves stops a copy and its machines.
func (c *chaos) leaves() {
	c.over.Store(true)
	own := c.own()
	if out, err := c.cli("server", "stop", "--now"); err != nil {
		c.t.Errorf("stop the copy: %v\n%s", err, out)
		_ = syscall.Kill(int(c.servers[0].pid.Load()), syscall.SIGKILL)
	}
	c.owned.Wait()
	for _, i := range own {
		if left := processes(i.ID); len(left) > 0 {
			c.t.Errorf("the copy has left processes of %s: %v", i.ID, left)
		}
	}
	_ = os.RemoveAll(filepath.Dir(c.dir))
}
