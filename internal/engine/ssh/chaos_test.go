package ssh

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/engine"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var chaosFor = flag.Duration("chaos", 2*time.Minute, "how long machines and their server are hurt (make chaos-ssh)")

// chaos injects faults into machines, one kind at a time.
type chaos struct {
	*home
	rng   *rand.Rand
	heals map[int]heal // by machine; 0: all of them
}

type heal struct {
	at time.Time
	do func()
}

// A server and machines with a real sshd suffer faults of every kind for a while. They lose no job
// and rent nothing twice: every job ends as it should, exactly one counting attempt made each of
// its steps, all sums agree, and nothing runs at the end.
func TestHome_LosesNothingUnderFaults(t *testing.T) {
	lane.Nightly(t, "it hurts machines and their server for as long as -chaos says")
	h := newHome(t, 4, 82, "poll: 500ms, sweep: 500ms, detect: 10s")
	seed := uint64(time.Now().UnixNano())
	c := &chaos{h, rand.New(rand.NewPCG(1, seed)), map[int]heal{}}
	began := time.Now()
	names, hurts := h.Chaos(*chaosFor, func(name string) (string, error) { return h.counts(name, 20+c.rng.IntN(60)) },
		func() time.Duration { return time.Duration(500+c.rng.IntN(4000)) * time.Millisecond }, c.hurt)
	c.healed(time.Now().Add(time.Hour))
	attempts := h.Outcomes(names, h.until, h.once)
	h.Does("ledger", "verify")
	for k := range h.n {
		h.until(fmt.Sprintf("nothing runs on m%d", k+1), func() bool { return len(h.records(k + 1)[engine.Running]) == 0 })
	}
	machines := 0
	for k := range h.n {
		machines += len(h.records(k + 1)[engine.Ended])
	}
	t.Logf("%v: %d jobs, %d attempts, %d machines began, hurt as %v (seed %d)", time.Since(began).Round(time.Second),
		len(names), attempts, machines, hurts, seed)
}

var made = regexp.MustCompile(`(?m)made (\d+) (\S+)`)

// once checks that a job is done, and that successive attempts made its steps in order. Steps made
// meanwhile by a disconnected machine do not count.
func (h *home) once(j client.Job) {
	h.Helper()
	if j.State != "succeeded" {
		return
	}
	r := h.Receipt(j.Name)
	at, list := 0, made.FindAllStringSubmatch(h.Does("logs", j.Name), -1)
	for n, m := range slices.Backward(list) { // an attempt that lost its machine after printing steps prints them again
		if m[1] == "1" {
			list = list[n:]
			break
		}
	}
	for n, m := range list {
		if m[1] != fmt.Sprint(n+1) {
			h.Errorf("%s: step %s was made after step %d", j.Name, m[1], n)
		}
		for at < len(r.Tries) && r.Tries[at].Instance != m[2] {
			at++
		}
		if at == len(r.Tries) {
			h.Errorf("%s: step %s was made on %s, after another attempt had begun", j.Name, m[1], m[2])
			return
		}
	}
	if len(list) < 20 {
		h.Errorf("%s: it says of %d steps where they were made:\n%s", j.Name, len(list), h.Does("logs", j.Name))
	}
}

// records returns the instances in a machine's folder, by state. No key has started two.
func (h *home) records(k int) map[engine.State][]engine.Instance {
	h.Helper()
	paths, err := filepath.Glob(filepath.Join(h.folder, "hosts", fmt.Sprintf("m%d", k), "*", "machine.json"))
	must.Do(h, err)
	states := map[engine.State][]engine.Instance{}
	for _, path := range paths {
		var i engine.Instance
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &i)
		}
		must.Do(h, err)
		states[i.State] = append(states[i.State], i)
		if other, known := h.began[i.Key]; known && other != i.ID {
			h.Errorf("%s began %s and %s", i.Key, other, i.ID)
		}
		h.began[i.Key] = i.ID
	}
	return states
}

// healed ends the faults that have lasted long enough.
func (c *chaos) healed(now time.Time) {
	for k, h := range c.heals {
		if now.After(h.at) {
			h.do()
			delete(c.heals, k)
		}
	}
}

// hurt injects one fault into a machine or the server, and returns its name.
func (c *chaos) hurt() string {
	c.Helper()
	c.healed(time.Now())
	k := 1 + c.rng.IntN(c.n)
	if _, ill := c.heals[k]; ill || len(c.heals) > 2 {
		return ""
	}
	lasts := func(least, most int, do func()) {
		c.heals[k] = heal{time.Now().Add(time.Duration(least+c.rng.IntN(most-least)) * time.Second), do}
	}
	switch c.rng.IntN(9) {
	case 0:
		c.Cut(c, k)
		lasts(1, 5, func() { c.Restore(c, k) })
		return "cable out for a moment"
	case 1, 2:
		c.Cut(c, k)
		lasts(12, 40, func() { c.Restore(c, k) })
		return "cable out"
	case 3:
		c.EndSSHD(c, k)
		lasts(1, 20, func() { c.On(c, k) })
		return "sshd killed"
	case 4:
		c.Off(c, k)
		lasts(1, 20, func() { c.On(c, k) })
		return "power lost"
	case 5:
		c.Reboot(c, k)
		return "booted"
	case 6:
		if _, ill := c.heals[0]; ill {
			return ""
		}
		c.Revoke(c)
		k = 0
		lasts(3, 15, func() { c.Allow(c) })
		return "key revoked"
	case 7:
		c.breaks(k)
		return "connections broken"
	}
	c.KillServer()
	return "server killed"
}

// breaks kills the connections of a machine and the processes that serve them; its sshd keeps listening.
func (c *chaos) breaks(k int) {
	for _, pid := range c.Pids(c, k) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := strings.Split(string(line), "\x00")
		serves := strings.HasPrefix(words[0], "sshd: ") && !strings.Contains(words[0], "[listener]")
		if serves || slices.Contains(words, "hostd") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
